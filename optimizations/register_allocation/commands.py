# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge search allocation-functions`` and ``mlbridge search allocation-model``."""

import json
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from mlbridge.doctor import find_llvm_plugin
from mlbridge.errors import InvalidArgument
from mlbridge.options import with_options
from mlbridge.terminal import console
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.extras import need

from .evolve import Evolution

VALIDATION = "flac,jq,libpng,minisat"
"""The programs that choose among generations, and are not trained on."""

Functions = Annotated[Path, Option(help="Folder of the functions to train on.")]
Plugin = Annotated[
    Path | None,
    Option(help="MLBridgeLLVM.so. [default: as found by `mlbridge doctor`]"),
]
Jobs = Annotated[int, Option("--jobs", "-j", min=1, help="Parallel compilers.")]


@dataclass(frozen=True)
class Extracted:
    """The options of the extraction of functions."""

    corpus: Annotated[Path, Option(help="Corpus folder.")] = Path("build/corpus")
    functions: Functions = Path("build/regalloc/functions")
    split: Annotated[str, Option(help="Split: training, held-out or generated.")] = (
        "training"
    )
    programs: Annotated[
        str, Option(help="Names of programs, with commas. [default: all]")
    ] = ""
    plugin: Plugin = None
    jobs: Jobs = os.cpu_count() or 1


@dataclass(frozen=True)
class Trained:
    """The options of a model's training."""

    kind: Annotated[
        str, Argument(metavar="KIND", help="allocator, eviction or priority.")
    ]
    functions: Functions = Path("build/regalloc/functions")
    validation: Annotated[
        str,
        Option(help="Programs, with commas, that choose the best generation."),
    ] = VALIDATION
    out: Annotated[Path, Option(help="Folder for the model and its curve.")] = Path(
        "build/regalloc/evolved"
    )
    plugin: Plugin = None
    jobs: Jobs = os.cpu_count() or 1


def _plugin(given: Path | None) -> Path:
    found = given or find_llvm_plugin()
    if found is None or not found.is_file():
        raise InvalidArgument(
            f"{found or 'MLBridgeLLVM.so'}: there is no such plug-in; build it with"
            " `make build`, or name it with --plugin"
        )
    return found.resolve()


def _functions(context: typer.Context, extracted: Extracted) -> None:
    """Write the functions of a corpus that are hard to allocate to bitcode files.

    These are the functions for which fixed policies make different code. Models of
    register allocation are trained on them.

    ```sh
    mlbridge corpus fetch
    mlbridge search allocation-functions
    ```
    """
    from mlbridge_optimizations.corpus.manifest import load

    from .functions import extract

    corpus = load(extracted.corpus.resolve())
    only = extracted.programs.split(",") if extracted.programs else ()
    with ProgressBars() as bars:
        files = extract(
            corpus.select(extracted.split, only=only),
            _plugin(extracted.plugin),
            extracted.functions,
            jobs=extracted.jobs,
            show=lambda done, of: bars.show_stage("Modules", done, of),
        )
    console.print(f"{extracted.functions} has {len(files)} files.")


def _model(context: typer.Context, trained: Trained, evolution: Evolution) -> None:
    """Evolve a model of register allocation by CMA-ES.

    - `eviction` and `priority` advise LLVM's greedy allocator.
    - `allocator` allocates before greedy.

    ```sh
    mlbridge search allocation-model eviction
    ```
    """
    need("training", ("cma", "onnx", "onnxruntime"))
    from .evolve import evolve
    from .networks import NETWORKS

    if trained.kind not in NETWORKS:
        names = ", ".join(NETWORKS)
        raise InvalidArgument(f"expected one of {names}, found {trained.kind!r}")
    network = NETWORKS[trained.kind]()
    files = sorted(trained.functions.glob("*.bc"))
    programs = trained.validation.split(",")
    validation = [f for f in files if f.name.rpartition("-")[0] in programs]
    training = [f for f in files if f not in validation]
    if not training or not validation:
        raise InvalidArgument(
            f"{trained.functions}: expected bitcode files for training and for"
            f" validation, found {len(training)} and {len(validation)}; write them with"
            " `mlbridge search allocation-functions`, and choose --validation"
        )
    trained.out.mkdir(parents=True, exist_ok=True)
    file, curve = (trained.out / f"{trained.kind}{end}" for end in (".onnx", ".jsonl"))
    best = math.inf
    with ProgressBars() as bars, curve.open("w", encoding="utf-8") as lines:
        for generation, mean in evolve(
            network,
            training,
            validation,
            _plugin(trained.plugin),
            evolution,
            trained.jobs,
        ):
            print(json.dumps(asdict(generation)), file=lines, flush=True)
            bars.show_stage("Generations", generation.number + 1, evolution.generations)
            checked = generation.validation
            if checked is not None and checked < best:
                best = checked
                about = {"mlbridge.training": json.dumps(asdict(evolution))}
                file.write_bytes(network.model(mean, about).SerializeToString())
    console.print(
        f"{file}: {math.exp(best):.4f} of greedy's cost on the validation functions"
        f" (geometric mean); the curve is {curve}."
    )


COMMANDS = {
    "search allocation-functions": with_options(_functions, Extracted),
    "search allocation-model": with_options(_model, Trained, Evolution),
}
