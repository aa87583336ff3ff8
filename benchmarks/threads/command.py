# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench threads``: threads of one process compared with processes."""

import hashlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from rich.table import Table
from typer import Option

from mlbridge.errors import ModelError
from mlbridge.options import with_options
from mlbridge.terminal import TableConsole
from mlbridge_benchmarks.common import options as cli
from mlbridge_benchmarks.common import processes, savedmodel
from mlbridge_benchmarks.common.imitation import MODEL, Model, Source, models
from mlbridge_benchmarks.common.processes import runtimes
from mlbridge_benchmarks.common.tables import number, plain_table
from mlbridge_optimizations.corpus.sources import unpack
from mlbridge_optimizations.corpus.toolchain import CLANG
from mlbridge_optimizations.plot import finish, panels_of

PROGRAMS = ("bzip2", "zlib", "lua")  # Debian packages that are compiled by default.
COMPILE_SECONDS = 600.0  # The time limit of a compile.
SIDES = ("threads", "processes")
PARTS = ("decisions", "compile")
COUNTS = "1,2,4,8"


@dataclass
class Round:
    """The result of one measurement."""

    work: float  # The number of decisions, or 1 for a compile of all programs.
    seconds: float
    cpu_seconds: float
    memory_mib: float = 0.0


@dataclass
class Cell:
    """All rounds of one runner, one side and one number of threads or processes."""

    rounds: list[Round] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """The median work per second."""
        return median(r.work / r.seconds for r in self.rounds)

    @property
    def seconds(self) -> float:
        """The median duration of a round."""
        return median(r.seconds for r in self.rounds)

    @property
    def cpu(self) -> float:
        """The median CPU seconds per unit of work."""
        return median(r.cpu_seconds / r.work for r in self.rounds)

    @property
    def cores(self) -> float:
        """The median number of cores that were used."""
        return median(r.cpu_seconds / r.seconds for r in self.rounds)

    @property
    def memory_mib(self) -> float:
        """The median memory of a round."""
        return median(r.memory_mib for r in self.rounds)


Cells = dict[tuple[str, int, str], Cell]  # Keys: runner, count, side.


def decide(
    build: Path, model: Model, names: Path, counts: Sequence[int], seconds: float
) -> Round:
    """Runs clients at the same time. `counts` has each client's number of threads."""
    name = "threads-client"
    with ExitStack() as stack:
        clients = []
        for count in counts:
            command: list[str | Path] = [build / name, model.spec, str(count), names]
            variables = runtimes() | savedmodel.variables()
            client = processes.started(command, variables=variables)
            clients.append(processes.Worker(name, stack.enter_context(client)))
        for worker in clients:
            worker.meet()
        for worker in clients:
            worker.send(str(seconds))
        found = [json.loads(worker.line()) for worker in clients]
    return Round(
        sum(one["decisions"] for one in found),
        max(one["seconds"] for one in found),
        sum(one["cpu_seconds"] for one in found),
        sum(one["memory_kib"] for one in found) / 1024,
    )


def emit_bitcode(sources: Sequence[Source], folder: Path) -> list[Path]:
    """Compiles the sources to unoptimised bitcode. Returns the largest file first."""

    def emit(source: Source) -> Path:
        target = folder / f"{source.name}.bc"
        command: list[str | Path] = [CLANG, "-Oz", "-Xclang", "-disable-llvm-passes"]
        command += ["-w", *source.flags, "-emit-llvm", "-c", source.path, "-o", target]
        if status := subprocess.run(command, timeout=COMPILE_SECONDS).returncode:
            raise ModelError(f"{source.path}: {CLANG} ended with status {status}")
        return target

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        made = list(pool.map(emit, sources))
    return sorted(made, key=lambda path: -path.stat().st_size)


def compile_modules(
    build: Path,
    plugin: Path,
    model: Model,
    modules: Sequence[Path],
    count: int,
    side: str,
    folder: Path,
) -> Round:
    """Compiles all modules with threads of one process, or with processes.

    With processes, each module has its own process, and `count` processes run at a
    time.
    """

    def run(threads: int, files: Sequence[Path]) -> None:
        command: list[str | Path] = [build / "compile-client", str(threads), folder]
        command += [plugin, model.spec, *files]
        variables = {**os.environ, **runtimes(), **savedmodel.variables()}
        done = subprocess.run(command, env=variables, timeout=COMPILE_SECONDS)
        if done.returncode:
            raise ModelError(f"compile-client ended with status {done.returncode}")

    before = processes.children_cpu_seconds()
    start = time.perf_counter()
    if side == "threads":
        run(count, modules)
    else:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(lambda module: run(1, [module]), modules))
    seconds = time.perf_counter() - start
    return Round(1, seconds, processes.children_cpu_seconds() - before)


def digest(folder: Path) -> str:
    """Returns a hash of all object files in a folder."""
    text = hashlib.sha256()
    for path in sorted(folder.glob("*.o")):
        text.update(path.name.encode() + path.read_bytes())
    return text.hexdigest()


