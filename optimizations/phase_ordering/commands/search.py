# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Phase ordering's commands of ``mlbridge`` search and train, about core sets."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument

from mlbridge.errors import InvalidArgument
from mlbridge.options import is_said, with_options
from mlbridge.terminal import console
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.extras import need

from ..search.settings import Begun, ByActions, ByPipelines, Made, Searched, Space

if TYPE_CHECKING:
    from ..search.coreset import Trained

PACKAGES = (
    *("torch", "gymnasium", "matplotlib", "elftools"),
    *("onnx", "onnxruntime", "onnxscript"),
)


@dataclass(frozen=True)
class Known:
    """The argument that names an existing core set."""

    core: Annotated[
        Path,
        Argument(
            exists=True,
            dir_okay=False,
            metavar="core.json",
            help="Core set of an earlier search.",
        ),
    ]


def _actions(
    context: typer.Context, made: Made, searched: Searched, space: Space, by: ByActions
) -> None:
    """Find good action sequences (a core set), and train a model that picks one.

    ```sh
    mlbridge search phase-ordering-actions --jobs 2
    ```
    """
    _check(context, made, space.actions)
    from ..search.search import SearchSettings

    search = SearchSettings(**vars(by), seed=made.seed)
    seen = "the search shares results of these programs" if made.ahead else ""
    _search(made, seen, **vars(searched), **vars(space), search=search)


def _pipelines(
    context: typer.Context,
    made: Made,
    searched: Searched,
    begun: Begun,
    by: ByPipelines,
) -> None:
    """Find good variants of clang's -Oz (a core set), and train a model that picks one.

    A sequence is the complete list of passes of one variant. A joint search finds
    sequences that are good for many modules. The searches of single modules (see
    --searched) then start from these sequences.
    """
    _check(context, made)
    from ..search.evolve import EvolutionSettings

    evolution = EvolutionSettings(**vars(by), seed=made.seed)
    caveat = "Optimistic: these programs also informed the search."
    _search(made, caveat, **vars(searched), **vars(begun), evolution=evolution)


def _model(context: typer.Context, known: Known, made: Made) -> None:
    """Train a model that picks one of the sequences in an existing core set.

    ```sh
    mlbridge train phase-ordering-coreset core.json --ahead 8
    ```
    """
    _check(context, made)
    caveat = "Optimistic: these programs may have informed the core set."
    _search(made, caveat, core=known.core)


COMMANDS = {
    "search phase-ordering-actions": with_options(
        _actions, Made, Searched, Space, ByActions
    ),
    "search phase-ordering-pipelines": with_options(
        _pipelines, Made, Searched, Begun, ByPipelines
    ),
    "train phase-ordering-coreset": with_options(_model, Known, Made),
}


def _check(context: typer.Context, made: Made, actions: str = "oz") -> None:
    need(f"mlbridge {context.command_path.partition(' ')[2]}", PACKAGES)
    from ..environment.compiler import EpisodeOptions

    if made.ahead and is_said(context, "observation"):
        raise InvalidArgument(
            "--observation: a model that looks --ahead uses histogram, counts and"
            " actions: leave it"
        )
    names = tuple(made.observation.split(","))
    EpisodeOptions(actions, names, vocabulary=made.vocabulary).checked()
    if {"step", "actions"} & set(names):
        raise InvalidArgument(
            "--observation: the model chooses before the first action, so step and"
            " actions are empty"
        )


def _search(made: Made, caveat: str, **settings: Any) -> None:
    """Searches and prints the results, with a caveat about the score."""
    from ..search import coreset
    from ..search.value import ValueSettings

    wanted = coreset.CoreSetSettings(
        **vars(made), value=ValueSettings(seed=made.seed), **settings
    )
    with ProgressBars() as bars:
        trained = coreset.train(wanted, bars.show_stage)
    _report(trained, caveat)
    console.print(f"The model is {trained.model}, its curve {made.out}/curve.png.")


def _report(trained: "Trained", caveat: str) -> None:
    ratios = trained.core.ratios
    if (found := trained.searched) is not None:
        console.print(
            f"Searched modules: {found:.4f} of -Oz's size with their best sequences."
        )
    for k in sorted({1, 8, len(ratios)} & set(range(1, len(ratios) + 1))):
        best = f"{ratios[k - 1]:.4f} of -Oz's size with the best of {k} sequences"
        console.print(f"Training programs: {best}.")
    left_out = "Programs left out of the training, one at a time"
    if trained.fitted and (check := trained.fitted.check):
        console.print(
            f"{left_out}: {check.chosen:.4f} of -Oz's size with the value model after"
            f" {check.epochs} epochs, {check.fixed:.4f} with the best fixed sequence,"
            f" {check.best:.4f} with each module's best sequence. {caveat}"
        )
    if ahead := trained.foresight:
        console.print(
            f"{left_out}: {ahead.chosen:.4f} of -Oz's size by looking ahead,"
            f" {ahead.fixed:.4f} with the first sequence, {ahead.best:.4f} with each"
            f" module's best sequence. {caveat}"
        )
    for kind, times in sorted(Counter(f[2] for f in trained.failures).items()):
        console.print(f"The compiler's failures, {kind}: {times}; see table.jsonl")
