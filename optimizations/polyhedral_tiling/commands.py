# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands ``mlbridge search``, ``train`` and ``evaluate`` for tiling."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from typer import Argument, Option

from mlbridge.errors import InvalidArgument
from mlbridge.options import with_options
from mlbridge.terminal import console
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.commands.shared import (
    ModelFile,
    RatiosFile,
    TimesFile,
    times_of,
)
from mlbridge_optimizations.evaluation.tables import write_json
from mlbridge_optimizations.extras import need
from mlbridge_optimizations.training.settings import CostSettings

from .kernels import Case, cases

if TYPE_CHECKING:
    from .evaluate import Result
    from .table import Entry

GENERATED = "generated"
TRAINING = "training"
HELD_OUT = ("held-out-sizes", "held-out-kernels")
COSTS = CostSettings(epochs=300, decay=0.3, expectation=2.0)

Times = Annotated[list[Path], times_of("polyhedral-tiling-times")]
Tool = Annotated[
    Path | None,
    Option(help="mlbridge-polyhedral. [default: as found by `mlbridge doctor`]"),
]


@dataclass(frozen=True)
class TimesOptions:
    """The options of a brute-force measurement."""

    out: TimesFile
    kernels: Annotated[
        list[str],
        Option(
            "--kernel",
            metavar="SPLIT",
            help="Kernels: training, generated, held-out-sizes or held-out-kernels. May"
            " be repeated.",
        ),
    ] = field(default_factory=lambda: [TRAINING, GENERATED])
    count: Annotated[
        int, Option(min=1, help="Number of random kernels in the split 'generated'.")
    ] = 60
    rounds: Annotated[int, Option(min=1, help="Measurements of each candidate.")] = 5
    tool: Tool = None


@dataclass(frozen=True)
class ModelOptions:
    """The files of a training."""

    times: Times
    out: ModelFile
    seed: Annotated[int, Option(min=0, help="Random seed.")] = 0


@dataclass(frozen=True)
class EvaluationOptions:
    """The options of an evaluation."""

    model: Annotated[
        str, Argument(metavar="SPEC", help="Model spec, such as onnx:a.onnx.")
    ]
    times: Times
    rounds: Annotated[int, Option(min=1, help="Measurements of each choice.")] = 15
    json: RatiosFile = None
    tool: Tool = None


def _cases(splits: Sequence[str], count: int, folder: Path) -> list[Case]:
    from .generated import generated_cases

    known = (TRAINING, GENERATED, *HELD_OUT)
    if unknown := [split for split in splits if split not in known]:
        raise InvalidArgument(
            f"--kernel: expected one of {', '.join(known)}, found {unknown[0]!r}"
        )
    found = cases(*splits)
    if GENERATED in splits:
        found += generated_cases(count, folder)
    return found


def _times(context: typer.Context, measured: TimesOptions) -> None:
    """Measure all candidates (loop order, tile sizes) of kernels by brute force.

    Each line of the file contains the features of a kernel, and the time with each
    candidate relative to the original order. Kernels that are already in the file are
    skipped.

    ```sh
    mlbridge search polyhedral-tiling-times --out build/polyhedral-tiling/times.jsonl
    ```
    """
    from .table import make_table, tool_of

    measured.out.parent.mkdir(parents=True, exist_ok=True)
    chosen = _cases(measured.kernels, measured.count, measured.out.parent / GENERATED)
    with ProgressBars() as bars:
        done = make_table(
            *(tool_of(measured.tool), chosen, measured.out),
            rounds=measured.rounds,
            advance=bars.steps("Kernels", len(chosen)),
        )
    console.print(f"{measured.out} has {done} more kernels.")


def _entries(files: list[Path], *splits: str) -> "list[Entry]":
    from .table import read_table

    found = [entry for entry in read_table(files) if entry.split in splits]
    if not found:
        raise InvalidArgument(
            f"{', '.join(map(str, files))}: expected kernels of {' or '.join(splits)},"
            " found none; measure them with `mlbridge search polyhedral-tiling-times`"
        )
    return found


def _train(
    context: typer.Context, learned: ModelOptions, learning: CostSettings
) -> None:
    r"""Train a model of tile sizes and loop orders on measured times.

    If the files of --times contain held-out kernels or held-out sizes, the training
    ignores them.

    ```sh
    mlbridge train polyhedral-tiling --times build/polyhedral-tiling/times.jsonl \
      --out tiling.onnx
    mlbridge-polyhedral kernel.json --model onnx:tiling.onnx
    ```
    """
    need("training", ("onnx", "onnxruntime", "torch"))
    from mlbridge.export import Metadata, Training
    from mlbridge_optimizations.training import costs

    from .learning import train

    given = _entries(learned.times, TRAINING, GENERATED)
    with ProgressBars() as bars:
        chooser = train(
            given,
            learning,
            seed=learned.seed,
            show=bars.stage("Networks"),
        )
    about = Metadata(reward="-log(time)", training=Training(seed=learned.seed))
    costs.write(chooser, learned.out, about)
    console.print(f"{learned.out} was trained on {len(given)} kernels.")


def _evaluate(context: typer.Context, options: EvaluationOptions) -> None:
    r"""Compare a model with brute force, on held-out kernels and held-out sizes.

    "Brute force" is the best of all candidates. The command finds the best candidates
    in the files of --times, which must contain these kernels. It then measures the
    model's choices and the best candidates again, alternately.

    ```sh
    mlbridge search polyhedral-tiling-times --out held-out.jsonl \
      --kernel held-out-sizes --kernel held-out-kernels
    mlbridge evaluate polyhedral-tiling onnx:tiling.onnx --times held-out.jsonl
    ```
    """
    from .evaluate import compare_all
    from .table import tool_of

    chosen = cases(*HELD_OUT)
    entries = _entries(options.times, *HELD_OUT)
    with ProgressBars() as bars:
        results = compare_all(
            tool_of(options.tool),
            chosen,
            entries,
            options.model,
            options.rounds,
            bars.steps("Kernels", len(entries)),
        )
    for split in HELD_OUT:
        if some := [one for one in results if one.split == split]:
            _print(split, some)
    plain = [asdict(one) for one in results]
    write_json(options.json, plain)


def _print(split: str, results: "list[Result]") -> None:
    from .evaluate import summarise

    table = Table(title=f"{split}: time / gcc -O3 in the original order")
    for column in ("kernel", "choice", "model", "brute force", "tiles of 32"):
        table.add_column(column, justify="left" if column == "kernel" else "right")
    for one in results:
        mark = " slower" if one.is_slower else ""
        numbers = (f"{one.model:.3f}{mark}", f"{one.best:.3f}", f"{one.default:.3f}")
        table.add_row(one.case, one.choice, *numbers)
    found = summarise(results)
    numbers = (f"{found.model:.3f}", f"{found.best:.3f}", f"{found.default:.3f}")
    table.add_row("geometric mean", "", *numbers)
    console.print(table)
    console.print(
        f"The model's choices have {found.share:.3f} of the best candidates' speed."
        f" {len(found.slower)} of {len(results)} are slower by more than the noise."
    )


COMMANDS = {
    "evaluate polyhedral-tiling": with_options(_evaluate, EvaluationOptions),
    "search polyhedral-tiling-times": with_options(_times, TimesOptions),
    "train polyhedral-tiling": with_options(
        _train, ModelOptions, CostSettings, defaults=vars(COSTS)
    ),
}
