# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of commands whose modules import PyTorch, which takes seconds."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from typer import Option

from mlbridge_optimizations.commands.shared import RatiosFile
from mlbridge_optimizations.training.settings import Width

Extension = Annotated[
    Path | None,
    Option(help="mlbridge_sqlite.so. [default: as found by `mlbridge doctor`]"),
]


@dataclass(frozen=True)
class LearningOptions:
    """The options of a training."""

    rows: Annotated[
        int,
        Option(min=100, help="Maximum rows per table to sample for column summaries."),
    ] = 30_000
    counted: Annotated[
        int,
        Option(min=100, help="Maximum rows per table on which conditions are tested."),
    ] = 20_000
    terms: Annotated[int, Option(min=1, help="Random conditions per table.")] = 600
    conjunctions: Annotated[
        int, Option(min=10, help="Random conjunctions of these conditions per table.")
    ] = 3000
    epochs: Annotated[int, Option(min=1, help="Passes over the conjunctions.")] = 30
    batch: Annotated[int, Option(min=1, help="Examples in a batch.")] = 256
    rate: Annotated[float, Option(help="Largest learning rate of AdamW.")] = 0.01
    hidden: Width = 32
    unsure: Annotated[
        float,
        Option(
            help="Use an estimate only if |log(estimate / SQLite's assumption)| exceeds"
            " this multiple of the error that the model expects."
        ),
    ] = 1.0
    share: Annotated[
        float,
        Option(
            help="Use the model for a statement only if, for at least one table, the"
            " statement's conditions accept at most this share of the rows."
        ),
    ] = 0.03
    seed: Annotated[int, Option(min=0, help="Random seed.")] = 0


@dataclass(frozen=True)
class EvaluationOptions:
    """The options of an evaluation."""

    database: Annotated[
        Path | None,
        Option(
            help="Your own database. It needs --model and --statements. ANALYZE renews"
            " its statistics, and nothing else changes it."
        ),
    ] = None
    model: Annotated[
        str, Option(metavar="SPEC", help="Model spec for --database: aot:model.so.")
    ] = ""
    statements: Annotated[
        Path | None,
        Option(metavar="FILE", help="File of queries for --database, one per line."),
    ] = None
    workloads: Annotated[
        list[str],
        Option(
            "--workload",
            metavar="NAME",
            help="A generated database: films or retail. May be repeated.",
        ),
    ] = field(default_factory=lambda: ["films", "retail"])
    split: Annotated[str, Option(help="Queries to draw: training or held-out.")] = (
        "held-out"
    )
    queries: Annotated[int, Option(min=2, help="Queries for each database.")] = 200
    scale: Annotated[
        float, Option(help="Factor on the numbers of rows in generated databases.")
    ] = 1.0
    limit: Annotated[
        float,
        Option(help="Omit queries that take more seconds than this without a model."),
    ] = 2.0
    budget: Annotated[
        float,
        Option(help="Maximum time for repeated runs of a query, in seconds."),
    ] = 0.3
    stock: Annotated[
        bool, Option(help="Also measure the installed libsqlite3 with the model.")
    ] = True
    out: Annotated[
        Path, Option(help="Folder of databases, models and builds of SQLite.")
    ] = Path("build/sqlite-selectivity")
    source: Annotated[
        Path, Option(help="Folder of sqlite3.c, for the build with STAT4.")
    ] = Path("build/workloads/sqlite3-amalgamation")
    extension: Extension = None
    json: RatiosFile = None
