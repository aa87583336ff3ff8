# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command ``mlbridge train smallest-code-imitation``."""

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.table import Table
from typer import Option

from mlbridge.files import expect_output, with_absolute_paths
from mlbridge.options import with_options
from mlbridge.signals import sigterm_exits
from mlbridge.terminal import console
from mlbridge_optimizations.built import plugin_of
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.commands.shared import Jobs, ModelFile, Plugin
from mlbridge_optimizations.extras import need

from .commands import PACKAGES, Folders
from .settings import ImitationOptions, IterationOptions


@dataclass(frozen=True)
class IterationFiles:
    """The options of a training's files."""

    folders: Folders
    policies: Annotated[
        list[str] | None,
        Option(
            "--policy",
            metavar="SPEC",
            help="A model whose decisions about a program are imitated if they are"
            " better than LLVM's. May be repeated. [default: builtin:smallest_code]",
        ),
    ] = None
    out: ModelFile = Path("build/smallest-code/imitation.onnx")
    plugin: Plugin = None
    jobs: Jobs = os.cpu_count() or 1


def _train(
    context: typer.Context,
    files: IterationFiles,
    iterations: IterationOptions,
    settings: ImitationOptions,
) -> None:
    """Train a model of inlining by imitating the best of several policies.

    The method is Iterative BC-Max. In each iteration, LLVM and several models compile
    each program. A short search reverses random decisions of the best policy, and keeps
    the reversals that make the linked program smaller. A network learns to imitate the
    result. This network is one of the models in the next iteration. The model is the
    network with the smallest programs. The command also writes the iterations, as JSON
    lines, beside the model.

    The programs come from earlier runs of `mlbridge search smallest-code`, for which
    --seconds 0 is enough.

    ```sh
    mlbridge train smallest-code-imitation build/one build/two --out size.onnx
    ```
    """
    need("mlbridge train smallest-code-imitation", PACKAGES)
    from .iterative_imitation import train_iterated
    from .searched import open_all

    plugin = plugin_of(files.plugin)
    programs = open_all(files.folders)
    policies = [*map(with_absolute_paths, files.policies or ["builtin:smallest_code"])]
    files.out.parent.mkdir(parents=True, exist_ok=True)
    expect_output(files.out)
    table = Table("iteration", title="Linked code, relative to clang -Oz")
    for column in ("best policies", "after the search", "network"):
        table.add_column(column, justify="right")
    smallest = float("inf")
    with (
        sigterm_exits(),
        TemporaryDirectory(prefix="mlbridge-imitation-") as folder,
        ProgressBars() as bars,
        files.out.with_suffix(".jsonl").open("w", encoding="utf-8") as lines,
    ):
        advance = bars.steps("Searches", iterations.iterations * len(programs))
        for iteration, network in train_iterated(
            *(programs, plugin, policies, iterations, settings, Path(folder)),
            jobs=files.jobs,
            advance=advance,
        ):
            print(json.dumps(asdict(iteration)), file=lines, flush=True)
            ratios = (iteration.best, iteration.searched, iteration.network)
            table.add_row(str(iteration.number), *(f"{one:.4f}" for one in ratios))
            if iteration.network < smallest:
                smallest = iteration.network
                shutil.copyfile(network, files.out)
    console.print(table)
    console.print(f"The model is {files.out}.")


COMMANDS = {
    "train smallest-code-imitation": with_options(
        _train, IterationFiles, IterationOptions, ImitationOptions
    )
}
