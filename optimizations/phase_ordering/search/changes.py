# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changes of LLVM's own -Oz pipeline: what a search over whole pipelines is made of.

A candidate is a set of them. What may be changed is data, in ``changes.json``; every
set of changes makes a pipeline that LLVM takes.
"""

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from mlbridge.errors import InvalidArgument, Malformed, SchemaMismatch

from ..environment.pipeline import (
    Manager,
    Place,
    Tree,
    managers,
    name_of,
    parse,
    passes,
    render,
)

# It lets a search put in passes that LLVM, or a compiler built on it, runs by default:
# at another level (argpromotion, callsite-splitting), for another target (sink, slsr,
# nary-reassociate), before code is generated (loop-reduce, consthoist, mergeicmps) or
# for another language (mergefunc). What is off everywhere (gvn-hoist, newgvn, lnicm,
# iroutliner, hotcoldsplit, attributor) is tested less, and is not in it. ``derive.py``
# writes the rest of the file.
LIBRARY = Path(__file__).with_name("changes.json")

_ANALYSES = ("invalidate", "require")

# How often a change by chance is one of these; else it is between modules' passes.
_DROPS, _REPLACEMENTS, _IN_FUNCTIONS = 0.40, 0.10, 0.35


class Kind(StrEnum):
    """What is done."""

    DROP = "drop"
    INSERT = "insert"
    REPLACE = "replace"


@dataclass(frozen=True, order=True)
class Change:
    """One thing that is done to the pipeline."""

    kind: Kind
    # The pass that is dropped or replaced, or the one before which something is
    # inserted; one past the last of a list is its end.
    at: Place
    text: str = ""  # What is inserted, or what is there instead.


# A candidate. Of several changes of one pass a drop counts, else the first.
Changes = frozenset[Change]

NONE: Changes = frozenset()


@dataclass(frozen=True)
class Library:
    """The pipeline, and what may be done to it."""

    prologue: str  # What runs before it: see `ActionSpace`.
    tree: Tree
    # Names of passes that are left as they are: they change no code, or the prologue
    # has done what they do.
    kept: frozenset[str]
    # By the name of a pass, its texts with other parameters.
    variants: Mapping[str, tuple[str, ...]]
    function: tuple[str, ...]  # What may be inserted in lists of function passes.
    module: tuple[str, ...]  # What may be inserted in the outermost list.

    @classmethod
    def load(cls, path: Path = LIBRARY) -> "Library":
        """What is in a file.

        Raises:
            InvalidArgument: there is none.
            Malformed, SchemaMismatch: it is something else.
        """
        try:
            root: Any = json.loads(path.read_text(encoding="utf-8"))
            return cls(
                root["prologue"],
                parse(root["pipeline"]),
                frozenset(root["kept"]),
                {name: tuple(texts) for name, texts in root["variants"].items()},
                tuple(root["function"]),
                tuple(root["module"]),
            )
        except OSError as error:
            raise InvalidArgument(f"{path}: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise Malformed(f"{path}: expected JSON: {error}") from error
        except (KeyError, TypeError, AttributeError) as error:
            raise SchemaMismatch(
                f"{path}: expected a library of changes, as changes.json is one:"
                f" {error!r}"
            ) from error

    @cached_property
    def droppable(self) -> tuple[Change, ...]:
        """Each pass that may be left out."""
        return tuple(
            Change(Kind.DROP, at)
            for at, text in passes(self.tree)
            if name_of(text) not in self.kept
        )

    @cached_property
    def replaceable(self) -> tuple[tuple[Place, tuple[str, ...]], ...]:
        """Where passes are that there are variants of, and the other ones."""
        found = []
        for at, text in passes(self.tree):
            variants = self.variants.get(name_of(text), ())
            others = tuple(variant for variant in variants if variant != text)
            if others and name_of(text) not in self.kept:
                found.append((at, others))
        return tuple(found)

    @cached_property
    def function_lists(self) -> tuple[tuple[Place, int], ...]:
        """The lists of function passes, and how many are in each.

        One with nothing that may be dropped is there for analyses.
        """
        dropped = {change.at[:-1] for change in self.droppable}
        return tuple(
            (at, len(manager.inside))
            for at, manager in managers(self.tree)
            if name_of(manager.text) == "function" and at in dropped
        )

    @cached_property
    def module_places(self) -> tuple[Place, ...]:
        """Where something may be inserted in the outermost list."""
        analyses = {
            number
            for number, node in enumerate(self.tree)
            if all(name_of(text) in _ANALYSES for _, text in passes((node,)))
        }
        # What follows an analysis needs it.
        return tuple(
            (number,)
            for number in range(len(self.tree) + 1)
            if number - 1 not in analyses
        )

    def draw(self, draw: random.Random) -> Change:
        """A change by chance."""
        kind = draw.random()
        if kind < _DROPS:
            return draw.choice(self.droppable)
        kind -= _DROPS
        if kind < _REPLACEMENTS:
            at, others = draw.choice(self.replaceable)
            return Change(Kind.REPLACE, at, draw.choice(others))
        kind -= _REPLACEMENTS
        if kind < _IN_FUNCTIONS:
            lists = self.function_lists
            # The long ones have more places, and the short ones run first, on more.
            weights = [length**0.5 for _, length in lists]
            ((at, length),) = draw.choices(lists, weights)
            place = (*at, draw.randrange(length + 1))
            return Change(Kind.INSERT, place, draw.choice(self.function))
        return Change(
            Kind.INSERT, draw.choice(self.module_places), draw.choice(self.module)
        )

    def pipeline(self, changes: Iterable[Change] = NONE) -> str:
        """The pipeline with such changes."""
        instead: dict[Place, str] = {}
        inserted: dict[Place, list[str]] = {}
        # Drops are first.
        for change in sorted(changes):
            if change.kind is Kind.INSERT:
                inserted.setdefault(change.at, []).append(change.text)
            else:
                instead.setdefault(change.at, change.text)
        return render(_changed(self.tree, instead, inserted))

    def changes_of(self, pipeline: str) -> Changes:
        """Changes that make a pipeline, few where it is close to ours.

        Passes of the same name and managers of the same text stay where that touches
        the fewest passes.
        """
        return frozenset(_joined(_difference(self.tree, parse(pipeline)).changes))


def _changed(
    tree: Tree,
    instead: Mapping[Place, str],
    inserted: Mapping[Place, list[str]],
    place: Place = (),
) -> Tree:
    """A tree with other passes, without managers that have nothing left to run."""
    nodes: list[str | Manager] = []
    for number, node in enumerate(tree):
        at = (*place, number)
        nodes += inserted.get(at, ())
        if isinstance(node, Manager):
            inside = _changed(node.inside, instead, inserted, at)
            if inside:
                nodes.append(Manager(node.text, inside))
        elif instead.get(at, node):
            nodes.append(instead.get(at, node))
    return (*nodes, *inserted.get((*place, len(tree)), ()))


@dataclass(frozen=True)
class _Difference:
    """Changes of a list, and how many passes they touch."""

    changes: tuple[Change, ...] = ()
    cost: int = 0

    def __add__(self, other: "_Difference") -> "_Difference":
        return _Difference(self.changes + other.changes, self.cost + other.cost)


def _difference(ours: Tree, theirs: Tree, place: Place = ()) -> _Difference:
    """The one that touches the fewest passes: an edit distance of trees."""
    row = [_Difference()]
    for node in theirs:
        row.append(row[-1] + _insertion(node, (*place, 0)))
    for number, node in enumerate(ours):
        at, after = (*place, number), (*place, number + 1)
        drop = _drop(node, at)
        above, row = row, [row[0] + drop]
        for column, other in enumerate(theirs):
            ways = [above[column + 1] + drop, row[-1] + _insertion(other, after)]
            same = _replacement(node, other, at)
            if same is not None:
                ways.insert(0, above[column] + same)
            row.append(min(ways, key=lambda way: way.cost))
    return row[-1]


def _drop(node: str | Manager, at: Place) -> _Difference:
    found = tuple(Change(Kind.DROP, (*at, *inner[1:])) for inner, _ in passes((node,)))
    return _Difference(found, len(found))


def _insertion(node: str | Manager, at: Place) -> _Difference:
    change = Change(Kind.INSERT, at, render((node,)))
    return _Difference((change,), sum(1 for _ in passes((node,))))


def _replacement(
    node: str | Manager, other: str | Manager, at: Place
) -> _Difference | None:
    """What makes one the other, if both have the same name."""
    if isinstance(node, Manager) and isinstance(other, Manager):
        return (
            _difference(node.inside, other.inside, at)
            if node.text == other.text
            else None
        )
    if isinstance(node, Manager) or isinstance(other, Manager):
        return None
    if node == other:
        return _Difference()
    if name_of(node) != name_of(other):
        return None
    return _Difference((Change(Kind.REPLACE, at, other),), 1)


def _joined(changes: Iterable[Change]) -> Iterator[Change]:
    """What is inserted at one place, one after the other, as one change."""
    for (kind, at), group in groupby(changes, lambda change: (change.kind, change.at)):
        if kind is Kind.INSERT:
            yield Change(kind, at, ",".join(change.text for change in group))
        else:
            yield from group
