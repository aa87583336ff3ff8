# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Learned inlining and unrolling for speed in stock gcc -O2."""
