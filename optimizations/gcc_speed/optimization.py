# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Describes the optimisation gcc-speed for the registry."""

from mlbridge_optimizations.optimization import NoSettings, Optimization

from .commands import COMMANDS, NAME

OPTIMIZATION: Optimization[NoSettings] = Optimization(
    NAME,
    "Which calls gcc -O2 inlines, and by which factors it unrolls loops.",
    commands=COMMANDS,
)
