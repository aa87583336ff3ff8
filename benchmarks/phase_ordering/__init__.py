# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Phase ordering, compared with the flow that starts a process for each pass."""
