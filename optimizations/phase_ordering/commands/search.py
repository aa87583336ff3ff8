# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge search``: core sets, found by trying sequences or whole pipelines."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from mlbridge.errors import InvalidArgument
from mlbridge.terminal import console
from mlbridge_optimizations.commands.options import is_said, with_options
from mlbridge_optimizations.commands.progress import progress_bars, stages_on
from mlbridge_optimizations.extras import need

if TYPE_CHECKING:
    from mlbridge_optimizations.phase_ordering.search.coreset import Trained

OUT = Path("build/phase-ordering/coreset")

PACKAGES = (
    *("torch", "gymnasium", "matplotlib", "elftools"),
    *("onnx", "onnxruntime", "onnxscript"),
)


@dataclass(frozen=True)
class Made:
    """What every core set's model is made of."""

    corpus: Annotated[Path, Option(help="Its folder.")] = Path("build/corpus")
    leave_out: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="A program not to train on; may be repeated."),
    ] = None
    out: Annotated[Path, Option(help="The folder for what comes of it.")] = OUT
    workers: Annotated[int, Option(min=1, help="Compilers at once.")] = 1
    seed: Annotated[int, Option(min=0, help="Of all that is drawn.")] = 0
    observation: Annotated[
        str, Option(help="What the model sees: of histogram, embedding, counts.")
    ] = "histogram,counts"
    vocabulary: Annotated[
        Path | None, Option(help="Of `embedding`, in LLVM's form.")
    ] = None
    linked: Annotated[
        bool, Option("--linked", help="Try what is found on linked programs, too.")
    ] = False
    ahead: Annotated[
        int,
        Option(
            min=0,
            help="Have a model that looks at what so many of the first sequences have"
            " made, and takes one; 0: one that chooses before.",
        ),
    ] = 0
    timeout: Annotated[
        float,
        Option(
            min=1,
            help="Seconds for a sequence on a module of up to 10,000 instructions; a"
            " larger one has more in proportion.",
        ),
    ] = 120
    plugin: Annotated[
        Path | None,
        Option(help="MLBridgeLLVM.so. [default: where `mlbridge doctor` finds it]"),
    ] = None


@dataclass(frozen=True)
class Searched:
    """What every search is told."""

    count: Annotated[int, Option(min=1, help="K, sequences of the core set.")] = 50
    searched: Annotated[
        int, Option(min=0, help="Modules that are searched one by one.")
    ] = 60
    evaluations: Annotated[
        int, Option(min=1, help="Sequences tried on each of these.")
    ] = 300
    max_instructions: Annotated[int, Option(help="Search no larger module.")] = 6000


@dataclass(frozen=True)
class ByActions:
    """What a search for sequences of actions is told."""

    actions: Annotated[str, Option(help="oz, odg, passes, or a JSON file.")] = "oz"
    episode: Annotated[int, Option(min=1, help="Actions of a sequence.")] = 15


@dataclass(frozen=True)
class ByPipelines:
    """What a search for whole pipelines is told."""

    core: Annotated[
        Path | None,
        Option(metavar="FILE", help="Begin with the pipelines of this core.json."),
    ] = None
    joint_modules: Annotated[
        int,
        Option(min=1, help="Modules that pipelines are to serve all together."),
    ] = 81
    joint_evaluations: Annotated[
        int, Option(min=1, help="Pipelines tried there for the best one.")
    ] = 600
    together: Annotated[
        int,
        Option(
            min=1,
            help="So many pipelines are sought there: the best one, then the best"
            " beside it, and so on.",
        ),
    ] = 8
    beside_evaluations: Annotated[
        int, Option(min=0, help="Pipelines tried for each of these after the first.")
    ] = 150


@dataclass(frozen=True)
class Known:
    """A core set that there is."""

    core: Annotated[Path, Argument(exists=True, dir_okay=False, metavar="core.json")]


def _actions(
    context: typer.Context, made: Made, searched: Searched, by: ByActions
) -> None:
    """Find sequences of actions, and a model that picks one of them for each module.

    ```sh
    mlbridge search phase-ordering-actions --workers 2
    ```
    """
    _check(context, made, by.actions)
    from mlbridge_optimizations.phase_ordering.search.search import SearchSettings

    _search(
        made,
        "what the search shares has seen them" if made.ahead else "",
        **_searched(searched),
        actions=by.actions,
        search=SearchSettings(searched.evaluations, by.episode, seed=made.seed),
    )


