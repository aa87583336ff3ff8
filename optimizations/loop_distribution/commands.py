# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands ``mlbridge search``, ``train`` and ``evaluate`` for loops."""

import os
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
from mlbridge_optimizations.built import plugin_of
from mlbridge_optimizations.commands.executions import compare_executions
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.commands.shared import (
    ExecutionOptions,
    Jobs,
    ModelFile,
    Plugin,
    ProgramOptions,
    RatiosFile,
    TimesFile,
)
from mlbridge_optimizations.evaluation.tables import write_json
from mlbridge_optimizations.extras import need

from .kernels import HEAVY, LEVELS, SUITES, Kernel, kernels
from .settings import COSTS, DECISIONS, LoopCosts, Times

if TYPE_CHECKING:
    from .evaluate import Result
    from .table import Entry

GENERATED = "generated"
PACKAGES = ("onnx", "onnxruntime", "torch")

Levels = Annotated[
    list[str],
    Option(
        "--level",
        metavar="|".join(LEVELS),
        help="Cache in which the kernels' data fit, or memory. May be repeated.",
    ),
]


@dataclass(frozen=True)
class TimesOptions:
    """The options of a brute-force measurement."""

    out: TimesFile
    kernels: Annotated[
        str,
        Option(
            help="generated: random kernels, for training. suites: kernels like TSVC's"
            " and PolyBench's, for evaluation."
        ),
    ] = GENERATED
    levels: Levels = field(default_factory=lambda: ["L1"])
    count: Annotated[int, Option(min=1, help="The number of random kernels.")] = 1200
    seed: Annotated[int, Option(min=0, help="Seed of the first random kernel.")] = 0
    rounds: Annotated[int, Option(min=1, help="Measurements of each choice.")] = 11
    plugin: Plugin = None
    jobs: Jobs = os.cpu_count() or 1


@dataclass(frozen=True)
class ModelOptions:
    """The files of a training."""

    decision: Annotated[
        str,
        Argument(
            metavar="DECISION",
            help="Decision: distribution, or factors (vector width, interleave count"
            " and unroll count).",
        ),
    ]
    times: Times
    out: ModelFile
    seed: Annotated[int, Option(min=0, help="Random seed.")] = 0


@dataclass(frozen=True)
class EvaluationOptions:
    """The options of an evaluation."""

    times: Times
    models: Annotated[
        Path,
        Option(
            help="Folder of the folds' models. The command trains only models that the"
            " folder lacks."
        ),
    ] = Path("build/loop-distribution/folds")
    only: Annotated[
        list[str] | None,
        Option("--kernel", metavar="NAME", help="Only this kernel. May be repeated."),
    ] = None
    levels: Levels = field(default_factory=lambda: ["L1", "L2"])
    repeat: Annotated[
        int, Option(min=1, help="Repetitions of the whole evaluation.")
    ] = 2
    rounds: Annotated[int, Option(min=1, help="Measurements of each row.")] = 31
    json: RatiosFile = None
    plugin: Plugin = None
    jobs: Jobs = os.cpu_count() or 1


@dataclass(frozen=True)
class LoopProgramOptions(ProgramOptions):
    """The options of an evaluation on programs."""

    march: Annotated[str, Option(help="clang's option -march.")] = "x86-64-v3"


def _check_levels(given: Sequence[str]) -> None:
    if unknown := [level for level in given if level not in LEVELS]:
        raise InvalidArgument(
            f"--level: expected L1, L2 or memory, found {unknown[0]!r}"
        )


