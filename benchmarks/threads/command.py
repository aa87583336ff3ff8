# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench threads``."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from typer import Option

from mlbridge.errors import ModelError
from mlbridge.options import with_options
from mlbridge.terminal import TableConsole
from mlbridge_benchmarks.common import options as cli
from mlbridge_benchmarks.common.processes import WORKLOADS, find_build
from mlbridge_benchmarks.common.tables import number, plain_table
from mlbridge_optimizations.corpus.sources import unpack
from mlbridge_optimizations.plot import finish, panels_of

from . import threads
from .threads import Cell, Cells, Model, Round, Source

PARTS = ("decisions", "compile")
COUNTS = "1,2,4,8"


def _keys(cells: Cells) -> list[tuple[str, int]]:
    return list(dict.fromkeys((runner, count) for runner, count, _ in cells))


def _both(cells: Cells, runner: str, count: int) -> tuple[Cell, Cell]:
    return cells[runner, count, "threads"], cells[runner, count, "processes"]


def decisions_table(cells: Cells) -> Table:
    """Decisions a second, and what one takes of a core."""
    side = ("us CPU", "MiB")
    table = plain_table(
        "thousand decisions/s: N threads of one process, N processes",
        ["runner"],
        ("N", "threads", *side, "processes", *side, "threads/processes"),
    )
    for runner, count in _keys(cells):
        one, many = _both(cells, runner, count)
        sides = [
            text
            for cell in (one, many)
            for text in (
                number(cell.rate / 1e3),
                number(cell.cpu * 1e6),
                number(cell.memory_mib),
            )
        ]
        table.add_row(runner, str(count), *sides, f"{one.rate / many.rate:.2f}")
    return table


def compile_table(cells: Cells) -> Table:
    """How long the programs take."""
    sides = ("threads", "s CPU", "processes", "s CPU")
    table = plain_table(
        "s to compile all: N threads of one process, N processes",
        ["model"],
        ("N", *sides, "processes/threads", "CPU"),
    )
    for runner, count in _keys(cells):
        one, many = _both(cells, runner, count)
        table.add_row(
            runner,
            str(count),
            *(f"{value:.2f}" for c in (one, many) for value in (c.seconds, c.cpu)),
            f"{many.seconds / one.seconds:.2f}",
            f"{many.cpu / one.cpu:.2f}",
        )
    return table


def plot(decided: Cells, compiled: Cells, path: Path) -> None:
    """Writes a PNG: decisions a second, and the time of compiling, over N."""
    wanted = [
        (cells, label)
        for cells, label in ((decided, "decisions/s"), (compiled, "s to compile all"))
        if cells
    ]
    with panels_of(path, len(wanted)) as panels:
        for panel, (cells, label) in zip(panels, wanted, strict=True):
            runners = dict.fromkeys(runner for runner, _, _ in cells)
            for colour, name in enumerate(runners):
                for side, dashes in (("threads", "-"), ("processes", "--")):
                    mine = {
                        n: c for (r, n, s), c in cells.items() if (r, s) == (name, side)
                    }
                    values = [
                        cell.rate if cells is decided else cell.seconds
                        for cell in mine.values()
                    ]
                    style, said = f"C{colour}{dashes}o", f"{name}, {side}"
                    panel.plot(list(mine), values, style, label=said)
            panel.set_xscale("log", base=2)
            limits = {"yscale": "log"} if cells is decided else {"ylim": (0, None)}
            xlabel = "threads of one process, or processes"
            finish(panel, xlabel=xlabel, ylabel=label, **limits)


class _Compiles:
    """Compiles, and holds every result against the first of its model."""

    def __init__(
        self, build: Path, plugin: Path, modules: Sequence[Path], folder: Path
    ) -> None:
        self._build, self._plugin, self._folder = build, plugin, folder
        self._modules = modules
        self._digests: dict[str, str] = {}

    def __call__(self, model: Model, count: int, side: str) -> Round:
        with tempfile.TemporaryDirectory(dir=self._folder) as objects:
            into = Path(objects)
            found = threads.compile_modules(
                self._build, self._plugin, model, self._modules, count, side, into
            )
            made = threads.digest(into)
        if self._digests.setdefault(model.runner, made) != made:
            raise ModelError(
                f"{model.runner}: {count} {side} have made other objects than one did"
            )
        return found


