# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The settings of searches. Each field is an option of the command line."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from mlbridge_optimizations.commands.shared import CorpusFolder, Jobs, Plugin

from ..environment.settings import (
    OF_MODULE,
    Actions,
    LeaveOut,
    Timeout,
    Vocabulary,
)

Evaluations = Annotated[
    int, Option(min=1, help="Sequences to try in the search of one module.")
]


@dataclass(frozen=True)
class Made:
    """The settings of all commands that make a model for a core set."""

    corpus: CorpusFolder = Path("build/corpus")
    out: Annotated[Path, Option(help="Folder for the results.")] = Path(
        "build/phase-ordering/coreset"
    )
    leave_out: LeaveOut = None
    jobs: Jobs = 1
    seed: Annotated[int, Option(min=0, help="Random seed.")] = 0
    observation: Annotated[
        str, Option(help=f"Features that the model uses: {OF_MODULE}.")
    ] = "histogram,counts"
    vocabulary: Vocabulary = None
    linked: Annotated[
        bool,
        Option(
            "--linked",
            help="Also try the sequences on whole programs, each linked into one"
            " module.",
        ),
    ] = False
    ahead: Annotated[
        int,
        Option(
            min=0,
            help="Make a model that tries each of the first N sequences of the core set"
            " on the module, and then chooses one of them by the results. With 0, the"
            " model chooses from the whole core set without a trial.",
        ),
    ] = 0
    timeout: Timeout = 120
    plugin: Plugin = None


@dataclass(frozen=True)
class Searched:
    """The settings of every search."""

    count: Annotated[
        int, Option(min=1, help="Number of sequences in the core set.")
    ] = 50
    searched: Annotated[
        int,
        Option(
            min=0,
            help="Number of modules that are searched individually, taken evenly from"
            " the programs if possible.",
        ),
    ] = 60
    most: Annotated[
        int | None,
        Option(
            "--max-instructions",
            help="Omit modules with more instructions than this from the searches.",
        ),
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
        int,
        Option("--joint-modules", min=1, help="Number of modules in the joint search."),
    ] = 81
    together: Annotated[
        int,
        Option(
            min=1,
            help="Number of sequences that the joint search chooses, one after another."
            " Each is the best addition to those chosen before.",
        ),
    ] = 8
    joint: Annotated[
        int,
        Option(
            "--joint-evaluations",
            min=1,
            help="Sequences to try for the joint search's first choice.",
        ),
    ] = 600
    beside: Annotated[
        int,
        Option(
            "--beside-evaluations",
            min=0,
            help="Sequences to try for each later choice of the joint search.",
        ),
    ] = 150


@dataclass(frozen=True)
class Begun:
    """The core set from which a search for whole pipelines starts."""

    core: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Start from the sequences in this core.json, which an earlier run of"
            " this command has written.",
        ),
    ] = None
