# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command ``mlbridge bench ir2vec``."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from mlbridge.terminal import TableConsole
from mlbridge_benchmarks.common import options as cli
from mlbridge_benchmarks.common.processes import ROOT, existing, find_build
from mlbridge_benchmarks.common.tables import number, plain_table
from mlbridge_optimizations.corpus.toolchain import run

SECONDS = 1800.0
"""The time limit of all measurements."""
FEW = 0.05
"""An update is small if its pass changed less than this share of the functions."""

Row = Mapping[str, Any]


def whole_table(found: Row) -> Table:
    """Returns the times to embed the module from scratch, as a table."""
    title = (
        f"{Path(found['module']).name}: {found['functions']:,} functions,"
        f" {found['instructions']:,} instructions"
    )
    columns = ("ms", "best", "worst", "ns / instruction")
    shown = plain_table(title, ["from scratch"], columns)
    for row in found["whole"]:
        times = (number(row[key]) for key in ("ms", "best_ms", "worst_ms"))
        each = 1e6 * row["ms"] / max(1, found["instructions"])
        shown.add_row(row["what"], *times, number(each))
    return shown


def passes_table(found: Row) -> Table:
    """Returns the times of the updates after passes, as a table."""
    columns = ("functions changed", "counted", "ms")
    shown = plain_table("updates", ["after"], columns)
    for row in found["passes"]:
        counted = f"{row['counted']:,} of {row['functions']:,}"
        shown.add_row(row["pass"], f"{changed(row):.1%}", counted, number(row["ms"]))
    return shown


def changed(row: Row) -> float:
    """Returns the share of the functions that a pass changed."""
    return float(row["changed"] / max(1, row["functions"]))


def summary(found: Row) -> str:
    """Describes the longest updates after passes that changed few functions."""
    few = [row for row in found["passes"] if changed(row) < FEW]

    def longest(counts_all: bool) -> str:
        ours = [r for r in few if (r["counted"] == r["functions"]) == counts_all]
        return f"{number(max((row['ms'] for row in ours), default=0.0))} ms"

    return (
        f"The longest update after a pass that changed under {FEW:.0%} of the"
        f" functions: {longest(False)}; where all functions were counted:"
        f" {longest(True)}."
    )


def ir2vec_command(
    module: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE.bc", help="Bitcode. [default: sqlite3.c of the corpus]"
        ),
    ] = None,
    pipeline: Annotated[
        str,
        typer.Option(
            help="Pipeline to run on the module before the measurement, so that its"
            " instructions are scattered in memory as in a real compile. An empty"
            " string means no pipeline."
        ),
    ] = "default<O2>",
    vocabulary: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="IR2Vec vocabulary in LLVM's JSON format."
            " [default: build/ir2vec/ir2vec-300d.json]",
        ),
    ] = None,
    rounds: cli.Rounds = 21,
    json_file: cli.JsonFile = None,
    build: cli.Build = None,
) -> None:
    """Measure how long it takes to embed a module with IR2Vec.

    The first table compares this project with LLVM's Embedder when a module is embedded
    from scratch. The second table shows how long this project takes to update
    the embedding after each pass of -Oz. "counted" is the number of functions whose
    instructions were counted again. All times are CPU times of one thread.
    """
    console = TableConsole(highlight=False)
    client = find_build(build, ["ir2vec-bench"]) / "ir2vec-bench"
    file = existing(
        module or ROOT / "build/corpus/sqlite3/sqlite3.c.bc",
        "run `mlbridge corpus fetch --program sqlite3` in a checkout, or name a file",
    )
    words: list[str | Path] = [client, cli.find_vocabulary(vocabulary), file]
    words += [str(rounds), *([pipeline] if pipeline else [])]
    said, _ = run(words, seconds=SECONDS)
    found: dict[str, Any] = json.loads(said)
    console.print(f"{found['vocabulary']} has {found['dimension']} dimensions.")
    console.print(whole_table(found))
    console.print(passes_table(found))
    console.print(summary(found))
    cli.write_rows(console, [*found["whole"], *found["passes"]], json_file)
