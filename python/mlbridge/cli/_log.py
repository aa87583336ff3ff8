# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge log``: shows training logs."""

import csv
import itertools
import math
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from mlbridge.log import TrainingLog, read_log
from mlbridge.printable import name, words
from mlbridge.terminal import console
from mlbridge.types import Feature


def log(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Log.")],
    head: Annotated[
        int, typer.Option(min=0, help="Number of observations to show.")
    ] = 5,
    stats: Annotated[
        bool, typer.Option("--stats", help="Show statistics of the whole log.")
    ] = False,
    as_csv: Annotated[
        bool,
        typer.Option("--csv", help="Print the whole log as CSV, with raw strings."),
    ] = False,
) -> None:
    r"""Show a training log: the features and decisions that a compiler recorded.

    LLVM's option `-training-log` writes logs, and so does the model spec `record:FILE`:

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
        console.print(_head_table(training_log, head))


def _head_table(training_log: TrainingLog, count: int) -> Table:
    """Returns a table with one row per feature and one column per observation."""
    shown = list(itertools.islice(training_log, count))
    table = Table(title=name(str(training_log.path)), title_justify="left")
    table.add_column("feature", no_wrap=True)
    table.add_column("type", style="dim")
    for observation in shown:
        table.add_column(
            f"{name(observation.context)} {observation.index}",
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
        count = 1 if spec.lengths is not None else math.prod(spec.shape)
        names += (
            [spec.name] if count == 1 else [f"{spec.name}[{i}]" for i in range(count)]
        )
    if training_log.reward:
        names.append(training_log.reward.name)
    writer.writerow(names)
    for observation in training_log:
        row: list[Any] = [observation.context, observation.index]
        for value in (*observation.features.values(), observation.advice):
            is_array = isinstance(value, np.ndarray)
            row += value.ravel().tolist() if is_array else [value]
        writer.writerow(row + [observation.reward] * bool(training_log.reward))
