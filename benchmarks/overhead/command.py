# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench overhead``."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from mlbridge.terminal import TableConsole
from mlbridge_benchmarks.common.options import (
    MODEL_RUNNERS,
    Build,
    JsonFile,
    ModelRunner,
    Plugin,
    Rounds,
    choice,
    find_plugin,
    progress_on,
    write_rows,
)
from mlbridge_benchmarks.common.processes import WORKLOADS, find_build
from mlbridge_benchmarks.common.tables import plain_table
from mlbridge_benchmarks.overhead import overhead
from mlbridge_benchmarks.threads.threads import Source
from mlbridge_optimizations.corpus.sources import unpack

MODULE = ("bzip2", "compress.c")


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    table = plain_table("what the plug-in and its models add to clang -Oz")
    for column in ("", "clang"):
        table.add_column(column, no_wrap=True)
    for column in ("asked", "MiB", "ms", "+", "CPU ms", "+", "RSS", "+"):
        table.add_column(column, justify="right", no_wrap=True)
    last = ""
    for row in rows:
        table.add_row(
            row["source"] if row["source"] != last else "",
            row["clang"],
            str(row["asked"] or ""),
            f"{row['disk_mib']:.2f}",
            *(f"{row[name]:.1f}" for name in ("ms", "added_ms")),
            *(f"{row[name]:.1f}" for name in ("cpu_ms", "added_cpu_ms")),
            *(f"{row[name]:.1f}" for name in ("rss_mib", "added_rss_mib")),
        )
        last = row["source"]
    return table


def _module(source: Path | None) -> Source:
    """What is compiled beside the smallest file."""
    if source:
        return Source(source.name, source)
    name, file = MODULE
    program = unpack([name], WORKLOADS)[name]
    return Source(file, program.folder / file, program.flags)


def overhead_command(
    runner: ModelRunner = None,
    source: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.c",
            exists=True,
            help="The module that is compiled. [default: bzip2's compress.c]",
        ),
    ] = None,
    rounds: Rounds = 25,
    plugin: Plugin = None,
    json_file: JsonFile = None,
    build: Build = None,
) -> None:
    """Measure what the plug-in adds to clang: size, start-up, memory.

    Stock clang, clang with the plug-in and no model to ask, and with the imitation
    inliner by each way to run it in the process compile two files in turns: the
    smallest that has something to decide, whose time is the start-up, since a model is
    loaded by its first question; and a whole module.

    "asked" are the decisions, "MiB" is what has to be on disk beside clang, "RSS" the
    most memory in MiB that the process had, shared libraries included; "+" is the
    median of what compiles of the same round differ by from stock clang's. CPU is what
    other work on the machine disturbs least.

    ```sh
    mlbridge bench overhead
    mlbridge bench overhead --runner aot --source x.c
    ```
    """
    console = TableConsole(highlight=False)
    chosen = choice("--runner", runner, MODEL_RUNNERS)
    found_build = find_build(build, ["run-client"])
    found_plugin = find_plugin(plugin)
    module = _module(source)
    with (
        tempfile.TemporaryDirectory(prefix="mlb") as temporary,
        progress_on(console, auto_refresh=False) as progress,
    ):
        folder = Path(temporary)
        smallest = folder / "smallest.c"
        smallest.write_text(overhead.SMALLEST)
        wanted = overhead.variants(found_plugin, chosen, folder)
        task = progress.add_task("compiles", total=rounds + 1)
        results = overhead.measure(
            found_build,
            wanted,
            [Source("start-up", smallest), module],
            rounds=rounds,
            folder=folder,
            on_round=lambda: progress.update(task, advance=1, refresh=True),
        )
        rows = overhead.rows(results, wanted)
    console.print(_table(rows))
    stock = overhead.clang_files()
    sizes = sum(path.stat().st_size for path in stock) / 2**20
    console.print(f"stock clang: {sizes:.1f} MiB in {len(stock)} files")
    write_rows(console, rows, json_file)
