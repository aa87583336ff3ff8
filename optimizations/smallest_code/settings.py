# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of commands whose modules import PyTorch, which takes seconds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from mlbridge_optimizations.commands.shared import Plugin
from mlbridge_optimizations.training.settings import (
    EvolutionOptions,
    Generations,
    Population,
    Seed,
    Sigma,
    Width,
)

CLANG_OZ = "clang -Oz"
"""The row or column of stock clang in tables."""
THRESHOLDS = (-25, 0, 10, 25, 75, 225)
"""Fixed thresholds of the inliner. The threshold of clang -Oz is 5."""

SizesFile = Annotated[
    Path | None, Option(metavar="FILE", help="Write all sizes to this file.")
]


@dataclass(frozen=True)
class ImitationOptions:
    """The options of a training."""

    seed: Seed = 1
    epochs: Annotated[int, Option(min=1, help="Passes over all calls.")] = 60
    hidden: Width = 32
    rate: Annotated[float, Option(min=0, help="Learning rate of AdamW.")] = 2e-3
    decay: Annotated[float, Option(min=0, help="Weight decay of AdamW.")] = 0.3
    dropout: Annotated[
        float, Option(min=0, max=1, help="Share of dropped activations.")
    ] = 0.2
    max_weight: Annotated[
        int,
        Option(
            min=1,
            help="Upper limit of a call's weight in training. The weight is the number"
            " of bytes that the call's decision saves.",
        ),
    ] = 64
    min_weight: Annotated[
        float,
        Option(
            min=0.001,
            help="Lower limit of a call's weight in training. For example, a call that"
            " the search has not tried has this weight.",
        ),
    ] = 1.0


@dataclass(frozen=True)
class IterationOptions:
    """The options of Iterative BC-Max."""

    iterations: Annotated[int, Option(min=1, help="Iterations of BC-Max.")] = 2
    seconds: Annotated[
        float,
        Option(min=0, help="CPU seconds of the search in each program and iteration."),
    ] = 60


@dataclass(frozen=True)
class RuleOptions(EvolutionOptions):
    """The options of an evolution."""

    generations: Generations = 40
    population: Population = 10
    sigma: Sigma = 1.0
    seed: Seed = 1


@dataclass(frozen=True)
class EpisodeSettings:
    """The options of the environment."""

    programs: Annotated[
        list[Path],
        Argument(
            metavar="PROGRAM...",
            help="Result folders of earlier searches (the --folder of `mlbridge search"
            " smallest-code`), or programs as bitcode, linked into one module.",
        ),
    ]
    plugin: Plugin = None
    spec: Annotated[
        str, Option(help="Transport between trainer and compiler: shm, pipe or grpc.")
    ] = "shm"

    def __post_init__(self) -> None:
        # Make paths absolute, because compilers may run in other folders.
        programs = [path.resolve() for path in self.programs]
        object.__setattr__(self, "programs", programs)
        if self.plugin is not None:
            object.__setattr__(self, "plugin", self.plugin.resolve())
