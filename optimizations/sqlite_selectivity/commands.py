# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands ``mlbridge train`` and ``evaluate`` for SQLite's selectivities."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from typer import Argument, Option

from mlbridge.errors import InvalidArgument
from mlbridge.options import with_options
from mlbridge.terminal import console
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.evaluation.tables import write_json
from mlbridge_optimizations.extras import need

from .settings import EvaluationOptions, Extension, LearningOptions

if TYPE_CHECKING:
    from .evaluate import Result

PACKAGES = ("torch", "onnx", "onnxruntime", "onnxscript", "matplotlib")


@dataclass(frozen=True)
class ModelOptions:
    """The files of a training."""

    database: Annotated[
        Path, Argument(metavar="DB", help="An SQLite database. It is not changed.")
    ]
    out: Annotated[
        Path, Option(help="Folder for model.onnx and its learning curve.")
    ] = Path("build/sqlite-selectivity/model")
    check: Annotated[
        Path | None,
        Option(
            metavar="MODEL.onnx",
            help="Train nothing. Print whether the tables have changed since MODEL was"
            " trained, and end with status 1 if so.",
        ),
    ] = None
    extension: Extension = None


def _train(
    context: typer.Context, trained: ModelOptions, learning: LearningOptions
) -> None:
    r"""Train a model of selectivities on the tables of a database.

    A selectivity is the share of rows that satisfy a condition. The training draws
    random conditions on all columns, and counts the rows that they accept. The model
    estimates selectivities with summaries of the columns, a sample of rows and a small
    network. The guide is docs/guides/sqlite.md.

    ```sh
    mlbridge train sqlite-selectivity shop.db --out shop
    mlbridge compile shop/model.onnx -o shop.so
    sqlite3 shop.db ".load mlbridge_sqlite" "select mlbridge_model('aot:shop.so')"
    mlbridge train sqlite-selectivity shop.db --check shop/model.onnx
    ```

    """
    if trained.check:
        _check(trained, learning)
        return
    need("mlbridge train sqlite-selectivity", PACKAGES)
    from .experiment import train_model

    with ProgressBars() as bars:
        last = train_model(
            trained.database, trained.extension, trained.out, learning, bars.show_stage
        )
    console.print(
        f"{trained.out}/model.onnx: half of the estimates are within a factor of"
        f" {last.median:.2f}, and 90 % within {last.most:.1f}. Without the network, the"
        f" factors are {last.base_median:.2f} and {last.base_most:.1f}. To compile the"
        f" model: mlbridge compile {trained.out}/model.onnx -o {trained.out}/model.so"
    )


def _check(trained: ModelOptions, learning: LearningOptions) -> None:
    need("mlbridge train sqlite-selectivity --check", ("onnx",))
    from .drift import drifts

    assert trained.check is not None
    if not trained.check.is_file():
        raise InvalidArgument(f"there is no model {trained.check}")
    found = [*drifts(trained.database, trained.check, learning.rows, learning.seed)]
    for one in (one for one in found if one.is_large):
        name = f"{one.table}.{one.column}" if one.column else one.table
        console.print(f"{name}: {one.text}", highlight=False)
    if any(one.is_large for one in found):
        console.print("The tables have changed: train the model again.")
        raise typer.Exit(1)
    console.print("The tables are as in the training.")


def _evaluate(
    context: typer.Context, options: EvaluationOptions, learning: LearningOptions
) -> None:
    r"""Compare the query times of SQLite (a build with STAT4) with and without a model.

    The databases and queries are drawn from seeds, so they are the same on every
    machine. Each query must return the same rows with and without the model. Hot times
    are medians of alternating runs. Cold times are from a single run with empty caches.
    The times with the model include the requests to it.

    ```sh
    scripts/fetch-sqlite3 build/workloads
    mlbridge evaluate sqlite-selectivity
    mlbridge evaluate sqlite-selectivity --database shop.db --model aot:shop.so \
      --statements queries.sql
    ```
    """
    need("mlbridge evaluate sqlite-selectivity", (*PACKAGES, "emx_onnx_cgen"))
    from .evaluate import compare, own_subject, subjects

    with ProgressBars() as bars:
        if options.database:
            if not options.model or not options.statements:
                raise InvalidArgument("--database needs --model and --statements")
            chosen = [own_subject(options.database, options.model, options.statements)]
        else:
            chosen = subjects(options, learning, bars.show_stage)
        results = {
            subject.name: compare(
                subject, options, bars.stage(f"Queries: {subject.name}")
            )
            for subject in chosen
        }
    for name, rows in results.items():
        _print(name, rows)
    plain = {n: {k: asdict(v) for k, v in r.items()} for n, r in results.items()}
    write_json(options.json, plain)


def _print(name: str, rows: "dict[str, Result]") -> None:
    from .evaluate import geomean

    table = Table(title=f"{name}: times relative to SQLite with STAT4, without a model")
    table.add_column("")
    for row in rows:
        table.add_column(row, justify="right")
    results = [*rows.values()]
    texts = {
        "queries": [f"{len(one.times)}" for one in results],
        "  with another plan": [f"{one.changed}" for one in results],
        "  with a term without index": [f"{len(one.ours())}" for one in results],
        "    their speedup, hot": [geomean(one.ours()) for one in results],
        "      if 1 ms or more": [geomean(one.long()) for one in results],
        "      cold": [geomean(one.ours(), cold=True) for one in results],
        "1 ms or more: slower than 1.1 x": [
            f"{one.slow} of {len(one.all_long())}" for one in results
        ],
        "  slowest": [f"{one.slowest:.2f} x" for one in results],
        "below 1 ms: over 100 µs slower": [f"{one.late}" for one in results],
        "preparation, µs more (median, most)": [
            "{:.0f}, {:.0f}".format(*one.preparation()) for one in results
        ],
        "wrong results": [f"{len(one.wrong)}" for one in results],
        "left out": [f"{one.left_out}" for one in results],
    }
    for label, values in texts.items():
        table.add_row(label, *values)
    console.print(table)
    for one in results:
        for sql in one.wrong:
            console.print(f"wrong result: {sql}", highlight=False)


COMMANDS = {
    "train sqlite-selectivity": with_options(_train, ModelOptions, LearningOptions),
    "evaluate sqlite-selectivity": with_options(
        _evaluate, EvaluationOptions, LearningOptions
    ),
}
