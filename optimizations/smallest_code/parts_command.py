# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command ``mlbridge evaluate smallest-code-parts``."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from typer import Option

from mlbridge.options import with_options
from mlbridge.signals import sigterm_exits
from mlbridge.terminal import console
from mlbridge_optimizations.built import plugin_of
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.commands.shared import (
    CorpusFolder,
    Jobs,
    Plugin,
    Programs,
    Split,
)
from mlbridge_optimizations.evaluation.tables import write_json
from mlbridge_optimizations.extras import need

from .commands import PACKAGES
from .settings import CLANG_OZ, SizesFile

if TYPE_CHECKING:
    from .linking import Sizes

CORE_SET = Path("models/phase-ordering-oz/core.json")


@dataclass(frozen=True)
class PartsOptions:
    """The options of a comparison."""

    corpus: CorpusFolder = Path("build/corpus")
    programs: Programs = None
    split: Split = "training"
    folder: Annotated[
        Path, Option(help="Folder of builds and results. A later run continues there.")
    ] = Path("build/smallest-code-parts")
    seconds: Annotated[
        float,
        Option(min=0, help="CPU seconds for all searches of a program. 0: no search."),
    ] = 1800
    pipelines: Annotated[
        Path,
        Option(
            metavar="FILE",
            help="Core set or action space from which the search takes pipelines.",
        ),
    ] = CORE_SET
    json: SizesFile = None
    plugin: Plugin = None
    jobs: Jobs = os.cpu_count() or 1


def _evaluate(context: typer.Context, options: PartsOptions) -> None:
    """Measure by how much each part of size optimisation shrinks linked code.

    The programs are compiled with different settings of the inliner and the outliners,
    with the shipped models of inlining and pass order, and with searched decisions
    about inlining, pass order and outlining. The table shows the linked .text relative
    to clang -Oz. Three searches run one after another. Each starts from the result of
    the previous one, and gets a third of --seconds.

    ```sh
    mlbridge evaluate smallest-code-parts --program minisat --seconds 600
    ```
    """
    need("mlbridge evaluate smallest-code-parts", PACKAGES)
    from mlbridge_optimizations.corpus.manifest import load

    from . import parts
    from .linking import BuiltProgram
    from .pipelines import read_pipelines

    plugin = plugin_of(options.plugin)
    corpus = load(options.corpus.resolve())
    programs = corpus.select(options.split, only=options.programs or ())
    options.folder.mkdir(parents=True, exist_ok=True)
    space = options.folder / "pipelines.json"
    pipelines = read_pipelines(options.pipelines, space)
    found: dict[str, dict[str, Sizes | None]] = {}
    with sigterm_exits(), ProgressBars() as bars:
        rows = len(parts.stock_rows(plugin, Path()))
        advance = bars.steps("Programs", len(programs) * rows)
        for program in programs:
            built = BuiltProgram.of_corpus(program, options.folder)
            results = parts.measure_stock_rows(built, plugin, options.jobs, advance)
            if options.seconds:
                task = bars.add_task(program.name, total=options.seconds / 3)

                def show(state: Any, task: Any = task) -> None:
                    bars.update(task, completed=state.seconds)

                results = parts.search_parts(
                    built,
                    pipelines,
                    space.resolve(),
                    plugin=plugin,
                    seconds=options.seconds,
                    jobs=options.jobs,
                    show=show,
                )
            found[program.name] = results.sizes
    console.print(_table(found))
    plain = {
        name: {row: size and asdict(size) for row, size in sizes.items()}
        for name, sizes in found.items()
    }
    write_json(options.json, plain)


def _table(found: "Mapping[str, Mapping[str, Sizes | None]]") -> Table:
    from . import parts

    table = Table("", title="Linked .text (.eh_frame), relative to clang -Oz")
    for name in found:
        table.add_column(name, justify="right")
    best = parts.best_threshold(found.values())
    for row in dict.fromkeys(row for sizes in found.values() for row in sizes):
        cells = []
        for sizes in found.values():
            stock, size = sizes.get(CLANG_OZ), sizes.get(row)
            if not stock or not size:
                cells.append("-")
            elif row == CLANG_OZ:
                cells.append(f"{size.text:,} ({size.eh_frame:,})")
            else:
                frames = size.eh_frame / stock.eh_frame if stock.eh_frame else 1.0
                cells.append(f"{size.text / stock.text:.4f} ({frames:.2f})")
        table.add_row(f"{row}, the best" if row == best else row, *cells)
    return table


COMMANDS = {"evaluate smallest-code-parts": with_options(_evaluate, PartsOptions)}
