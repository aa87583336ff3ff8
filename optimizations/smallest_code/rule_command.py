# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command ``mlbridge train smallest-code-rule``."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.table import Table
from typer import Option

from mlbridge.files import expect_output
from mlbridge.options import with_options
from mlbridge.signals import sigterm_exits
from mlbridge.terminal import console
from mlbridge_optimizations.built import plugin_of
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.commands.shared import Jobs, ModelFile, Plugin
from mlbridge_optimizations.extras import need

from .commands import PACKAGES, Folders
from .settings import RuleOptions


@dataclass(frozen=True)
class RuleFiles:
    """The options of a training's files."""

    folders: Folders
    validation_folders: Annotated[
        list[Path] | None,
        Option(
            "--validation-folder",
            metavar="FOLDER",
            help="Result folder of a search. Its program is used for validation, not"
            " for training. May be repeated.",
        ),
    ] = None
    out: ModelFile = Path("build/smallest-code/rule.onnx")
    plugin: Plugin = None
    jobs: Jobs = os.cpu_count() or 1


def _train(context: typer.Context, options: RuleFiles, evolution: RuleOptions) -> None:
    """Evolve a rule of inlining that makes linked programs small.

    The rule adds weighted terms to LLVM's cost of a call. CMA-ES draws the weights.
    Each candidate compiles and links all programs. The programs come from earlier runs
    of `mlbridge search smallest-code`, for which --seconds 0 is enough. The command
    also writes the curve of the evolution, as JSON lines and as a PNG file, beside the
    model.

    ```sh
    mlbridge train smallest-code-rule build/one build/two --out rule.onnx
    ```
    """
    need("mlbridge train smallest-code-rule", (*PACKAGES, "cma", "matplotlib"))
    from .evolve import RuleSizes, evolve, plot
    from .rule import ONE_USE, TERMS, RuleTemplate, write_rule
    from .searched import open_all

    plugin = plugin_of(options.plugin)
    programs = open_all((*options.folders, *(options.validation_folders or ())))
    count = len(options.folders)
    training, validation = range(count), range(count, len(programs))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    expect_output(options.out)
    generations = []
    with (
        sigterm_exits(),
        TemporaryDirectory(prefix="mlbridge-rule-") as folder,
        ProgressBars() as bars,
        options.out.with_suffix(".jsonl").open("w", encoding="utf-8") as lines,
    ):
        calls = programs[0].record("none", plugin, options.jobs)
        template = RuleTemplate(Path(folder), calls)
        sizes = RuleSizes(programs, template, plugin)
        for generation, weights in evolve(
            sizes, training, validation, evolution, options.jobs
        ):
            row = {**asdict(generation), "weights": weights.round(3).tolist()}
            print(json.dumps(row), file=lines, flush=True)
            generations.append(generation)
            bars.show_stage("Generations", generation.number + 1, evolution.generations)
            template.write(weights, options.out)
        final = sizes.ratios([weights, ONE_USE], training, options.jobs)
    write_rule(weights, options.out, calls, evolution.seed)
    plot(generations, options.out.with_suffix(".png"))
    table = Table("term", "weight", "meaning", title="The rule")
    for (term, meaning), weight in zip(TERMS.items(), weights, strict=True):
        table.add_row(term, f"{weight:.2f}", meaning)
    console.print(table)
    evolved, simple = map(geometric_mean, final)
    console.print(
        "Linked .text of the training programs, relative to clang -Oz:"
        f" {evolved:.4f} with this rule, {simple:.4f} with the simple rule."
    )
    console.print(f"The model is {options.out}.")


COMMANDS = {"train smallest-code-rule": with_options(_train, RuleFiles, RuleOptions)}