def _pipelines(
    context: typer.Context, made: Made, searched: Searched, by: ByPipelines
) -> None:
    """Find changes of clang's whole -Oz, and a model that picks for each module.

    ```sh
    mlbridge search phase-ordering-pipelines --workers 2
    ```
    """
    _check(context, made)
    from mlbridge_optimizations.phase_ordering.search.evolve import EvolutionSettings

    evolution = EvolutionSettings(
        joint=by.joint_evaluations,
        together=by.together,
        beside=by.beside_evaluations,
        modules=by.joint_modules,
        evaluations=searched.evaluations,
        seed=made.seed,
    )
    _search(
        made,
        "what the search shares has seen them",
        **_searched(searched),
        core=by.core,
        evolution=evolution,
    )


def _model(context: typer.Context, known: Known, made: Made) -> None:
    """Search nothing: a model for a core set that there is.

    ```sh
    mlbridge search phase-ordering-model core.json --ahead 8
    ```
    """
    _check(context, made)
    _search(made, "the core set may have been chosen by them", core=known.core)


COMMANDS = {
    "search phase-ordering-actions": with_options(_actions, Made, Searched, ByActions),
    "search phase-ordering-pipelines": with_options(
        _pipelines, Made, Searched, ByPipelines
    ),
    "search phase-ordering-model": with_options(_model, Known, Made),
}


def _check(context: typer.Context, made: Made, actions: str = "oz") -> None:
    """Nothing is asked for that cannot be."""
    need(f"mlbridge {context.command_path.partition(' ')[2]}", PACKAGES)
    from mlbridge_optimizations.phase_ordering.compiler.compiler import CompilerOptions

    if made.ahead and is_said(context, "observation"):
        raise InvalidArgument(
            "--observation: a model that looks --ahead sees histogram, counts and"
            " actions: leave it"
        )
    names = tuple(made.observation.split(","))
    CompilerOptions(actions, names, vocabulary=made.vocabulary).checked()
    if {"step", "actions"} & set(names):
        raise InvalidArgument(
            "--observation: one sequence is chosen before the first action, where there"
            " is no step and no action to see"
        )


def _searched(searched: Searched) -> dict[str, Any]:
    return {
        "count": searched.count,
        "searched": searched.searched,
        "most": searched.max_instructions,
    }


def _search(made: Made, too_good: str, **settings: Any) -> None:
    """Searches, and says what came of it; why that may be too good to be true."""
    from mlbridge_optimizations.phase_ordering.search import coreset
    from mlbridge_optimizations.phase_ordering.search.value import ValueSettings

    wanted = coreset.CoreSetSettings(
        corpus=made.corpus,
        out=made.out,
        leave_out=tuple(made.leave_out or ()),
        linked=made.linked,
        observation=tuple(made.observation.split(",")),
        vocabulary=made.vocabulary,
        workers=made.workers,
        timeout=made.timeout,
        ahead=made.ahead,
        plugin=made.plugin,
        value=ValueSettings(seed=made.seed),
        **settings,
    )
    with progress_bars() as bars:
        trained = coreset.train(wanted, stages_on(bars))
    _report(trained, f" That is too good: {too_good}." if too_good else "")
    console.print(f"The model is {trained.model}, its curve {made.out}/curve.png.")


def _report(trained: "Trained", too_good: str) -> None:
    ratios = trained.core.ratios
    if trained.searched is not None:
        console.print(
            f"Searched modules: {trained.searched:.4f} of -Oz by the best sequence of"
            " each."
        )
    for k in sorted({1, 8, len(ratios)} & set(range(1, len(ratios) + 1))):
        console.print(
            f"Training programs: {ratios[k - 1]:.4f} by the best of {k} fixed"
            " sequences."
        )
    check = trained.fitted.check if trained.fitted else None
    if check is not None:
        console.print(
            f"Programs left out, each in turn: {check.chosen:.4f} by the value model"
            f" after {check.epochs} epochs, {check.fixed:.4f} by the best fixed"
            f" sequence, {check.best:.4f} at most.{too_good}"
        )
    ahead = trained.foresight
    if ahead is not None:
        console.print(
            f"Programs left out, each in turn: {ahead.chosen:.4f} by looking ahead,"
            f" {ahead.fixed:.4f} by the first sequence, {ahead.best:.4f} at most."
            f"{too_good}"
        )
    for kind, times in sorted(Counter(f[2] for f in trained.failures).items()):
        console.print(f"The compiler's failures, {kind}: {times}; see table.jsonl")
