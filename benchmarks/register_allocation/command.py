# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench register-allocation``: dialogues through gRPC and in the compiler.

This corresponds to table 3 of the bridge's paper. Four agents with the same weights
allocate the registers of the same files, so all flows make the same objects.
"""

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from rich.table import Table

from mlbridge.errors import ModelError
from mlbridge.extras import need
from mlbridge.terminal import TableConsole
from mlbridge_benchmarks.common import options as cli
from mlbridge_benchmarks.common.flows import IN_PROCESS, in_process_spec
from mlbridge_benchmarks.common.processes import (
    ROOT,
    WORKLOADS,
    existing,
    listening,
    placements,
    runtimes,
    timed,
)
from mlbridge_benchmarks.common.tables import Bound, bounds_table, number, plain_table
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.corpus.recipes import RECIPES
from mlbridge_optimizations.corpus.sources import SourceProgram, unpack
from mlbridge_optimizations.register_allocation.optimization import AGENTS

PACKAGES = ("onnx", "onnxruntime", "torch")
STOCK = "greedy"
# Maps each flow with a server to the server's runtime.
SERVED = {"torch-grpc": "torch", "onnx-grpc": "onnx"}
FLOWS = (*SERVED, *IN_PROCESS, STOCK)
BASE = "torch-grpc"

# Limits on the times relative to the flow with PyTorch behind gRPC.
LIMITS = {"allocation": 1 / 20, "compile": 1 / 12.4}

SERVER = "mlbridge_benchmarks.register_allocation.model"
_PASSES = ("ML-Compiler-Bridge register allocation", "Greedy Register Allocator")
_WALL = re.compile(r"([\d.]+) \( *[\d.]+%\)  ([A-Z].*)$", re.MULTILINE)


@dataclass(frozen=True)
class Compiled:
    """The results of compiling all files once.

    Attributes:
        seconds: the time until the last file was ready.
        allocation: the sum of the times of register allocation.
        requests: the number of decisions.
        objects: the contents of the objects.
    """

    seconds: float
    allocation: float
    requests: int
    objects: tuple[bytes, ...]


def compile_all(
    program: SourceProgram,
    options: Sequence[str],
    jobs: int,
    core: int | None,
    folder: Path,
) -> Compiled:
    """Compiles all files with `jobs` compilers at once, on `core` if it is given."""
    pinned = ["taskset", "-c", str(core)] if core is not None else []

    def compile_one(item: tuple[int, Path]) -> tuple[str, bytes]:
        index, source = item
        target = folder / f"{index}.o"
        command = [*pinned, toolchain.CLANG, "-O2", "-w", *program.flags, *options]
        command += ["-ftime-report", "-c", str(source), "-o", str(target)]
        said = timed(command).stderr
        return said, target.read_bytes()

    start = time.perf_counter()
    with ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(compile_one, enumerate(program.largest_first)))
    seconds = time.perf_counter() - start
    said = "\n".join(text for text, _ in found)
    failed = sum(map(int, re.findall(r"failed=(\d+)", said)))
    if failed:
        raise ModelError(f"not all decisions are the model's: {said[-2000:]}")
    allocation = sum(
        float(wall) for wall, name in _WALL.findall(said) if name.startswith(_PASSES)
    )
    requests = sum(map(int, re.findall(r"requests=(\d+)", said)))
    return Compiled(seconds, allocation, requests, tuple(o for _, o in found))


@contextmanager
def spec_for(flow: str, models: Path, folder: Path) -> Iterator[str]:
    """Yields the spec of a flow. Its server runs until the body ends.

    For aot, compiles the models. Files are written to the folder.
    """
    if flow in SERVED:
        spec = f"grpc+unix:{folder / flow}.sock"
        command = [sys.executable, "-m", SERVER, spec, SERVED[flow]]
        command += [str(placements()[-1].model), str(models)]
        with listening(spec, command, runtimes()):
            yield f"{spec}?timeout=60s"
        return
    parts = {
        agent: in_process_spec(flow, models / f"{agent}.onnx", folder)
        for agent in AGENTS
    }
    yield f"{flow}:" + ",".join(
        f"{agent}={spec.partition(':')[2]}" for agent, spec in parts.items()
    )


def options_for(spec: str, plugin: Path) -> list[str]:
    """Returns clang's options for a dialogue."""
    told = (f"regalloc={spec}", "regalloc-form=dialogue", "print-statistics")
    return toolchain.plugin_flags(plugin, *told, "on-error=fatal")


def measure(
    program: SourceProgram,
    flows: Mapping[str, Sequence[str]],
    jobs: Sequence[int],
    rounds: int,
    core: int,
    folder: Path,
    advance: Callable[[], None],
) -> dict[tuple[str, int], list[Compiled]]:
    """Compiles with each flow and number of jobs alternately. Checks the objects."""
    found: dict[tuple[str, int], list[Compiled]] = {}
    expected: tuple[bytes, ...] | None = None
    for _ in range(rounds):
        for count in jobs:
            for flow, options in flows.items():
                one = core if count == 1 else None
                done = compile_all(program, options, count, one, folder)
                found.setdefault((flow, count), []).append(done)
                advance()
                if flow == STOCK:
                    continue
                expected = expected or done.objects
                if done.objects != expected:
                    raise ModelError(f"{flow}: other objects than the first flow's")
    return found


