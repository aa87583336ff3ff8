# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A search for variants of -Oz. Each variant is a set of changes to the pipeline.

First a joint search finds a few pipelines for all modules. Each pipeline is the best
addition to the earlier pipelines. Then an evolutionary search for each module starts
from these pipelines. Changes that helped one module are tried more often on other
modules.

All modules proceed in waves, and share experience only between two waves. Therefore,
the result does not depend on the number or the speed of the compilers.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from mlbridge.errors import InvalidArgument
from mlbridge_optimizations.show import ShowStage, quiet

from .changes import NONE, Change, Changes, Library
from .measurements import FAILED_RATIO, Measurements
from .settings import ByPipelines

# The relative probabilities with which the best six candidates become parents.
_PREFERENCE = (6, 4, 3, 2, 2, 2)

_MATES = 20  # A child may also get all changes of one of the best 20 candidates.
_STARTS, _AMONG = 8, 60  # A module starts from 8 of the 60 best joint candidates.
_FEW = 100  # Experience is used after this many different changes were tried.
_CLEARLY = 1e-4  # The minimum gain for which a change counts as helpful.
_PATIENCE = 10  # The maximum number of draws per new candidate.

# The race tries each candidate on some modules. Then it tries candidates on all modules
# if their log(size) is within `_MARGIN` of the best. These are at most `_SHARE` of a
# batch.
_MARGIN, _SHARE = 0.003, 0.2


@dataclass(frozen=True)
class EvolutionSettings(ByPipelines):
    """The settings of a search for pipelines."""

    race: int = 27  # The number of modules on which joint candidates are tried first.
    batch: int = 20  # The number of candidates per wave.
    seed: int = 0


@dataclass(frozen=True)
class Evolved:
    """The result of a search for pipelines."""

    together: tuple[str, ...]  # The joint search's pipelines, in the order found.
    best: dict[Path, tuple[str, float]]  # Maps modules to a pipeline and size / -Oz.


def evolve(
    library: Library,
    measurements: Measurements,
    searched: int,
    settings: EvolutionSettings,
    show: ShowStage = quiet,
    starts: Sequence[Changes] = (),
) -> Evolved:
    """Runs the joint search, and then a search for each of the first modules.

    The joint search starts from -Oz and ``starts``. ``searched`` is the number of
    modules to search individually. Raises InvalidArgument if no module has code.
    """
    modules = measurements.modules
    if not modules:
        raise InvalidArgument("expected modules of which -Oz makes machine code")
    joint = _Joint(measurements, modules[: settings.modules], settings, library)
    joint.begin(starts)
    for number in range(1, settings.together + 1):
        stage = "Evolving for all" if number == 1 else f"Evolving number {number}"
        count = settings.joint if number == 1 else settings.beside
        joint.extend(stage, count, show)
    members = [_Member(module, joint) for module in modules[:searched]]
    total = settings.evaluations * len(members)
    stage = "Evolving for each"
    _for_each(joint, members, lambda done: show(stage, done, total))
    best = {
        member.module: (library.pipeline(changes), ratio)
        for member in members
        for changes, ratio in [member.best]
        if ratio < FAILED_RATIO
    }
    return Evolved(tuple(dict.fromkeys(map(library.pipeline, joint.chosen))), best)


