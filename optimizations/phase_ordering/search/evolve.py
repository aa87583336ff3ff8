# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A search over whole pipelines: sets of changes of -Oz that evolve.

First some for all modules together: the best pipeline that there is for many of them
at once, then the one that brings most beside it where each module has the better of
them, and so on. From there each module has an evolution of its own, and what has helped
in one is tried more often in the others. All of them go on in waves, each a batch of
candidates of every module, and learn from each other between two waves only: what is
found does not depend on how many compilers there are, nor on how fast they are.
"""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from mlbridge.errors import InvalidArgument
from mlbridge_optimizations.show import ShowStage

from .changes import NONE, Change, Changes, Library
from .measurements import FAILED_RATIO, Measurements
from .settings import ByPipelines

# How often the best, the second, ... of the candidates is changed further.
_PREFERENCE = (6, 4, 3, 2, 2, 2)

_MATES = 20  # So many of the best give their changes to others.

# A module begins with so many, of so many of the best for all modules.
_STARTS, _AMONG = 8, 60

# Changes of which something is known; of fewer nothing is to be learned yet.
_FEW = 100

_CLEARLY = 1e-4  # What is smaller by less has not been helped.
_PATIENCE = 10  # So many candidates are drawn for one that is new.

# A candidate is tried on all modules where it is at most so much worse, as log of the
# size, than the best one on the few of the race; of a batch at most this share are.
_MARGIN, _SHARE = 0.003, 0.2


@dataclass(frozen=True)
class EvolutionSettings(ByPipelines):
    """How long to look, and at what."""

    # The first so many of the modules, on which each candidate is tried at first; the
    # others are for those that do well there.
    race: int = 27
    batch: int = 20  # Candidates between two looks at what they brought.
    seed: int = 0  # Of everything that is drawn.


@dataclass(frozen=True)
class Evolved:
    """What was found."""

    # Pipelines for all modules: the best one, then the best beside it, ...
    together: tuple[str, ...]
    # By module the best for it, and its size / -Oz there. Modules on which nothing
    # survives are none.
    best: dict[Path, tuple[str, float]]


def evolve(
    library: Library,
    measurements: Measurements,
    searched: int,
    settings: EvolutionSettings,
    show: ShowStage = lambda stage, done, total: None,
    starts: Sequence[Changes] = (),
) -> Evolved:
    """Searches for all modules together, then for each of the first so many by itself.

    It begins with the pipeline as it is, and with some more candidates.

    Raises:
        InvalidArgument: there is nothing to measure.
    """
    modules = measurements.modules
    if not modules:
        raise InvalidArgument("expected modules of which -Oz makes machine code")
    experience = _Experience(library)
    joint = _Joint(measurements, modules[: settings.modules], settings, experience)
    joint.begin(starts)
    for number in range(1, settings.together + 1):
        stage = "Evolving for all" if number == 1 else f"Evolving number {number}"
        count = settings.joint if number == 1 else settings.beside
        joint.extend(stage, count, show)
    members = [
        _Member(module, joint, settings, experience) for module in modules[:searched]
    ]
    total = settings.evaluations * len(members)
    _for_each(
        measurements,
        members,
        experience,
        lambda done: show("Evolving for each", done, total),
    )
    best = {member.module: member.best for member in members}
    return Evolved(
        tuple(dict.fromkeys(map(library.pipeline, joint.chosen))),
        {
            module: (library.pipeline(changes), ratio)
            for module, (changes, ratio) in best.items()
            if ratio < FAILED_RATIO
        },
    )


class _Experience:
    """Which changes have made something smaller, wherever they were tried."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._tries: dict[Change, int] = {}
        self._helped: dict[Change, float] = {}
        self._known: list[Change] = []
        self._weights: list[float] = []

    def draw(self, draw: random.Random) -> Change:
        """A change: every other one by chance, every other one that has helped."""
        if len(self._tries) < _FEW or draw.random() < 0.5:
            return self.library.draw(draw)
        if not self._weights:
            self._known = list(self._tries)
            # What was hardly tried is neither good nor bad yet.
            likely = [
                (self._helped[change] + 0.5) / (self._tries[change] + 6)
                for change in self._known
            ]
            self._weights = list(accumulate(share**2 for share in likely))
        return draw.choices(self._known, cum_weights=self._weights)[0]

    def learn(self, child: "_Child", before: float, after: float) -> None:
        """What came of a candidate's new changes; each of several has its share."""
        self._weights = []
        for change in child.added:
            helped = (after < before - _CLEARLY) / len(child.added)
            self._tries[change] = self._tries.get(change, 0) + 1
            self._helped[change] = self._helped.get(change, 0.0) + helped


