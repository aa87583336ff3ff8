# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Describes the optimisation polyhedral-tiling for the registry."""

from mlbridge_optimizations.optimization import NoSettings, Optimization

from .commands import COMMANDS

OPTIMIZATION: Optimization[NoSettings] = Optimization(
    "polyhedral-tiling",
    "Which schedules, tile sizes and loop orders C kernels get.",
    commands=COMMANDS,
)
