# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences to choose a core set from: what a search found, or another core set."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import geometric_mean

import numpy as np

from mlbridge.errors import InvalidArgument
from mlbridge_optimizations.corpus.manifest import program_of

from ..compiler.actions import Action, ActionSpace, Order
from ..compiler.compiler import CompilerOptions
from ..compiler.runners import Runners
from ..model.coreset import CoreSet
from ..settings import Made
from .changes import Library
from .evolve import EvolutionSettings, Show, evolve
from .measurements import Measurements, Table
from .search import SearchSettings, search

# The random sequences to compare whole pipelines with: of this space, and so long.
RANDOM, RANDOM_LENGTH = "oz", 15


@dataclass(frozen=True)
class Pool:
    """Sequences, and what is known of them."""

    options: CompilerOptions  # Of the compiler, with the space that they are of.
    # By sequence, the programs in which it was found: none, where it is there whatever
    # is searched, or where that is not known.
    origins: dict[Order, frozenset[str]]
    length: int  # Of random sequences to compare them with: see `CoreSet`.
    # Where these are drawn from, if each of our sequences is a pipeline as a whole, the
    # one action that it has.
    random: str | None = None
    # Geomean over the searched modules of the best found for each; None if no module
    # was.
    searched: float | None = None
    # The core set that they are, in its order, if they are one already.
    core: CoreSet | None = None

    @property
    def sequences(self) -> list[Order]:
        """All of them."""
        return list(self.origins)

    def core_set(self, table: Table, count: int) -> tuple[CoreSet, list[int]]:
        """The best so many by a table of all, and their numbers in it."""
        chosen = list(range(len(table.sequences)))
        if self.core is None:
            chosen = table.greedy(count)
        smallest = np.full(len(table.modules), np.inf)
        ratios = []
        for number in chosen:
            smallest = np.minimum(smallest, table.sizes[:, number])
            ratios.append(table.ratio(smallest))
        if self.core is not None:
            core = replace(self.core, sequences=tuple(table.sequences))
            return replace(core, ratios=tuple(ratios)), chosen
        space = self.options.space
        sequences = tuple(table.sequences[number] for number in chosen)
        if self.random is not None:
            # Of whole pipelines none is of use but these.
            kept = tuple(space.actions[action] for (action,) in sequences)
            space = replace(space, actions=kept)
            sequences = tuple((number,) for number in range(len(kept)))
        core = CoreSet(space, sequences, tuple(ratios), self.length, self.random)
        return core, chosen


def of_actions(
    options: CompilerOptions,
    modules: Sequence[Path],
    settings: SearchSettings,
    made: Made,
    show: Show,
) -> Pool:
    """The best sequence of actions for each module, and the space's own order."""
    log = made.out / "search.jsonl"
    with Runners(options, made.workers, made.timeout) as runners:
        found = search(
            runners, modules, settings, log, lambda *done: show("Searching", *done)
        )
    own = tuple(range(min(len(options.space.actions), settings.length)))
    origins: dict[Order, frozenset[str]] = {own: frozenset()}
    found = [best for best in found if best.sequences]
    for best in found:
        sequence = best.sequences[0]
        if sequence != own:
            program = program_of(Path(best.module))
            origins[sequence] = origins.get(sequence, frozenset()) | {program}
    ratios = [min(best.ratios) for best in found]
    return Pool(options, origins, settings.length, searched=_mean(ratios))


def of_pipelines(
    modules: Sequence[Path],
    searched: int,
    settings: EvolutionSettings,
    made: Made,
    show: Show,
    begin: Path | None = None,
) -> Pool:
    """Pipelines for all modules, and the best for each of the first so many.

    With those of the core set in the file ``begin``, where the search begins.

    Raises:
        InvalidArgument: it is one of something else.
    """
    library = Library.load()
    starts = _pipelines(begin, library.prologue) if begin else {}
    stock = Action("-Oz", library.pipeline())
    space = ActionSpace(
        "pipelines", "Pipelines made of clang's -Oz", library.prologue, (stock,)
    )
    measurements = Measurements(
        _options(space, made, "pipeline.json"),
        modules,
        workers=made.workers,
        timeout=made.timeout,
        log=made.out / "measured.jsonl",
    )
    changes = list(map(library.changes_of, starts))
    found = evolve(library, measurements, searched, settings, show, changes)
    # What was found for all modules is not of one program more than of another.
    names = {stock.pipeline: stock.name} | starts
    for number, pipeline in enumerate(found.together, 1):
        names.setdefault(pipeline, f"for all/{number}")
    programs: dict[str, frozenset[str]] = dict.fromkeys(names, frozenset())
    shared = set(names)
    for module, (pipeline, _) in found.best.items():
        names.setdefault(pipeline, f"{program_of(module)}/{module.stem}")
        if pipeline not in shared:
            known = programs.get(pipeline, frozenset())
            programs[pipeline] = known | {program_of(module)}
    actions = tuple(Action(name, pipeline) for pipeline, name in names.items())
    space = replace(space, actions=actions)
    return Pool(
        _options(space, made, "pool.json"),
        {(n,): programs[action.pipeline] for n, action in enumerate(actions)},
        RANDOM_LENGTH,
        RANDOM,
        _mean([ratio for _, ratio in found.best.values()]),
    )


def _pipelines(file: Path, prologue: str) -> dict[str, str]:
    core = CoreSet.load(file)
    if core.actions.prologue != prologue or any(len(s) != 1 for s in core.sequences):
        raise InvalidArgument(
            f"{file}: to begin a search of pipelines with, expected a core set of whole"
            f" ones, found one of sequences of '{core.actions.name}'"
        )
    actions = (core.actions.actions[action] for (action,) in core.sequences)
    return {action.pipeline: action.name for action in actions}


def of_core_set(core: CoreSet, made: Made) -> Pool:
    """The sequences of a core set, in their order."""
    return Pool(
        _options(core.actions, made, "pool.json"),
        dict.fromkeys(core.sequences, frozenset()),
        core.length,
        core.random,
        core=core,
    )


def _mean(ratios: Sequence[float]) -> float | None:
    return geometric_mean(ratios) if ratios else None


def _options(space: ActionSpace, made: Made, name: str) -> CompilerOptions:
    return CompilerOptions.of(space, made.out / name, plugin=made.plugin)
