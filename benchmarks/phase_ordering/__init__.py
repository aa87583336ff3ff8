# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Phase ordering, compared with a flow that starts a process for each action."""
