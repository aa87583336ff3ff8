# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The consoles that commands write to."""

import os

from rich.console import Console, ConsoleDimensions

_IN_FILES = 160
"""Columns of a file or pipe, unless COLUMNS is set: wide enough for our tables."""


class TableConsole(Console):
    """A rich console that does not truncate tables in files and pipes."""

    # Rich's property also has a setter, which is unused here.
    @property  # type: ignore[misc]
    def size(self) -> ConsoleDimensions:
        """The width and height available to printed text."""
        found = super().size
        if self.is_terminal or "COLUMNS" in os.environ:
            return found
        return ConsoleDimensions(_IN_FILES, found.height)


# Names from logs and specs may look like markup; print them literally.
console = TableConsole(markup=False, highlight=False)
errors = TableConsole(stderr=True, markup=False, highlight=False)