@dataclass(frozen=True)
class _Options:
    counts: Annotated[
        str, Option("--threads", metavar="N,N,...", help="How many at once.")
    ] = COUNTS
    runner: cli.ModelRunner = None
    only: Annotated[
        list[str] | None, Option(metavar="|".join(PARTS), help="Only this part.")
    ] = None
    program: Annotated[
        list[str] | None,
        Option(metavar="|".join(threads.PROGRAMS), help="Compile only this program."),
    ] = None
    source: Annotated[
        list[Path] | None,
        Option(
            metavar="FILE.c", exists=True, help="Compile this file, and no program."
        ),
    ] = None
    seconds: Annotated[
        float, Option(min=0.05, help="How long decisions are counted each time.")
    ] = 0.5
    rounds: cli.Rounds = 5
    plugin: cli.Plugin = None
    json_file: cli.JsonFile = None
    plot_file: Annotated[
        Path | None,
        Option(
            "--plot",
            metavar="FILE",
            help="Where the plot goes. [default: threads.png beside threads-client]",
        ),
    ] = None
    build: cli.Build = None


def _threads(context: typer.Context, wanted: _Options) -> None:
    """Compare threads of one process that share a model with as many processes.

    First decisions: each thread asks the imitation inliner without a pause. Then
    compiling: LLVM's -Oz and code generation of Debian's bzip2, zlib and Lua, from
    bitcode, where the plug-in asks the same model; `llvm` is LLVM's own heuristic. One
    process loads the plug-in and the model once; with processes, each module has one of
    its own, N at a time, as `make -jN` has them.

    "us CPU" and "s CPU" are what one decision, or all modules, take of a core: where
    threads get into each other's way it rises with N, whatever else the machine does.
    All object files must be the same, or the run fails.

    All of it takes some ten minutes on two cores that have nothing else to do, the
    decisions alone one:

    ```sh
    mlbridge bench threads --only decisions --threads 1,2
    mlbridge bench threads --only compile --program lua --runner aot --rounds 3
    ```
    """
    console = TableConsole(highlight=False)
    numbers = cli.parse_counts("--threads", wanted.counts)
    chosen = cli.choice("--runner", wanted.runner, cli.MODEL_RUNNERS)
    parts = cli.choice("--only", wanted.only, PARTS)
    names = cli.choice("--program", wanted.program, threads.PROGRAMS)
    clients = {"decisions": "threads-client", "compile": "compile-client"}
    found_build = find_build(wanted.build, [clients[part] for part in parts])
    found_plugin = cli.find_plugin(wanted.plugin) if "compile" in parts else None

    decided: Cells = {}
    compiled: Cells = {}
    with (
        tempfile.TemporaryDirectory(prefix="mlb") as temporary,
        cli.progress_on(console, auto_refresh=False) as progress,
    ):
        folder = Path(temporary)
        models = threads.models(chosen, folder)
        features = folder / "features"
        features.write_text("\n".join(threads.feature_names()) + "\n")

        def decide(model: Model, count: int, side: str) -> Round:
            shape = [count] if side == "threads" else [1] * count
            return threads.decide(found_build, model, features, shape, wanted.seconds)

        total = 2 * len(numbers) * wanted.rounds
        if "decisions" in parts:
            advance = cli.begin(progress, "decisions", total * len(models))
            decided = threads.measure(
                decide, models, numbers, rounds=wanted.rounds, on_round=advance
            )
        if found_plugin:
            if wanted.source:
                sources = [Source(path.stem, path.resolve()) for path in wanted.source]
            else:
                programs = unpack(names, WORKLOADS)
                sources = threads.program_sources(programs.values())
            modules = threads.emit_bitcode(sources, folder)
            compiles = _Compiles(found_build, found_plugin, modules, folder)
            models += threads.models(["llvm"], folder)
            advance = cli.begin(progress, "compile", total * len(models))
            compiled = threads.measure(
                compiles, models, numbers, rounds=wanted.rounds, on_round=advance
            )

    if decided:
        console.print(decisions_table(decided))
    if compiled:
        origin = "the sources given" if wanted.source else ", ".join(names)
        console.print(f"{len(modules)} modules of {origin}")
        console.print(compile_table(compiled))
    if threads.is_busy(decided) or threads.is_busy(compiled):
        console.print(
            "[yellow]other work has had part of the cores: CPU tells more than time[/]"
        )
    made = threads.rows("decisions", decided) + threads.rows("compile", compiled)
    cli.write_rows(console, made, wanted.json_file)
    path = wanted.plot_file or found_build / "threads.png"
    cli.write_plot(console, path, partial(plot, decided, compiled))


threads_command = with_options(_threads, _Options)
