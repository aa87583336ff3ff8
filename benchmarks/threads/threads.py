# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One process with many threads and one model, against as many processes."""

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from mlbridge.errors import ModelError
from mlbridge_benchmarks.common.processes import (
    Worker,
    children_cpu_seconds,
    in_checkout,
    runtimes,
    started,
)
from mlbridge_optimizations.corpus.sources import SourceProgram
from mlbridge_optimizations.corpus.toolchain import CLANG

MODEL = "models/inlining-imitation/inliner.onnx"

PROGRAMS = ("bzip2", "zlib", "lua")  # Debian's, that are compiled.
COMPILE_SECONDS = 600.0  # More than any compile takes.

SIDES = ("threads", "processes")


@dataclass(frozen=True)
class Model:
    """The imitation inliner, for one way to run it."""

    # ``onnx``, ``aot``; ``llvm`` is LLVM's own heuristic, which asks nobody.
    runner: str
    spec: str


@dataclass
class Round:
    """What one measurement found."""

    work: float  # Decisions, or 1 for the programs.
    seconds: float
    cpu_seconds: float
    memory_mib: float = 0.0


@dataclass
class Cell:
    """All rounds of one runner, one number of threads or processes, one side."""

    rounds: list[Round] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Work a second, the median."""
        return median(r.work / r.seconds for r in self.rounds)

    @property
    def seconds(self) -> float:
        """The median."""
        return median(r.seconds for r in self.rounds)

    @property
    def cpu(self) -> float:
        """Seconds of a core for one piece of work, the median."""
        return median(r.cpu_seconds / r.work for r in self.rounds)

    @property
    def cores(self) -> float:
        """How many cores there were for it, the median."""
        return median(r.cpu_seconds / r.seconds for r in self.rounds)

    @property
    def memory_mib(self) -> float:
        """The median."""
        return median(r.memory_mib for r in self.rounds)


Cells = dict[tuple[str, int, str], Cell]  # By runner, number, and one of SIDES.


def models(runners: Sequence[str], folder: Path) -> list[Model]:
    """The specs of the imitation inliner; for `aot` it is compiled into `folder`."""
    from mlbridge.aot import compile_model

    source = in_checkout(MODEL)
    specs = {"llvm": "", "onnx": f"onnx:{source}", "aot": f"aot:{folder}/libinliner.so"}
    if "aot" in runners:
        compile_model(source, folder / "libinliner.so")
    return [Model(name, specs[name]) for name in runners]


def feature_names() -> list[str]:
    """What the model is asked with."""
    import onnx

    graph = onnx.load(str(in_checkout(MODEL))).graph
    return [given.name for given in graph.input]


def decide(
    build: Path, model: Model, names: Path, counts: Sequence[int], seconds: float
) -> Round:
    """Has clients ask at the same time: one for each count of threads."""
    name = "threads-client"
    with ExitStack() as stack:
        clients = []
        for count in counts:
            command: list[str | Path] = [build / name, model.spec, str(count), names]
            process = stack.enter_context(started(command, variables=runtimes()))
            clients.append(Worker(name, process))
        for client in clients:
            client.meet()
        for client in clients:
            client.send(str(seconds))
        found = [json.loads(client.line()) for client in clients]
    return Round(
        sum(one["decisions"] for one in found),
        max(one["seconds"] for one in found),
        sum(one["cpu_seconds"] for one in found),
        sum(one["memory_kib"] for one in found) / 1024,
    )


@dataclass(frozen=True)
class Source:
    """A C file, what clang is told of it, and what its module is called."""

    name: str
    path: Path
    flags: tuple[str, ...] = ()


def program_sources(programs: Iterable[SourceProgram]) -> list[Source]:
    """Those of programs that have been unpacked."""
    return [
        Source(f"{program.name}-{path.stem}", path, program.flags)
        for program in programs
        for path in program.largest_first
    ]


def emit_bitcode(sources: Sequence[Source], folder: Path) -> list[Path]:
    """Has clang make what the plug-in's pipeline begins with; the largest first."""

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
    """Compiles all modules by threads of one process, or by processes.

    With processes there is one for each module, and `count` at a time, as make -j has
    them.
    """

    def run(threads: int, files: Sequence[Path]) -> None:
        command: list[str | Path] = [build / "compile-client", str(threads), folder]
        command += [plugin, model.spec, *files]
        variables = {**os.environ, **runtimes()}
        done = subprocess.run(command, env=variables, timeout=COMPILE_SECONDS)
        if done.returncode:
            raise ModelError(f"compile-client ended with status {done.returncode}")

    before = children_cpu_seconds()
    start = time.perf_counter()
    if side == "threads":
        run(count, modules)
    else:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(lambda module: run(1, [module]), modules))
    seconds = time.perf_counter() - start
    return Round(1, seconds, children_cpu_seconds() - before)


def digest(folder: Path) -> str:
    """Of all object files there."""
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
    """All runners, numbers and sides in turns, so that the machine's moods hit all."""
    cells: Cells = {}
    for _ in range(rounds):
        for model in wanted:
            for count in counts:
                for side in SIDES:
                    cell = cells.setdefault((model.runner, count, side), Cell())
                    cell.rounds.append(what(model, count, side))
                    on_round()
    return cells


# Of the cores that a cell could use; with fewer, the machine was busy otherwise.
BUSY = 0.7


def is_busy(cells: Mapping[tuple[str, int, str], Cell]) -> bool:
    """Whether other work has had the cores, so that times say little."""
    cores = len(os.sched_getaffinity(0))
    return any(
        cell.cores < BUSY * min(count, cores) for (_, count, _), cell in cells.items()
    )


def rows(what: str, cells: Mapping[tuple[str, int, str], Cell]) -> list[dict[str, Any]]:
    """For --json: a row a runner and number, with both sides."""
    made = []
    for runner, count in dict.fromkeys((r, c) for r, c, _ in cells):
        row: dict[str, Any] = {"what": what, "runner": runner, "count": count}
        for side in SIDES:
            cell = cells[runner, count, side]
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
