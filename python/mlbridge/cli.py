# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line: ``mlbridge``."""

import csv
import importlib
import itertools
import logging
import math
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console, RenderableType
from rich.live import Live
from rich.logging import RichHandler
from rich.table import Table
from rich.text import Text

from mlbridge import __version__
from mlbridge.doctor import Check, checks
from mlbridge.errors import Error
from mlbridge.log import Observation, TrainingLog, read_log
from mlbridge.server import Statistics
from mlbridge.server import serve as serve_policy
from mlbridge.types import Feature, Policy

app = typer.Typer(
    name="mlbridge",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""The model's side of ML-Compiler-Bridge: any compiler asks any ML model.

Start here:

- `mlbridge doctor` shows what this machine has, and how to get the rest.
- `mlbridge serve policy:decide --at pipe:/tmp/advisor` answers compilers with
  the function `decide` of `policy.py`.
- `clang-22 -O2 -fpass-plugin=MLBridgeLLVM.so -mllvm
  -mlbridge-inliner=pipe:/tmp/advisor a.c` asks it whether to inline.
- `mlbridge log zlib.log` shows what a compiler recorded.
""",
)
console = Console()
errors = Console(stderr=True)


def main() -> None:
    """Runs the command line: errors in one line, exit status 1, or 2 for wrong use."""
    try:
        app()
    except (Error, OSError) as error:
        errors.print(Text.assemble(("error: ", "bold red"), str(error)))
        sys.exit(1)


def _show_version(wanted: bool) -> None:
    if wanted:
        console.print(f"mlbridge {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None: ...


# ---- doctor ----


@app.command()
def doctor() -> None:
    """Show what is available here, with versions, and how to get what is missing.

    Exits with 1 when something is missing without which nothing works.
    """
    found = checks()
    table = Table(box=None, pad_edge=False)
    for column in ("", "", "found", ""):
        table.add_column(column, overflow="fold")
    for group, members in itertools.groupby(found, key=lambda check: check.group):
        for i, check in enumerate(members):
            table.add_row(group if i == 0 else "", *_doctor_row(check))
        table.add_section()
    console.print(table)
    missing = [check.name for check in found if check.found is None and check.required]
    if missing:
        errors.print(f"[bold red]missing:[/] {', '.join(missing)}")
        raise typer.Exit(1)


def _doctor_row(check: Check) -> tuple[RenderableType, ...]:
    style = "green" if check.found else "red" if check.required else "yellow"
    return (
        Text(check.name),
        Text(check.found or "missing", style),
        Text(check.hint, "dim"),
    )


# ---- serve ----


@app.command()
def serve(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FUNCTION",
            help="The policy, importable from here: from features to a decision.",
        ),
    ],
    at: Annotated[
        str, typer.Option("--at", metavar="SPEC", help="Where: `pipe:/tmp/advisor`.")
    ],
    sessions: Annotated[
        int | None,
        typer.Option(min=1, help="Stop when so many compilers have come and gone."),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(min=0, help="Give up after so many seconds without a question."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop when the policy fails.")
    ] = False,
) -> None:
    """Answer compilers with a Python function, until Ctrl-C.

    The function gets the features of a question, a dict of NumPy arrays by name, and
    returns a number, a bool, a string, a list or an array of them, a dict of several
    outputs, or None to leave the decision to the compiler:

        # policy.py
        def decide(features):
            return features["callee_basic_block_count"] < 8

        $ mlbridge serve policy:decide --at pipe:/tmp/advisor

    Foreign compilers, which know bare pipes only, speak the SerDes that the spec names:
    `--at "pipe:/tmp/advisor?serdes=json"`.
    """
    function = _load(policy)
    logging.basicConfig(
        level=logging.INFO,
        format="%(message)s",
        handlers=[RichHandler(console=errors, show_path=False)],
    )
    # A service manager's stop is as clean as Ctrl-C.
    signal.signal(signal.SIGTERM, _interrupt)
    statistics = Statistics()
    with Live(
        get_renderable=_StatusLine(at, statistics),
        console=errors,
        refresh_per_second=4,
        transient=True,
    ):
        serve_policy(
            function,
            at,
            sessions=sessions,
            timeout=timeout,
            on_error="raise" if strict else "reply",
            statistics=statistics,
        )
    console.print(str(statistics), highlight=False)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _load(name: str) -> Policy:
    """The function that MODULE:FUNCTION names."""
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise typer.BadParameter(f"expected MODULE:FUNCTION, found '{name}'")
    # As `python -m` does; a console script's path does not begin here.
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise typer.BadParameter(f"there is no module '{module_name}' here") from None
    for part in path.split("."):
        if not hasattr(found, part):
            raise typer.BadParameter(f"module '{module_name}' has no '{path}'")
        found = getattr(found, part)
    if not callable(found):
        raise typer.BadParameter(f"'{name}' cannot be called")
    policy: Policy = found
    return policy


class _StatusLine:
    """One line about a running server."""

    def __init__(self, at: str, statistics: Statistics) -> None:
        self._at = at
        self._statistics = statistics
        self._last = (time.monotonic(), 0, 0.0)
        self._rate = self._mean = 0.0

    def __call__(self) -> RenderableType:
        now, questions = time.monotonic(), self._statistics.questions
        spent = self._statistics.policy_seconds
        then, before, spent_before = self._last
        if now - then >= 0.5:
            self._rate = (questions - before) / (now - then)
            if questions > before:
                self._mean = 1e6 * (spent - spent_before) / (questions - before)
            self._last = (now, questions, spent)
        counts = self._statistics
        return Text(
            f"{self._at}  {counts.open} compilers now, {counts.sessions} in all  "
            f"{questions} questions, {self._rate:.0f}/s, {self._mean:.1f} us in the "
            f"policy  {counts.errors} failed",
            no_wrap=True,
            overflow="ellipsis",
        )


# ---- log ----


@app.command()
def log(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False)],
    head: Annotated[
        int, typer.Option(min=0, help="How many observations to show.")
    ] = 5,
    stats: Annotated[
        bool, typer.Option("--stats", help="Show what the whole log is like.")
    ] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Write the whole log as CSV, for other tools.")
    ] = False,
) -> None:
    r"""Show a training log, as `record:FILE` and LLVM's `-training-log` write it.

    Such as:

        $ clang-22 -O2 -fpass-plugin=MLBridgeLLVM.so -mllvm \
            "-mlbridge-inliner=record:zlib.log|none" -c inflate.c

        $ mlbridge log zlib.log --head 3

        $ mlbridge log zlib.log --stats

        $ mlbridge log zlib.log --csv > zlib.csv
    """
    if stats and as_csv:
        raise typer.BadParameter("--stats and --csv are two different things")
    training_log = read_log(file)
    if as_csv:
        _write_csv(training_log)
    elif stats:
        console.print(_stats_table(training_log))
    else:
        console.print(_head_table(training_log, head))


def _head_table(training_log: TrainingLog, count: int) -> Table:
    """The first observations side by side, since there are more features than them."""
    shown = list(itertools.islice(training_log, count))
    table = Table(title=str(training_log.path), title_justify="left")
    table.add_column("feature", no_wrap=True)
    table.add_column("type", style="dim")
    for observation in shown:
        table.add_column(
            f"{observation.context} {observation.index}",
            justify="right",
            overflow="fold",
        )
    for spec in training_log.features:
        cells = (_shorten(observation.features[spec.name]) for observation in shown)
        table.add_row(spec.name, str(spec), *cells)
    table.add_section()
    advice = training_log.advice
    decisions = (_shorten(observation.advice) for observation in shown)
    table.add_row(advice.name, str(advice), *decisions, style="bold")
    if training_log.reward:
        rewards = (f"{observation.reward:g}" for observation in shown)
        table.add_row(training_log.reward.name, str(training_log.reward), *rewards)
    return table


def _shorten(value: Feature) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value.squeeze(), threshold=4, edgeitems=2, precision=4)
    return str(value)


def _stats_table(training_log: TrainingLog) -> Table:
    arrays = training_log.as_arrays()
    title = (
        f"{training_log.path}: {len(arrays.contexts)} observations of "
        f"{len(set(arrays.contexts))} contexts"
    )
    table = Table(title=title, title_justify="left")
    table.add_column("feature", no_wrap=True)
    table.add_column("type", style="dim")
    for column in ("min", "mean", "max", "distinct"):
        table.add_column(column, justify="right")
    for spec in training_log.features:
        table.add_row(spec.name, str(spec), *_summary(arrays.features[spec.name]))
    table.add_section()
    advice = training_log.advice
    table.add_row(advice.name, str(advice), *_summary(arrays.advice), style="bold")
    if training_log.reward is not None and arrays.rewards is not None:
        reward = training_log.reward
        table.add_row(reward.name, str(reward), *_summary(arrays.rewards))
    if arrays.advice.size == len(arrays.contexts) > 0:
        counts = Counter(arrays.advice.ravel().tolist()).most_common(8)
        table.caption = f"{advice.name}: " + ", ".join(
            f"{value} {100 * count / len(arrays.contexts):.1f} %"
            for value, count in counts
        )
    return table


def _summary(values: np.ndarray[Any, Any]) -> tuple[str, str, str, str]:
    if values.size == 0:
        return "", "", "", "0"
    distinct = str(len(np.unique(values)))
    if values.dtype.kind == "U":
        return "", "", "", distinct
    numbers = values.astype(float)
    return (
        f"{numbers.min():g}",
        f"{numbers.mean():g}",
        f"{numbers.max():g}",
        distinct,
    )


def _write_csv(training_log: TrainingLog) -> None:
    writer = csv.writer(sys.stdout)
    specs = [*training_log.features, training_log.advice]
    names = ["context", "observation"]
    for spec in specs:
        count = 1 if spec.lengths is not None else math.prod(spec.shape)
        names += (
            [spec.name] if count == 1 else [f"{spec.name}[{i}]" for i in range(count)]
        )
    if training_log.reward:
        names.append(training_log.reward.name)
    writer.writerow(names)
    for observation in training_log:
        writer.writerow(_csv_row(observation))


def _csv_row(observation: Observation) -> Iterator[Any]:
    yield observation.context
    yield observation.index
    for value in (*observation.features.values(), observation.advice):
        if isinstance(value, np.ndarray):
            yield from value.ravel().tolist()
        else:
            yield value
    if observation.reward is not None:
        yield observation.reward
