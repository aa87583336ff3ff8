# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tile sizes, loop order and unroll factors of MLIR's loop nests."""
