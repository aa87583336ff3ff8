# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code that demos share: steps with progress, and tables."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import typer
from rich.console import Console
from rich.progress import TaskID, TextColumn
from rich.table import Table

from mlbridge_optimizations.commands.progress import ProgressBars


@dataclass(frozen=True)
class Step:
    """A step that is running. Its progress is one line of the display."""

    progress: ProgressBars
    task: TaskID

    def advance(self, detail: str = "") -> None:
        """Counts one more finished piece."""
        self.progress.update(self.task, advance=1, detail=detail)

    def reach(self, done: int, detail: str = "") -> None:
        """Sets the number of finished pieces."""
        self.progress.update(self.task, completed=done, detail=detail)


class Steps(ProgressBars):
    """Shows a line of progress for each step, and records the step's seconds."""

    def __init__(self, console: Console):
        self.seconds: dict[str, float] = {}
        detail = TextColumn("{task.fields[detail]}", style="dim")
        super().__init__(detail, width=37, bar=12, console=console)

    @contextmanager
    def step(self, name: str, pieces: int) -> Iterator[Step]:
        """Runs a step. `pieces` is the expected number of pieces of work."""
        task = self.add_task(name, total=pieces, detail="")
        start = time.perf_counter()
        yield Step(self, task)
        self.seconds[name] = time.perf_counter() - start
        self.update(task, total=self.tasks[task].completed)


@contextmanager
def demo_on(console: Console, *failures: type[Exception]) -> Iterator[Steps]:
    """Yields the steps. Prints exceptions of the types `failures`, and exits with 1."""
    try:
        with Steps(console) as steps:
            yield steps
    except failures as failure:
        console.print(f"demo: {failure}", style="red", markup=False, highlight=False)
        raise typer.Exit(1) from None


def side_by_side(
    title: str, ways: Sequence[str], rows: Mapping[str, Sequence[str]]
) -> Table:
    """Makes a table with a column for each way to reach a model.

    Each property has a row.
    """
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for way in ways:
        table.add_column(way, justify="right")
    for name, cells in rows.items():
        table.add_row(name, *cells)
    return table
