# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench neighbour``."""

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextlib import nullcontext as quiet
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from mlbridge.terminal import TableConsole
from mlbridge_benchmarks.common import options as cli
from mlbridge_benchmarks.common import processes
from mlbridge_benchmarks.common.tables import plain_table

from .measurement import Subject, Workers
from .runners import RUNNERS
from .workload import Workload

TRIPS_A_SWEEP = 1000

LIMIT = 2.0  # A busy neighbour may cost so much of the quiet median.

BUSY = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
print("busy", flush=True)
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


@contextmanager
def neighbour(core: int) -> Iterator[None]:
    """A process that never rests, on that core, while the body runs."""
    with processes.started([sys.executable, "-c", BUSY, str(core)]) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield


def measure(
    runner: str,
    placement: processes.Placement,
    work: Workload,
    trips: int,
    build: Path,
    on_sweep: Callable[[], None],
) -> list[dict[str, Any]]:
    """Times the trips of one runner without a busy neighbour and with one."""
    rows = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mlb")))
        work.save(folder)
        workers = Workers(placement, build, folder, fresh=False, stack=stack)
        worker = workers.runner(Subject(RUNNERS[runner], "bitstream", "echo"))
        worker.sweep()
        for busy in (False, True):
            with neighbour(placement.model) if busy else quiet():
                times = []
                for _ in range(sweeps_of(trips)):
                    sweep = worker.sweep()
                    work.check("echo", sweep.replies)
                    times.append(sweep.microseconds)
                    on_sweep()
            us = np.concatenate(times)
            row: dict[str, Any] = {"runner": runner, "placement": placement.name}
            row |= {"busy": busy, "trips": len(us), "median_us": float(np.median(us))}
            row |= {"mean_us": float(us.mean()), "max_us": float(us.max())}
            rows.append(row | {"p99_us": float(np.percentile(us, 99))})
    return rows


def sweeps_of(trips: int) -> int:
    """How many sweeps make at least so many trips."""
    return -(-trips // TRIPS_A_SWEEP)


def table(rows: Sequence[dict[str, Any]]) -> Table:
    """The rows, each busy one against the quiet one before it."""
    shown = plain_table(
        "one core's busy neighbour, us a trip",
        ("runner", "placement", "neighbour"),
        ("trips", "median", "/ quiet", "mean", "p99", "max"),
    )
    base = 0.0
    for row in rows:
        base = base if row["busy"] else row["median_us"]
        ratio = f"{row['median_us'] / base:.2f}" if row["busy"] else ""
        if row["busy"] and row["median_us"] > LIMIT * base:
            ratio = f"[red]{ratio}[/]"
        shown.add_row(
            *(row["runner"], row["placement"], "busy" if row["busy"] else "quiet"),
            *(str(row["trips"]), f"{row['median_us']:.2f}", ratio),
            *(f"{row['mean_us']:.2f}", f"{row['p99_us']:.2f}", f"{row['max_us']:.0f}"),
        )
    return shown


def neighbour_command(
    trips: Annotated[
        int, typer.Option(min=1, help="Round trips of each row, in full thousands.")
    ] = 100_000,
    floats: Annotated[
        int, typer.Option(min=1, max=1 << 20, help="How many float32s are sent.")
    ] = 500,
    runner: cli.LocalRunner = None,
    json_file: cli.JsonFile = None,
    build: cli.Build = None,
) -> None:
    """Time round trips while a third process keeps the model's core busy.

    Waiting by spinning is fast and rude: it takes the core from whoever else wants it,
    the awaited side included. Here a process that never rests shares the model's core;
    the median should stay below twice what it is without one. Fairness has its price in
    the mean: with three on two cores, or two and a neighbour on one, somebody waits.
    """
    console = TableConsole(highlight=False)
    found_build = processes.find_build(build)
    chosen = [
        (name, p)
        for name in cli.choice("--runner", runner, cli.LOCAL_RUNNERS)
        for p in processes.placements()
    ]
    rows: list[dict[str, Any]] = []
    # It draws between sweeps.
    with cli.progress_on(console, auto_refresh=False) as progress:
        for name, placement in chosen:
            total = 2 * sweeps_of(trips)
            advance = cli.begin(progress, f"{name}, {placement.name}", total)
            what = Workload.make((floats,) * TRIPS_A_SWEEP)
            rows += measure(name, placement, what, trips, found_build, advance)
    console.print(table(rows))
    cli.write_rows(console, rows, json_file)