def measure(
    what: Callable[[Model, int, str], Round],
    wanted: Sequence[Model],
    counts: Sequence[int],
    *,
    rounds: int,
    on_round: Callable[[], None],
) -> Cells:
    """Measures all runners, counts and sides alternately, so that noise affects all."""
    cells: Cells = {}
    for _, model, count, side in product(range(rounds), wanted, counts, SIDES):
        cell = cells.setdefault((model.runner, count, side), Cell())
        cell.rounds.append(what(model, count, side))
        on_round()
    return cells


# If a cell uses a smaller share of the cores than this, other work has used the cores.
BUSY = 0.7


def is_busy(cells: Cells) -> bool:
    """Returns true if other work has used the cores, which distorts times."""
    cores = len(os.sched_getaffinity(0))
    return any(
        cell.cores < BUSY * min(count, cores) for (_, count, _), cell in cells.items()
    )


def pairs(cells: Cells) -> Iterator[tuple[str, int, Cell, Cell]]:
    """Yields each runner and count with its two cells, threads and processes."""
    for key in dict.fromkeys((runner, count) for runner, count, _ in cells):
        yield *key, cells[*key, SIDES[0]], cells[*key, SIDES[1]]


def rows(what: str, cells: Cells) -> list[dict[str, Any]]:
    """Returns the rows for --json, one per runner and count, with both sides."""
    made = []
    for runner, count, *both in pairs(cells):
        row: dict[str, Any] = {"what": what, "runner": runner, "count": count}
        for side, cell in zip(SIDES, both, strict=True):
            values = {"cpu_us": cell.cpu * 1e6, "cores": cell.cores}
            values["rounds"] = len(cell.rounds)
            if what == "decisions":
                values["decisions_per_second"] = cell.rate
                values["memory_mib"] = cell.memory_mib
            else:
                values["seconds"] = cell.seconds
            row[side] = {name: round(value, 3) for name, value in values.items()}
        made.append(row)
    return made


def decisions_table(cells: Cells) -> Table:
    """Returns a table of decisions per second, and of the CPU time of a decision."""
    side = ("us CPU", "MiB")
    title = "thousand decisions/s: N threads of one process, N processes"
    columns = ("N", "threads", *side, "processes", *side, "threads/processes")
    table = plain_table(title, ["runner"], columns)
    for runner, count, one, many in pairs(cells):
        sides = [
            number(value)
            for cell in (one, many)
            for value in (cell.rate / 1e3, cell.cpu * 1e6, cell.memory_mib)
        ]
        table.add_row(runner, str(count), *sides, f"{one.rate / many.rate:.2f}")
    return table


def compile_table(cells: Cells) -> Table:
    """Returns a table of the programs' compile times."""
    sides = ("threads", "s CPU", "processes", "s CPU")
    title = "s to compile all: N threads of one process, N processes"
    columns = ("N", *sides, "processes/threads", "CPU")
    table = plain_table(title, ["model"], columns)
    for runner, count, one, many in pairs(cells):
        table.add_row(
            runner,
            str(count),
            *(f"{value:.2f}" for c in (one, many) for value in (c.seconds, c.cpu)),
            f"{many.seconds / one.seconds:.2f}",
            f"{many.cpu / one.cpu:.2f}",
        )
    return table


def plot(decided: Cells, compiled: Cells, path: Path) -> None:
    """Plots decisions per second, and compile times, over N."""
    parts = [
        (decided, "decisions/s (higher is better)"),
        (compiled, "s to compile all (lower is better)"),
    ]
    wanted = [(cells, label) for cells, label in parts if cells]
    with panels_of(path, len(wanted)) as panels:
        for panel, (cells, label) in zip(panels, wanted, strict=True):
            runners = dict.fromkeys(runner for runner, _, _ in cells)
            for colour, name in enumerate(runners):
                for side, dashes in zip(SIDES, ("-", "--"), strict=True):
                    values = {
                        n: cell.rate if cells is decided else cell.seconds
                        for (r, n, s), cell in cells.items()
                        if (r, s) == (name, side)
                    }
                    style, said = f"C{colour}{dashes}o", f"{name}, {side}"
                    panel.plot(list(values), list(values.values()), style, label=said)
            panel.set_xscale("log", base=2)
            is_rate = cells is decided
            panel.set(**({"yscale": "log"} if is_rate else {"ylim": (0, None)}))
            words = "threads of one process, or processes"
            finish(panel, xlabel=words, ylabel=label)


