# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Register allocation's commands of ``mlbridge`` search, train and evaluate."""

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

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
    CorpusFolder,
    ExecutionOptions,
    Jobs,
    Plugin,
    ProgramOptions,
    Programs,
    Split,
)
from mlbridge_optimizations.evaluation.tables import write_json
from mlbridge_optimizations.extras import need

from .settings import Evolution, ImitationOptions, VocabularyOptions

VALIDATION = ("flac", "jq", "libpng", "minisat")
"""The programs for validation, which are not used for training."""

Functions = Annotated[
    Path, Option(help="Folder for the bitcode files of the extracted functions.")
]
Validation = Annotated[
    list[str],
    Option(
        metavar="PROGRAM",
        help="A program used to select the best model. May be repeated.",
    ),
]


@dataclass(frozen=True)
class Extracted:
    """The options of the extraction of functions."""

    corpus: CorpusFolder = Path("build/corpus")
    functions: Functions = Path("build/register-allocation/functions")
    split: Split = "training"
    programs: Programs = None
    plugin: Plugin = None
    jobs: Jobs = os.cpu_count() or 1


@dataclass(frozen=True)
class Trained:
    """The options of a model's training."""

    kind: Annotated[
        str,
        Argument(
            metavar="KIND",
            help="Kind: allocator, dialogue, dialogue-alone, eviction or priority.",
        ),
    ]
    functions: Functions = Path("build/register-allocation/functions")
    validation: Validation = field(default_factory=lambda: [*VALIDATION])
    start: Annotated[
        Path | None,
        Option(
            metavar="FILE.onnx",
            help="Start with the weights of this model. [default: a heuristic]",
        ),
    ] = None
    out: Annotated[Path, Option(help="Folder for the model and its curve.")] = Path(
        "build/register-allocation/evolved"
    )
    plugin: Plugin = None
    jobs: Jobs = os.cpu_count() or 1


@dataclass(frozen=True)
class Imitated:
    """The options of an imitation."""

    functions: Functions = Path("build/register-allocation/functions")
    validation: Validation = field(default_factory=lambda: [*VALIDATION])
    policies: Annotated[
        list[str] | None,
        Option(
            "--policy",
            metavar="SPEC",
            help="A model whose allocation of a function is imitated if it is better"
            " than LLVM's. May be repeated. [default: builtin:regalloc_eviction]",
        ),
    ] = None
    out: Annotated[Path, Option(help="Folder for the model and its curve.")] = Path(
        "build/register-allocation/imitated"
    )
    plugin: Plugin = None
    jobs: Jobs = os.cpu_count() or 1


@dataclass(frozen=True)
class Vocabulary:
    """The files of a vocabulary's training."""

    functions: Functions = Path("build/register-allocation/functions")
    out: Annotated[Path, Option(help="Write the vocabulary to this file.")] = Path(
        "build/register-allocation/mir2vec.json"
    )
    plugin: Plugin = None
    jobs: Jobs = os.cpu_count() or 1


@dataclass(frozen=True)
class Evaluated(ProgramOptions):
    """The options of a comparison."""

    rows: Annotated[
        list[str] | None,
        Option(
            "--row",
            metavar="NAME=OPTIONS",
            help="Another row of the table: its name, and options of LLVM and the"
            " plug-in. May be repeated.",
        ),
    ] = None
    fixed: Annotated[
        bool, Option(help="Also compare LLVM's `basic` allocator and fixed policies.")
    ] = True
    split: Split = "held-out-allocation"


@dataclass(frozen=True)
class Headroom:
    """The options of an estimate."""

    functions: Functions = Path("build/register-allocation/functions")
    count: Annotated[
        int,
        Option(
            min=1, help="Draw modules until they have at least this many functions."
        ),
    ] = 200
    tries: Annotated[int, Option(min=1, help="Number of networks per function.")] = 96
    seed: Annotated[int, Option(min=0, help="Random seed.")] = 0
    json: Annotated[
        Path | None, Option(metavar="FILE", help="Write the costs to this file.")
    ] = None
    plugin: Plugin = None
    jobs: Jobs = os.cpu_count() or 1


def _functions(context: typer.Context, extracted: Extracted) -> None:
    """Extract the functions whose registers are hard to allocate, as bitcode files.

    A function is hard if fixed policies of allocation reach different costs. Models of
    register allocation are trained on these functions.

    ```sh
    mlbridge corpus fetch
    mlbridge search register-allocation-functions
    ```
    """
    from mlbridge_optimizations.corpus.manifest import load

    from .functions import extract

    corpus = load(extracted.corpus.resolve())
    with ProgressBars() as bars:
        files = extract(
            corpus.select(extracted.split, only=extracted.programs or ()),
            plugin_of(extracted.plugin),
            extracted.functions,
            jobs=extracted.jobs,
            show=bars.stage("Modules"),
        )
    console.print(f"{extracted.functions} has {len(files)} files.")


