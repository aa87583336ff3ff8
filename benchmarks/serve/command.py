# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench serve``."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from mlbridge.errors import ModelError, PeerClosed
from mlbridge.terminal import TableConsole
from mlbridge_benchmarks.common.options import (
    LOCAL_RUNNERS,
    Build,
    JsonFile,
    LocalRunner,
    choice,
    parse_counts,
    progress_on,
    write_rows,
)
from mlbridge_benchmarks.common.processes import find_build, started

CLIENTS = "1,2,8,32"

ENDING_SECONDS = 30.0
"""More than the slowest answer takes."""


@dataclass(frozen=True)
class Load:
    """What one row of the table asks of the model."""

    runner: str
    clients: int
    max_batch: int
    max_delay_ms: float
    model_ms: float
    floats: int
    seconds: float


@dataclass(frozen=True)
class Row:
    """What came of it."""

    load: Load
    decisions_per_second: float
    slowest_client: float
    """Decisions of the compiler that got the fewest, over their mean."""
    batch_size: float
    latency_ms: dict[str, float]


def _end(process: "subprocess.Popen[bytes]", name: str) -> bytes:
    """Has a process end, and returns the rest of its output."""
    output, _ = process.communicate(timeout=ENDING_SECONDS)
    if process.returncode:
        raise PeerClosed(f"{name} ended with status {process.returncode}")
    return bytes(output)


def measure(load: Load, build: Path) -> Row:
    """Runs compilers against a model, all at once."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        spec = f"{load.runner}:{folder}/model"
        model = stack.enter_context(
            started(
                [
                    sys.executable,
                    "-m",
                    "mlbridge_benchmarks.serve.model",
                    spec,
                    str(load.model_ms),
                    str(load.max_batch),
                    str(load.max_delay_ms),
                ]
            )
        )
        client: list[str | Path] = [build / "serve-client", spec, str(load.floats)]
        compilers = [stack.enter_context(started(client)) for _ in range(load.clients)]
        for compiler in compilers:
            assert compiler.stdout is not None
            if compiler.stdout.readline() != b"ready\n":
                raise PeerClosed("a compiler did not get its first answer")
        for compiler in compilers:
            assert compiler.stdin is not None
            compiler.stdin.write(f"{load.seconds}\n".encode())
            compiler.stdin.flush()
        results = [json.loads(_end(compiler, "a compiler")) for compiler in compilers]
        rates = [result["questions"] / result["seconds"] for result in results]
        if min(rates) == 0:
            raise ModelError("a compiler was left without an answer")
        model.terminate()
        served = json.loads(_end(model, "the model"))
    return Row(
        load,
        sum(rates),
        min(rates) * len(rates) / sum(rates),
        served["batch_size"],
        served["latency_ms"],
    )


def table(rows: Sequence[Row]) -> Table:
    """The rows, with what batching gains over the row without it."""
    shown = Table(title="decisions of many compilers by one model")
    shown.add_column("runner")
    for name in ("compilers", "max batch", "decisions/s", "gain", "batch", "slowest"):
        shown.add_column(name, justify="right", no_wrap=True)
    for name in ("p50 ms", "p99 ms"):
        shown.add_column(name, justify="right", no_wrap=True)
    alone = {
        (r.load.runner, r.load.clients): r.decisions_per_second
        for r in rows
        if r.load.max_batch == 1
    }
    for row in rows:
        load = row.load
        is_batched = load.max_batch > 1
        base = alone.get((load.runner, load.clients))
        gain = row.decisions_per_second / base if base and is_batched else None
        shown.add_row(
            load.runner,
            str(load.clients),
            str(load.max_batch),
            f"{row.decisions_per_second:.0f}",
            f"{gain:.1f}" if gain else "",
            f"{row.batch_size:.1f}",
            f"{row.slowest_client:.2f}",
            f"{row.latency_ms['p50']:.2f}",
            f"{row.latency_ms['p99']:.2f}",
        )
    return shown


def serve(
    clients: Annotated[
        str, typer.Option(metavar="N,N,...", help="How many compilers ask at once.")
    ] = CLIENTS,
    model_ms: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="MS",
            help="What one call of the model takes, batched or not.",
        ),
    ] = 2.0,
    max_batch: Annotated[
        int, typer.Option(min=2, help="The most questions that it gets at once.")
    ] = 32,
    max_delay: Annotated[
        float,
        typer.Option(
            min=0, metavar="MS", help="How long a question may wait for others."
        ),
    ] = 0.0,
    floats: Annotated[
        int, typer.Option(min=1, help="How many float32s a question has.")
    ] = 100,
    seconds: Annotated[
        float, typer.Option(min=0.1, help="How long each row is measured.")
    ] = 3.0,
    runner: LocalRunner = None,
    json_file: JsonFile = None,
    build: Build = None,
) -> None:
    """Count the decisions that one model gives to many compilers.

    Each compiler is a process that asks one question after another. The model takes as
    long for a batch as for one question, as a network on an accelerator does, so what
    batching gains is how many questions wait at the same moment. "slowest" is what the
    compiler that was served least got, as a part of the mean: 1.00 is fair.
    """
    console = TableConsole(highlight=False)
    counts = parse_counts("--clients", clients)
    found_build = find_build(build)
    loads = [
        Load(name, count, batch, delay, model_ms, floats, seconds)
        for name in choice("--runner", runner, LOCAL_RUNNERS)
        for count in counts
        for batch, delay in ((1, 0.0), (max_batch, max_delay))
    ]
    rows: list[Row] = []
    with progress_on(console) as progress:
        task = progress.add_task("", total=len(loads))
        for load in loads:
            progress.update(
                task,
                description=f"{load.clients} compilers, {load.runner}, batches of "
                f"{load.max_batch}",
            )
            rows.append(measure(load, found_build))
            progress.advance(task)
    console.print(table(rows))
    write_rows(console, [asdict(row) for row in rows], json_file)
