# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes text from peers and files safe for messages, logs and terminals.

Such text may be megabytes long and may contain terminal escape sequences.
"""

from collections.abc import Iterable

from mlbridge import _core

MOST_WORDS = 1000
"""The maximum bytes of a peer's message, or of the names that it sends."""
MOST_LINES = 100


def name(text: str) -> str:
    """A name or a path as one line of at most 200 bytes."""
    return _core.printable(text)


def names(texts: Iterable[str]) -> str:
    """A list of names of at most `MOST_WORDS` bytes."""
    return words(", ".join(map(name, texts)))


def words(text: str) -> str:
    """A peer's message as one line of at most `MOST_WORDS` bytes."""
    return _core.printable(text, MOST_WORDS)


def lines(text: str) -> str:
    """The first and the last lines of a long text, such as a traceback."""
    found = text.split("\n")
    if len(found) > MOST_LINES:
        half = MOST_LINES // 2
        found[half:-half] = ["..."]
    return "\n".join(map(words, found))


def whole(text: str) -> str:
    """All lines of a text, for a terminal."""
    # An escaped byte has at most 10 characters, as in \u{10ffff}.
    return "\n".join(_core.printable(x, 10 * len(x) + 10) for x in text.split("\n"))
