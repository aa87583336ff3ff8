# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge log``: shows and compares logs, and finds a decision that breaks code."""

import csv
import itertools
import math
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table
from typer.core import TyperGroup

from mlbridge.cli.bisection import (
    MODULE,
    ModuleLogs,
    OneLog,
    ReplayTest,
    first_failing_of,
    replay,
)
from mlbridge.cli.comparison import Difference, compare
from mlbridge.files import OwnFolder
from mlbridge.log import Observation, TensorSpec, TrainingLog, read_log
from mlbridge.printable import name, words
from mlbridge.terminal import console
from mlbridge.types import Feature

# The maximum number of changed features in one cell.
_MOST_NAMES = 3

_File = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Log.")]


class _LogGroup(TyperGroup):
    """Runs the command `show` if the arguments do not begin with a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["show", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_LogGroup,
    no_args_is_help=True,
    help="""Show or compare training logs, or find the decision that breaks a program.

`mlbridge log FILE` is short for `mlbridge log show FILE`.
""",
)


@app.command()
def show(
    file: _File,
    head: Annotated[
        int, typer.Option(min=0, help="Number of observations to show.")
    ] = 5,
    stats: Annotated[
        bool, typer.Option("--stats", help="Show statistics of the whole log.")
    ] = False,
    as_csv: Annotated[
        bool,
        typer.Option(
            "--csv", help="Print the whole log as CSV, with unescaped strings."
        ),
    ] = False,
) -> None:
    r"""Show a training log: the features and decisions that a compiler recorded.

    LLVM's option `-training-log` writes logs, and so does the spec `record:FILE|SPEC`.
    For example:

    ```sh
    clang-22 -O2 -fpass-plugin=MLBridgeLLVM.so -mllvm \
        "-mlbridge-inliner=record:zlib.log|none" -c inflate.c
    mlbridge log zlib.log --csv > zlib.csv
    ```
    """
    if stats and as_csv:
        raise typer.BadParameter("--stats and --csv are mutually exclusive")
    training_log = read_log(file)
    if as_csv:
        _write_csv(training_log)
    elif stats:
        _show_stats(training_log)
    else:
        console.print(_table(training_log, list(itertools.islice(training_log, head))))


@app.command()
def diff(
    first: _File,
    second: _File,
    as_csv: Annotated[
        bool,
        typer.Option("--csv", help="Print the table as CSV, with unescaped strings."),
    ] = False,
) -> None:
    r"""Show the requests for which two logs contain different decisions.

    Requests with the same context and the same number are compared. The column
    "changed features" lists the features whose values also differ. The exit status is
    0 even if decisions differ.

    A context of LLVM's inliner names the call only with these options of clang:

    ```sh
    for m in a b; do
        clang-22 -Oz -gline-tables-only -fpass-plugin=MLBridgeLLVM.so \
            -mllvm -mlbridge-inliner-name-calls \
            -mllvm "-mlbridge-inliner=record:$m.log|onnx:$m.onnx" -c inflate.c
    done
    mlbridge log diff a.log b.log
    ```
    """
    logs = read_log(first), read_log(second)
    found = compare(*logs)
    if as_csv:
        _write_differences(found.differences, logs[0].advice)
        return
    paths = [name(str(log.path)) for log in logs]
    if found.differences:
        console.print(_difference_table(found.differences, logs[0].advice, paths))
    console.print(
        f"{len(found.differences)} of {found.in_both} common requests have different"
        f" decisions; {found.only_in_first} requests are only in {paths[0]}, and"
        f" {found.only_in_second} only in {paths[1]}",
        soft_wrap=True,
    )


@app.command()
def bisect(
    file: Annotated[
        Path, typer.Argument(help="Log, or the logs of all modules: logs/{module}.log.")
    ],
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND...", help="Command of the test.")
    ],
    timeout: Annotated[
        float,
        typer.Option(
            min=0.001,
            help="Time limit of one test in seconds. A test that takes longer fails.",
        ),
    ] = 600,
) -> None:
    r"""Find the decision in a log that breaks a program.

    Each run of COMMAND must compile and test the program with the model spec that
    replaces `{spec}`. The spec selects the first N decisions of the log. After these,
    the compiler decides itself. Exit status 0 means that the program works, 125 means
    that it cannot be tested, and any other status means that it is broken. For 10,000
    decisions, the command runs at most 14 times.

    If the program has several modules, FILE must be the file name in the spec that
    recorded the logs, for example `logs/{module}.log`. The command first finds the
    module, and then the decision. For F logs with at most M decisions each, it runs at
    most log2(F) + 1 + log2(M) times, with both logarithms rounded up.

    The script test.sh may be:

    ```sh
    clang-22 -O2 -fpass-plugin=MLBridgeLLVM.so -mllvm -mlbridge-on-error=fatal \
        -mllvm "-mlbridge-inliner=$1" -c inflate.c || exit 125
    clang-22 *.o -o inflate && ./inflate < input | cmp - expected
    ```

    ```sh
    mlbridge log bisect inflate.log -- sh test.sh {spec}
    ```
    """
    with OwnFolder("mlbridge-bisect-") as own:
        is_several = MODULE in str(file)
        logs = ModuleLogs(file, own.path) if is_several else OneLog(file)
        test = ReplayTest(command, timeout)

        def fails(complete: int, decisions: int) -> str | None:
            why = test.run(logs.spec(complete, decisions))
            if len(logs.logs) > 1 and not decisions:
                part = f"{complete} of {len(logs.logs)} logs"
            else:
                part = f"{decisions} of {logs.counts[complete]} decisions"
                if is_several:
                    part += f" in {name(logs.logs[complete].path.name)}"
            console.print(
                f"{part}: {'works' if why is None else 'broken'}", soft_wrap=True
            )
            return why

        place, number = first_failing_of(logs.counts, fails)
    training_log, count = logs.logs[place], logs.counts[place]
    culprit = next(itertools.islice(training_log, number - 1, None))
    console.print(_table(training_log, [culprit]))
    path = training_log.path
    where = f" in {name(str(path))}" if is_several else ""
    whose = "For its module, the" if is_several else "The"
    console.print(
        f"Decision {number} of {count}{where} breaks the program. {whose} last spec"
        f" that works is {name(replay(path, number - 1))}",
        soft_wrap=True,
    )


def _table(training_log: TrainingLog, shown: Sequence[Observation]) -> Table:
    """Returns a table with one row per feature and one column per observation."""
    table = Table(title=name(str(training_log.path)), title_justify="left")
    table.add_column("feature", no_wrap=True)
    table.add_column("type", style="dim")
    for observation in shown:
        table.add_column(
            f"{name(_one_line(observation.context))} {observation.index}",
            justify="right",
            overflow="fold",
        )
    for spec in training_log.features:
        cells = (_shorten(observation.features[spec.name]) for observation in shown)
        table.add_row(name(spec.name), str(spec), *cells)
    table.add_section()
    advice = training_log.advice
    decisions = (_shorten(observation.advice) for observation in shown)
    table.add_row(name(advice.name), str(advice), *decisions, style="bold")
    if reward := training_log.reward:
        rewards = (f"{observation.reward:g}" for observation in shown)
        table.add_row(name(reward.name), str(reward), *rewards)
    return table


def _shorten(value: Feature) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value.squeeze(), threshold=4, edgeitems=2, precision=4)
    return words(str(value))


def _show_stats(training_log: TrainingLog) -> None:
    arrays = training_log.as_arrays()
    count = len(arrays.contexts)
    console.print(
        f"{name(str(training_log.path))}: {count} observations of "
        f"{len(set(arrays.contexts))} contexts",
        soft_wrap=True,
    )
    table = Table()
    table.add_column("feature", no_wrap=True)
    table.add_column("type", style="dim")
    for column in ("min", "mean", "max", "distinct"):
        table.add_column(column, justify="right")
    for spec in training_log.features:
        table.add_row(name(spec.name), str(spec), *_summary(arrays.features[spec.name]))
    table.add_section()
    advice = training_log.advice
    decided = name(advice.name)
    table.add_row(decided, str(advice), *_summary(arrays.advice), style="bold")
    if (reward := training_log.reward) and arrays.rewards is not None:
        table.add_row(name(reward.name), str(reward), *_summary(arrays.rewards))
    console.print(table)
    if arrays.advice.size == count > 0:
        decisions = Counter(arrays.advice.ravel().tolist()).most_common(8)
        shares = (
            f"{name(str(value))} {100 * n / count:.1f} %" for value, n in decisions
        )
        console.print(f"{decided}: {', '.join(shares)}")


def _summary(values: np.ndarray[Any, Any]) -> tuple[str, str, str, str]:
    if values.size == 0:
        return "", "", "", "0"
    distinct = str(len(np.unique(values)))
    # Strings have dtype object. They have no minimum, mean or maximum.
    if values.dtype.kind == "O":
        return "", "", "", distinct
    x = values.astype(float)
    return f"{x.min():g}", f"{x.mean():g}", f"{x.max():g}", distinct


def _write_csv(training_log: TrainingLog) -> None:
    writer = csv.writer(sys.stdout)
    names = ["context", "observation"]
    for spec in (*training_log.features, training_log.advice):
        names += _columns(spec)
    if training_log.reward:
        names.append(training_log.reward.name)
    writer.writerow(names)
    for observation in training_log:
        row: list[Any] = [_one_line(observation.context), observation.index]
        for value in (*observation.features.values(), observation.advice):
            row += _cells(value)
        writer.writerow(row + [observation.reward] * bool(training_log.reward))


def _columns(spec: TensorSpec) -> list[str]:
    """Returns the names of a tensor's columns in CSV."""
    count = 1 if spec.lengths is not None else math.prod(spec.shape)
    return [spec.name] if count == 1 else [f"{spec.name}[{i}]" for i in range(count)]


