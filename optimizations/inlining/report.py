# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of the demo's results, and the conditions that they must meet."""

import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.table import Table as RichTable

from mlbridge_optimizations.commands.demo import side_by_side
from mlbridge_optimizations.corpus.sources import SourceProgram
from mlbridge_optimizations.corpus.toolchain import compiler_version
from mlbridge_optimizations.plot import panels_of

from .agreement import Agreement
from .corpus import TRAINING
from .evaluate import Build
from .record import Table
from .train import Settings, Trained

# The demo fails outside these limits.
LEAST_AGREEMENT = 0.95
MOST_TEXT_CHANGE = 0.01


@dataclass(frozen=True)
class Outcome:
    """All results of the demo."""

    settings: Settings  # The settings of the training.
    programs: list[SourceProgram]
    tables: dict[str, Table]  # LLVM's decisions in each program.
    training: Trained
    stock: Build  # The test program, compiled by clang alone.
    builds: list[Build]  # One build for each way to the model.
    inputs: list[Path]  # The files on which the builds were compared.
    seconds: dict[str, float]  # The duration of each step.


def conditions(stock: Build, builds: Sequence[Build]) -> dict[str, bool]:
    """Maps each condition on the builds to whether the builds meet it.

    One condition is that all builds with a model have the same object files.
    """
    first, *others = builds
    by = f"by {first.way}"
    agrees = first.asked.agreement.accuracy >= LEAST_AGREEMENT
    as_large = abs(text_change(stock, first)) <= MOST_TEXT_CHANGE
    same = [(f"{by}, output identical", first)]
    same += [(f"by {r.way}, the same object files", r) for r in others]
    return {
        f"{by}, at least {LEAST_AGREEMENT:.0%} agreement with LLVM": agrees,
        f"{by}, text size within {MOST_TEXT_CHANGE:.0%} of stock clang -Oz": as_large,
        **{": ".join([text, *r.differences]): not r.differences for text, r in same},
    }


def text_change(stock: Build, build: Build) -> float:
    """Returns the relative growth of the text size over the stock build."""
    return (build.text - stock.text) / stock.text


def cost_rule(table: Table) -> Agreement:
    """Returns the agreement of `cost < max(1, threshold)` with LLVM's decisions."""
    threshold = np.maximum(1, table.column("threshold"))
    return Agreement.of(table.column("cost_estimate") < threshold, table.decisions)


def data_table(outcome: Outcome) -> RichTable:
    """Makes a table of LLVM's recorded decisions in each program."""
    title = "LLVM's decisions at -Oz, recorded"
    shown = RichTable("program", "used for", title=title, title_justify="left")
    for heading in ("files", "call sites", "inlined", "majority", "cost rule"):
        shown.add_column(heading, justify="right")
    for program, table in outcome.tables.items():
        rule = cost_rule(table)
        shown.add_row(
            program,
            "training" if program in TRAINING else "the test",
            str(len(table.unit_names)),
            str(rule.decisions),
            str(rule.llvm_inlines),
            f"{rule.majority_rate:.2%}",
            f"{rule.accuracy:.2%}",
        )
    shown.caption = (
        "majority: agreement of LLVM's more frequent decision,\n"
        "cost rule: of `cost_estimate < max(1, threshold)`; neither is learned"
    )
    shown.caption_justify = "left"
    return shown


def result_table(outcome: Outcome) -> RichTable:
    """Makes a table of the model's builds and the stock build."""
    stock, builds = outcome.stock, outcome.builds
    test, first = stock.program.name, builds[0]
    verdicts = ["no" if build.differences else "yes" for build in builds]
    rows: dict[str, Callable[[Build], str]] = {
        "text size, clang -Oz alone": lambda _: f"{stock.text:,} B",
        "text size, by the model": lambda b: f"{b.text:,} B",
        "  change": lambda b: f"{text_change(stock, b):+.3%}",
        "decisions": lambda b: f"{b.asked.agreement.decisions}",
        "agreement with LLVM": lambda b: f"{b.asked.agreement.accuracy:.2%}",
        "  balanced accuracy": lambda b: f"{b.asked.agreement.balanced_accuracy:.2%}",
        "  majority rate": lambda b: f"{b.asked.agreement.majority_rate:.2%}",
        "µs a decision, seen by clang": lambda b: f"{b.asked.mean_us:.1f}",
        "  of these in Python": lambda b: f"{b.model_us:.1f}" if b.model_us else "",
        "  a file's first decision": lambda b: f"{b.asked.mean_first_us:.0f}",
    }
    cells = {name: [shown(build) for build in builds] for name, shown in rows.items()}
    cells[f"does what stock {test} does"] = [verdicts[0]]
    cells[f"same objects as by {first.way}"] = ["", *verdicts[1:]]
    title = f"{test}, not seen in training, inlined by the model"
    return side_by_side(title, [build.way for build in builds], cells)


def figures(outcome: Outcome) -> dict[str, Any]:
    """Returns all results for a JSON file."""
    training, best = outcome.training, outcome.training.best_epoch
    return {
        "settings": asdict(outcome.settings),
        "versions": {
            "clang": compiler_version(),
            "numpy": np.__version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            **{program.name: program.version for program in outcome.programs},
        },
        "recorded": {
            name: {
                "files": len(table.unit_names),
                "call_sites": len(table.decisions),
                "inlined": int(table.decisions.sum()),
                "cost_rule": _agreement(cost_rule(table)),
            }
            for name, table in outcome.tables.items()
        },
        "training": {
            "epochs": len(training.curve),
            "best_epoch": training.best + 1,
            "validation_files": training.validation_units,
            "validation": _agreement(best.validation),
            "training_loss": best.training_loss,
            "validation_loss": best.validation_loss,
        },
        "stock_text_bytes": outcome.stock.text,
        "results": [
            {
                "way": build.way,
                "text_bytes": build.text,
                "text_change": text_change(outcome.stock, build),
                "agreement": _agreement(build.asked.agreement),
                "us_per_decision": build.asked.mean_us,
                "us_in_model": build.model_us,
                "us_first_decision": build.asked.mean_first_us,
                "differences": build.differences,
            }
            for build in outcome.builds
        ],
        "inputs": {path.name: path.stat().st_size for path in outcome.inputs},
        "conditions": conditions(outcome.stock, outcome.builds),
        "seconds": outcome.seconds,
    }


def _agreement(matrix: Agreement) -> dict[str, float]:
    rates = ("accuracy", "balanced_accuracy", "majority_rate")
    shares = {name: getattr(matrix, name) for name in rates}
    return {"decisions": matrix.decisions, **asdict(matrix), **shares}


def plot_curve(training: Trained, path: Path) -> None:
    """Draws the learning curve to a PNG file."""

    def draw(axes: Any, label: str, name: str, style: str = "-") -> None:
        values = [attrgetter(name)(epoch) for epoch in training.curve]
        axes.plot(range(1, len(values) + 1), values, style, label=label, linewidth=1.2)

    with panels_of(path, 2, size=(9, 3.5)) as (losses, rates):
        draw(losses, "training", "training_loss")
        draw(losses, "validation", "validation_loss")
        losses.set(yscale="log", ylabel="loss (balanced cross-entropy)")
        draw(rates, "agreement", "validation.accuracy")
        draw(rates, "balanced accuracy", "validation.balanced_accuracy")
        draw(rates, "majority rate", "validation.majority_rate", ":")
        rates.set(ylabel="on the validation files")
        for axes in (losses, rates):
            axes.axvline(training.best + 1, color="grey", linewidth=0.8, label="chosen")
            axes.set(xlabel="epoch")
            axes.legend()
