# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands ``mlbridge search``, ``train`` and ``evaluate`` for MLIR's loops."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from typer import Argument, Option

from mlbridge.errors import CompilerFailed, InvalidArgument
from mlbridge.options import with_options
from mlbridge.terminal import console
from mlbridge_optimizations.built import built_of
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

from .kernels import HELD_OUT_KINDS, HELD_OUT_SIZES, training_kernels

if TYPE_CHECKING:
    from .evaluate import Result
    from .table import Entry

NAME = "mlir-tiling"

Plugin = Annotated[
    Path | None,
    Option(help="MLBridgeMLIR.so. [default: as found by `mlbridge doctor`]"),
]
Times = Annotated[list[Path], times_of("mlir-tiling-times")]
TIMES = Path("build/mlir-tiling/times.jsonl")
COSTS = CostSettings(temperature=0.1, margin=0.03)


@dataclass(frozen=True)
class TimesOptions:
    """The options of a brute-force measurement."""

    out: TimesFile = TIMES
    complete: Annotated[
        int,
        Option(
            min=0, help="Number of training kernels for which all choices are measured."
        ),
    ] = 48
    count: Annotated[int, Option(min=0, help="Number of training kernels.")] = 256
    most: Annotated[
        int,
        Option(
            min=1,
            help="Number of choices to measure for each of the other training kernels,"
            " which --complete does not include.",
        ),
    ] = 16
    held_out: Annotated[bool, Option(help="Also measure the held-out kernels.")] = True
    rounds: Annotated[int, Option(min=1, help="Measurements of each choice.")] = 5
    plugin: Plugin = None


@dataclass(frozen=True)
class ModelOptions:
    """The files of a training."""

    times: Times = field(default_factory=lambda: [TIMES])
    out: ModelFile = Path("build/mlir-tiling/tiling.onnx")
    seed: Annotated[int, Option(min=0, help="Random seed.")] = 0


@dataclass(frozen=True)
class EvaluationOptions:
    """The options of an evaluation."""

    model: Annotated[
        str, Argument(metavar="SPEC", help="Model spec, such as aot:libtiling.so.")
    ]
    times: Times = field(default_factory=lambda: [TIMES])
    rounds: Annotated[int, Option(min=1, help="Measurements of each variant.")] = 21
    json: RatiosFile = None
    plugin: Plugin = None


def _plugin(given: Path | None) -> Path:
    return built_of(given, "MLBridgeMLIR.so", package="libmlir-22-dev")


def _entries(files: Sequence[Path]) -> "tuple[list[Entry], list[Entry]]":
    """Returns the measured training kernels and held-out kernels of files."""
    from .table import read_table

    names = {one.name for one in (*HELD_OUT_SIZES, *HELD_OUT_KINDS)}
    entries = [one for file in files for one in read_table(file) if not one.error]
    training = [entry for entry in entries if entry.kernel not in names]
    if not training:
        raise InvalidArgument(
            f"{', '.join(map(str, files))}: expected measured training kernels, found"
            " none; measure them with `mlbridge search mlir-tiling-times`"
        )
    return training, [entry for entry in entries if entry.kernel in names]


def _search(context: typer.Context, measured: TimesOptions) -> None:
    """Measure the possible tilings of kernels' loop nests (brute force).

    Each line of the file contains the features of a kernel's nest, and the time with
    each choice relative to the untiled kernel. Kernels that are already in the file are
    skipped. With each choice, the kernel must compute the same results as the untiled
    kernel.

    ```sh
    mlbridge search mlir-tiling-times
    ```
    """
    from .table import make_table

    training = training_kernels(max(measured.count, measured.complete))
    complete = training[: measured.complete]
    if measured.held_out:
        complete += [*HELD_OUT_SIZES, *HELD_OUT_KINDS]
    rest = training[measured.complete :]
    added: list[Entry] = []
    with ProgressBars() as bars:
        advance = bars.steps("Kernels", len(complete) + len(rest))
        for kernels, most in ((complete, 0), (rest, measured.most)):
            added += make_table(
                *(kernels, _plugin(measured.plugin), measured.out),
                rounds=measured.rounds,
                most=most,
                advance=advance,
            )
    failed = [entry for entry in added if entry.error]
    done = len(added) - len(failed)
    console.print(f"{measured.out} has {done} more kernels.")
    if failed:
        first = failed[0]
        raise CompilerFailed(
            f"{len(failed)} of {len(added)} kernels could not be measured; repeat the"
            f" command to measure them again; {first.kernel}: {first.error}"
        )


