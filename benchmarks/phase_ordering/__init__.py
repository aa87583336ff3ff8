# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Phase ordering, compared with a flow that starts processes for each action."""
