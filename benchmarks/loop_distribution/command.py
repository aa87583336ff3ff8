# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench loop-distribution``: loop distribution without and with the bridge.

The wrapper flow is from the bridge's paper. It starts a Python process for each
module. All flows have the same model, so they make the same objects.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from mlbridge.errors import InvalidArgument, ModelError
from mlbridge.extras import need
from mlbridge.terminal import TableConsole
from mlbridge_benchmarks.common import options as cli
from mlbridge_benchmarks.common.flows import (
    IN_PROCESS,
    SERVED,
    in_process_spec,
    mean_ratio,
    rotated,
)
from mlbridge_benchmarks.common.processes import listening, runtimes, timed
from mlbridge_benchmarks.common.tables import Bound, bounds_table, number, plain_table
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.loop_distribution.kernels import kernels
from mlbridge_optimizations.loop_distribution.measure import FLAGS, loops_of

PACKAGES = ("onnx", "onnxruntime", "torch")
WRAPPER, STOCK = "wrapper", "clang -O3"
FLOWS = (WRAPPER, *SERVED, *IN_PROCESS, STOCK)
PROCESSES = "mlbridge_benchmarks.loop_distribution"

# The limit on the time with an in-process model, relative to the time of the wrapper.
LIMIT = 1 / 16
LEVEL = "L1"


@dataclass(frozen=True)
class Compiled:
    """A compile's duration and object, and the durations of the wrapper's stages."""

    seconds: float
    code: bytes
    stages: Mapping[str, float]


@dataclass(frozen=True)
class Flow:
    """A way to compile.

    Attributes:
        command: the command, without the names of the source and the object.
        start_seconds: the time until the server accepted connections.
    """

    command: Sequence[str]
    start_seconds: float = 0.0

    def compile(self, source: Path, to: Path) -> Compiled:
        """Compiles a file."""
        begin = time.monotonic()
        took = timed([*self.command, "-c", str(source), "-o", str(to)])
        stages = {}
        if took.stderr.startswith("{"):
            ends = json.loads(took.stderr)
            for stage, end in ends.items():
                stages[stage], begin = end - begin, end
        return Compiled(took.seconds, to.read_bytes(), stages)


def draw(count: int, seed: int, plugin: Path, folder: Path) -> list[Path]:
    """Writes kernels with one loop that may be distributed, in random order."""
    every = [kernel for kernel in kernels().values() if kernel.suite == "tsvc"]
    found: list[Path] = []
    for index in np.random.default_rng(seed).permutation(len(every)):
        kernel = every[index]
        loops = loops_of(kernel, LEVEL, plugin)
        if sum(len(loop.get("seeds", ())) > 1 for loop in loops) == 1:
            found.append(folder / f"{kernel.name}.c")
            lines = [
                f"#define {d[2:].replace('=', ' ')}" for d in kernel.definitions(LEVEL)
            ]
            found[-1].write_text("\n".join([*lines, kernel.source()]))
        if len(found) == count:
            return found
    raise InvalidArgument(f"--modules: expected at most {len(found)}, found {count}")


@contextmanager
def flow_of(
    name: str, weights: Path, model: Path, plugin: Path, folder: Path
) -> Iterator[Flow]:
    """Yields a flow, whose server runs until the body ends."""
    clang = [toolchain.CLANG, "-O3", *FLAGS, "-DVARIANT=kernel"]
    python = [sys.executable, "-m"]
    if name == STOCK:
        yield Flow(clang)
    elif name == WRAPPER:
        yield Flow([*python, f"{PROCESSES}.wrapper", str(weights), str(plugin), *clang])
    else:
        with ExitStack() as stack:
            start = 0.0
            if name in SERVED:
                address, options = SERVED[name]
                address = address.format(folder / f"model-{[*SERVED].index(name)}")
                command = [*python, f"{PROCESSES}.model", str(weights), address]
                server = stack.enter_context(listening(address, command, runtimes()))
                spec, start = address + options, server.start_seconds
            else:
                spec = in_process_spec(name, model, folder)
            told = (f"loop-distribution={spec}", "on-error=fatal")
            yield Flow([*clang, *toolchain.plugin_flags(plugin, *told)], start)


Runs = dict[str, dict[Path, list[Compiled]]]
"""Maps each flow and module to one compile per round."""


def measure(
    modules: Sequence[Path],
    flows: Mapping[str, Flow],
    rounds: int,
    folder: Path,
    advance: Callable[[], None],
) -> Runs:
    """Compiles each module with each flow alternately. Checks the objects."""
    runs: Runs = {name: {module: [] for module in modules} for name in flows}
    for turn in range(-1, rounds):
        # Round -1 fills the disk cache.
        for module in modules if turn >= 0 else modules[:1]:
            expected: bytes | None = None
            for name in rotated(flows, turn):
                done = flows[name].compile(module, folder / "module.o")
                if name != STOCK:
                    expected = expected or done.code
                    if done.code != expected:
                        raise ModelError(f"{module.stem}: {name} made another object")
                if turn >= 0:
                    runs[name][module].append(done)
                    advance()
    return runs


