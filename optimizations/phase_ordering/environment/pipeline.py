# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM's pipelines, from the text for ``opt -passes=`` to trees and back."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

# A place in a tree: the index in the outermost list, then in the list inside, ...
Place: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Manager:
    """A pass manager."""

    text: str  # With its parameters: ``function<eager-inv>``.
    inside: "Tree"  # What it runs, in order.


# Passes with their parameters, and managers.
Tree: TypeAlias = tuple[str | Manager, ...]


def name_of(text: str) -> str:
    """Returns the name of a pass or a manager, without parameters."""
    return text.partition("<")[0]


def parse(text: str) -> Tree:
    """Parses a pipeline."""
    nodes: list[str | Manager] = []
    for element in _split(text):
        manager, bracket, rest = element.partition("(")
        if bracket and rest.endswith(")"):
            nodes.append(Manager(manager, parse(rest[:-1])))
        else:
            nodes.append(element)
    return tuple(nodes)


def _split(text: str) -> Iterator[str]:
    """Splits a pipeline at its commas outside all brackets."""
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
    """Yields all passes of a tree in order, each with its place."""
    for number, node in enumerate(tree):
        at = (*place, number)
        if isinstance(node, Manager):
            yield from passes(node.inside, at)
        else:
            yield at, node


def managers(tree: Tree, place: Place = ()) -> Iterator[tuple[Place, Manager]]:
    """Yields all managers of a tree, outer ones first, each with its place."""
    for number, node in enumerate(tree):
        if isinstance(node, Manager):
            at = (*place, number)
            yield at, node
            yield from managers(node.inside, at)
