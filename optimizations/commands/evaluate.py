# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command ``mlbridge evaluate``, which compares a model with baselines."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from typer import Argument, Option

from mlbridge.options import with_options
from mlbridge.terminal import console
from mlbridge_optimizations.commands.groups import decision_of, group_of
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.evaluation.tables import write_json
from mlbridge_optimizations.extras import need
from mlbridge_optimizations.optimization import MODEL, Optimization


@dataclass(frozen=True)
class What:
    """The options that choose the model and its episodes."""

    model: Annotated[
        Path,
        Argument(exists=True, help="A model file, or a folder of AGENT.onnx files."),
    ]
    episodes: Annotated[
        int, Option(min=2, help="Episodes of the model and of each baseline.")
    ] = 100
    seed: Annotated[int, Option(min=0, help="Seed of the first episode.")] = 0
    json: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            dir_okay=False,
            help="Write the results of all episodes to this file.",
        ),
    ] = None


def _command(described: Optimization[Any]) -> Callable[..., None] | None:
    if described.make_env is None:
        return None

    def run(context: typer.Context, what: What, environment: Any) -> None:
        _evaluate(described, what, environment)

    return with_options(
        run,
        What,
        described.settings,
        text=f"Compare a model for {described.command} with baselines.\n\n"
        f"{decision_of(described)} The baselines and a random policy play the same"
        " episodes.",
    )


app = group_of(
    "evaluate",
    _command,
    "Measure how good a trained model is on programs that it has not seen.",
)


def _evaluate(described: Optimization[Any], what: What, environment: Any) -> None:
    packages = ("gymnasium", "onnxruntime", *described.packages)
    need(f"mlbridge evaluate {described.command}", packages)
    from mlbridge_optimizations.evaluation.episodes import compare
    from mlbridge_optimizations.evaluation.statistics import mean_interval

    with ProgressBars() as bars:
        found = compare(
            described,
            environment,
            what.model,
            what.episodes,
            what.seed,
            bars.show_stage,
        )
    metric = described.metric
    better, sign = ("lower", -1) if metric.is_cost else ("higher", 1)
    plain = "return (sum of rewards)" if metric.name == "return" else metric.name
    title = f"{metric.label or plain} in {what.episodes} episodes ({better} is better)"
    table = Table("", title=title)
    for column in ("mean", "95 % interval", "model is better", "equal"):
        table.add_column(column, justify="right")
    for name, values in found.items():
        low, high = mean_interval(values)
        row = [name, f"{sum(values) / len(values):.4f}", f"{low:.4f} to {high:.4f}"]
        if name != MODEL:
            pairs = list(zip(found[MODEL], values, strict=True))
            wins = sum(sign * ours > sign * theirs for ours, theirs in pairs)
            equal = sum(ours == theirs for ours, theirs in pairs)
            row += [f"{wins} of {len(values)}", str(equal)]
        table.add_row(*row)
    console.print(table)
    write_json(what.json, {"metric": metric.name, "episodes": found})
