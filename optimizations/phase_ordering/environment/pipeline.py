# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM's pipelines, as ``opt -passes=`` has them, as trees and back."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

# Where in a tree: the number in the outermost list, then in the one in it, ...
Place: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Manager:
    """A pass manager, and what it runs."""

    text: str  # With its parameters: ``function<eager-inv>``.
    inside: "Tree"  # What it runs, in that order.


# Passes with their parameters, and managers, one after the other.
Tree: TypeAlias = tuple[str | Manager, ...]


def name_of(text: str) -> str:
    """Of a pass or a manager, without parameters."""
    return text.partition("<")[0]


def parse(text: str) -> Tree:
    """The tree of a pipeline."""
    nodes: list[str | Manager] = []
    for element in _split(text):
        manager, bracket, rest = element.partition("(")
        if bracket and rest.endswith(")"):
            nodes.append(Manager(manager, parse(rest[:-1])))
        else:
            nodes.append(element)
    return tuple(nodes)


def _split(text: str) -> Iterator[str]:
    """The elements of a pipeline, at its commas outside of all brackets."""
    depth = start = 0
    for i, c in enumerate(text):
        depth += (c in "(<") - (c in ")>")
        if c == "," and depth == 0:
            yield text[start:i]
            start = i + 1
    if text:
        yield text[start:]


def render(tree: Iterable[str | Manager]) -> str:
    """The text of a tree."""
    return ",".join(
        f"{node.text}({render(node.inside)})" if isinstance(node, Manager) else node
        for node in tree
    )


def passes(tree: Tree, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """All passes of a tree, in their order, and where they are."""
    for number, node in enumerate(tree):
        at = (*place, number)
        if isinstance(node, Manager):
            yield from passes(node.inside, at)
        else:
            yield at, node


def managers(tree: Tree, place: Place = ()) -> Iterator[tuple[Place, Manager]]:
    """All managers of a tree, the outer ones first, and where they are."""
    for number, node in enumerate(tree):
        if isinstance(node, Manager):
            at = (*place, number)
            yield at, node
            yield from managers(node.inside, at)
