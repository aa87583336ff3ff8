# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The consoles to which commands write."""

import os

from rich.console import Console, ConsoleDimensions

_IN_FILES = 1000
"""The width in columns if stdout is a file or a pipe and COLUMNS is not set. Lines of
this length need no breaks."""


class TableConsole(Console):
    """A rich console that does not truncate tables in files and pipes."""

    # mypy reports that Rich's property has a setter, too. No code here uses the setter.
    @property  # type: ignore[misc]
    def size(self) -> ConsoleDimensions:
        """The width and height of the console in characters."""
        found = super().size
        if self.is_terminal:
            return found
        # Rich reads COLUMNS only when it makes a console.
        given = os.environ.get("COLUMNS", "")
        width = int(given) if given.isdecimal() and int(given) else _IN_FILES
        return ConsoleDimensions(width, found.height)


# Disable markup, because names from logs and specs may look like markup.
console = TableConsole(markup=False, highlight=False)
errors = TableConsole(stderr=True, markup=False, highlight=False)
