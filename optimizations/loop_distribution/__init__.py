# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Learned distribution, vectorisation, interleaving and unrolling of loops."""
