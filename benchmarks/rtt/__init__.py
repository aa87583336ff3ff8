# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Round trips. Each runner is compared with the floor of its transport."""
