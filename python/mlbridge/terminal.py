# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where commands write."""

import os

from rich.console import Console, ConsoleDimensions

_IN_FILES = 160
"""Columns where nobody says how many there are: enough for the numbers of tables."""


class TableConsole(Console):
    """A console of rich whose tables are whole in files and pipes, too."""

    # Rich's property can be set, too, which nobody does here.
    @property  # type: ignore[misc]
    def size(self) -> ConsoleDimensions:
        """How wide, and how high, what is printed may be."""
        found = super().size
        if self.is_terminal or "COLUMNS" in os.environ:
            return found
        return ConsoleDimensions(_IN_FILES, found.height)


# Names from logs and specs are shown as they are, whatever they look like.
console = TableConsole(markup=False, highlight=False)
errors = TableConsole(stderr=True, markup=False, highlight=False)
