# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evolves the weights of the rule of inlining.

CMA-ES draws candidates. Each candidate compiles and links every program. Its loss is
the mean logarithm of the linked code relative to clang -Oz.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from tempfile import TemporaryDirectory

import numpy as np

from mlbridge.files import spec_of
from mlbridge_optimizations.plot import finish, panels_of
from mlbridge_optimizations.training.cma_es import Weights, candidates_of

from .evaluate import compare
from .flags import model_flags
from .rule import ONE_USE, RuleTemplate
from .searched import SearchedProgram
from .settings import CLANG_OZ, RuleOptions

PULL = 2e-5
"""The loss of a weight that is 1 away from the rule with which the evolution starts. It
keeps weights without effect where they are."""


@dataclass(frozen=True)
class Generation:
    """The result of one generation. Ratios are linked code relative to clang -Oz.

    Attributes:
        number: the generation, from 0.
        ratio: the geometric mean over candidates and programs.
        best: the geometric mean over programs of the best candidate.
        validation: the mean of the distribution, on the validation programs. None in
            most generations, and without validation programs.
        seconds: the time since the start.
    """

    number: int
    ratio: float
    best: float
    validation: float | None
    seconds: float


class RuleSizes:
    """Measures the linked sizes of programs that are compiled with rules."""

    def __init__(
        self, programs: Sequence[SearchedProgram], template: RuleTemplate, plugin: Path
    ) -> None:
        """Compiles all programs with clang -Oz."""
        self._programs = programs
        self._template = template
        self._plugin = plugin
        self._stock = [self._text(program, []) for program in programs]

    def ratios(
        self, rules: Sequence[Weights], programs: Sequence[int], jobs: int
    ) -> list[list[float]]:
        """Returns for each rule the linked code of each program, by its index."""
        with TemporaryDirectory(prefix="mlbridge-rule-") as folder:
            specs = []
            for number, weights in enumerate(rules):
                path = Path(folder, f"{number}.onnx")
                self._template.write(weights, path)
                specs.append(spec_of("onnx", path))

            def ratio(job: tuple[str, int]) -> float:
                spec, index = job
                program = self._programs[index]
                flags = model_flags(spec, self._plugin, program.callee_files)
                return self._text(program, flags) / self._stock[index]

            work = [(spec, index) for spec in specs for index in programs]
            with ThreadPoolExecutor(jobs) as pool:
                found = iter(list(pool.map(ratio, work)))
        return [[next(found) for _ in programs] for _ in rules]

    @staticmethod
    def _text(program: SearchedProgram, flags: list[str]) -> int:
        return compare(program, {CLANG_OZ: flags}, jobs=1).sizes[CLANG_OZ].text


def evolve(
    sizes: RuleSizes,
    training: Sequence[int],
    validation: Sequence[int],
    options: RuleOptions,
    jobs: int,
) -> Iterator[tuple[Generation, Weights]]:
    """Yields the generations, each with the mean of its distribution.

    ``training`` and ``validation`` are indices of programs.
    """
    begin = time.monotonic()
    for drawn in candidates_of(ONE_USE, options):
        found = [
            geometric_mean(ratios)
            for ratios in sizes.ratios(drawn.weights, training, jobs)
        ]
        pulls = PULL * np.square(np.array(drawn.weights) - ONE_USE).sum(axis=1)
        mean = drawn.tell(list(np.log(found) + pulls))
        checked = None
        if validation and drawn.is_validated:
            checked = geometric_mean(sizes.ratios([mean], validation, jobs)[0])
        generation = Generation(
            drawn.generation,
            ratio=geometric_mean(found),
            best=min(found),
            validation=checked,
            seconds=time.monotonic() - begin,
        )
        yield generation, mean


def plot(generations: Sequence[Generation], path: Path) -> None:
    """Draws the ratios of all generations in a PNG file."""
    numbers = [one.number for one in generations]
    with panels_of(path, size=(8, 4)) as (panel,):
        panel.plot(numbers, [one.ratio for one in generations], label="all candidates")
        panel.plot(numbers, [one.best for one in generations], label="best candidate")
        checked = [
            (one.number, one.validation)
            for one in generations
            if one.validation is not None
        ]
        if checked:
            panel.plot(
                *zip(*checked, strict=True), "o-", label="mean,\nvalidation programs"
            )
        finish(
            panel,
            title="Evolution of the rule of inlining",
            xlabel="generation",
            ylabel="linked code / clang -Oz (lower is better)",
        )
