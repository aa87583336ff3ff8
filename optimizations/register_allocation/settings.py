# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of commands whose modules import PyTorch, which takes seconds."""

from dataclasses import dataclass
from typing import Annotated

from typer import Option

from mlbridge_optimizations.training.settings import (
    EvolutionOptions,
    Generations,
    Population,
    Seed,
    Sigma,
)


@dataclass(frozen=True)
class ImitationOptions:
    """The options of a training."""

    iterations: Annotated[int, Option(min=1, help="Iterations of BC-Max.")] = 3
    epochs: Annotated[
        int, Option(min=1, help="Passes over the decisions in each iteration.")
    ] = 30
    rate: Annotated[float, Option(help="Learning rate of Adam.")] = 0.01
    seed: Seed = 0


@dataclass(frozen=True)
class Evolution(EvolutionOptions):
    """The options of an evolution."""

    generations: Generations = 60
    population: Population = 14
    sigma: Sigma = 0.15
    sample: Annotated[
        int, Option(min=1, help="Bitcode files drawn for each generation.")
    ] = 70


@dataclass(frozen=True)
class VocabularyOptions:
    """The options of a training of MIR2Vec's vocabulary."""

    dimension: Annotated[int, Option(min=1, help="Elements of a vector.")] = 100
    epochs: Annotated[int, Option(min=1, help="Passes over the training data.")] = 200
    margin: Annotated[float, Option(help="Margin of TransE's ranking loss.")] = 1.0
    rate: Annotated[float, Option(help="Learning rate of Adam.")] = 0.005
    seed: Seed = 0
