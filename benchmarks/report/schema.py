# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The structure of a report: parts, their commands, and the tables of their rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlbridge_benchmarks.common.tables import number

Row = Mapping[str, Any]

MLBRIDGE = "mlbridge"


@dataclass(frozen=True)
class Step:
    """A command whose measured rows are kept.

    Attributes:
        name: the name of the step's files.
        command: the words of the command. The first is `MLBRIDGE` or a script of the
            checkout. {json}, {plot} and {out} are replaced by paths of the step.
        quick: options for a quick report. They replace options of the command, or are
            added.
        timed: a row that describes a command without JSON. The command's duration is
            added to this row.
    """

    name: str
    command: tuple[str, ...]
    quick: tuple[str, ...] = ()
    timed: Row | None = None

    @property
    def has_rows(self) -> bool:
        """True if the command writes its rows to a file."""
        return "{json}" in self.command

    def words(self, *, quick: bool) -> tuple[str, ...]:
        """Returns the words of the command, with placeholders."""
        if not quick:
            return self.command
        kept, rest = list[str](), list(self.command)
        while rest:
            word = rest.pop(0)
            if word.startswith("--") and word in self.quick:
                del rest[0]  # The value.
            else:
                kept.append(word)
        return (*kept, *self.quick)


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        title: the column's heading.
        key: the key in a row, such as ``faster.total`` for a key of a nested object.
        is_text: true if the cells are words.
    """

    title: str
    key: str
    is_text: bool = False

    def value(self, row: Row) -> Any:
        """Returns the value in a row, or None if the row lacks the key."""
        found: Any = row
        for part in self.key.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        return found

    def cell(self, row: Row) -> str:
        """Returns the text of a row's cell."""
        value = self.value(row)
        if value in (None, ""):
            return ""
        if isinstance(value, float):
            return number(value)
        return f"{value:,}" if isinstance(value, int) else str(value)


@dataclass(frozen=True)
class View:
    """A table of the rows of steps.

    Attributes:
        steps: the names of the steps.
        caption: the caption of the table.
        columns: the columns. The first column identifies a row for the published
            figures.
        only: maps keys to the values that a row must have.
        having: a key that a row must have.
    """

    steps: tuple[str, ...]
    caption: str
    columns: tuple[Column, ...]
    only: Row | None = None
    having: str = ""

    def rows(self, rows: Sequence[Row]) -> list[Row]:
        """Returns the rows to show."""
        wanted = (self.only or {}).items()
        return [
            row
            for row in rows
            if all(row.get(key) == value for key, value in wanted)
            and (not self.having or self.having in row)
        ]


@dataclass(frozen=True)
class OptionalRow:
    """A row that needs additional software.

    Attributes:
        key: a key of the rows.
        value: the value of the key in this row.
        why: why the row may be missing, for readers of a page without the row.
    """

    key: str
    value: str
    why: str

    def is_missing(self, rows: Sequence[Row]) -> bool:
        """Returns true if there are rows, but not this row."""
        return bool(rows) and all(row.get(self.key) != self.value for row in rows)


@dataclass(frozen=True)
class Part:
    """A table or a figure of the paper.

    Attributes:
        name: the value of ``--part``.
        place: the table or figure of the paper, such as "Table 3".
        title: what the table or figure shows.
        text: one sentence about our measurement.
        steps: the commands, in order.
        views: the tables to show.
        optional: the rows that need additional software.
        not_done: why nothing is measured, for a part without steps.
    """

    name: str
    place: str
    title: str
    text: str
    steps: tuple[Step, ...] = ()
    views: tuple[View, ...] = ()
    optional: tuple[OptionalRow, ...] = ()
    not_done: str = ""