class _Experience:
    """Counts how often each change was tried, and how often it helped."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._tries: Counter[Change] = Counter()
        self._helped: defaultdict[Change, float] = defaultdict(float)
        self._known: list[Change] = []
        self._weights: list[float] = []

    def draw(self, draw: random.Random) -> Change:
        """Draws a random change. Half of the draws prefer changes that have helped."""
        if len(self._tries) < _FEW or draw.random() < 0.5:
            return self.library.draw(draw)
        if not self._weights:
            self._known = list(self._tries)
            # Add constants, so that rarely tried changes have nearly average weights.
            likely = (
                (self._helped[it] + 0.5) / (self._tries[it] + 6) for it in self._known
            )
            self._weights = list(accumulate(share**2 for share in likely))
        return draw.choices(self._known, cum_weights=self._weights)[0]

    def learn(self, child: "_Child", before: float, after: float) -> None:
        """Records whether a child is better. Its new changes share the credit."""
        self._weights = []
        for change in child.added:
            self._tries[change] += 1
            self._helped[change] += (after < before - _CLEARLY) / len(child.added)


@dataclass(frozen=True)
class _Child:
    changes: Changes
    parent: Changes = NONE
    added: tuple[Change, ...] = ()  # The changes that no parent has.


def _children(
    count: int,
    parents: Sequence[Changes],
    mates: Sequence[Changes],
    known: Collection[Changes],
    draw: random.Random,
    experience: _Experience,
) -> list[_Child]:
    """Makes `count` new candidates, or fewer if most draws are already known."""
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
    """Sorts candidates by score, then by their number of changes, then by age."""
    return sorted(scores, key=lambda one: (scores[one], len(one)))


class _Joint:
    """The joint search, which finds pipelines that complement each other."""

    def __init__(
        self,
        measurements: Measurements,
        modules: Sequence[Path],
        settings: EvolutionSettings,
        library: Library,
    ) -> None:
        self.chosen: list[Changes] = []
        self.settings, self.experience = settings, _Experience(library)
        self.measurements, self._modules = measurements, modules
        self._draw = random.Random(f"{settings.seed} for all")
        # Scores of candidates together with the chosen pipelines: on the race's
        # modules, and on all modules.
        self._raced: dict[Changes, float] = {}
        self._tried: dict[Changes, float] = {}
        self._starts: list[_Child] = []

    @property
    def ranked(self) -> list[Changes]:
        """The candidates that were tried on all modules, the best addition first."""
        return _ranked(self._tried)

    def begin(self, starts: Sequence[Changes]) -> None:
        draw, library = self._draw, self.experience.library
        begin = dict.fromkeys([NONE, *starts])
        left = min(self.settings.batch, self.settings.joint) - len(begin)
        self._starts = [_Child(one) for one in begin]
        self._starts += [
            _Child(frozenset({change}), NONE, (change,))
            for change in dict.fromkeys(library.draw(draw) for _ in range(left))
        ]

    def extend(self, stage: str, count: int, show: ShowStage) -> None:
        """Tries ``count`` more candidates, and chooses the best candidate of all."""
        settings = self.settings
        race = self._modules[: settings.race]
        self._raced = self._scores(race, list(self._raced))
        self._tried = self._scores(self._modules, list(self._tried))
        known = len(self._raced)
        children = self._starts[:count] or self._children(count)
        self._starts = []
        while children:
            candidates = [child.changes for child in children]
            self._raced |= self._scores(race, candidates)
            most = (
                min(self._raced[one] for one in [*self._tried, *candidates]) + _MARGIN
            )
            ranked = _ranked({one: self._raced[one] for one in candidates})
            promising = [one for one in ranked if self._raced[one] <= most]
            promising = promising[: max(1, round(settings.batch * _SHARE))]
            self._tried |= self._scores(self._modules, promising)
            for child in children:
                before, after = self._raced[child.parent], self._raced[child.changes]
                self.experience.learn(child, before, after)
            done = len(self._raced) - known
            show(stage, done, count)
            children = self._children(count - done)
        self.chosen.append(self.ranked[0])

    def _children(self, left: int) -> list[_Child]:
        count, mates = min(self.settings.batch, left), _ranked(self._raced)[:_MATES]
        parents, by = self.ranked[: len(_PREFERENCE)], (self._draw, self.experience)
        return _children(count, parents, mates, self._raced, *by)

    def _scores(
        self, modules: Sequence[Path], candidates: Sequence[Changes]
    ) -> dict[Changes, float]:
        """Returns a dict from candidate to its score.

        The score is for a candidate together with the pipelines chosen so far.
        """
        library = self.experience.library
        pipelines = {one: library.pipeline(one) for one in candidates}
        # Do not measure the chosen pipelines again: all modules have tried them.
        beside = [library.pipeline(one) for one in self.chosen]
        wanted = list(dict.fromkeys(pipelines.values()))
        self.measurements.measure(dict.fromkeys(modules, wanted))
        return {
            one: self.measurements.score(modules, [*beside, pipeline])
            for one, pipeline in pipelines.items()
        }


class _Member:
    def __init__(self, module: Path, joint: _Joint) -> None:
        """Starts from the joint pipelines, and from some other good candidates."""
        self.module = module
        self.known: dict[Changes, float] = {}
        self._settings, self._experience = joint.settings, joint.experience
        name = f"{module.parent.name}/{module.name}"
        self._draw = random.Random(f"{joint.settings.seed} {name}")
        among = joint.ranked[:_AMONG]
        starts = self._draw.sample(among, min(_STARTS, len(among)))
        self._starts = list(dict.fromkeys([NONE, *joint.chosen, *starts]))

    @property
    def best(self) -> tuple[Changes, float]:
        best = _ranked(self.known)[0]
        return best, self.known[best]

    def batch(self) -> list[_Child]:
        left = min(self._settings.batch, self._settings.evaluations - len(self.known))
        if not self.known:
            return [_Child(one) for one in self._starts][:left]
        if self.best[1] >= FAILED_RATIO:
            return []  # Give up: all candidates have failed.
        parents, by = _ranked(self.known)[: len(_PREFERENCE)], self._experience
        return _children(left, parents, parents, self.known, self._draw, by)


def _for_each(
    joint: _Joint, members: Sequence[_Member], show: Callable[[int], None]
) -> None:
    """Runs waves until all members have tried all their candidates."""
    measurements, experience = joint.measurements, joint.experience
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
