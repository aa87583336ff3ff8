# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole compiles with a phase-ordering policy, without and with the bridge.

This corresponds to table 2 of the bridge's paper. All flows compile the same modules
with the same policy. The benchmark checks that all flows choose the same actions.
"""

import hashlib
import re
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from math import exp, log
from pathlib import Path
from statistics import fmean, median
from typing import Any

from elftools.elf.elffile import ELFFile
from rich.table import Table

from mlbridge.errors import ModelError
from mlbridge.onnx import load_onnx
from mlbridge_benchmarks.common.flows import IN_PROCESS, SERVED, mean_ratio, rotated
from mlbridge_benchmarks.common.processes import Server, own_cpu_seconds, timed
from mlbridge_benchmarks.common.savedmodel import TF_AOT
from mlbridge_benchmarks.common.tables import Bound, number, plain_table
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.evaluation.statistics import mean_interval
from mlbridge_optimizations.plot import draw_bars, finish, panels_of

from .original import OriginalTools
from .task import Deployed, Sample, in_process_specs, need_grpc, served

ORIGINAL, STOCK = "original", "clang -Oz"

# The flows that run clang with the plug-in.
INSIDE = (*SERVED, *IN_PROCESS, TF_AOT)
# The flows whose model is in clang's process.
MODELS_INSIDE = (*IN_PROCESS, TF_AOT)
FLOWS = (ORIGINAL, *INSIDE, STOCK)

# Limits on a compile's time relative to the original flow. The ratios in the paper are
# 1/4.4 for gRPC, 1/4.7 for pipes and 1/7.2 for in-process models.
LIMITS = {
    "gRPC": 0.227,
    "pipe, JSON": 0.213,
    "pipe, bitstream": 0.213,
    "shm": 0.213,
    "onnx": 0.1,
}

_ADDRSIG = 0x6FFF4C03
_NOT_COMPARED = ("SHT_SYMTAB", "SHT_STRTAB", _ADDRSIG)
# The limit on the time of a compile with a machine-code model, relative to clang -Oz.
DEPLOYED_LIMIT = 2.0
DEPLOYED = ("aot", TF_AOT)


@dataclass(frozen=True)
class Compiled:
    """The result of one compile."""

    seconds: float  # The duration of the compile.
    cpu_seconds: float  # The CPU time of all processes.
    actions: str = ""  # The names of the actions.


class Flow(AbstractContextManager["Flow"]):
    """A way to compile. Its resources live for a ``with`` block."""

    start_seconds = 0.0  # The time to start a server or to load a model.

    def __exit__(self, *error: Any) -> None:
        """Releases nothing by default."""

    def renew(self) -> None:
        """Drops cached modules, which would make the next round faster.

        The benchmark calls this method before each round.
        """

    @abstractmethod
    def compile(self, module: Path, to: Path) -> Compiled:
        """Compiles a bitcode file to an object."""


class OriginalFlow(Flow):
    """The original flow. This process is the driver that starts the tools."""

    def __init__(self, deployed: Deployed, folder: Path) -> None:
        """Loads the model for all modules."""
        start = time.perf_counter()
        self._deployed = deployed
        self._policy = load_onnx(deployed.model)
        self._tools = OriginalTools(deployed.compiler, folder)
        self._files = folder / "state.bc", folder / "next.bc"
        self.start_seconds = time.perf_counter() - start

    def compile(self, module: Path, to: Path) -> Compiled:
        """Compiles with the policy, action by action."""
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
    """A flow that runs one clang, with or without the plug-in."""

    def __init__(
        self,
        deployed: Deployed | None,
        spec: str = "",
        server: AbstractContextManager[Server] | None = None,
    ) -> None:
        """Starts no process yet. Without ``deployed``, the flow is stock clang."""
        self._server = server
        self._running: Server | None = None
        self._options: list[str] = []
        if deployed is not None:
            plugin = f"-fpass-plugin={deployed.compiler.plugin}"
            self._options = [plugin, *toolchain.mllvm(deployed.options(spec))]

    def __enter__(self) -> "ClangFlow":
        if self._server is not None:
            self._running = self._server.__enter__()
            self.start_seconds = self._running.start_seconds
        return self

    def __exit__(self, *error: Any) -> None:
        if self._server is not None:
            self._server.__exit__(*error)

    def compile(self, module: Path, to: Path) -> Compiled:
        """Runs clang."""
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
    """Returns the flows by name. A flow's ``with`` block starts its server."""
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
    """All measurements."""

    files: dict[Path, int]  # The number of instructions of each module.
    start_seconds: dict[str, float] = field(default_factory=dict)  # Per flow.
    # For each flow and module, one compile per round.
    runs: dict[str, dict[Path, list[Compiled]]] = field(default_factory=dict)
    # For flows that drive the compiler from outside, the modules whose object differs
    # from the object of clang with the plug-in.
    others: dict[str, set[Path]] = field(default_factory=dict)
    base: str = ORIGINAL  # All flows are compared with this flow.

    def total(self, flow: str, what: str = "seconds") -> float:
        """Returns the sum, over the modules, of a module's median of ``what``.

        ``what`` is ``seconds`` or ``cpu_seconds``.
        """
        runs = self.runs[flow].values()
        return sum(float(median(getattr(r, what) for r in each)) for each in runs)

    def ratio(self, flow: str, base: str) -> float:
        """Returns the `mean_ratio` of the flow's times to the times of `base`."""
        return mean_ratio(self.runs[flow].values(), self.runs[base].values())


