# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The size, time and memory that the plug-in adds to clang."""