def _times(context: typer.Context, options: TimesOptions) -> None:
    r"""Measure all legal decisions about the loops of kernels (brute force).

    Each line of the file contains the features of a kernel's loops, and the time with
    each choice relative to stock clang. If a kernel cannot be measured, the file
    contains the error. Kernels that are already in the file are skipped.

    At the end, the command prints how the plug-in's estimated cycles correlate with the
    times of all choices in the file. The correlation is between logarithms of cycles
    and times, each relative to stock clang.

    ```sh
    mlbridge search loop-distribution-times --out generated.jsonl
    mlbridge search loop-distribution-times --kernels suites \
      --out suites.jsonl
    ```
    """
    from .kernels.generated import kernel
    from .table import correlation, make_table, read_table

    _check_levels(options.levels)
    if options.kernels == GENERATED:
        numbers = range(options.seed, options.seed + options.count)
        chosen = [kernel(number) for number in numbers]
    elif options.kernels == "suites":
        chosen = list(kernels().values())
    else:
        raise InvalidArgument(
            f"--kernels: expected generated or suites, found {options.kernels!r}"
        )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with ProgressBars() as bars:
        added = make_table(
            *(chosen, options.levels, plugin_of(options.plugin), options.out),
            rounds=options.rounds,
            jobs=options.jobs,
            show=bars.stage("Kernels"),
        )
    console.print(f"{options.out} has {len(added)} more kernels.")
    entries = list(read_table(options.out))
    for decision in DECISIONS:
        found, choices = correlation(entries, decision)
        said = f"{decision}: {choices} choices, correlation {found:.2f}"
        console.print(said, highlight=False)
    _report([(entry.kernel, entry.error) for entry in added])


def _entries(files: Sequence[Path]) -> "list[Entry]":
    from .table import read_table

    found = [entry for file in files for entry in read_table(file) if not entry.error]
    if not found:
        raise InvalidArgument(
            f"{', '.join(map(str, files))}: expected measured kernels, found none;"
            " measure them with `mlbridge search loop-distribution-times`"
        )
    return found


def _model(context: typer.Context, options: ModelOptions, learning: LoopCosts) -> None:
    r"""Train a model of loop distribution or of loop factors on measured times.

    ```sh
    mlbridge train loop-distribution-costs distribution \
      --times build/loop-distribution/generated.jsonl --out distribution.onnx
    clang-22 -O3 -fpass-plugin=MLBridgeLLVM.so \
      -mllvm -mlbridge-loop-distribution=onnx:distribution.onnx -c a.c
    ```
    """
    if options.decision not in DECISIONS:
        raise InvalidArgument(
            f"DECISION: expected {' or '.join(DECISIONS)}, found {options.decision!r}"
        )
    entries = _entries(options.times)
    need("training", PACKAGES)
    from .learning import examples, write_model

    given = examples(entries, options.decision)
    with ProgressBars() as bars:
        write_model(
            *(options.decision, given, learning, options.out),
            seed=options.seed,
            show=bars.stage("Networks"),
        )
    console.print(f"{options.out} was trained on {len(given)} loops.")


def _chosen(names: Sequence[str]) -> list[Kernel]:
    """Returns the kernels that --kernel names, or all."""
    known = kernels()
    found = names or list(known)
    if unknown := [name for name in found if name not in known]:
        raise InvalidArgument(
            f"--kernel: expected names of kernels such as s212 or gemm, found"
            f" {unknown[0]!r}"
        )
    return [known[name] for name in found]


def _evaluate(
    context: typer.Context, options: EvaluationOptions, learning: LoopCosts
) -> None:
    r"""Evaluate models on kernels whose families were not in their training data.

    The families are divided into five folds. For each fold, models are trained on the
    other folds' kernels and on generated kernels. Times are relative to stock clang
    -O3 in the same rounds. The rows are:

    - "again": Stock clang once more, which shows the noise.
    - "llvm": LLVM's -enable-loop-distribute.
    - "random": Random decisions.
    - "rule": The distribution with the fewest estimated cycles.
    - "same factors": The vector width, interleave count and unroll count that are the
      best on average if all loops of the generated kernels get the same ones. Loops for
      which these factors are illegal keep LLVM's choice.
    - "distribution", "factors", "both": The models.
    - "best distribution", "best factors": In each kernel, the single-loop change with
      the best measured time (brute force).

    The column "not heavy" is the mean over the kernels without divisions and square
    roots.

    ```sh
    mlbridge evaluate loop-distribution-kernels \
      --times build/loop-distribution/generated.jsonl \
      --times build/loop-distribution/suites.jsonl
    ```
    """
    _check_levels(options.levels)
    chosen, levels = _chosen(options.only or ()), options.levels
    entries, plugin = _entries(options.times), plugin_of(options.plugin)
    need("training", PACKAGES)
    from .evaluate import best_factors, repeat, rows_of
    from .learning import fold_models

    measured = {(entry.kernel, entry.level): entry for entry in entries}
    with ProgressBars() as bars:
        models = {
            fold: fold_models(
                *(entries, fold, learning, options.models / f"fold-{fold}"),
                show=bars.stage(f"Training of fold {fold}"),
            )
            for fold in sorted({kernel.fold for kernel in chosen})
        }
        factors = best_factors(e for e in entries if e.kernel not in kernels())

        def rows(kernel: Kernel, level: str) -> dict[str, list[str]]:
            entry = measured.get((kernel.name, level))
            return rows_of(plugin, models[kernel.fold], entry, factors)

        runs = repeat(
            *(chosen, levels, rows),
            runs=options.repeat,
            rounds=options.rounds,
            jobs=options.jobs,
            show=bars.stage("Kernels"),
        )
    for level in levels:
        for suite in SUITES:
            if any(kernel.suite == suite for kernel in chosen):
                _print([[o for o in run if _is_of(o, level, suite)] for run in runs])
    plain = [[asdict(one) for one in run] for run in runs]
    write_json(options.json, plain)