def rows_of(found: Mapping[tuple[str, int], list[Compiled]]) -> list[dict[str, Any]]:
    """Returns a row for each flow and number of jobs."""

    def of(flow: str, jobs: int, what: str) -> float:
        return float(median(getattr(one, what) for one in found[flow, jobs]))

    rows = []
    for flow, jobs in found:
        row: dict[str, Any] = {"flow": flow, "jobs": jobs}
        for what in ("seconds", "allocation", "requests"):
            row[what] = of(flow, jobs, what)
        if (BASE, jobs) in found:
            row["faster"] = of(BASE, jobs, "seconds") / row["seconds"]
            row["faster_allocation"] = of(BASE, jobs, "allocation") / row["allocation"]
        rows.append(row)
    return rows


def table(rows: Sequence[Mapping[str, Any]], title: str) -> Table:
    """Returns the rows as a table."""
    numbers = ("jobs", "compile, s", "faster", "allocation, s", "faster", "requests")
    shown = plain_table(title, ["flow"], numbers)
    for row in rows:
        whole, part = (
            number(row[key]) if key in row else ""
            for key in ("faster", "faster_allocation")
        )
        shown.add_row(
            row["flow"],
            str(row["jobs"]),
            number(row["seconds"]),
            whole,
            number(row["allocation"]),
            part,
            f"{row['requests']:.0f}",
        )
    return shown


def bounds(rows: Sequence[Mapping[str, Any]]) -> list[Bound]:
    """Returns the limits on the times of a single compiler with the flow `onnx`."""
    keys = {"allocation": "faster_allocation", "compile": "faster"}
    return [
        Bound(f"{row['flow']}: {what}", "1 job", BASE, 1 / row[keys[what]], limit)
        for row in rows
        if row["flow"] == "onnx" and row["jobs"] == 1 and "faster" in row
        for what, limit in LIMITS.items()
    ]


def allocation_command(
    program: Annotated[
        str,
        typer.Argument(help="A corpus program that compiles without a configure step."),
    ] = "lua",
    models: Annotated[
        Path, typer.Option(help="The folder of the agents' ONNX files.")
    ] = ROOT / "models" / "regalloc-dialogue",
    flow: Annotated[cli.Names, cli.only("--flow", FLOWS, "flow")] = None,
    jobs: Annotated[
        str, typer.Option(metavar="N,N,...", help="Numbers of parallel compilers.")
    ] = "1,2,4,8",
    rounds: cli.Rounds = 3,
    plugin: cli.Plugin = None,
    json_file: cli.JsonFile = None,
) -> None:
    """Compare models of register allocation in a gRPC server and in the compiler.

    A flow is a way to allocate registers. In all flows except "greedy", the same four
    models (agents) decide step by step:

    - "torch-grpc", "onnx-grpc": The agents run in a server, with PyTorch or ONNX
      Runtime. With `--jobs 1`, the compiler and the server have separate cores.
    - "onnx", "aot": The agents run in the compiler's process, with ONNX Runtime or as
      machine code.
    - "greedy": LLVM's allocator, without agents.
    """
    need("bench register-allocation", PACKAGES, cli.HOW_TO_INSTALL)
    console = TableConsole(highlight=False)
    chosen = cli.choice("--flow", flow, FLOWS)
    counts = cli.parse_counts("--jobs", jobs)
    found = cli.find_plugin(plugin)
    known = [name for name, recipe in RECIPES.items() if not recipe.commands]
    if program not in known:
        raise typer.BadParameter(f"{program!r}: expected {', '.join(known)}")
    for agent in AGENTS:
        existing(models / f"{agent}.onnx", "--models names the agents' folder")
    unpacked = unpack([program], WORKLOADS)[program]
    with ExitStack() as on:
        name = on.enter_context(tempfile.TemporaryDirectory(prefix="mlbridge-bench-"))
        folder = Path(name)
        flows = {
            one: []
            if one == STOCK
            else options_for(
                on.enter_context(spec_for(one, models.resolve(), folder)), found
            )
            for one in chosen
        }
        with cli.progress_on(console) as progress:
            total = rounds * len(counts) * len(flows)
            core = placements()[-1].client
            advance = cli.begin(progress, program, total)
            rows = rows_of(
                measure(unpacked, flows, counts, rounds, core, folder, advance)
            )
    cores = len(os.sched_getaffinity(0))
    title = f"{program} by clang -O2 on {cores} cores, median of {rounds}"
    console.print(table(rows, title))
    if limits := bounds(rows):
        console.print(bounds_table(limits))
    cli.write_rows(console, rows, json_file)
