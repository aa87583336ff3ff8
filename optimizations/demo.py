# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the demos share: steps under way, and what is shown and written at the end."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table


class Step:
    """One line of progress, while it is under way."""

    def __init__(self, progress: Progress, task: TaskID):
        self._progress = progress
        self._task = task

    def advance(self, detail: str = "") -> None:
        """One more piece is done."""
        self._progress.update(self._task, advance=1, detail=detail)

    def reach(self, done: int, detail: str = "") -> None:
        """So many pieces are done by now."""
        self._progress.update(self._task, completed=done, detail=detail)


class Steps:
    """The lines of progress, and the seconds that each took; a context manager."""

    def __init__(self, console: Console):
        self.seconds: dict[str, float] = {}
        self._progress = Progress(
            TextColumn("{task.description:37}"),
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[detail]}", style="dim"),
            console=console,
        )

    def __enter__(self) -> "Steps":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    @contextmanager
    def step(self, name: str, pieces: int) -> Iterator[Step]:
        """A step of so many pieces, or of fewer if it ends early."""
        task = self._progress.add_task(name, total=pieces, detail="")
        start = time.perf_counter()
        yield Step(self._progress, task)
        self.seconds[name] = time.perf_counter() - start
        self._progress.update(task, total=self._progress.tasks[task].completed)


@contextmanager
def demo_on(console: Console, *failures: type[Exception]) -> Iterator[Steps]:
    """The steps of a demo; one of these failures ends it with a line that says why."""
    try:
        with Steps(console) as steps:
            yield steps
    except failures as failure:
        console.print(f"demo: {failure}", style="red", markup=False, highlight=False)
        raise typer.Exit(1) from None


def side_by_side(
    title: str, ways: Sequence[str], rows: Mapping[str, Sequence[str]]
) -> Table:
    """A table with a column for each way, and a row for each property."""
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for way in ways:
        table.add_column(way, justify="right")
    for name, cells in rows.items():
        table.add_row(name, *cells)
    return table


def write_figures(path: Path | None, figures: Mapping[str, Any]) -> None:
    """Writes them as JSON, if a file is wanted."""
    if path:
        path.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