def _cells(value: Feature) -> list[Any]:
    """Returns a tensor's cells in a row of CSV."""
    return value.ravel().tolist() if isinstance(value, np.ndarray) else [value]


def _one_line(context: str) -> str:
    """Returns a context without line breaks.

    LLVM's inliner separates the callee and the call's location by a line break.
    """
    return context.replace("\n", " ")


def _difference_table(
    differences: Sequence[Difference], advice: TensorSpec, paths: Sequence[str]
) -> Table:
    """Returns a table with one row per request."""
    table = Table(title=name(advice.name), title_justify="left")
    table.add_column("context", overflow="fold")
    table.add_column("observation", justify="right")
    for path in paths:
        table.add_column(path, justify="right", overflow="fold", style="bold")
    table.add_column("changed features", overflow="fold")
    for difference in differences:
        one, other = difference.first, difference.second
        changed = ", ".join(map(name, difference.features[:_MOST_NAMES]))
        if (more := len(difference.features) - _MOST_NAMES) > 0:
            changed += f" and {more} more"
        table.add_row(
            name(_one_line(one.context)),
            str(one.index),
            _shorten(one.advice),
            _shorten(other.advice),
            changed,
        )
    return table


def _write_differences(differences: Sequence[Difference], advice: TensorSpec) -> None:
    writer = csv.writer(sys.stdout)
    columns = _columns(advice)
    pairs = [f"{which} {column}" for which in ("first", "second") for column in columns]
    writer.writerow(["context", "observation", *pairs, "changed features"])
    for difference in differences:
        one, other = difference.first, difference.second
        cells = [*_cells(one.advice), *_cells(other.advice)]
        changed = " ".join(difference.features)
        writer.writerow([_one_line(one.context), one.index, *cells, changed])
