# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes text from peers and files safe to print.

The text may be megabytes long, and may contain terminal escape sequences.
"""

from collections.abc import Collection, Iterable
from itertools import islice

from mlbridge import _core

MOST_WORDS = 1000
"""The maximum number of bytes to print of a message from a peer."""
MOST_LINES = 100


def name(text: str) -> str:
    """Returns a name or a path as one line of at most 200 bytes."""
    return _core.printable(text)


def names(texts: Iterable[str]) -> str:
    """Returns a list of names as one line of at most `MOST_WORDS` bytes."""
    return words(", ".join(map(name, texts)))


def few_names(texts: Collection[str]) -> str:
    """Returns the first five names in quotes, and the number of further names."""
    shown = ", ".join(f"'{name(text)}'" for text in islice(texts, 5)) or "none"
    return f"{shown} and {len(texts) - 5} more" if len(texts) > 5 else shown


def words(text: str) -> str:
    """Returns a message from a peer as one line of at most `MOST_WORDS` bytes."""
    return _core.printable(text, MOST_WORDS)


def lines(text: str) -> str:
    """Returns the first and last lines of a long text, for example a traceback."""
    found = text.split("\n")
    if len(found) > MOST_LINES:
        half = MOST_LINES // 2
        found[half:-half] = ["..."]
    return "\n".join(map(words, found))


def whole(text: str) -> str:
    """Returns all lines of a text, safe for a terminal."""
    # The limit never truncates: an escape has at most 10 characters (\u{10ffff}).
    return "\n".join(_core.printable(x, 10 * len(x) + 10) for x in text.split("\n"))
