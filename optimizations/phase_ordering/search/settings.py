# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The settings of searches: fields are options of the command line."""

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

Evaluations = Annotated[int, Option(min=1, help="Sequences tried on each of these.")]


@dataclass(frozen=True)
class Made:
    """What every core set's model is made of."""

    corpus: CorpusFolder = Path("build/corpus")
    out: Annotated[Path, Option(help="The folder for what comes of it.")] = Path(
        "build/phase-ordering/coreset"
    )
    leave_out: LeaveOut = None
    workers: Annotated[int, Option(min=1, help="Compilers at once.")] = 1
    seed: Annotated[int, Option(min=0, help="Of all that is drawn.")] = 0
    observation: Annotated[
        str, Option(help="What the model sees: of histogram, embedding, counts.")
    ] = "histogram,counts"
    vocabulary: Vocabulary = None
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
    timeout: Timeout = 120
    plugin: Plugin = None


@dataclass(frozen=True)
class Searched:
    """What every search is told. What it finds is tried on larger modules, too."""

    count: Annotated[int, Option(min=1, help="K, sequences of the core set.")] = 50
    # Each program's share is the same.
    searched: Annotated[
        int, Option(min=0, help="Modules that are searched one by one.")
    ] = 60
    most: Annotated[
        int | None, Option("--max-instructions", help="Search no larger module.")
    ] = 6000


@dataclass(frozen=True)
class Space:
    """Of which space sequences are."""

    actions: Actions = "oz"


@dataclass(frozen=True)
class ByActions:
    """What a search for sequences of actions is told."""

    evaluations: Evaluations = 300
    length: Annotated[
        int, Option("--episode", min=1, help="Actions of a sequence.")
    ] = 15


@dataclass(frozen=True)
class ByPipelines:
    """What a search for whole pipelines is told."""

    evaluations: Evaluations = 300
    modules: Annotated[
        int, Option("--joint-modules", min=1, help="Pipelines are to serve so many.")
    ] = 81
    joint: Annotated[
        int,
        Option("--joint-evaluations", min=1, help="Pipelines tried for the best one."),
    ] = 600
    together: Annotated[
        int,
        Option(
            min=1,
            help="So many pipelines are sought there: the best one, then the best"
            " beside it, and so on.",
        ),
    ] = 8
    beside: Annotated[
        int,
        Option("--beside-evaluations", min=0, help="Tried for each after the first."),
    ] = 150


@dataclass(frozen=True)
class Begun:
    """Where a search for whole pipelines begins."""

    core: Annotated[
        Path | None,
        Option(metavar="FILE", help="Begin with the pipelines of this core.json."),
    ] = None