@dataclass(frozen=True)
class _Options:
    counts: Annotated[
        str, Option("--threads", metavar="N,N,...", help="Numbers N to compare.")
    ] = COUNTS
    runner: cli.ModelRunner = None
    only: Annotated[cli.Names, cli.only("--only", PARTS, "part")] = None
    program: Annotated[
        list[str] | None,
        Option(
            metavar="|".join(PROGRAMS),
            help="Compile only this program. May be repeated.",
        ),
    ] = None
    source: Annotated[
        list[Path] | None,
        Option(
            metavar="FILE.c",
            exists=True,
            help="Compile this file instead of the programs. May be repeated.",
        ),
    ] = None
    seconds: Annotated[
        float, Option(min=0.05, help="Seconds per measurement of decisions.")
    ] = 0.5
    rounds: cli.Rounds = 5
    plugin: cli.Plugin = None
    json_file: cli.JsonFile = None
    plot_file: Annotated[
        Path | None, cli.plot_file("threads.png beside threads-client")
    ] = None
    build: cli.Build = None


def _threads(context: typer.Context, wanted: _Options) -> None:
    """Compare N separate processes with N threads that share one model.

    The first part measures decisions: each thread sends requests to the imitation
    inliner without a pause. The second part measures compiles of Debian's bzip2, zlib
    and Lua with -Oz, from bitcode. The plug-in uses the same model, except in the rows
    named "llvm", where LLVM's own heuristic decides. The N threads share one process,
    plug-in and model. The separate processes compile one module each, and N of them run
    at a time, as with `make -jN`.

    "us CPU" is the CPU time of one decision. "s CPU" is the CPU time of all modules.
    These times rise with N if threads hinder each other. The run fails if threads and
    processes produce different object files.

    The runners "tf" and "tf-aot" need TensorFlow. "tf" loads a SavedModel with
    TensorFlow's library, and "tf-aot" runs the same model compiled to machine code.

    Without "tf", the run takes ten minutes on two idle cores. The decisions alone take
    one minute:

    ```sh
    mlbridge bench threads --only decisions --threads 1,2
    mlbridge bench threads --only compile --program lua --runner aot --rounds 3
    ```
    """
    import onnx

    console = TableConsole(highlight=False)
    numbers = cli.parse_counts("--threads", wanted.counts)
    parts = cli.choice("--only", wanted.only, PARTS)
    names = cli.choice("--program", wanted.program, PROGRAMS)
    clients = {"decisions": "threads-client", "compile": "compile-client"}
    found_build = processes.find_build(wanted.build, [clients[part] for part in parts])
    found_plugin = cli.find_plugin(wanted.plugin) if "compile" in parts else None
    lacks = partial(cli.missing_in, found_build)
    chosen = cli.available(console, "--runner", wanted.runner, cli.MODEL_RUNNERS, lacks)

    decided: Cells = {}
    compiled: Cells = {}
    with (
        tempfile.TemporaryDirectory(prefix="mlb") as temporary,
        cli.progress_on(console, auto_refresh=False) as progress,
    ):
        folder = Path(temporary)
        asked = models(chosen, folder)
        features = folder / "features"
        inputs = onnx.load(str(processes.in_checkout(MODEL))).graph.input
        features.write_text("".join(f"{given.name}\n" for given in inputs))

        def ask(model: Model, count: int, side: str) -> Round:
            shape = [count] if side == "threads" else [1] * count
            return decide(found_build, model, features, shape, wanted.seconds)

        total = 2 * len(numbers) * wanted.rounds
        if "decisions" in parts:
            advance = cli.begin(progress, "decisions", total * len(asked))
            decided = measure(
                ask, asked, numbers, rounds=wanted.rounds, on_round=advance
            )
        if found_plugin:
            sources = [
                Source(path.stem, path.resolve()) for path in wanted.source or ()
            ]
            sources = sources or [
                Source(f"{program.name}-{path.stem}", path, program.flags)
                for program in unpack(names, processes.WORKLOADS).values()
                for path in program.largest_first
            ]
            modules = emit_bitcode(sources, folder)
            digests: dict[str, str] = {}

            def compiles(model: Model, count: int, side: str) -> Round:
                with tempfile.TemporaryDirectory(dir=folder) as objects:
                    job = (found_build, found_plugin, model, modules, count, side)
                    found = compile_modules(*job, Path(objects))
                    made = digest(Path(objects))
                if digests.setdefault(model.runner, made) != made:
                    raise ModelError(
                        f"{model.runner}: {count} {side} made different objects"
                    )
                return found

            asked += models(["llvm"], folder)
            advance = cli.begin(progress, "compile", total * len(asked))
            compiled = measure(
                compiles, asked, numbers, rounds=wanted.rounds, on_round=advance
            )

    if decided:
        console.print(decisions_table(decided))
    if compiled:
        origin = "the sources given" if wanted.source else ", ".join(names)
        console.print(f"{len(modules)} modules of {origin}")
        console.print(compile_table(compiled))
    if is_busy(decided) or is_busy(compiled):
        console.print("[yellow]other work used the cores: trust CPU, not time[/]")
    made = rows("decisions", decided) + rows("compile", compiled)
    cli.write_rows(console, made, wanted.json_file)
    path = wanted.plot_file or found_build / "threads.png"
    cli.write_plot(console, path, partial(plot, decided, compiled))


threads_command = with_options(_threads, _Options)
