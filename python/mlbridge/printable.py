# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Text from outside, for messages, logs and terminals.

Peers and files name things and say things. That may be megabytes long, and may hold
escape sequences that a terminal obeys.
"""

from collections.abc import Iterable

from mlbridge import _core

MOST_WORDS = 1000
"""Bytes of what a peer says, or of the names that it sends."""
MOST_LINES = 100


def name(text: str) -> str:
    """A name or a path: one line, of 200 bytes at most."""
    return _core.printable(text)


def names(texts: Iterable[str]) -> str:
    """Several names in a row, of `MOST_WORDS` bytes at most."""
    return words(", ".join(map(name, texts)))


def words(text: str) -> str:
    """What a peer says: one line, of `MOST_WORDS` bytes at most."""
    return _core.printable(text, MOST_WORDS)


def lines(text: str) -> str:
    """What has several lines, such as a traceback: the first and the last of them."""
    found = text.split("\n")
    if len(found) > MOST_LINES:
        half = MOST_LINES // 2
        found[half:-half] = ["..."]
    return "\n".join(map(words, found))


def whole(text: str) -> str:
    """All of a text, with its lines, for a terminal."""
    # No byte becomes more than the 10 of \u{10ffff}.
    return "\n".join(_core.printable(x, 10 * len(x) + 10) for x in text.split("\n"))
