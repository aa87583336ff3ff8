# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changes to clang's -Oz pipeline, for a search over whole pipelines.

A candidate is a set of changes. ``changes.json`` lists the possible changes. Every set
gives a pipeline that LLVM accepts.
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

# Passes are only inserted if LLVM or another compiler runs them by default: at another
# level (argpromotion, callsite-splitting), for another target (sink, slsr,
# nary-reassociate), before code generation (loop-reduce, consthoist, mergeicmps) or for
# another language (mergefunc). Other passes, for example newgvn and hotcoldsplit, are
# not well tested. These lists are written by hand. ``action_spaces/derive.py`` makes
# the rest of the file.
LIBRARY = Path(__file__).with_name("changes.json")

_ANALYSES = ("invalidate", "require")

# The probability of each kind of random change. With the remaining probability, a
# change inserts a module pass.
_DROPS, _REPLACEMENTS, _IN_FUNCTIONS = 0.40, 0.10, 0.35


class Kind(StrEnum):
    """The kind of a change."""

    DROP = "drop"
    INSERT = "insert"
    REPLACE = "replace"


@dataclass(frozen=True, order=True)
class Change:
    """One change to the pipeline."""

    kind: Kind
    at: Place  # The pass to drop or replace, or the place before which to insert.
    text: str = ""  # The passes to insert, or the replacement.


# A candidate. If a candidate has several changes to one pass, the drop is applied, or
# else the first change.
Changes = frozenset[Change]

NONE: Changes = frozenset()


@dataclass(frozen=True)
class Library:
    """The pipeline, and the possible changes to the pipeline."""

    prologue: str  # See `ActionSpace`.
    tree: Tree
    kept: frozenset[str]  # The names of passes that must not be changed.
    variants: Mapping[str, tuple[str, ...]]  # Maps names to passes with parameters.
    function: tuple[str, ...]  # The passes to insert in lists of function passes.
    module: tuple[str, ...]  # The passes to insert in the outermost list.

    @classmethod
    def load(cls, path: Path = LIBRARY) -> "Library":
        """Reads a file. Raises InvalidArgument, Malformed or SchemaMismatch."""
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
                f"{path}: expected a library such as changes.json: {error!r}"
            ) from error

    @cached_property
    def droppable(self) -> tuple[Change, ...]:
        """The changes that drop one pass. Passes in `kept` are not dropped."""
        return tuple(
            Change(Kind.DROP, at)
            for at, text in passes(self.tree)
            if name_of(text) not in self.kept
        )

    @cached_property
    def replaceable(self) -> tuple[tuple[Place, tuple[str, ...]], ...]:
        """The places of passes that have variants, each with the other variants."""
        found = []
        for at, text in passes(self.tree):
            variants = self.variants.get(name_of(text), ())
            others = tuple(variant for variant in variants if variant != text)
            if others and name_of(text) not in self.kept:
                found.append((at, others))
        return tuple(found)

    @cached_property
    def function_lists(self) -> tuple[tuple[Place, int], ...]:
        """The lists of function passes that may be changed, each with its length."""
        dropped = {change.at[:-1] for change in self.droppable}
        return tuple(
            (at, len(manager.inside))
            for at, manager in managers(self.tree)
            if name_of(manager.text) == "function" and at in dropped
        )

    @cached_property
    def module_places(self) -> tuple[Place, ...]:
        """The places in the outermost list at which a pass may be inserted."""
        analyses = {
            number
            for number, node in enumerate(self.tree)
            if all(name_of(text) in _ANALYSES for _, text in passes((node,)))
        }
        # Insert nothing after an analysis, because the next pass needs its result.
        places = range(len(self.tree) + 1)
        return tuple((number,) for number in places if number - 1 not in analyses)

    def draw(self, draw: random.Random) -> Change:
        """Draws a random change."""
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
            # Weight each list by the square root of its length: long lists have more
            # places, but run later in the pipeline.
            weights = [length**0.5 for _, length in lists]
            ((at, length),) = draw.choices(lists, weights)
            place = (*at, draw.randrange(length + 1))
            return Change(Kind.INSERT, place, draw.choice(self.function))
        place = draw.choice(self.module_places)
        return Change(Kind.INSERT, place, draw.choice(self.module))

    def pipeline(self, changes: Iterable[Change] = NONE) -> str:
        """Returns the changed pipeline as text."""
        instead: dict[Place, str] = {}
        inserted: dict[Place, list[str]] = {}
        # Sort the changes, so that a drop comes before other changes of the pass.
        for change in sorted(changes):
            if change.kind is Kind.INSERT:
                inserted.setdefault(change.at, []).append(change.text)
            else:
                instead.setdefault(change.at, change.text)
        return render(_changed(self.tree, instead, inserted))

    def changes_of(self, pipeline: str) -> Changes:
        """Returns the smallest set of changes that makes a given pipeline."""
        return frozenset(_joined(_difference(self.tree, parse(pipeline)).changes))


def _changed(
    tree: Tree,
    instead: Mapping[Place, str],
    inserted: Mapping[Place, list[str]],
    place: Place = (),
) -> Tree:
    """Returns a changed tree, without managers that have become empty."""
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
    """A sequence of changes, and the number of passes that are changed."""

    changes: tuple[Change, ...] = ()
    cost: int = 0

    def __add__(self, other: "_Difference") -> "_Difference":
        return _Difference(self.changes + other.changes, self.cost + other.cost)


def _difference(ours: Tree, theirs: Tree, place: Place = ()) -> _Difference:
    """Returns the cheapest changes from one tree to another, as an edit distance."""
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
    """Returns the changes from one node to another, or None if the names differ."""
    if isinstance(node, Manager) and isinstance(other, Manager):
        same = node.text == other.text
        return _difference(node.inside, other.inside, at) if same else None
    if isinstance(node, Manager) or isinstance(other, Manager):
        return None
    if node == other:
        return _Difference()
    is_variant = name_of(node) == name_of(other)
    return _Difference((Change(Kind.REPLACE, at, other),), 1) if is_variant else None


def _joined(changes: Iterable[Change]) -> Iterator[Change]:
    """Joins consecutive insertions at the same place to one change."""
    for (kind, at), group in groupby(changes, lambda change: (change.kind, change.at)):
        if kind is Kind.INSERT:
            yield Change(kind, at, ",".join(change.text for change in group))
        else:
            yield from group
