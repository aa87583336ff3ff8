# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cost of a model in clang's inliner."""
