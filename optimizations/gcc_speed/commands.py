# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands ``mlbridge search``, ``train`` and ``evaluate gcc-speed``."""

from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Annotated

import typer
from rich.table import Table
from typer import Option

from mlbridge.errors import CompilerFailed, Error, InvalidArgument
from mlbridge.options import with_options
from mlbridge.terminal import console, errors
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.commands.shared import (
    CorpusFolder,
    Programs,
    RatiosFile,
)
from mlbridge_optimizations.corpus.manifest import Corpus, Program, load
from mlbridge_optimizations.evaluation.tables import write_json
from mlbridge_optimizations.extras import need

from .measure import Plugin, find_plugin, names_of

NAME = "gcc-speed"

Folder = Annotated[Path, Option(help="Folder for objects, searches and models.")]
Split = Annotated[str, Option(help="Programs: training or held-out.")]


@dataclass(frozen=True)
class SearchOptions:
    """The options of a search."""

    corpus: CorpusFolder = Path("build/corpus")
    folder: Folder = Path("build/gcc-speed")
    plugin: Plugin = None
    programs: Programs = None
    split: Split = "training"
    compiles: Annotated[
        int, Option(min=0, help="Compiles per program for hill climbing.")
    ] = 200
    seed: Annotated[int, Option(min=0, help="Random seed.")] = 0


@dataclass(frozen=True)
class ModelOptions:
    """The options of a training."""

    folder: Folder = Path("build/gcc-speed")
    price: Annotated[
        float,
        Option(
            min=0,
            help="Percent of executed instructions that a decision must save for each"
            " percent of code size that it adds.",
        ),
    ] = 0.2


@dataclass(frozen=True)
class EvaluationOptions:
    """The options of an evaluation."""

    corpus: CorpusFolder = Path("build/corpus")
    folder: Folder = Path("build/gcc-speed")
    plugin: Plugin = None
    programs: Programs = None
    split: Split = "held-out"
    rounds: Annotated[
        int, Option(min=0, help="Pairs of timed runs on large inputs.")
    ] = 0
    fixed: Annotated[
        bool, Option(help="Also evaluate -O3 and other fixed settings.")
    ] = True
    json: RatiosFile = None


def _searches(folder: Path, split: str) -> Path:
    """Returns a split's file of searches. No model is trained on held-out programs."""
    return folder / f"{split}-searches.jsonl"


def _chosen(
    corpus: Path, split: str, names: list[str] | None
) -> tuple[Corpus, list[Program]]:
    found, known = load(corpus), names_of(split)
    wanted = names or known
    if unknown := set(wanted) - set(known):
        raise InvalidArgument(
            f"expected {split} programs ({', '.join(known)}), found {min(unknown)!r}"
        )
    return found, [found.program(name) for name in wanted]


def _search(context: typer.Context, options: SearchOptions) -> None:
    """Measure how many instructions are saved by decisions about hot loops and calls.

    Valgrind counts the executed instructions of each function, so one compile can
    measure decisions in many functions. Hill climbing then improves the best decisions
    of each program. The results are appended to a file for `mlbridge train gcc-speed`.

    ```sh
    mlbridge corpus fetch
    mlbridge search gcc-speed-decisions --program zlib
    ```
    """
    from .climbing import climb
    from .learning import write_search
    from .models import served
    from .search import Searcher, search

    plugin = find_plugin(options.plugin)
    _, chosen = _chosen(options.corpus, options.split, options.programs)
    file = _searches(options.folder, options.split)
    failed: list[str] = []
    with served() as server, ProgressBars() as bars:
        for program in chosen:
            folder = options.folder / program.name

            def show(done: int, of: int, name: str = program.name) -> None:
                bars.show_stage(f"{name}: compiles", done, of)

            try:
                searcher = Searcher(program, folder, plugin, server)
                found = search(searcher)
                climb(searcher, found, options.compiles, options.seed, show)
            except Error as error:
                errors.print(f"{program.name}: {error}", markup=False)
                failed.append(program.name)
                continue
            write_search(found, file)
            ratios = f"{found.ratio:.4f} instructions, {found.size:.4f} bytes"
            console.print(f"{program.name}: {ratios}, {found.choices} choices")
    if failed:
        raise CompilerFailed(
            f"{len(failed)} of {len(chosen)} programs failed: {', '.join(failed)}"
        )


