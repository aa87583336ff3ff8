# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shows progress as bars on a terminal, or as lines in a file."""

from collections.abc import Callable
from functools import partial
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from mlbridge.terminal import errors
from mlbridge_optimizations.show import Show

EVERY = 10.0
"""Seconds between two lines of progress if stderr is not a terminal."""


class ProgressBars(Progress):
    """Shows bars on a terminal. Elsewhere, prints a line every `EVERY` seconds."""

    def __init__(
        self,
        *columns: ProgressColumn,
        width: int = 18,
        bar: int = 24,
        console: Console = errors,
    ) -> None:
        """Creates the bars, with `columns` behind the name, bar, count and time.

        `width` and `bar` are the widths of the name and the bar, in characters.
        """
        super().__init__(
            TextColumn(f"{{task.description:{width}}}"),
            BarColumn(bar_width=bar),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            *columns,
            console=console,
        )
        self._stages: dict[str, TaskID] = {}
        self._printed = self.get_time()

    def update(self, task_id: TaskID, **changes: Any) -> None:
        """Changes a task. Prints its progress if `EVERY` seconds have passed."""
        super().update(task_id, **changes)
        now = self.get_time()
        if not self.console.is_terminal and now - self._printed >= EVERY:
            self._printed, task = now, self.tasks[task_id]
            count = f"{task.completed:,.0f} of {task.total or 0:,.0f}"
            self.console.print(
                f"{task.description}: {count}, {task.elapsed or 0:.0f} s"
            )

    def show_stage(self, stage: str, done: int, total: int) -> None:
        """Shows each stage as a separate bar. This method is a `ShowStage`."""
        if stage not in self._stages:
            self._stages[stage] = self.add_task(stage)
        self.update(self._stages[stage], completed=done, total=total)

    def stage(self, name: str) -> Show:
        """Returns a `Show` for one stage."""
        return partial(self.show_stage, name)

    def steps(self, stage: str, total: int) -> Callable[..., None]:
        """Shows a stage. Call the returned function after each of `total` steps.

        The returned function ignores its arguments.
        """
        self.show_stage(stage, 0, total)
        return lambda *_: self.update(self._stages[stage], advance=1)
