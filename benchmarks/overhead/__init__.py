# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the plug-in adds to clang."""
