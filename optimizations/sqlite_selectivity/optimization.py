# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Describes the optimisation sqlite-selectivity for the registry."""

from mlbridge_optimizations.optimization import NoSettings, Optimization

from .commands import COMMANDS

OPTIMIZATION: Optimization[NoSettings] = Optimization(
    "sqlite-selectivity",
    "Which share of a table's rows a condition of SQL accepts.",
    commands=COMMANDS,
)