def _files(functions: Path, programs: Sequence[str]) -> tuple[list[Path], list[Path]]:
    """Returns the files for training, and the files of the programs for validation."""
    files = sorted(functions.glob("*.bc"))
    checked = [f for f in files if f.name.rpartition("-")[0] in programs]
    training = [f for f in files if f not in checked]
    if not training or not checked:
        raise InvalidArgument(
            f"{functions}: expected bitcode files for training and for"
            f" validation, found {len(training)} and {len(checked)}; write them with"
            " `mlbridge search register-allocation-functions`, and choose --validation"
        )
    found = {file.name.rpartition("-")[0] for file in checked}
    if missing := [name for name in programs if name not in found]:
        console.print(f"{functions} has no functions of {', '.join(missing)}.")
    return training, checked


def _imitation(
    context: typer.Context, imitated: Imitated, imitation: ImitationOptions
) -> None:
    """Train an eviction model by imitating the best of several policies.

    The method is Iterative BC-Max. In each iteration, LLVM and several models allocate
    the registers of each function. A network learns to imitate the best allocations.
    This network is one of the models in the next iteration. Evolution can improve the
    last network further:

    ```sh
    mlbridge train register-allocation-imitation --out imitated
    mlbridge train register-allocation-evolution eviction --start imitated/eviction.onnx
    ```
    """
    need("training", ("onnx", "onnxruntime", "torch"))
    from mlbridge.export import Metadata, Training

    from .imitation import train
    from .networks import EvictionNetwork

    training, validation = _files(imitated.functions, imitated.validation)
    policies = imitated.policies or ["builtin:regalloc_eviction"]
    imitated.out.mkdir(parents=True, exist_ok=True)
    about = Metadata(reward="-cost", training=Training(seed=imitation.seed))
    best, spec = math.inf, ""
    lines: list[str] = []
    with ProgressBars() as bars:
        for iteration, weights in train(
            *(training, validation, plugin_of(imitated.plugin), policies, imitation),
            imitated.out,
            jobs=imitated.jobs,
            show=bars.stage("Modules"),
        ):
            lines.append(json.dumps(asdict(iteration)))
            if iteration.validation < best:
                best = iteration.validation
                spec = EvictionNetwork().write(
                    imitated.out / "eviction", weights, dict(about.entries())
                )
    curve = imitated.out / "eviction.jsonl"
    curve.write_text("\n".join(lines) + "\n", encoding="utf-8")
    console.print(
        f"{spec}: the lowest loss on the validation functions is {best:.4f}; greedy's"
        f" is 0. The iterations are in {curve}."
    )


def _vocabulary(
    context: typer.Context, files: Vocabulary, options: VocabularyOptions
) -> None:
    """Train a vocabulary of MIR2Vec, which describes machine instructions.

    The method TransE learns a vector for each opcode and each kind of operand in the
    code of the functions. The vocabulary's file has LLVM's format.

    ```sh
    mlbridge train register-allocation-vocabulary
    ```
    """
    need("training", ("torch",))
    from .functions import bitcode_files
    from .vocabulary import train, triplets_of, write

    modules = bitcode_files(files.functions)
    files.out.parent.mkdir(parents=True, exist_ok=True)
    with ProgressBars() as bars:
        triplets = triplets_of(
            modules,
            plugin_of(files.plugin),
            jobs=files.jobs,
            show=bars.stage("Modules"),
        )
        for epoch, trained in train(triplets, options):
            bars.show_stage("Epochs", epoch.number + 1, options.epochs)
            vectors = trained
    write(vectors, files.out)
    console.print(
        f"{files.out} has {len(vectors)} entities, from {len(triplets)} triplets. In"
        f" {epoch.hits:.1%} of them, the tail is among the 10 nearest entities."
    )


