# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an inliner that asks costs clang."""
