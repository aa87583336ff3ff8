# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench neighbour``: round trips while another process is busy."""

import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
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
LIMIT = 2.0  # The maximum ratio of the busy median to the quiet median.

BUSY = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
print("busy", flush=True)
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


def measure(
    runner: str,
    placement: processes.Placement,
    work: Workload,
    trips: int,
    build: Path,
    on_sweep: Callable[[], None],
) -> list[dict[str, Any]]:
    """Times the trips of one runner, first without and then with a busy neighbour."""
    rows = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mlb")))
        work.save(folder)
        workers = Workers(placement, build, folder, fresh=False, stack=stack)
        worker = workers.runner(Subject(RUNNERS[runner], "bitstream", "echo"))
        worker.sweep()
        for busy in (False, True):
            if busy:
                command = [sys.executable, "-c", BUSY, str(placement.model)]
                process = stack.enter_context(processes.started(command))
                processes.Worker("the neighbour", process).line()
            times = []
            for _ in range(sweeps_of(trips)):
                sweep = worker.sweep()
                work.check("echo", sweep.replies)
                times.append(sweep.microseconds)
                on_sweep()
            us = np.concatenate(times)
            rows.append(
                {
                    **{"runner": runner, "placement": placement.name, "busy": busy},
                    **{"trips": len(us), "median_us": float(np.median(us))},
                    **{"mean_us": float(us.mean()), "max_us": float(us.max())},
                    "p99_us": float(np.percentile(us, 99)),
                }
            )
    return rows


def sweeps_of(trips: int) -> int:
    """Returns the number of sweeps that have at least this number of trips."""
    return -(-trips // TRIPS_A_SWEEP)


def table(rows: Sequence[dict[str, Any]]) -> Table:
    """Returns a table. Each busy row is compared with the quiet row before it."""
    shown = plain_table(
        "one core's busy neighbour, µs a trip",
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
        int, typer.Option(min=1, help="Round trips per row, rounded up to thousands.")
    ] = 100_000,
    floats: Annotated[
        int, typer.Option(min=1, max=1 << 20, help="Float32s per request.")
    ] = 500,
    runner: cli.LocalRunner = None,
    json_file: cli.JsonFile = None,
    build: cli.Build = None,
) -> None:
    """Measure round trips while a third process keeps the model's core busy.

    A runner that spins is fast, but it takes the core from other processes, including
    its peer. In this benchmark, a busy process shares the model's core. It should at
    most double the median time. The mean rises further, because the processes must take
    turns.
    """
    console = TableConsole(highlight=False)
    found_build = processes.find_build(build)
    chosen = [
        (name, p)
        for name in cli.choice("--runner", runner, cli.LOCAL_RUNNERS)
        for p in processes.placements()
    ]
    rows: list[dict[str, Any]] = []
    # Draw the progress bar only between sweeps.
    with cli.progress_on(console, auto_refresh=False) as progress:
        for name, placement in chosen:
            total = 2 * sweeps_of(trips)
            advance = cli.begin(progress, f"{name}, {placement.name}", total)
            what = Workload.make((floats,) * TRIPS_A_SWEEP)
            rows += measure(name, placement, what, trips, found_build, advance)
    console.print(table(rows))
    cli.write_rows(console, rows, json_file)
