# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Describes the optimisation mlir-tiling for the registry."""

from mlbridge_optimizations.optimization import NoSettings, Optimization

from .commands import COMMANDS, NAME

OPTIMIZATION: Optimization[NoSettings] = Optimization(
    NAME,
    "Which tile sizes, loop orders and unroll factors MLIR's loops get.",
    commands=COMMANDS,
)
