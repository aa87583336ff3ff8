# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options and output that the benchmarks' commands share."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from mlbridge.errors import Unsupported

from . import savedmodel
from .processes import ROOT, existing

JsonFile = Annotated[
    Path | None,
    typer.Option(
        "--json", metavar="FILE", help="Write the rows of the tables to FILE."
    ),
]

Build = Annotated[
    Path | None,
    typer.Option(
        help="The folder of the benchmark clients. [default: build/release/benchmarks]"
    ),
]

HOW_TO_INSTALL = "`scripts/make-venv dev train` in the checkout installs them"


def only(option: str, known: Sequence[str], what: str) -> Any:
    """Returns a repeatable option. `choice` checks its values."""
    said = f"Only this {what}. May be repeated."
    return typer.Option(option, metavar="|".join(map(quote, known)), help=said)


def plot_file(default: str) -> Any:
    """Returns the option ``--plot``."""
    said = f"Write the plot to FILE. [default: {default}]"
    return typer.Option("--plot", metavar="FILE", help=said)


Names = list[str] | None
LOCAL_RUNNERS = ("pipe", "shm")
LocalRunner = Annotated[Names, only("--runner", LOCAL_RUNNERS, "runner")]
# The runners that evaluate the model in clang's own process.
MODEL_RUNNERS = ("onnx", "aot", savedmodel.TF, savedmodel.TF_AOT)
ModelRunner = Annotated[Names, only("--runner", MODEL_RUNNERS, "runner")]
Rounds = Annotated[
    int, typer.Option(min=1, help="Rounds of measurements. Tables show the medians.")
]

Plugin = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="MLBridgeLLVM.so. [default: build/release/lib/MLBridgeLLVM.so]",
    ),
]


def choice(
    option: str, given: list[str] | None, known: tuple[str, ...]
) -> tuple[str, ...]:
    """Returns the given names after a check, or all known names by default."""
    for name in given or ():
        if name not in known:
            raise typer.BadParameter(
                f"{name!r}: expected {', '.join(known)}", param_hint=option
            )
    return tuple(given or known)


def available(
    console: Console,
    option: str,
    given: list[str] | None,
    known: tuple[str, ...],
    missing: Callable[[str], str] = savedmodel.missing,
) -> tuple[str, ...]:
    """Returns the given names after a check, or by default all available names.

    ``missing`` returns what a name lacks, or "". By default, prints the names that are
    not available.

    Raises:
        BadParameter: a given name is not known.
        Unsupported: a given name is not available.
    """
    chosen, reasons = choice(option, given, known), dict[str, str]()
    for name in chosen:
        if why := missing(name):
            reasons[name] = why
    if given and reasons:
        raise Unsupported("; ".join(f"{name}: {why}" for name, why in reasons.items()))
    for name, why in reasons.items():
        console.print(f"[yellow]no {name}: {escape(why)}[/]")
    return tuple(name for name in chosen if name not in reasons)


def missing_in(build: Path, runner: str) -> str:
    """Returns what an in-process runner lacks in a build, or ""."""
    if why := savedmodel.missing(runner):
        return why
    if runner == savedmodel.TF and not (build.parent / "lib/MLBridge-tf.so").exists():
        return "this build has no TensorFlow; make a new build/release, which finds it"
    return ""


def parse_counts(option: str, text: str) -> tuple[int, ...]:
    """Parses a list of positive numbers that are separated by commas."""
    try:
        found = tuple(map(int, text.split(",")))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise typer.BadParameter(f"{text!r}: expected N,N,...", param_hint=option)
    return found


def find_plugin(given: Path | None) -> Path:
    """Returns the path of the LLVM plug-in."""
    return existing(
        given or ROOT / "build/release/lib/MLBridgeLLVM.so",
        "run `make build` in a checkout, or name it with --plugin",
    )


def find_vocabulary(given: Path | None) -> Path:
    """Returns the path of IR2Vec's vocabulary."""
    return existing(
        given or ROOT / "build/ir2vec/ir2vec-300d.json",
        "run `make build` in a checkout, or name it with --vocabulary",
    )


def progress_on(console: Console, *, auto_refresh: bool = True) -> Progress:
    """Returns a progress bar. Without auto_refresh, it is drawn only on request."""
    return Progress(
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        auto_refresh=auto_refresh,
    )


def begin(progress: Progress, name: str, total: int) -> Callable[[], None]:
    """Shows a task of `total` parts. Call the returned function after each part."""
    task = progress.add_task(name, total=total)
    progress.refresh()
    return partial(progress.update, task, advance=1, refresh=True)


def write_rows(
    console: Console, rows: Sequence[dict[str, Any]], json_file: Path | None
) -> None:
    """Writes the rows to the file, if a file is given, and prints the file's name."""
    if json_file is not None:
        json_file.write_text(json.dumps(rows, indent=2) + "\n")
        console.print(f"rows: {json_file}")


def write_plot(console: Console, path: Path, draw: Callable[[Path], None]) -> None:
    """Draws a plot to a file and prints the file's name."""
    draw(path)
    console.print(f"plot: {path}")
