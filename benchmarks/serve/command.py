# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command ``mlbridge bench serve``."""

import json
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from mlbridge.errors import ModelError
from mlbridge.terminal import TableConsole
from mlbridge_benchmarks.common import options as cli
from mlbridge_benchmarks.common.processes import Worker, find_build, started
from mlbridge_benchmarks.common.tables import plain_table

CLIENTS = "1,2,8,32"


@dataclass(frozen=True)
class Load:
    """The parameters of one row."""

    runner: str
    clients: int
    max_batch: int
    max_delay_ms: float
    model_ms: float
    floats: int
    seconds: float


def measure(load: Load, build: Path) -> dict[str, Any]:
    """Lets all compilers send requests to one model at the same time."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        spec = f"{load.runner}:{folder}/model"
        told = (load.model_ms, load.max_batch, load.max_delay_ms)
        module = [sys.executable, "-m", "mlbridge_benchmarks.serve.model"]
        model = stack.enter_context(started([*module, spec, *map(str, told)]))
        client: list[str | Path] = [build / "serve-client", spec, str(load.floats)]
        compilers = [
            Worker("a compiler", stack.enter_context(started(client)))
            for _ in range(load.clients)
        ]
        for compiler in compilers:
            compiler.meet()
        for compiler in compilers:
            compiler.send(str(load.seconds))
        results = [json.loads(compiler.line()) for compiler in compilers]
        rates = [result["requests"] / result["seconds"] for result in results]
        if min(rates) == 0:
            raise ModelError("a compiler got no reply")
        model.terminate()
        served = json.loads(Worker("the model", model).line())
    return {
        **{"load": asdict(load), "decisions_per_second": sum(rates), **served},
        "slowest_client": min(rates) / (sum(rates) / len(rates)),
    }


def table(rows: Sequence[dict[str, Any]]) -> Table:
    """Returns the rows as a table, with the speed-up that batching gives."""
    rates = ("decisions/s", "gain", "batch", "slowest", "p50 ms", "p99 ms")
    columns = ("compilers", "max batch", *rates)
    shown = plain_table("decisions of many compilers by one model", ["runner"], columns)
    alone: dict[tuple[str, int], float] = {}
    for row in rows:
        load, latency = row["load"], row["latency_ms"]
        rate = row["decisions_per_second"]
        # The row without batching comes first.
        base = alone.setdefault((load["runner"], load["clients"]), rate)
        gain = f"{rate / base:.1f}" if load["max_batch"] > 1 else ""
        shown.add_row(
            *(load["runner"], str(load["clients"]), str(load["max_batch"])),
            *(f"{rate:.0f}", gain, f"{row['batch_size']:.1f}"),
            *(f"{row['slowest_client']:.2f}", f"{latency['p50']:.2f}"),
            f"{latency['p99']:.2f}",
        )
    return shown


def serve(
    clients: Annotated[
        str, typer.Option(metavar="N,N,...", help="Numbers of parallel compilers.")
    ] = CLIENTS,
    model_ms: Annotated[
        float,
        typer.Option(min=0, metavar="MS", help="Milliseconds per call of the model."),
    ] = 2.0,
    max_batch: Annotated[
        int, typer.Option(min=2, help="Maximum requests per call of the model.")
    ] = 32,
    max_delay: Annotated[
        float,
        typer.Option(min=0, metavar="MS", help="Maximum wait to fill a batch."),
    ] = 0.0,
    floats: Annotated[int, typer.Option(min=1, help="Float32s per request.")] = 100,
    seconds: Annotated[float, typer.Option(min=0.1, help="Seconds per row.")] = 3.0,
    runner: cli.LocalRunner = None,
    json_file: cli.JsonFile = None,
    build: cli.Build = None,
) -> None:
    """Measure how many decisions per second one model makes for many compilers.

    Each compiler is a process that sends one request after another. Like a network on
    an accelerator, the model needs the same time for a batch as for one request. "gain"
    is the speed-up through batching. "slowest" is the rate of the slowest compiler
    divided by the mean rate, so 1.00 is fair.
    """
    console = TableConsole(highlight=False)
    counts = cli.parse_counts("--clients", clients)
    found_build = find_build(build)
    loads = [
        Load(name, count, batch, delay, model_ms, floats, seconds)
        for name in cli.choice("--runner", runner, cli.LOCAL_RUNNERS)
        for count in counts
        for batch, delay in ((1, 0.0), (max_batch, max_delay))
    ]
    rows: list[dict[str, Any]] = []
    with cli.progress_on(console) as progress:
        task = progress.add_task("", total=len(loads))
        for load in loads:
            what = f"{load.clients} compilers, {load.runner}, batches of "
            progress.update(task, description=f"{what}{load.max_batch}")
            rows.append(measure(load, found_build))
            progress.advance(task)
    console.print(table(rows))
    cli.write_rows(console, rows, json_file)