def measure(
    sample: Sample,
    made: dict[str, Flow],
    *,
    base: str = ORIGINAL,
    rounds: int,
    folder: Path,
    on_compile: Callable[[], None],
) -> Results:
    """Compiles each module with each flow alternately, in several rounds."""
    results = Results(sample.files, base=base)
    with ExitStack() as stack:
        for name, flow in made.items():
            stack.enter_context(flow)
            results.start_seconds[name] = flow.start_seconds
            results.runs[name] = {module: [] for module in sample.files}
        # Compile one module first, to fill the disk cache and make the first request.
        for flow in made.values():
            flow.compile(sample.modules[0], folder / "warm.o")
        target = folder / "module.o"
        for turn in range(rounds):
            for flow in made.values():
                flow.renew()
            for module in sample.files:
                found: dict[str, tuple[str, str]] = {}
                for name in rotated(made, turn):
                    done = made[name].compile(module, target)
                    results.runs[name][module].append(done)
                    if name != STOCK:
                        found[name] = done.actions, _digest(target)
                    on_compile()
                _note(module, found, results)
    return results


@dataclass(frozen=True)
class Relation:
    """A CPU time relative to the CPU time of another flow.

    Attributes:
        flow: the other flow.
        mean: the geometric mean, over the modules, of a module's median over the
            rounds.
        interval: the 95 % interval of the mean, over the modules.
    """

    flow: str
    mean: float
    interval: tuple[float, float]


def to_served(results: Results, flow: str) -> Relation | None:
    """Compares a flow's CPU time with the CPU time of each flow that has a server.

    The CPU time of a flow with a server includes the server's. Returns the relation
    whose interval has the greatest upper end, or None if no flow has a server.
    """
    found = []
    for name in (name for name in SERVED if name in results.runs):
        logs = [
            log(
                median(
                    a.cpu_seconds / b.cpu_seconds
                    for a, b in zip(mine, theirs, strict=True)
                )
            )
            for mine, theirs in zip(
                results.runs[flow].values(), results.runs[name].values(), strict=True
            )
        ]
        low, high = mean_interval(logs)
        found.append(Relation(name, exp(fmean(logs)), (exp(low), exp(high))))
    return max(found, key=lambda one: one.interval[1], default=None)