def _is_of(result: "Result", level: str, suite: str) -> bool:
    return result.level == level and kernels()[result.kernel].suite == suite


def _print(runs: "Sequence[Sequence[Result]]") -> None:
    """Prints the first run, but counts a kernel as slower only if all runs agree."""
    from .evaluate import summarise

    first = runs[0]
    title = f"{kernels()[first[0].kernel].suite}, {first[0].level}: time / stock clang"
    table = Table(title=title)
    table.add_column("row")
    for column in ("mean", "95 %", "not heavy", "other code", "faster", "slower"):
        table.add_column(column, justify="right")
    for row in next((one.ratios for one in first if not one.error), ()):
        found = [summarise(run, row) for run in runs]
        slower = set.intersection(*(set(one.slower) for one in found))
        one = found[0]
        light = [o for o in first if o.kernel not in HEAVY and row in o.ratios]
        table.add_row(
            row,
            f"{one.mean:.4f}",
            f"{one.interval[0]:.3f}-{one.interval[1]:.3f}",
            f"{summarise(light, row).mean:.4f}" if light else "-",
            str(one.changed),
            str(one.faster),
            f"{len(slower)}",
        )
    console.print(table)
    _report([(one.kernel, one.error) for one in first])


def _report(errors: Sequence[tuple[str, str]]) -> None:
    """Prints the kernels that could not be measured, and the first reason."""
    if failed := [(kernel, error) for kernel, error in errors if error]:
        console.print(f"Not measured: {', '.join(kernel for kernel, _ in failed)}")
        console.print(f"The first error: {failed[0][1]}", soft_wrap=True, markup=False)


def _programs(
    context: typer.Context, programs: LoopProgramOptions, options: ExecutionOptions
) -> None:
    """Run programs that clang -O3 compiled with the built-in models of loops.

    All ratios are relative to stock clang -O3. Each program must print the same output
    as without optimisation. The ratio of user times is the median of the ratios of
    several pairs of runs.

    ```sh
    mlbridge evaluate loop-distribution-programs --program potrace --no-valgrind
    ```
    """
    from mlbridge_optimizations.corpus.toolchain import plugin_flags

    plugin = plugin_of(programs.plugin)
    # Contraction to fused operations would change the programs' output.
    stock = ["-O3", f"-march={programs.march}", "-ffp-contract=off"]
    distribution = "loop-distribution=builtin:loop_distribution"
    factors = "loop-factors=builtin:loop_factors"
    rows = {
        "stock": stock,
        "distribution": [*stock, *plugin_flags(plugin, distribution)],
        "both": [*stock, *plugin_flags(plugin, distribution, factors)],
    }
    title = "Relative to stock clang -O3 (lower is better)"
    compare_executions(programs, rows, options, title=title, heading="models")


COMMANDS = {
    "evaluate loop-distribution-programs": with_options(
        _programs, LoopProgramOptions, ExecutionOptions
    ),
    "evaluate loop-distribution-kernels": with_options(
        _evaluate, EvaluationOptions, LoopCosts, defaults=vars(COSTS)
    ),
    "train loop-distribution-costs": with_options(
        _model, ModelOptions, LoopCosts, defaults=vars(COSTS)
    ),
    "search loop-distribution-times": with_options(_times, TimesOptions),
}
