# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences found by search, and the few of them that serve all modules best.

The core set of "Learning Compiler Pass Orders using Coreset and Normalized Value
Prediction" (ICML 2023): search the training modules one by one, try what was found on
all of them, and keep greedily what together makes them smallest.
"""

import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlbridge.errors import InvalidArgument
from mlbridge_optimizations.corpus.manifest import program_of
from mlbridge_optimizations.phase_ordering.compiler.compiler import (
    TIMED_OUT,
    TIMEOUT,
    CompilerOptions,
    ModuleFailed,
    SequenceFailed,
    SequenceRunner,
)
from mlbridge_optimizations.phase_ordering.compiler.kept import Kept
from mlbridge_optimizations.phase_ordering.compiler.measure import oz_size
from mlbridge_optimizations.phase_ordering.compiler.runners import Runners, Show
from mlbridge_optimizations.phase_ordering.settings import ByActions

Order = tuple[int, ...]
"""Actions, one after another."""


FAILED_RATIO = 2.0
"""What a sequence that the compiler does not survive on a module counts as."""


@dataclass(frozen=True)
class SearchSettings(ByActions):
    """How long to look, and for what."""

    population: int = 4  # Of the hill climbing, the best so many are changed further.
    seed: int = 0  # Of everything that is drawn.


@dataclass(frozen=True)
class Best:
    """The best sequences found for a module, the smallest code first.

    None, where no compiler got as far as the first action.
    """

    module: str
    sequences: tuple[Order, ...]
    ratios: tuple[float, ...]


def search_module(
    runner: SequenceRunner, module: Path, settings: SearchSettings
) -> Best:
    """Hill climbing from the space's own order and from chance.

    The same seed finds the same for a module, whatever else is searched beside it. The
    runner's reward should be ``none``: only last states are looked at.

    Raises:
        ModuleFailed: no compiler gets as far as the first action.
    """
    draw = random.Random(f"{settings.seed} {module.parent.name}/{module.name}")
    actions = len(runner.options.space.actions)
    known: dict[Order, float] = {}

    stock = oz_size(module)
    with tempfile.TemporaryDirectory(prefix="mlbridge-search-") as folder:
        object_file = Path(folder, "module.o")

        def ratio(sequence: Order) -> float:
            try:
                size = runner.last_size(module, sequence, object_file)
            except ModuleFailed:
                raise
            except SequenceFailed:
                return FAILED_RATIO
            return size / stock if stock else 1.0

        def evaluate(sequence: Order) -> None:
            if sequence not in known:
                known[sequence] = ratio(sequence)

        def drawn() -> Order:
            return tuple(draw.randrange(actions) for _ in range(settings.length))

        # The space's own order, as far as it goes, is -Oz or close to it.
        evaluate(tuple(range(min(actions, settings.length))))
        tries = 0
        while len(known) < settings.evaluations and tries < 4 * settings.evaluations:
            tries += 1
            if len(known) < max(2, settings.evaluations // 10):
                evaluate(drawn())
                continue
            parents = sorted(known, key=lambda s: (known[s], s))[: settings.population]
            evaluate(_changed(draw.choice(parents), actions, settings.length, draw))
    best = sorted(known, key=lambda s: (known[s], len(s), s))[: settings.population]
    return Best(str(module), tuple(best), tuple(known[s] for s in best))


def _changed(sequence: Order, actions: int, length: int, draw: random.Random) -> Order:
    """A sequence with one to three changes."""
    changed = list(sequence)
    for _ in range(draw.choice((1, 1, 2, 3))):
        kind = draw.randrange(4)
        at = draw.randrange(len(changed)) if changed else 0
        if kind == 0 and changed:
            changed[at] = draw.randrange(actions)
        elif kind == 1 and len(changed) > 1:
            other = draw.randrange(len(changed))
            changed[at], changed[other] = changed[other], changed[at]
        elif kind == 2 and len(changed) > 1:
            del changed[at]
        else:
            changed.insert(at, draw.randrange(actions))
    return tuple(changed[:length])


def search(
    runners: Runners,
    modules: Sequence[Path],
    settings: SearchSettings,
    log: Path | None = None,
    show: Show = lambda done, total: None,
) -> list[Best]:
    """Searches modules one by one, and keeps what it finds in the log, a line a module.

    What the log has already is not searched again.
    """
    kept = Kept(log, runners.options, {"settings": vars(settings)})
    known = {
        module: Best(
            module, tuple(tuple(s) for s in found["sequences"]), tuple(found["ratios"])
        )
        for module, found in kept.load(modules).items()
    }
    missing = [module for module in modules if str(module) not in known]
    show(len(modules) - len(missing), len(modules))

    def work(runner: SequenceRunner, module: Path) -> Best:
        try:
            return search_module(runner, module, settings)
        except ModuleFailed:
            return Best(str(module), (), ())

    before = len(modules) - len(missing)
    for _, best in runners.map(
        work, missing, lambda done, _: show(before + done, len(modules))
    ):
        known[best.module] = best
        if best.sequences:
            found = {"sequences": best.sequences, "ratios": best.ratios}
            kept.add(Path(best.module), found)
    return [known[str(module)] for module in modules]


@dataclass
class Table:
    """What sequences make of modules: bytes of machine code."""

    modules: list[str]  # Files.
    programs: list[str]  # Of these.
    sequences: list[Order]  # That were tried.
    sizes: NDArray[np.float64]  # [modules, sequences].
    oz: NDArray[np.float64]  # Of stock clang's -Oz, [modules].
    # What the compiler did not survive, as (module, sequence, ``crash``, ``timeout`` or
    # ``refused``).
    failures: list[tuple[str, Order, str]] = field(default_factory=list)

    @property
    def logs(self) -> NDArray[np.float64]:
        """log(size / -Oz), [modules, sequences]."""
        return np.asarray(np.log(self.sizes / self.oz[:, None]))

    def score(self, sizes: NDArray[np.float64]) -> float:
        """Mean over programs of log(all its code / that of -Oz); [modules] sizes."""
        return float(program_logs(sizes, self.oz, self.programs)[1].mean())

    def ratio(self, sizes: NDArray[np.float64]) -> float:
        """The geomean over programs of all its code / that of -Oz; [modules] sizes."""
        return float(np.exp(self.score(sizes)))

    def sizes_of(self, choices: NDArray[np.int64]) -> NDArray[np.float64]:
        """By one sequence for each module, [modules]."""
        return np.asarray(self.sizes[np.arange(len(choices)), choices], np.float64)

    def greedy(self, count: int) -> list[int]:
        """So many sequences that together make the programs smallest, by number.

        The first is the best single one. Where more would gain nothing here, those
        that are best by themselves come next: elsewhere they may gain something.
        """
        chosen: list[int] = []
        smallest = np.full(len(self.modules), np.inf)
        score = np.inf
        alone: list[float] = []
        while len(chosen) < count:
            scores = [
                self.score(np.minimum(smallest, self.sizes[:, number]))
                for number in range(len(self.sequences))
            ]
            alone = alone or scores
            number = int(np.argmin(scores))
            if scores[number] >= score:
                break
            score = scores[number]
            chosen.append(number)
            smallest = np.minimum(smallest, self.sizes[:, number])
        left = set(range(len(self.sequences))) - set(chosen)
        chosen += sorted(left, key=lambda number: (alone[number], number))
        return chosen[:count]

    def part(
        self, rows: NDArray[np.bool_], numbers: Sequence[int] | NDArray[np.int64]
    ) -> "Table":
        """Some of the modules, and some of the sequences."""
        kept = np.flatnonzero(rows)
        return Table(
            [self.modules[row] for row in kept],
            [self.programs[row] for row in kept],
            [self.sequences[number] for number in numbers],
            self.sizes[kept][:, numbers],
            self.oz[kept],
        )


def program_logs(
    sizes: NDArray[np.float64], oz: NDArray[np.float64], programs: Sequence[str]
) -> tuple[list[str], NDArray[np.float64]]:
    """Programs, and log(all code / that of -Oz) of each."""
    names, member = np.unique(np.asarray(programs), return_inverse=True)
    ours, stock = np.zeros(len(names)), np.zeros(len(names))
    np.add.at(ours, member, sizes)
    np.add.at(stock, member, oz)
    return list(map(str, names)), np.log(ours / stock)


def tabulate(
    options: CompilerOptions,
    workers: int,
    modules: Sequence[Path],
    sequences: Sequence[Order],
    log: Path | None = None,
    show: Show = lambda done, total: None,
    *,
    timeout: float = TIMEOUT,
) -> Table:
    """Tries all sequences on all modules; what the log has is not tried again.

    Only what had not enough time is. Modules without machine code are left out, and
    those of which no sequence makes any.

    Raises:
        InvalidArgument: there is nothing to try, or nothing to try it on.
    """
    if not modules or not sequences:
        raise InvalidArgument("expected modules and sequences, found none")
    wanted = [list(sequence) for sequence in sequences]
    kept = Kept(log, options, {"sequences": wanted})
    rows = kept.load(modules)
    begun = {
        name: rows.pop(name)["sizes"]
        for name in list(rows)
        if TIMED_OUT in rows[name]["sizes"]
    }

    def work(runner: SequenceRunner, module: Path) -> dict[str, Any]:
        sizes = list(begun.get(str(module), [TIMED_OUT] * len(wanted)))
        left = [number for number, size in enumerate(sizes) if size == TIMED_OUT]
        for tried, number in enumerate(left):
            try:
                sizes[number] = runner.run(module, [number]).last
            except ModuleFailed as error:
                for other in left[tried:]:
                    sizes[other] = error.kind
                break
            except SequenceFailed as error:
                sizes[number] = error.kind
        return {"sizes": sizes, "oz": oz_size(module)}

    missing = [module for module in modules if str(module) not in rows]
    before = len(modules) - len(missing)
    show(before, len(modules))
    with tempfile.TemporaryDirectory(prefix="mlbridge-table-") as folder:
        # Each sequence is one action: machine code is made at its end only.
        file = Path(folder, "actions.json")
        options.space.of_sequences(sequences, "sequences", "").save(file)
        whole = replace(options, actions=str(file), reward="text-size", steps=1)
        with Runners(whole, workers, timeout) as runners:
            for module, row in runners.map(
                work, missing, lambda done, _: show(before + done, len(modules))
            ):
                rows[str(module)] = row
                kept.add(module, row)
    # Without machine code there is nothing to compare.
    names = [
        str(module)
        for module in modules
        if rows[str(module)]["oz"]
        and not all(isinstance(size, str) for size in rows[str(module)]["sizes"])
    ]
    found = [rows[name] for name in names]
    stock = np.array([row["oz"] for row in found], np.float64)
    sizes = np.array(
        [
            [
                FAILED_RATIO * row["oz"] if isinstance(s, str) else s
                for s in row["sizes"]
            ]
            for row in found
        ],
        np.float64,
    ).reshape(len(found), len(sequences))
    return Table(
        names,
        [program_of(Path(name)) for name in names],
        [tuple(sequence) for sequence in sequences],
        sizes,
        stock,
        [
            (name, tuple(sequence), size)
            for name, row in zip(names, found, strict=True)
            for sequence, size in zip(wanted, row["sizes"], strict=True)
            if isinstance(size, str)
        ],
    )
