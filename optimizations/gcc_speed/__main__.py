# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Learns to inline and to unroll for speed in stock gcc -O2.

Three commands search the training programs, train models, and evaluate them::

    python -m mlbridge_optimizations.gcc_speed search
    python -m mlbridge_optimizations.gcc_speed train
    python -m mlbridge_optimizations.gcc_speed evaluate

`mlbridge corpus fetch` fetches the programs. `fuzz` is a module of its own.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

import mlbridge
from mlbridge.terminal import console, errors
from mlbridge_optimizations.corpus.manifest import Program, load
from mlbridge_optimizations.gcc_speed.models import served
from mlbridge_optimizations.gcc_speed.programs import PLUGIN, programs

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)

CorpusFolder = Annotated[Path, typer.Option(help="The corpus folder.")]
Folder = Annotated[Path, typer.Option(help="Folder for objects, searches and models.")]
Plugin = Annotated[Path, typer.Option(help="gcc's plug-in.")]
Names = Annotated[str, typer.Option(help="Programs, with commas. By default all.")]

CORPUS, FOLDER = Path("build/corpus"), Path("build/gcc-speed")
SEARCHES = "searches.jsonl"


def _chosen(corpus: Path, split: str, names: str) -> list[Program]:
    found = programs(load(corpus), split)
    return [one for one in found if not names or one.name in names.split(",")]


@app.command()
def search(
    corpus: CorpusFolder = CORPUS,
    folder: Folder = FOLDER,
    plugin: Plugin = PLUGIN,
    names: Names = "",
    split: Annotated[str, typer.Option(help="training or held-out.")] = "training",
) -> None:
    """Measure what decisions about hot loops and calls are worth."""
    from mlbridge_optimizations.gcc_speed.learning import write_search
    from mlbridge_optimizations.gcc_speed.search import Searcher
    from mlbridge_optimizations.gcc_speed.search import search as search_one

    with served() as server:
        for program in _chosen(corpus, split, names):
            try:
                searcher = Searcher(program, folder / program.name, plugin, server)
                found = search_one(searcher)
            except mlbridge.Error as error:
                errors.print(f"{program.name}: {error}", markup=False)
                continue
            # The search of a held-out program is only an oracle.
            write_search(found, folder / f"{split}-{SEARCHES}")
            ratios = f"{found.ratio:.4f} instructions, {found.size:.4f} bytes"
            console.print(f"{program.name}: {ratios}, {found.choices} choices")


@app.command()
def train(
    folder: Folder = FOLDER,
    price: Annotated[
        float, typer.Option(help="Percent of instructions per percent of bytes.")
    ] = 0.3,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
) -> None:
    """Train the models of inlining and unrolling on the searches."""
    from mlbridge_optimizations.gcc_speed.learning import (
        CHOICES,
        read_searches,
        write_model,
    )

    searches = read_searches(folder / f"training-{SEARCHES}")
    for decision in CHOICES:
        file = folder / f"{decision}.onnx"
        share, gain, growth = write_model(searches, decision, price, seed, file)
        chosen = f"{share:.1%} of the sites, {gain:.2f} % instructions saved"
        console.print(f"{file}: {chosen}, {growth:.2f} % bytes added")


@app.command()
def evaluate(
    corpus: CorpusFolder = CORPUS,
    folder: Folder = FOLDER,
    plugin: Plugin = PLUGIN,
    names: Names = "",
    split: Annotated[str, typer.Option(help="training or held-out.")] = "held-out",
    pairs: Annotated[int, typer.Option(help="Pairs of timed runs, 0: none.")] = 0,
    fixed: Annotated[bool, typer.Option(help="Also try fixed settings.")] = True,
) -> None:
    """Compare the models with stock gcc -O2, -O3 and fixed settings."""
    from mlbridge_optimizations.gcc_speed.evaluate import FIXED, Ratio, mean, model_rows
    from mlbridge_optimizations.gcc_speed.evaluate import evaluate as evaluate_all

    rows = {**(FIXED if fixed else {}), **model_rows(plugin, folder)}

    def show(one: Ratio) -> None:
        numbers = f"{one.instructions:.4f} instructions, {one.text:.4f} bytes"
        console.print(f"{one.program}, {one.row}: {numbers}, {one.time:.4f} time")

    chosen = _chosen(corpus, split, names)
    found = evaluate_all(load(corpus), chosen, rows, folder, pairs=pairs, show=show)
    table = Table("", "instructions", "bytes", "time", title="Relative to gcc -O2")
    for row in rows:
        means = [mean(found, row, what) for what in ("instructions", "text")]
        means += [mean(found, row, "time")] if pairs else []
        table.add_row(row, *(f"{value:.4f}" for value in means))
    console.print(table)


if __name__ == "__main__":
    app()
