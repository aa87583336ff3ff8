# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Describes the optimisation smallest-code for the registry."""

from mlbridge_optimizations.optimization import NoSettings, Optimization

from . import commands, explain_command, parts_command

OPTIMIZATION: Optimization[NoSettings] = Optimization(
    "smallest-code",
    "Which calls are inlined for the least code.",
    commands={
        **commands.COMMANDS,
        **explain_command.COMMANDS,
        **parts_command.COMMANDS,
    },
)
