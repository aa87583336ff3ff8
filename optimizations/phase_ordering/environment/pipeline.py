# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Converts LLVM's pipelines between text for ``opt -passes=`` and trees."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

# The path to a node in a tree: an index for each level, outermost level first.
Place: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Manager:
    """A pass manager and the passes inside."""

    text: str  # The name with parameters, for example ``function<eager-inv>``.
    inside: "Tree"  # The passes and managers to run, in order.


# A list of passes, as text with parameters, and of managers.
Tree: TypeAlias = tuple[str | Manager, ...]


def name_of(text: str) -> str:
    """Returns the name of a pass or a manager, without parameters."""
    return text.partition("<")[0]


def parse(text: str) -> Tree:
    """Parses the text of a pipeline."""
    nodes: list[str | Manager] = []
    for element in _split(text):
        manager, bracket, rest = element.partition("(")
        if bracket and rest.endswith(")"):
            nodes.append(Manager(manager, parse(rest[:-1])))
        else:
            nodes.append(element)
    return tuple(nodes)


def _split(text: str) -> Iterator[str]:
    """Splits a pipeline at each comma that is not inside brackets."""
    depth = start = 0
    for i, c in enumerate(text):
        depth += (c in "(<") - (c in ")>")
        if c == "," and depth == 0:
            yield text[start:i]
            start = i + 1
    if text:
        yield text[start:]


def render(tree: Iterable[str | Manager]) -> str:
    """Returns the text of a tree."""
    return ",".join(
        f"{node.text}({render(node.inside)})" if isinstance(node, Manager) else node
        for node in tree
    )


def passes(tree: Tree, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """Yields all passes of a tree in the order in which they run, with their places."""
    for number, node in enumerate(tree):
        at = (*place, number)
        if isinstance(node, Manager):
            yield from passes(node.inside, at)
        else:
            yield at, node


def managers(tree: Tree, place: Place = ()) -> Iterator[tuple[Place, Manager]]:
    """Yields all managers of a tree with their places, outer managers first."""
    for number, node in enumerate(tree):
        if isinstance(node, Manager):
            at = (*place, number)
            yield at, node
            yield from managers(node.inside, at)
