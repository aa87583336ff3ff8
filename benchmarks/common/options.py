# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the benchmarks' command lines have in common."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from .processes import ROOT, existing

JsonFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the rows here.")
]

Build = Annotated[
    Path | None,
    typer.Option(help="The folder of the clients. [default: build/release/benchmarks]"),
]


HOW_TO_INSTALL = "`scripts/make-venv dev train` in the checkout has them"


def only(option: str, known: Sequence[str], what: str) -> Any:
    """An option that may be repeated; its value is for `choice`."""
    return typer.Option(option, metavar="|".join(known), help=f"Only this {what}.")


def plot_file(default: str) -> Any:
    """The option ``--plot``."""
    said = f"Where the plot goes. [default: {default}]"
    return typer.Option("--plot", metavar="FILE", help=said)


Names = list[str] | None

LOCAL_RUNNERS = ("pipe", "shm")
LocalRunner = Annotated[Names, only("--runner", LOCAL_RUNNERS, "runner")]

MODEL_RUNNERS = ("onnx", "aot")  # Of models that clang asks in its own process.
ModelRunner = Annotated[Names, only("--runner", MODEL_RUNNERS, "runner")]

Rounds = Annotated[
    int, typer.Option(min=1, help="How often each is measured; medians are shown.")
]

Plugin = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="[default: build/release/lib/MLBridgeLLVM.so]"),
]


def choice(
    option: str, given: list[str] | None, known: tuple[str, ...]
) -> tuple[str, ...]:
    """What was asked for, which must be among what there is; all, if nothing was."""
    for name in given or ():
        if name not in known:
            raise typer.BadParameter(
                f"{name!r}: there are {', '.join(known)}", param_hint=option
            )
    return tuple(given or known)


def parse_counts(option: str, text: str) -> tuple[int, ...]:
    """Numbers with commas between, each 1 or more."""
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise typer.BadParameter(f"{text!r}: expected N,N,...", param_hint=option)
    return found


def find_plugin(given: Path | None) -> Path:
    """Where the LLVM plug-in is."""
    return existing(
        given or ROOT / "build" / "release" / "lib" / "MLBridgeLLVM.so",
        "`make build` in a checkout makes it, and --plugin says where it is otherwise",
    )


def find_vocabulary(given: Path | None) -> Path:
    """Where the vocabulary of embeddings is."""
    return existing(
        given or ROOT / "build" / "ir2vec" / "ir2vec-300d.json",
        "`make build` in a checkout fetches it, and --vocabulary says where it is"
        " otherwise",
    )


def progress_on(console: Console, *, auto_refresh: bool = True) -> Progress:
    """A progress bar; without auto_refresh it draws only when it is told to."""
    return Progress(
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        auto_refresh=auto_refresh,
    )


def begin(progress: Progress, name: str, total: int) -> Callable[[], None]:
    """Shows a step of so many parts; what is returned shows that one more is done."""
    task = progress.add_task(name, total=total)
    progress.refresh()
    return partial(progress.update, task, advance=1, refresh=True)


def write_rows(
    console: Console, rows: Sequence[dict[str, Any]], json_file: Path | None
) -> None:
    """Writes the rows to the file, if one is wanted, and says so."""
    if json_file is not None:
        json_file.write_text(json.dumps(rows, indent=2) + "\n")
        console.print(f"rows: {json_file}")


def write_plot(console: Console, path: Path, draw: Callable[[Path], None]) -> None:
    """Draws to a file, and says so."""
    draw(path)
    console.print(f"plot: {path}")