def _model(context: typer.Context, trained: Trained, evolution: Evolution) -> None:
    """Evolve a model of register allocation by CMA-ES.

    KIND is one of these:

    - `eviction` and `priority` advise LLVM's greedy allocator.
    - `allocator` allocates before greedy, with one request per function.
    - `dialogue` has four agents, which allocate before greedy, step by step. The agents
      may leave live ranges to greedy.
    - `dialogue-alone` is like `dialogue`, but leaves no live range to greedy.

    ```sh
    mlbridge train register-allocation-evolution eviction
    ```
    """
    need("training", ("cma", "matplotlib", "onnx", "onnxruntime"))
    from mlbridge.export import Metadata, Training

    from .evolve import evolve, plot
    from .networks import NETWORKS

    if trained.kind not in NETWORKS:
        names = ", ".join(NETWORKS)
        raise InvalidArgument(f"expected one of {names}, found {trained.kind!r}")
    network = NETWORKS[trained.kind]()
    if trained.start is not None:
        network.load(trained.start)
    training, validation = _files(trained.functions, trained.validation)
    trained.out.mkdir(parents=True, exist_ok=True)
    stem, curve = trained.out / trained.kind, trained.out / f"{trained.kind}.jsonl"
    # Live ranges that cannot be spilled have an infinite weight.
    about = Metadata(
        reward="log(greedy's cost / cost)",
        finite=trained.kind != "priority",
        training=Training(seed=evolution.seed),
    )
    best, spec, generations = math.inf, "", []
    with ProgressBars() as bars, curve.open("w", encoding="utf-8") as lines:
        for generation, mean in evolve(
            network,
            training,
            validation,
            plugin_of(trained.plugin),
            evolution,
            trained.jobs,
        ):
            print(json.dumps(asdict(generation)), file=lines, flush=True)
            generations.append(generation)
            bars.show_stage("Generations", generation.number + 1, evolution.generations)
            checked = generation.validation
            if checked is not None and checked < best:
                best = checked
                spec = network.write(stem, mean, dict(about.entries()))
    plot(generations, trained.out / f"{trained.kind}.png", f"Evolution: {trained.kind}")
    console.print(
        f"{spec}: the lowest loss on the validation functions is {best:.4f}; greedy's"
        f" is 0. The curve is {curve}."
    )


def _rows(evaluated: Evaluated) -> dict[str, str]:
    """Returns a dict from row to options, with the fixed rows and the rows of --row."""
    from .evaluate import FIXED, GREEDY

    rows = dict(FIXED) if evaluated.fixed else {GREEDY: FIXED[GREEDY]}
    for row in evaluated.rows or ():
        name, equals, options = row.partition("=")
        if not equals or not name:
            raise InvalidArgument(f"--row: expected NAME=OPTIONS, found {row!r}")
        rows[name] = options
    return rows


def _evaluate(context: typer.Context, evaluated: Evaluated) -> None:
    r"""Compare register allocators on programs that stock clang compiles with -O2.

    All ratios are relative to LLVM's greedy allocator. All columns except `text`
    cover only the functions that spill:

    - `text`: the size of the program's code.
    - `cost`: the geometric mean of the functions' costs, and its 95 % interval. A cost
      is the number of spills, reloads and copies, weighted by block frequency.
    - `sum`: the sum of the costs.
    - `spills`, `reloads`: the weighted sums of spills and of reloads.
    - `static`: the number of spills and reloads in the code.
    - `worse`: the number of functions that cost more than with greedy.

    ```sh
    mlbridge evaluate register-allocation-corpus \
      --row 'best of 5=-mlbridge-regalloc-search=5'
    ```
    """
    need("evaluation", ("elftools",))
    from mlbridge_optimizations.corpus.manifest import load

    from .evaluate import GREEDY, compare, measure, together

    rows = _rows(evaluated)
    corpus = load(evaluated.corpus.resolve())
    with ProgressBars() as bars:
        found = measure(
            corpus.select(evaluated.split, only=evaluated.programs or ()),
            rows,
            plugin_of(evaluated.plugin),
            jobs=evaluated.jobs,
            show=bars.stage("Compile"),
        )
    results = {
        program: {
            row: compare(found[GREEDY][program], found[row][program]) for row in rows
        }
        for program in found[GREEDY]
    }
    if len(results) > 1:
        every = together(found[GREEDY])
        results["all"] = {row: compare(every, together(found[row])) for row in rows}
    table = Table(title="Relative to LLVM's greedy allocator (lower is better)")
    for title in ("program", "allocator"):
        table.add_column(title)
    columns = ("text", "cost", "95 %", "sum", "spills", "reloads", "static", "worse")
    for title in columns:
        table.add_column(title, justify="right")
    for program, compared in results.items():
        for row, one in compared.items():
            low, high = one.interval
            table.add_row(
                *(program if row == GREEDY else "", row),
                *(f"{value:.4f}" for value in (one.text, one.cost)),
                f"{low:.3f}-{high:.3f}",
                f"{one.total:.4f}",
                *(f"{v:.3f}" for v in (one.spills, one.reloads, one.instructions)),
                f"{one.worse} of {one.functions}",
            )
        table.add_section()
    console.print(table)
    plain = {p: {r: asdict(v) for r, v in c.items()} for p, c in results.items()}
    write_json(evaluated.json, plain)


