# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The settings of searches. Each field is an option of the command line."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from ..environment.settings import (
    Actions,
    CorpusFolder,
    LeaveOut,
    Plugin,
    Timeout,
    Vocabulary,
)

Evaluations = Annotated[int, Option(min=1, help="Candidates to try per module.")]


@dataclass(frozen=True)
class Made:
    """The settings of all commands that make a model for a core set."""

    corpus: CorpusFolder = Path("build/corpus")
    out: Annotated[Path, Option(help="Folder for the results.")] = Path(
        "build/phase-ordering/coreset"
    )
    leave_out: LeaveOut = None
    workers: Annotated[int, Option(min=1, help="Compilers to run in parallel.")] = 1
    seed: Annotated[int, Option(min=0, help="Random seed.")] = 0
    observation: Annotated[
        str, Option(help="Features that the model uses: histogram, embedding, counts.")
    ] = "histogram,counts"
    vocabulary: Vocabulary = None
    linked: Annotated[
        bool, Option("--linked", help="Also try the sequences on whole programs.")
    ] = False
    ahead: Annotated[
        int,
        Option(
            min=0,
            help="Make a model that runs the first N sequences and then chooses one."
            " With 0, the model chooses before it runs any sequence.",
        ),
    ] = 0
    timeout: Timeout = 120
    plugin: Plugin = None


@dataclass(frozen=True)
class Searched:
    """The settings of every search."""

    count: Annotated[int, Option(min=1, help="Sequences in the core set.")] = 50
    searched: Annotated[
        int, Option(min=0, help="Modules to search individually, from all programs.")
    ] = 60
    most: Annotated[
        int | None, Option("--max-instructions", help="Do not search larger modules.")
    ] = 6000


@dataclass(frozen=True)
class Space:
    """The space of sequences."""

    actions: Actions = "oz"


@dataclass(frozen=True)
class ByActions:
    """The settings of a search for sequences of actions."""

    evaluations: Evaluations = 300
    length: Annotated[
        int, Option("--episode", min=1, help="Actions in a sequence.")
    ] = 15


@dataclass(frozen=True)
class ByPipelines:
    """The settings of a search for whole pipelines."""

    evaluations: Evaluations = 300
    modules: Annotated[
        int, Option("--joint-modules", min=1, help="Modules in the joint search.")
    ] = 81
    joint: Annotated[
        int, Option("--joint-evaluations", min=1, help="Tries for the first pipeline.")
    ] = 600
    together: Annotated[
        int,
        Option(
            min=1,
            help="Pipelines to find in the joint search. Each one is the best addition"
            " to the pipelines before.",
        ),
    ] = 8
    beside: Annotated[
        int,
        Option("--beside-evaluations", min=0, help="Tries for each later pipeline."),
    ] = 150


@dataclass(frozen=True)
class Begun:
    """The core set from which a search for whole pipelines starts."""

    core: Annotated[
        Path | None,
        Option(metavar="FILE", help="Start from the pipelines in this core.json."),
    ] = None