@dataclass(frozen=True)
class _Child:
    changes: Changes  # That it is.
    parent: Changes = NONE  # The candidate that it was made of.
    added: tuple[Change, ...] = ()  # What it has and the parents had not.


def _children(
    count: int,
    parents: Sequence[Changes],
    mates: Sequence[Changes],
    known: Collection[Changes],
    draw: random.Random,
    experience: _Experience,
) -> list[_Child]:
    """So many new candidates, or fewer where hardly anything is new."""
    children: dict[Changes, _Child] = {}
    for _ in range(_PATIENCE * count):
        if len(children) == count:
            break
        (parent,) = draw.choices(parents, _PREFERENCE[: len(parents)])
        changes = set(parent)
        mated = draw.random() < 0.25
        if mated:
            changes |= draw.choice(mates)
        if changes and draw.random() < 0.25:
            changes.remove(draw.choice(sorted(changes)))
        added: dict[Change, None] = {}
        if not mated or draw.random() < 0.3:
            for _ in range(draw.choice((1, 1, 2, 3))):
                change = experience.draw(draw)
                if change not in changes:
                    added[change] = None
        child = _Child(frozenset(changes | set(added)), parent, tuple(added))
        if child.changes not in known:
            children.setdefault(child.changes, child)
    return list(children.values())


def _ranked(scores: Mapping[Changes, float]) -> list[Changes]:
    """The best first; of equals what changes less, or else was found first."""
    return sorted(scores, key=lambda one: (scores[one], len(one)))