def _headroom(context: typer.Context, options: Headroom) -> None:
    """Estimate how much a model of register allocation can reduce the cost of spills.

    Many networks allocate each function: first the heuristics from which training
    starts, then networks with random weights. The kinds of networks are `dialogue`,
    `dialogue-alone` and `eviction`, as in `mlbridge train
    register-allocation-evolution`. For each function, the table uses the lowest cost
    among greedy and the first N networks.

    ```sh
    mlbridge evaluate register-allocation-headroom --tries 24
    ```
    """
    need("training", ("onnx", "onnxruntime"))
    import numpy as np

    from mlbridge_optimizations.evaluation.statistics import mean_interval

    from .functions import bitcode_files
    from .headroom import best_of, costs_by_basic, draw_modules, search

    files = bitcode_files(options.functions)
    plugin = plugin_of(options.plugin)
    basic: dict[tuple[str, str], float] = {}
    modules: list[Path] = []
    for file in draw_modules(files, options.seed):
        basic |= costs_by_basic([file], plugin)
        modules.append(file)
        if len(basic) >= options.count:
            break
    with ProgressBars() as bars:
        found = search(
            modules,
            plugin,
            options.tries,
            seed=options.seed,
            jobs=options.jobs,
            show=bars.stage("Networks"),
        )
    greedy = np.array([costs[0] for costs in found.values()])
    against = np.log(np.array([basic[name] for name in found]) / greedy)
    table = Table(
        title=f"Costs of {len(found)} functions relative to greedy's (lower is better)"
    )
    for title in ("allocator", "cost", "95 %", "relative to basic", "better functions"):
        table.add_column(title, justify="left" if title == "allocator" else "right")

    def add(name: str, logs: "np.typing.NDArray[np.float64]") -> None:
        low, high = mean_interval(list(logs))
        table.add_row(
            name,
            f"{math.exp(logs.mean()):.4f}",
            f"{math.exp(low):.3f}-{math.exp(high):.3f}",
            f"{math.exp((logs - against).mean()):.4f}",
            str(int((logs < -1e-9).sum())),
        )

    add("basic", against)
    add("greedy", np.zeros(len(found)))
    counts = [1 << i for i in range(options.tries.bit_length())]
    counts = sorted({c for c in counts if c <= options.tries} | {options.tries})
    for count, logs in best_of(found, counts).items():
        add(f"best of greedy and {count}", logs)
    console.print(table)
    plain = [
        {"module": module, "function": name, "costs": list(costs)}
        for (module, name), costs in found.items()
    ]
    write_json(options.json, plain)


def _executions(
    context: typer.Context, evaluated: Evaluated, options: ExecutionOptions
) -> None:
    """Run programs that were compiled with different register allocators.

    All ratios are relative to LLVM's greedy allocator. Each program must print the same
    output as without optimisation. The ratio of user times is the median of the ratios
    of several pairs of runs.

    ```sh
    mlbridge evaluate register-allocation-executions --program wavpack --no-valgrind
    ```
    """
    from mlbridge_optimizations.corpus.toolchain import mllvm, plugin_flags

    from .functions import LEVEL

    flags = [LEVEL, *plugin_flags(plugin_of(evaluated.plugin), "on-error=fatal")]
    rows = {
        name: [*flags, *mllvm(told.split())] for name, told in _rows(evaluated).items()
    }
    title = "Relative to LLVM's greedy allocator (lower is better)"
    compare_executions(evaluated, rows, options, title=title, heading="allocator")


COMMANDS = {
    "evaluate register-allocation-executions": with_options(
        _executions, Evaluated, ExecutionOptions
    ),
    "evaluate register-allocation-headroom": with_options(_headroom, Headroom),
    "evaluate register-allocation-corpus": with_options(_evaluate, Evaluated),
    "train register-allocation-imitation": with_options(
        _imitation, Imitated, ImitationOptions
    ),
    "train register-allocation-vocabulary": with_options(
        _vocabulary, Vocabulary, VocabularyOptions
    ),
    "search register-allocation-functions": with_options(_functions, Extracted),
    "train register-allocation-evolution": with_options(_model, Trained, Evolution),
}