def ratio(runs: Runs, flow: str, base: str) -> float:
    """Returns the `mean_ratio` of the flow's times to the times of `base`."""
    return mean_ratio(runs[flow].values(), runs[base].values())


def rows_of(runs: Runs, flows: Mapping[str, Flow]) -> list[dict[str, Any]]:
    """Returns a row for each flow."""
    rows: list[dict[str, Any]] = []
    for flow, found in runs.items():
        seconds = [median(one.seconds for one in each) for each in found.values()]
        row: dict[str, Any] = {
            "flow": flow,
            "milliseconds": 1000 * sum(seconds) / len(seconds),
            "start_seconds": flows[flow].start_seconds,
        }
        for base, key in ((WRAPPER, "faster"), (STOCK, "of_clang")):
            if base in runs:
                found_ratio = ratio(runs, flow, base)
                row[key] = 1 / found_ratio if base == WRAPPER else found_ratio
        every = [one.stages for each in found.values() for one in each]
        row["stages"] = {
            stage: 1000 * median(one[stage] for one in every) for stage in every[0]
        }
        rows.append(row)
    return rows


def table(rows: Sequence[Mapping[str, Any]], title: str) -> Table:
    """Returns the rows as a table."""
    columns = ("ms", "faster", "/ -O3", "server's start, s")
    shown = plain_table(title, ["flow"], columns)
    for row in rows:
        start = row["start_seconds"]
        shown.add_row(
            row["flow"],
            number(row["milliseconds"]),
            *(number(row[key]) if key in row else "" for key in ("faster", "of_clang")),
            number(start) if start else "",
        )
    return shown


def stages(rows: Sequence[Mapping[str, Any]]) -> str:
    """Describes the stages of the wrapper, or returns an empty string."""
    found: dict[str, float] = next((row["stages"] for row in rows if row["stages"]), {})
    parts = ", ".join(f"{name} {number(ms)} ms" for name, ms in found.items())
    return f"{WRAPPER}: {parts}" if parts else ""


def bounds(runs: Runs) -> list[Bound]:
    """Returns the limits on compile times with a model in the compiler's process."""
    limits = {WRAPPER: LIMIT, **dict.fromkeys(SERVED, 1.0)}
    return [
        Bound(flow, "geomean", base, ratio(runs, flow, base), limit)
        for flow in IN_PROCESS
        for base, limit in limits.items()
        if flow in runs and base in runs
    ]


def loops_command(
    modules: Annotated[
        int, typer.Option(min=1, help="Kernels to compile, each in its own file.")
    ] = 12,
    seed: Annotated[int, typer.Option(help="Random seed of kernels and weights.")] = 0,
    flow: Annotated[cli.Names, cli.only("--flow", FLOWS, "flow")] = None,
    rounds: cli.Rounds = 5,
    plugin: cli.Plugin = None,
    json_file: cli.JsonFile = None,
) -> None:
    """Compare loop distribution by a Python wrapper, by a server and inside clang.

    A flow is a way to compile a kernel. All flows with a model use the same model:

    - "wrapper": Each kernel has its own Python process. This process starts clang for
      the features, decides, and starts clang again with the decision.
    - "gRPC", "pipe, JSON", "pipe, bitstream", "shm": clang asks one Python process with
      PyTorch, which serves all compiles.
    - "onnx", "aot": The model runs in clang, with ONNX Runtime or as machine code.
    - "clang -O3": The stock compiler, without a model.

    "ms" is the mean of the kernels' median compile times. "faster" is the speed-up over
    the wrapper. "/ -O3" is the time relative to the stock compiler.
    """
    need("bench loop-distribution", PACKAGES, cli.HOW_TO_INSTALL)
    import torch

    from mlbridge_benchmarks.loop_distribution.model import make_model
    from mlbridge_optimizations.training import costs

    console = TableConsole(highlight=False)
    chosen = cli.choice("--flow", flow, FLOWS)
    found = cli.find_plugin(plugin)
    with ExitStack() as on:
        name = on.enter_context(tempfile.TemporaryDirectory(prefix="mlbridge-bench-"))
        folder = Path(name)
        weights, model = folder / "weights.pt", folder / "model.onnx"
        network = make_model(seed)
        torch.save(network.state_dict(), weights)
        if set(chosen) & set(IN_PROCESS):
            costs.write(network, model)
        files = draw(modules, seed, found, folder)
        flows = {
            one: on.enter_context(flow_of(one, weights, model, found, folder))
            for one in chosen
        }
        with cli.progress_on(console) as progress:
            advance = cli.begin(progress, "loops", rounds * len(files) * len(flows))
            runs = measure(files, flows, rounds, folder, advance)
    rows = rows_of(runs, flows)
    cores = len(os.sched_getaffinity(0))
    title = f"{modules} kernels on {cores} cores, medians of {rounds}"
    console.print(table(rows, title))
    if said := stages(rows):
        console.print(said)
    if limits := bounds(runs):
        console.print(bounds_table(limits))
    cli.write_rows(console, rows, json_file)
