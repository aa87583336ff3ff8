# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The settings of searches, whose fields are options of the command line."""

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

Evaluations = Annotated[int, Option(min=1, help="Candidates tried on each module.")]


@dataclass(frozen=True)
class Made:
    """The settings of every core set's model."""

    corpus: CorpusFolder = Path("build/corpus")
    out: Annotated[Path, Option(help="Folder for the results.")] = Path(
        "build/phase-ordering/coreset"
    )
    leave_out: LeaveOut = None
    workers: Annotated[int, Option(min=1, help="Compilers at once.")] = 1
    seed: Annotated[int, Option(min=0, help="Random seed.")] = 0
    observation: Annotated[
        str, Option(help="Features of the model: histogram, embedding, counts.")
    ] = "histogram,counts"
    vocabulary: Vocabulary = None
    linked: Annotated[
        bool, Option("--linked", help="Also try sequences on linked programs.")
    ] = False
    ahead: Annotated[
        int,
        Option(
            min=0,
            help="Make a model that runs the first N sequences and takes one by their"
            " results; 0: a model that chooses before.",
        ),
    ] = 0
    timeout: Timeout = 120
    plugin: Plugin = None


@dataclass(frozen=True)
class Searched:
    """The settings of every search, whose results are tried on larger modules, too."""

    count: Annotated[int, Option(min=1, help="Sequences in the core set, K.")] = 50
    searched: Annotated[
        int, Option(min=0, help="Modules searched one by one, of each program alike.")
    ] = 60
    most: Annotated[
        int | None, Option("--max-instructions", help="Search no larger module.")
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
        int, Option("--joint-modules", min=1, help="Modules searched together.")
    ] = 81
    joint: Annotated[
        int, Option("--joint-evaluations", min=1, help="Candidates for the first one.")
    ] = 600
    together: Annotated[
        int,
        Option(
            min=1,
            help="Pipelines for all modules: the best, then the best beside it, and so"
            " on.",
        ),
    ] = 8
    beside: Annotated[
        int,
        Option("--beside-evaluations", min=0, help="Candidates for each other one."),
    ] = 150


@dataclass(frozen=True)
class Begun:
    """The start of a search for whole pipelines."""

    core: Annotated[
        Path | None,
        Option(metavar="FILE", help="Begin with the pipelines of this core.json."),
    ] = None