def _train(
    context: typer.Context, learned: ModelOptions, options: CostSettings
) -> None:
    r"""Train a cost model of tilings on measured times.

    ```sh
    mlbridge train mlir-tiling
    mlbridge compile build/mlir-tiling/tiling.onnx -o libtiling.so
    mlir-opt-22 --load-pass-plugin=MLBridgeMLIR.so x.mlir \
      --pass-pipeline='builtin.module(func.func(mlbridge-tile{model=aot:libtiling.so}))'
    ```
    """
    need("training", ("onnx", "onnxruntime", "torch"))
    from mlbridge.export import Metadata, Training
    from mlbridge_optimizations.training import costs

    from .learning import train

    training, _ = _entries(learned.times)
    with ProgressBars() as bars:
        chooser = train(
            *(training, options),
            seed=learned.seed,
            show=bars.stage("Networks"),
        )
    about = Metadata(reward="-log(time)", training=Training(seed=learned.seed))
    costs.write(chooser, learned.out, about)
    console.print(f"{learned.out} was trained on {len(training)} kernels.")


def _evaluate(context: typer.Context, options: EvaluationOptions) -> None:
    """Measure a model's choices for the held-out kernels, in the stock mlir-opt.

    Each of these choices is compared with the untiled kernel, with the best measured
    choice (brute force), and with the single choice that is best for the training
    kernels of the same kind.

    ```sh
    mlbridge evaluate mlir-tiling onnx:build/mlir-tiling/tiling.onnx
    ```
    """
    from .evaluate import compare_all, fixed_choices

    training, held_out = _entries(options.times)
    if not held_out:
        raise InvalidArgument(
            f"{', '.join(map(str, options.times))}: expected measured held-out kernels,"
            " found none; measure them with `mlbridge search mlir-tiling-times`"
        )
    with ProgressBars() as bars:
        results = compare_all(
            *(held_out, fixed_choices(training)),
            *(_plugin(options.plugin), options.model),
            rounds=options.rounds,
            advance=bars.steps("Kernels", len(held_out)),
        )
    rows = [asdict(one) for one in results]
    write_json(options.json, rows)
    _print(results)


def _print(results: "Sequence[Result]") -> None:
    from .evaluate import mean_speeds

    table = Table(title="Speed of the model's choices (geometric means)")
    table.add_column("held-out kernels")
    for column in ("count", "/ untiled", "/ brute force", "/ best fixed"):
        table.add_column(column, justify="right")
    kinds = sorted({(one.is_new_kind, one.kind) for one in results})
    groups = {
        kind + (" (new kind)" if is_new else ""): [
            one for one in results if one.kind == kind
        ]
        for is_new, kind in kinds
    }
    for name, group in (groups | {"all": list(results)}).items():
        speeds = (f"{speed:.2f}" for speed in mean_speeds(group))
        table.add_row(name, str(len(group)), *speeds)
    console.print(table)
    wrong = [one.kernel for one in results if one.differences]
    console.print(f"Kernels with a wrong result: {', '.join(wrong) or 'none'}")


COMMANDS = {
    f"evaluate {NAME}": with_options(_evaluate, EvaluationOptions),
    f"search {NAME}-times": with_options(_search, TimesOptions),
    f"train {NAME}": with_options(
        _train, ModelOptions, CostSettings, defaults=vars(COSTS)
    ),
}
