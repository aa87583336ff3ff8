# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code size of whole programs: searches for decisions that stock clang can replay."""