class _Joint:
    """The evolution for all modules: each pipeline that it finds helps the others."""

    def __init__(
        self,
        measurements: Measurements,
        modules: Sequence[Path],
        settings: EvolutionSettings,
        experience: _Experience,
    ) -> None:
        self.chosen: list[Changes] = []
        self._measurements, self._modules = measurements, modules
        self._settings, self._experience = settings, experience
        self._draw = random.Random(f"{settings.seed} for all")
        # Scores beside what is chosen, of the few modules of the race and of all.
        self._raced: dict[Changes, float] = {}
        self._tried: dict[Changes, float] = {}
        self._starts: list[_Child] = []

    @property
    def ranked(self) -> list[Changes]:
        """What was tried on all modules, the best beside what is chosen first."""
        return _ranked(self._tried)

    def begin(self, starts: Sequence[Changes]) -> None:
        """With the pipeline as it is, with some others, and one change of it each."""
        draw, library = self._draw, self._experience.library
        begin = dict.fromkeys([NONE, *starts])
        left = min(self._settings.batch, self._settings.joint) - len(begin)
        self._starts = [_Child(one) for one in begin]
        self._starts += [
            _Child(frozenset({change}), NONE, (change,))
            for change in dict.fromkeys(library.draw(draw) for _ in range(left))
        ]

    def extend(self, stage: str, count: int, show: ShowStage) -> None:
        """Chooses one more pipeline, the best of all so far and of so many new ones."""
        settings = self._settings
        race = self._modules[: settings.race]
        self._raced = self._scores(race, list(self._raced))
        self._tried = self._scores(self._modules, list(self._tried))
        known = len(self._raced)
        children = self._starts[:count] or self._children(count)
        self._starts = []
        while children:
            candidates = [child.changes for child in children]
            self._raced |= self._scores(race, candidates)
            best = min(self._raced[one] for one in [*self._tried, *candidates])
            promising = [
                one
                for one in _ranked({one: self._raced[one] for one in candidates})
                if self._raced[one] <= best + _MARGIN
            ]
            promising = promising[: max(1, round(settings.batch * _SHARE))]
            self._tried |= self._scores(self._modules, promising)
            for child in children:
                before, after = self._raced[child.parent], self._raced[child.changes]
                self._experience.learn(child, before, after)
            done = len(self._raced) - known
            show(stage, done, count)
            children = self._children(count - done)
        self.chosen.append(self.ranked[0])

    def _children(self, left: int) -> list["_Child"]:
        return _children(
            min(self._settings.batch, left),
            self.ranked[: len(_PREFERENCE)],
            _ranked(self._raced)[:_MATES],
            self._raced,
            self._draw,
            self._experience,
        )

    def _scores(
        self, modules: Sequence[Path], candidates: Sequence[Changes]
    ) -> dict[Changes, float]:
        """By candidate, as `Measurements.score`, beside what is chosen."""
        library = self._experience.library
        pipelines = {one: library.pipeline(one) for one in candidates}
        # These were tried on all modules before they were chosen.
        beside = [library.pipeline(one) for one in self.chosen]
        wanted = list(dict.fromkeys(pipelines.values()))
        self._measurements.measure(dict.fromkeys(modules, wanted))
        return {
            one: self._measurements.score(modules, [*beside, pipeline])
            for one, pipeline in pipelines.items()
        }


class _Member:
    def __init__(
        self,
        module: Path,
        joint: _Joint,
        settings: EvolutionSettings,
        experience: _Experience,
    ) -> None:
        """Begins with what was found for all modules, and some of what came close."""
        self.module = module
        self.known: dict[Changes, float] = {}
        self._settings = settings
        self._experience = experience
        name = f"{module.parent.name}/{module.name}"
        self._draw = random.Random(f"{settings.seed} {name}")
        among = joint.ranked[:_AMONG]
        starts = self._draw.sample(among, min(_STARTS, len(among)))
        self._starts = list(dict.fromkeys([NONE, *joint.chosen, *starts]))

    @property
    def best(self) -> tuple[Changes, float]:
        """The smallest, and its size / -Oz."""
        best = _ranked(self.known)[0]
        return best, self.known[best]

    def batch(self) -> list[_Child]:
        """What is to be tried next."""
        left = min(self._settings.batch, self._settings.evaluations - len(self.known))
        if not self.known:
            return [_Child(one) for one in self._starts][:left]
        if self.best[1] >= FAILED_RATIO:
            # What no compiler has survived so far, none will.
            return []
        parents = _ranked(self.known)[: len(_PREFERENCE)]
        return _children(
            left, parents, parents, self.known, self._draw, self._experience
        )


def _for_each(
    measurements: Measurements,
    members: Sequence[_Member],
    experience: _Experience,
    show: Callable[[int], None],
) -> None:
    """Goes on in waves until each member has had what it may try."""
    library = experience.library
    while True:
        batches = [
            [(child, library.pipeline(child.changes)) for child in member.batch()]
            for member in members
        ]
        if not any(batches):
            return
        before = sum(len(member.known) for member in members)
        measurements.measure(
            {
                member.module: list(dict.fromkeys(pipeline for _, pipeline in batch))
                for member, batch in zip(members, batches, strict=True)
            },
            lambda done, before=before: show(before + done),  # type: ignore[misc]
        )
        for member, batch in zip(members, batches, strict=True):
            for child, pipeline in batch:
                after = measurements.ratio(member.module, pipeline)
                member.known[child.changes] = after
                experience.learn(child, member.known[child.parent], after)
