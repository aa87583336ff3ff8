# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole compiles by a policy of phase ordering, in the original flow and in ours.

As the paper's table 2. All flows compile the same modules by the same policy; that they
take the same actions and make the same objects is looked at, not supposed.
"""

import hashlib
import re
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from elftools.elf.elffile import ELFFile
from rich.table import Table

from mlbridge.errors import ModelError
from mlbridge.onnx import load_onnx
from mlbridge_benchmarks.common.processes import own_cpu_seconds, timed
from mlbridge_benchmarks.common.tables import Bound, number, plain_table
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.plot import draw_bars, finish, panels_of

from .original import OriginalTools
from .task import Deployed, Sample, Server, in_process_specs, need_grpc, served

ORIGINAL, STOCK = "original", "clang -Oz"

# The place of the server, and what the compiler's spec has behind it.
SERVED = {
    "gRPC": ("grpc+unix:{}", ""),
    "pipe, JSON": ("pipe:{}", "?serdes=json"),
    "pipe, bitstream": ("pipe:{}", "?serdes=bitstream"),
    "shm": ("shm:{}", ""),
}

INSIDE = (*SERVED, "onnx", "aot")  # In these, clang has the plug-in.

FLOWS = (ORIGINAL, *INSIDE, STOCK)

# How much of the original flow's time a compile may take: the paper's 1 / 4.4 and 1 /
# 4.7, and for a model in the process less than its 1 / 7.2.
LIMITS = {
    "gRPC": 0.227,
    "pipe, JSON": 0.213,
    "pipe, bitstream": 0.213,
    "shm": 0.213,
    "onnx": 0.1,
}

_ADDRSIG = 0x6FFF4C03
_NOT_COMPARED = ("SHT_SYMTAB", "SHT_STRTAB", _ADDRSIG)

# How much longer than clang -Oz a compile by a model in machine code may take.
DEPLOYED_LIMIT = 2.0


@dataclass(frozen=True)
class Compiled:
    """One compile."""

    seconds: float  # From its start to the object.
    cpu_seconds: float  # Of all processes that took part.
    actions: str = ""  # That were taken, by name; empty where none are.


class Flow(AbstractContextManager["Flow"]):
    """A way to compile: what it needs lives in its body."""

    start_seconds = 0.0  # What had to be started once, for all modules.

    def __exit__(self, *error: Any) -> None:
        """Most need nothing."""

    def renew(self) -> None:
        """Forgets what it may know of the modules; a round begins."""

    @abstractmethod
    def compile(self, module: Path, to: Path) -> Compiled:
        """Makes an object of a bitcode file."""


class OriginalFlow(Flow):
    """A driver that starts processes; this process is the driver."""

    def __init__(self, deployed: Deployed, folder: Path) -> None:
        """Loads the model, and keeps it for all modules."""
        start = time.perf_counter()
        self._deployed = deployed
        self._policy = load_onnx(deployed.model)
        self._tools = OriginalTools(deployed.compiler, folder)
        self._files = folder / "state.bc", folder / "next.bc"
        self.start_seconds = time.perf_counter() - start

    def compile(self, module: Path, to: Path) -> Compiled:
        """As the policy decides, action by action."""
        start, before = time.perf_counter(), own_cpu_seconds()
        state, following = self._files
        actions = self._deployed.compiler.space.actions
        taken: list[int] = []
        self._tools.begin(module, state)
        while len(taken) < self._deployed.compiler.steps:
            (reply,) = self._policy([self._tools.features(state, taken)])
            if int(reply) >= len(actions):
                break
            taken.append(int(reply))
            self._tools.act(taken[-1], state, following)
            state, following = following, state
        self._tools.emit(state, to)
        seconds, cpu = time.perf_counter() - start, own_cpu_seconds() - before
        return Compiled(seconds, cpu, self._deployed.names(taken))


class ClangFlow(Flow):
    """One clang, with the plug-in or without."""

    def __init__(
        self,
        deployed: Deployed | None,
        spec: str = "",
        server: AbstractContextManager[Server] | None = None,
    ) -> None:
        """Starts nothing yet; without ``deployed`` it is a stock clang."""
        self._server = server
        self._running: Server | None = None
        self._options: list[str] = []
        if deployed is not None:
            self._options = [
                f"-fpass-plugin={deployed.compiler.plugin}",
                *toolchain.mllvm(deployed.options(spec)),
            ]

    def __enter__(self) -> "ClangFlow":
        if self._server is not None:
            self._running = self._server.__enter__()
            self.start_seconds = self._running.start_seconds
        return self

    def __exit__(self, *error: Any) -> None:
        if self._server is not None:
            self._server.__exit__(*error)

    def compile(self, module: Path, to: Path) -> Compiled:
        """As anyone would."""
        before = self._running.cpu_seconds() if self._running else 0.0
        command = [toolchain.CLANG, "-Oz", "-w", *self._options]
        took = timed([*command, "-x", "ir", "-c", module, "-o", to])
        served_for = self._running.cpu_seconds() - before if self._running else 0.0
        said = re.search(r"asked=\d+ actions=\d+ \[(.*?)\]", took.stderr)
        if bool(said) != bool(self._options):
            raise ModelError(
                f"{module}: expected a compile by the model: {took.stderr.strip()}"
            )
        cpu_seconds = took.cpu_seconds + served_for
        return Compiled(took.seconds, cpu_seconds, said[1] if said else "")


def flows(names: Sequence[str], deployed: Deployed, folder: Path) -> dict[str, Flow]:
    """The flows by name; servers are started when they are entered."""
    inside = in_process_specs(names, deployed, folder)
    made: dict[str, Flow] = {}
    for number_, name in enumerate(names):
        if name == ORIGINAL:
            made[name] = OriginalFlow(deployed, folder)
        elif name == STOCK:
            made[name] = ClangFlow(None)
        elif name in inside:
            made[name] = ClangFlow(deployed, inside[name])
        else:
            place, options = SERVED[name]
            need_grpc(place)
            place = place.format(folder / f"model-{number_}")
            server = served(deployed.model, place)
            made[name] = ClangFlow(deployed, place + options, server)
    return made


@dataclass
class Results:
    """What was measured."""

    files: dict[Path, int]  # The modules, and the instructions of each.
    start_seconds: dict[str, float] = field(default_factory=dict)  # By flow.
    # By flow and module, a compile for each round.
    runs: dict[str, dict[Path, list[Compiled]]] = field(default_factory=dict)
    # Of each module, by name: the same in all flows.
    actions: dict[Path, str] = field(default_factory=dict)
    # By flow that drives the compiler from outside, the modules of which it made
    # another object than clang with the plug-in.
    others: dict[str, set[Path]] = field(default_factory=dict)
    base: str = ORIGINAL  # The flow that the others are to be faster than.

    def total(self, flow: str, what: str = "seconds") -> float:
        """For all modules: the sum of their medians, also of ``cpu_seconds``."""
        runs = self.runs[flow].values()
        return sum(float(median(getattr(r, what) for r in each)) for each in runs)

    def ratio(self, flow: str, base: str) -> float:
        """The geomean over the modules of the time relative to another flow's.

        Of each the median over rounds.
        """
        pairs = zip(self.runs[flow].values(), self.runs[base].values(), strict=True)
        return geometric_mean(
            median(a.seconds / b.seconds for a, b in zip(ours, theirs, strict=True))
            for ours, theirs in pairs
        )


def measure(
    sample: Sample,
    made: dict[str, Flow],
    *,
    base: str = ORIGINAL,
    rounds: int,
    folder: Path,
    on_compile: Callable[[], None],
) -> Results:
    """Compiles each module by each flow, one after the other, in several rounds."""
    results = Results(sample.files, base=base)
    with ExitStack() as stack:
        for name, flow in made.items():
            stack.enter_context(flow)
            results.start_seconds[name] = flow.start_seconds
            results.runs[name] = {module: [] for module in sample.files}
        # Once for the disk's cache, and for what a model does at its first request.
        for flow in made.values():
            flow.compile(sample.modules[0], folder / "warm.o")
        names = list(made)
        for turn in range(rounds):
            for flow in made.values():
                flow.renew()
            for module in sample.files:
                found: dict[str, tuple[str, str]] = {}
                # Whoever is the first after another module has no advantage for long.
                start = turn % len(names)
                for name in names[start:] + names[:start]:
                    target = folder / "module.o"
                    done = made[name].compile(module, target)
                    results.runs[name][module].append(done)
                    if name != STOCK:
                        found[name] = done.actions, _digest(target)
                    on_compile()
                _note(module, found, results)
    return results


def _digest(file: Path) -> str:
    """Of all sections of an object but its tables of symbols.

    Clang adds one of those whose address counts, and the environment does not.
    """
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        for section in ELFFile(opened).iter_sections():
            if section["sh_type"] not in _NOT_COMPARED:
                digest.update(section.name.encode() + b"\0" + section.data())
    return digest.hexdigest()


def _note(module: Path, found: dict[str, tuple[str, str]], results: Results) -> None:
    """Looks whether all flows did the same.

    What drives the compiler from outside may make another object: a module that was
    written and read again is the same, but not all that passes know of it is.
    """
    if not found:
        return
    actions = {name: made[0] for name, made in found.items()}
    inside = {name: made[1] for name, made in found.items() if name in INSIDE}
    for what, each in (("actions", actions), ("object", inside)):
        if len(set(each.values())) > 1:
            told = "; ".join(f"{name}: {it}" for name, it in each.items())
            raise ModelError(f"{module}: not all flows have the same {what}: {told}")
    results.actions[module] = next(iter(actions.values()))
    for name in found.keys() - inside.keys() if inside else ():
        others = results.others.setdefault(name, set())
        if found[name][1] not in inside.values():
            others.add(module)


def rows(results: Results) -> list[dict[str, Any]]:
    """A row for each flow."""
    made = []
    for flow, runs in results.runs.items():
        row: dict[str, Any] = {
            "flow": flow,
            "modules": len(results.files),
            "rounds": len(next(iter(runs.values()))),
            "seconds": round(results.total(flow), 4),
            "cpu_seconds": round(results.total(flow, "cpu_seconds"), 4),
            "start_seconds": round(results.start_seconds[flow], 3),
            "other_objects": len(results.others.get(flow, ())),
        }
        for base, key in ((results.base, "faster"), (STOCK, "of_clang")):
            if base not in results.runs:
                continue
            found = {"total": results.total(flow) / results.total(base)}
            found["geomean"] = results.ratio(flow, base)
            cpu = [results.total(each, "cpu_seconds") for each in (flow, base)]
            found["total_cpu"] = cpu[0] / cpu[1]
            is_base = base == results.base
            row[key] = {n: round(1 / x if is_base else x, 3) for n, x in found.items()}
        row["per_module"] = {
            "/".join(module.parts[-2:]): {
                "instructions": results.files[module],
                "seconds": round(median(r.seconds for r in each), 5),
                "cpu_seconds": round(median(r.cpu_seconds for r in each), 5),
            }
            for module, each in runs.items()
        }
        made.append(row)
    return made


def table(results: Results) -> Table:
    """The rows, without those of each module."""
    columns = ["s", "CPU s"]
    if results.base in results.runs:
        columns += ["faster", "geomean"]
    if STOCK in results.runs:
        columns += ["/ -Oz", "geomean"]
    title = "bitcode to object by a policy of phase ordering"
    shown = plain_table(title, [""], [*columns, "start"])
    for row in rows(results):
        cells = [number(row["seconds"]), number(row["cpu_seconds"])]
        for key in ("faster", "of_clang"):
            if key in row:
                cells += [number(row[key][name]) for name in ("total", "geomean")]
        start = row["start_seconds"]
        shown.add_row(row["flow"], *cells, number(start) if start else "")
    return shown


def agreement(results: Results) -> str:
    """How far the flows did the same, in words."""
    words = "by the model: the same actions in all flows"
    if any(name in INSIDE for name in results.runs):
        words += "; the same objects in all that are clang with the plug-in"
    for name, others in results.others.items():
        words += f", and by {name} of {len(results.files) - len(others)}"
    return f"{words} of {len(results.files)} modules" if results.others else words


def bounds(results: Results) -> list[Bound]:
    """What is expected of the flows, and what was found."""
    found = []

    def add(flow: str, base: str, limit: float) -> None:
        if flow in results.runs and base in results.runs:
            total = results.total(flow) / results.total(base)
            found.append(Bound(flow, "all modules", base, total, limit))
            mean = results.ratio(flow, base)
            found.append(Bound(flow, "geomean", base, mean, limit))

    for flow, limit in LIMITS.items():
        add(flow, ORIGINAL, limit)
    add("aot", STOCK, DEPLOYED_LIMIT)
    return found


def plot(results: Results, path: Path) -> None:
    """Writes a PNG: seconds for all modules by flow, and of each over its size."""
    with panels_of(path, 2) as (bars, points):
        names = list(results.runs)
        colours = [f"C{i}" for i in range(len(names))]
        totals = [results.total(name) for name in names]
        draw_bars(bars, names, totals, colours, "%.2f s", "s for all modules")
        for colour, name in zip(colours, names, strict=True):
            runs = results.runs[name]
            times = [
                1e3 * median(r.seconds for r in runs[file]) for file in results.files
            ]
            points.plot(list(results.files.values()), times, f"{colour}.", label=name)
        words = "instructions of a module"
        finish(points, xscale="log", yscale="log", xlabel=words, ylabel="ms")
