# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is going on, on the terminal."""

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from mlbridge.terminal import errors
from mlbridge_optimizations.show import ShowStage


def progress_bars() -> Progress:
    """Progress as all commands of this kind show it."""
    return Progress(
        TextColumn("{task.description:18}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=errors,
    )


def stages_on(bars: Progress) -> ShowStage:
    """Shows stages as bars: each by its name, how much is done, and of how much."""
    tasks: dict[str, TaskID] = {}

    def show(stage: str, done: int, total: int) -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage)
        bars.update(tasks[stage], completed=done, total=total)

    return show
