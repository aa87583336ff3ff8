# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench rtt``: round trips between a compiler and a model."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from typer import Option

from mlbridge.options import with_options
from mlbridge.terminal import TableConsole
from mlbridge_benchmarks.common import options as cli
from mlbridge_benchmarks.common.processes import find_build, placements
from mlbridge_benchmarks.common.tables import bounds_table

from . import inprocess, report
from .measurement import MLIR_PLUGIN, Results, measure, rounds_of, subjects
from .runners import RUNNERS, kinds
from .workload import LENGTHS, Workload, parse_lengths

SERDES = tuple(sorted({name for r in RUNNERS.values() for name in r.serdes}))
ALL = tuple(RUNNERS)
WORDS = (*kinds(), *inprocess.RUNTIMES)
PLACEMENTS = ("one-core", "two-cores")


def _in_process(
    console: Console, build: Path, asked: list[str] | None
) -> tuple[str, ...]:
    """Returns the requested runtimes that are available. Prints those that are not."""
    # ``tf`` selects both runners of TensorFlow.
    words = {name: (name, name.partition("-")[0]) for name in inprocess.RUNTIMES}
    wanted = [n for n in inprocess.RUNTIMES if set(words[n]) & set(asked or ())]
    if asked and not wanted:
        return ()
    missing = inprocess.available(build)
    names = wanted or inprocess.RUNTIMES
    for name in names:
        if missing[name]:
            console.print(f"[yellow]no {name}: {escape(missing[name])}[/]")
    return tuple(name for name in names if not missing[name])


@dataclass(frozen=True)
class _Options:
    sweeps: Annotated[
        int, Option(min=1, help="Round trips per length after the warm-up.")
    ] = 20
    lengths: Annotated[
        str,
        Option(
            metavar="N,N,...|FIRST:LAST:STEP", help="Numbers of float32s per request."
        ),
    ] = f"{LENGTHS[0]}:{LENGTHS[-1]}:{LENGTHS[1] - LENGTHS[0]}"
    placement: Annotated[
        cli.Names, cli.only("--placement", PLACEMENTS, "placement of the processes")
    ] = None
    runner: Annotated[cli.Names, cli.only("--runner", WORDS, "runner")] = None
    serdes: Annotated[cli.Names, cli.only("--serdes", SERDES, "message format")] = None
    fresh: Annotated[
        bool,
        Option(
            "--fresh",
            help="Write the features again before each trip, so that they are only in"
            " the cache of the compiler's core. This write is not timed.",
        ),
    ] = False
    mlir: Annotated[
        bool,
        Option("--mlir", help="Send the requests from a pass of the stock mlir-opt."),
    ] = False
    json_file: cli.JsonFile = None
    plot_file: Annotated[
        Path | None,
        Option(
            "--plot",
            metavar="FILE",
            help="Write the plot to FILE. The plot of in-process models gets the"
            " suffix -inprocess. [default: rtt.png beside rtt-client]",
        ),
    ] = None
    build: cli.Build = None


def _rtt(context: typer.Context, by: _Options) -> None:
    """Measure the time of round trips between a compiler in C++ and a model.

    For each length N, the compiler sends N float32s to a model in Python and receives
    one float32. Each runner is compared with its floor, which is the time of the
    transport without this library. The last table compares results with our limits, and
    marks results above their limit as "missed". Such results are not an error, because
    they depend on the machine.

    The runners of in-process models (onnx, aot, tf and tf-aot) are compared with a
    direct call to the same runtime. --placement, --serdes and --fresh do not affect
    them. "tf" loads a SavedModel with TensorFlow's library, and "tf-aot" runs the same
    model compiled to machine code. The option `--runner tf` selects both. The first run
    takes a few seconds longer per model, because it compiles the models.

    ```sh
    mlbridge bench rtt --runner pipe --runner shm --lengths 500,5000
    mlbridge bench rtt --runner onnx --runner aot --runner tf
    mlbridge bench rtt --runner pipe --mlir
    ```
    """
    console = TableConsole(highlight=False)
    try:
        asked = parse_lengths(by.lengths)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--lengths") from None
    work = Workload.make(asked)
    found_build = find_build(by.build)
    if by.mlir and not (found_build / MLIR_PLUGIN).exists():
        raise typer.BadParameter("this build has no MLIR", param_hint="--mlir")
    words = cli.choice("--runner", by.runner, WORDS)
    if not by.runner:
        words = ALL
        if not (found_build / "grpc-floor-server").exists():
            console.print("[yellow]this build has no gRPC[/]")
            words = tuple(name for name in ALL if not name.startswith("grpc"))
    runtimes = _in_process(console, found_build, by.runner)
    words = tuple(word for word in words if word in kinds())
    chosen = subjects(
        [name for word in words for name in kinds()[word]],
        cli.choice("--serdes", by.serdes, SERDES),
    )
    wanted = cli.choice("--placement", by.placement, PLACEMENTS)
    where = [p for p in placements() if p.name in wanted]
    if missing := set(wanted) - {p.name for p in where}:
        console.print(f"[yellow]only one core is here: no {', '.join(missing)}[/]")

    measured: list[Results] = []
    # Draw the progress bar only between sweeps.
    with cli.progress_on(console, auto_refresh=False) as progress:
        for p in where if chosen else ():
            advance = cli.begin(progress, p.name, rounds_of(by.sweeps))
            one = measure(
                *(p, work, chosen, by.sweeps, by.fresh, found_build, advance),
                in_pass=by.mlir,
            )
            measured.append(one)
        inside: list[inprocess.Measured] = []
        if runtimes:
            lengths = inprocess.lengths_of(asked)
            batches = inprocess.BATCHES_A_SWEEP * by.sweeps
            begin = partial(cli.begin, progress)
            inside = inprocess.measure(runtimes, lengths, batches, found_build, begin)

    for results in measured:
        console.print(report.sweeps_table(results))
    if inside:
        console.print(inprocess.table(inside))
    found = [b for r in measured for b in report.bounds(r)]
    console.print(bounds_table(found + inprocess.bounds(inside)))
    rows = [report.row(r, subject) for r in measured for subject in r.subjects]
    rows += inprocess.rows(inside)
    cli.write_rows(console, rows, by.json_file)
    path = by.plot_file or found_build / "rtt.png"
    if measured:
        cli.write_plot(console, path, partial(report.plot, measured))
    if inside:
        path = path.with_stem(f"{path.stem}-inprocess")
        cli.write_plot(console, path, partial(inprocess.plot, inside))


rtt = with_options(_rtt, _Options)