def _digest(file: Path) -> str:
    """Hashes all sections of an object except its symbol tables.

    The table of address-significant symbols is skipped, because only clang adds it.
    """
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        for section in ELFFile(opened).iter_sections():
            if section["sh_type"] not in _NOT_COMPARED:
                digest.update(section.name.encode() + b"\0" + section.data())
    return digest.hexdigest()


def _note(module: Path, found: dict[str, tuple[str, str]], results: Results) -> None:
    """Checks the actions of all flows, and the objects of flows with the plug-in.

    They must be the same in all these flows. Flows that drive the compiler from outside
    may produce different objects, because information that passes have computed is lost
    when a module is written and read.
    """
    if not found:
        return
    actions = {name: made[0] for name, made in found.items()}
    inside = {name: made[1] for name, made in found.items() if name in INSIDE}
    for what, each in (("actions", actions), ("object", inside)):
        if len(set(each.values())) > 1:
            told = "; ".join(f"{name}: {it}" for name, it in each.items())
            raise ModelError(f"{module}: not all flows have the same {what}: {told}")
    for name in found.keys() - inside.keys() if inside else ():
        others = results.others.setdefault(name, set())
        if found[name][1] not in inside.values():
            others.add(module)


def rows(results: Results) -> list[dict[str, Any]]:
    """Returns a row for each flow."""
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
        if flow in MODELS_INSIDE and (to := to_served(results, flow)):
            low, high = to.interval
            found = {"cpu": to.mean, "low": low, "high": high}
            row["of_served"] = {"flow": to.flow}
            row["of_served"] |= {name: round(x, 4) for name, x in found.items()}
        for base, key in ((results.base, "faster"), (STOCK, "of_clang")):
            if base not in results.runs:
                continue
            cpu, base_cpu = (results.total(x, "cpu_seconds") for x in (flow, base))
            found = {
                "total": results.total(flow) / results.total(base),
                "geomean": results.ratio(flow, base),
                "total_cpu": cpu / base_cpu,
            }
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
    """Returns a table of the rows without the results per module."""
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
    """Describes in which actions and objects the flows agree."""
    words = "by the model: the same actions in all flows"
    if any(name in INSIDE for name in results.runs):
        words += "; the same objects in all that are clang with the plug-in"
    for name, others in results.others.items():
        words += f", and by {name} of {len(results.files) - len(others)}"
    return f"{words} of {len(results.files)} modules" if results.others else words


def bounds(results: Results) -> list[Bound]:
    """Returns the flows' relative times with their limits."""
    found = []
    limits = [(flow, ORIGINAL, limit) for flow, limit in LIMITS.items()]
    limits += [(flow, STOCK, DEPLOYED_LIMIT) for flow in DEPLOYED]
    for flow, base, limit in limits:
        if flow in results.runs and base in results.runs:
            total = results.total(flow) / results.total(base)
            found.append(Bound(flow, "all modules", base, total, limit))
            mean = results.ratio(flow, base)
            found.append(Bound(flow, "geomean", base, mean, limit))
    for flow in MODELS_INSIDE:
        if flow in results.runs and (to := to_served(results, flow)):
            found.append(Bound(flow, "CPU, 95 %", to.flow, to.interval[1], 1.0))
    return found


def plot(results: Results, path: Path) -> None:
    """Plots each flow's total time and its time for each module."""
    with panels_of(path, 2) as (bars, points):
        names = list(results.runs)
        colours = [f"C{i}" for i in range(len(names))]
        totals = [results.total(name) for name in names]
        draw_bars(
            bars,
            names,
            totals,
            colours,
            "%.2f s",
            "s for all modules (lower is better)",
        )
        for colour, name in zip(colours, names, strict=True):
            runs = results.runs[name]
            times = [median(r.seconds for r in runs[file]) for file in results.files]
            # Sort the times, so that flows with similar times are separate curves.
            points.plot(range(1, len(times) + 1), sorted(times), colour, label=name)
        words = "module rank, fastest first"
        label = "seconds per module (lower is better)"
        finish(points, yscale="log", xlabel=words, ylabel=label)
