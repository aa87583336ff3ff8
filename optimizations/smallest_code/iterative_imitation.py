# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a network of inlining by Iterative BC-Max.

BC-Max ("Offline Imitation Learning from Multiple Baselines with Applications to
Compiler Optimization", arXiv 2403.19462) compiles each program with several policies,
and imitates the decisions of the best policy. The iterative form adds the trained
network to these policies, and begins again. The first policy is LLVM's own.

A program has too few policies to choose from, so a short search first reverses random
decisions of the best policy, and keeps the reversals that make the linked code smaller.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean

from mlbridge.files import spec_of
from mlbridge_optimizations.inlining.network import InliningNetwork

from .calls import Calls, gains_of, write_decisions
from .imitation import train, write
from .search import search
from .searched import SearchedProgram
from .settings import ImitationOptions, IterationOptions

STOCK = "none"
"""The spec that leaves all decisions to LLVM."""


@dataclass(frozen=True)
class Iteration:
    """The result of one iteration. Ratios are linked code relative to clang -Oz.

    Attributes:
        number: the iteration, from 0.
        policies: the best policy of each program: a spec, or an earlier network.
        best: the geometric mean over programs of the best policies.
        searched: the same, with the decisions that the searches have found.
        network: the same, with the decisions of the trained network.
    """

    number: int
    policies: tuple[str, ...]
    best: float
    searched: float
    network: float


class ImitatedProgram:
    """A program with the policies that have compiled it so far."""

    def __init__(self, program: SearchedProgram, plugin: Path, jobs: int) -> None:
        self.program = program
        self._plugin, self._jobs = plugin, jobs
        self._compiled: dict[str, tuple[Calls, int]] = {}

    def ratio(self, policy: str) -> float:
        """Returns the linked code by a policy, which compiles the program if needed."""
        for one in (STOCK, policy):
            if one not in self._compiled:
                self._compiled[one] = self._compile(one)
        return self._compiled[policy][1] / self._compiled[STOCK][1]

    def improved(
        self, policy: str, folder: Path, seconds: float, seed: int
    ) -> tuple[Calls, float]:
        """Searches for better decisions than a policy's.

        Returns the calls with these decisions, and the linked code.
        """
        start, found = folder / "start.txt", folder / "found.txt"
        flips = folder / "flips.jsonl"
        flips.unlink(missing_ok=True)  # A search appends to the file.
        self.ratio(policy)
        write_decisions(self._compiled[policy][0], start)
        search(
            self.program.module,
            found,
            plugin=self._plugin,
            seconds=seconds,
            seed=seed,
            start=start,
            flips=flips,
            is_shared=self.program.link.is_shared,
        )
        calls, text = self._compile(f"decisions:{found}", flips)
        return calls, text / self._compiled[STOCK][1]

    def _compile(self, policy: str, flips: Path | None = None) -> tuple[Calls, int]:
        gains = gains_of(flips) if flips else {}
        calls, sizes = self.program.compile(policy, self._plugin, self._jobs, gains)
        return calls, sizes.text


def train_iterated(
    programs: Sequence[SearchedProgram],
    plugin: Path,
    policies: Sequence[str],
    iterations: IterationOptions,
    options: ImitationOptions,
    folder: Path,
    *,
    jobs: int,
    advance: Callable[[], None] = lambda: None,
) -> Iterator[tuple[Iteration, Path]]:
    """Yields the iterations, each with the network's .onnx file in `folder`.

    `policies` are the specs of policies to imitate besides LLVM's own. `advance` is
    called after each search.
    """
    pool = {spec: spec for spec in (STOCK, *policies)}
    imitated = [ImitatedProgram(program, plugin, jobs) for program in programs]
    for number in range(iterations.iterations):
        chosen, best, found = [], [], []
        for one in imitated:
            name = min(pool, key=lambda name: one.ratio(pool[name]))
            chosen.append(name)
            best.append(one.ratio(pool[name]))
            seed = options.seed + number
            found.append(one.improved(pool[name], folder, iterations.seconds, seed))
            advance()
        calls = [calls for calls, _ in found]
        path = folder / f"network-{number}.onnx"
        network: InliningNetwork = train(calls, options)
        write(network, path, Calls.join(calls), options.seed)
        network_spec = pool[f"network {number}"] = spec_of("onnx", path)
        yield (
            Iteration(
                number,
                tuple(chosen),
                geometric_mean(best),
                geometric_mean(ratio for _, ratio in found),
                geometric_mean(one.ratio(network_spec) for one in imitated),
            ),
            path,
        )
