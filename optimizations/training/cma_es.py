# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evolves the weights of a model by CMA-ES.

CMA-ES (Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv 1604.00772; the package
`cma`) draws candidates for the weights from a normal distribution. The candidates'
losses then move the distribution.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlbridge_optimizations.training.settings import EvolutionOptions

Weights = NDArray[np.float64]


class Candidates:
    """The candidates of one generation.

    Attributes:
        generation: the number of the generation, from 0.
        weights: the candidates, each float64 [n].
        is_validated: whether to validate the distribution's mean in this generation.
    """

    def __init__(self, strategy: Any, generation: int, *, is_validated: bool) -> None:
        self.generation = generation
        self.weights: list[Weights] = strategy.ask()
        self.is_validated = is_validated
        self._strategy = strategy

    def tell(self, losses: Sequence[float]) -> Weights:
        """Moves the distribution towards low losses, and returns its mean."""
        self._strategy.tell(self.weights, list(losses))
        mean: Weights = self._strategy.result.xfavorite
        return mean


def candidates_of(start: Weights, options: EvolutionOptions) -> Iterator[Candidates]:
    """Yields the candidates of each generation.

    ``start`` is the distribution's first mean. Call `Candidates.tell` before the next
    generation. The first and the last generation are validated.
    """
    import cma  # type: ignore[import-untyped]

    settings = {"popsize": options.population, "seed": options.seed + 1, "verbose": -9}
    strategy = cma.CMAEvolutionStrategy(start, options.sigma, settings)
    last = options.generations - 1
    for number in range(options.generations):
        is_validated = number in (0, last) or (number + 1) % options.every == 0
        yield Candidates(strategy, number, is_validated=is_validated)
