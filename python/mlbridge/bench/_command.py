# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench rtt``."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from mlbridge.bench import plot, report
from mlbridge.bench.measurement import Results, measure, rounds_of, subjects
from mlbridge.bench.runners import RUNNERS
from mlbridge.bench.workers import find_build, placements
from mlbridge.bench.workload import LENGTHS, Workload, parse_lengths

SERDES = tuple(sorted({name for r in RUNNERS.values() for name in r.serdes}))
PLACEMENTS = ("one-core", "two-cores")


def _choice(
    option: str, given: list[str] | None, known: tuple[str, ...]
) -> tuple[str, ...]:
    for name in given or ():
        if name not in known:
            raise typer.BadParameter(
                f"{name!r}: there are {', '.join(known)}", param_hint=option
            )
    return tuple(given or known)


def _lengths(text: str) -> tuple[int, ...]:
    try:
        return parse_lengths(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--lengths") from None


def rtt(
    sweeps: Annotated[
        int, typer.Option(min=1, help="Round trips for each length that count.")
    ] = 20,
    lengths: Annotated[
        str,
        typer.Option(
            metavar="N,N,...|FIRST:LAST:STEP", help="How many float32s are sent."
        ),
    ] = f"{LENGTHS[0]}:{LENGTHS[-1]}:{LENGTHS[1] - LENGTHS[0]}",
    placement: Annotated[
        list[str] | None,
        typer.Option(metavar="|".join(PLACEMENTS), help="Only this placement."),
    ] = None,
    runner: Annotated[
        list[str] | None,
        typer.Option(metavar="|".join(RUNNERS), help="Only this runner."),
    ] = None,
    serdes: Annotated[
        list[str] | None,
        typer.Option(metavar="|".join(SERDES), help="Only this format."),
    ] = None,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Write the features anew before each trip, which is not timed: they "
            "are then in the compiler's cache alone. Else they are written once.",
        ),
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the rows here.")
    ] = None,
    plot_file: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Where the plot goes. [default: rtt.png beside rtt-client]",
        ),
    ] = None,
    build: Annotated[
        Path | None,
        typer.Option(
            help="The folder of rtt-client. [default: build/release/benchmarks]"
        ),
    ] = None,
) -> None:
    """Time round trips between a compiler in C++ and a model in Python.

    For each length, the compiler sends that many float32s and waits for one to come
    back; each runner is held against the raw floor of its transport, measured in
    turns with it. Limits that are missed are shown, and are no failure: times are
    this machine's affair. A wrong answer is one.
    """
    console = Console(highlight=False)
    asked = _lengths(lengths)
    work = Workload.make(asked)
    chosen = subjects(
        _choice("--runner", runner, tuple(RUNNERS)), _choice("--serdes", serdes, SERDES)
    )
    wanted = _choice("--placement", placement, PLACEMENTS)
    found_build = find_build(build)
    where = [p for p in placements() if p.name in wanted]
    if missing := set(wanted) - {p.name for p in where}:
        console.print(f"[yellow]only one core is here: no {', '.join(missing)}[/]")
    if not (can_plot := plot.is_available()):
        console.print("[yellow]no plot: `pip install matplotlib` for one[/]")

    measured: list[Results] = []
    columns = "{task.description}", BarColumn(), MofNCompleteColumn()
    # It draws when it is told to, which is between sweeps.
    with Progress(
        *columns, TimeRemainingColumn(), console=console, auto_refresh=False
    ) as progress:
        for p in where:
            task = progress.add_task(p.name, total=rounds_of(sweeps))
            progress.refresh()
            advance = partial(progress.update, task, advance=1, refresh=True)
            measured.append(
                measure(
                    p,
                    work,
                    chosen,
                    sweeps=sweeps,
                    fresh=fresh,
                    build=found_build,
                    on_round=advance,
                )
            )

    for results in measured:
        console.print(report.sweeps_table(results))
    console.print(report.bounds_table([b for r in measured for b in report.bounds(r)]))
    if json_file is not None:
        json_file.write_text(json.dumps(report.rows(measured), indent=2) + "\n")
        console.print(f"rows: {json_file}")
    if can_plot and measured:
        path = plot_file or found_build / "rtt.png"
        plot.save(measured, path)
        console.print(f"plot: {path}")
