# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Round trips: each runner compared with the raw floor of its transport."""