def _train(context: typer.Context, options: ModelOptions) -> None:
    r"""Train models of inlining and unrolling on the results of searches.

    `mlbridge search gcc-speed-decisions` has written these results to --folder. The
    estimates are geometric means over its programs. For each program, they use the
    limits that the other programs choose.

    ```sh
    mlbridge train gcc-speed
    gcc -O2 -fplugin=build/release/compilers/gcc/mlbridge.so \
      -fplugin-arg-mlbridge-unroll=onnx:build/gcc-speed/unroll.onnx -c x.c
    ```
    """
    need(f"mlbridge train {NAME}", ("torch", "onnx", "onnxruntime", "onnxscript"))
    from .learning import FEATURES, read_searches, write_model

    searches = read_searches(_searches(options.folder, "training"))
    for decision in FEATURES:
        file = options.folder / f"{decision}.onnx"
        if not any(site.key[1] == decision for one in searches for site in one.sites):
            console.print(f"{file} is not written, because no search has such sites.")
            continue
        rule, effects = write_model(searches, decision, options.price, file)
        instructions = geometric_mean(1 - gain for gain, _ in effects)
        size = geometric_mean(1 + grown for _, grown in effects)
        limits = ", ".join(f"{limit:g}" for limit in rule.limits)
        estimate = f"{instructions:.4f} instructions, {size:.4f} bytes"
        console.print(f"{file}: limits {limits}; estimate: {estimate}")


def _rows(options: EvaluationOptions, plugin: Path) -> dict[str, tuple[str, ...]]:
    from .evaluate import FIXED, model_rows

    rows = dict(FIXED) if options.fixed else {}
    models = model_rows(plugin, options.folder)
    if not models and not rows:
        raise InvalidArgument(
            f"{options.folder}: expected inline.onnx or unroll.onnx, found neither;"
            f" train first with `mlbridge train {NAME}`"
        )
    return rows | models


def _evaluate(context: typer.Context, options: EvaluationOptions) -> None:
    """Compare the models with stock gcc -O2, -O3 and fixed settings.

    Valgrind counts the executed instructions, on small inputs. Each program must print
    the same output as with stock gcc. Timed runs use larger inputs.

    ```sh
    mlbridge evaluate gcc-speed --split training --program zlib
    ```
    """
    from .evaluate import Ratio, best_fixed, evaluate, mean

    plugin = find_plugin(options.plugin)
    corpus, chosen = _chosen(options.corpus, options.split, options.programs)
    rows = _rows(options, plugin)
    with ProgressBars() as bars:
        advance = bars.steps("Builds", len(chosen) * len(rows))

        results: list[Ratio] = []
        for one in evaluate(corpus, chosen, rows, options.folder, pairs=options.rounds):
            results.append(one)
            advance()
    lines = [asdict(one) for one in results]
    write_json(options.json, lines)
    columns = ("instructions", "text", *(("time",) if options.rounds else ()))
    table = Table(title="Relative to gcc -O2 (geometric means)")
    table.add_column(f"{len(chosen)} programs")
    for column in columns:
        table.add_column(column, justify="right")
    for row in rows:
        means = (mean(results, row, column) for column in columns)
        table.add_row(row, *(f"{value:.4f}" for value in means))
    console.print(table)
    if options.fixed:
        console.print(
            f"The best fixed setting of these programs: {best_fixed(results)}"
        )


COMMANDS = {
    f"evaluate {NAME}": with_options(_evaluate, EvaluationOptions),
    f"search {NAME}-decisions": with_options(_search, SearchOptions),
    f"train {NAME}": with_options(_train, ModelOptions),
}
