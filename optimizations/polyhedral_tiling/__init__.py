# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A learned choice of schedule, tile sizes and loop order for loop nests."""
