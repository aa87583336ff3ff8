# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of a report's page."""

from collections.abc import Sequence
from dataclasses import dataclass

from .published import figure_of
from .schema import Row, View

PUBLISHED = "published"
"""The title of a column of published figures."""


@dataclass(frozen=True)
class PageTable:
    """A table of the page. `numbers` are the indices of columns to align right."""

    caption: str
    titles: list[str]
    rows: list[list[str]]
    numbers: set[int]


def view_table(part: str, view: View, rows: Sequence[Row]) -> PageTable | None:
    """Returns a view's table, or None if no row has the view's first column.

    A column of published figures follows our column.
    """
    wanted = view.rows(rows)
    # Other rows of the same step may have other columns.
    columns = [
        c for c in view.columns if any(c.value(row) is not None for row in wanted)
    ]
    if not wanted or view.columns[0] not in columns:
        return None
    titles, numbers, cells = list[str](), set[int](), [list[str]() for _ in wanted]

    def add(title: str, values: Sequence[str], *, is_text: bool) -> None:
        if not is_text:
            numbers.add(len(titles))
        titles.append(title)
        for row, value in zip(cells, values, strict=True):
            row.append(value)

    for column in columns:
        add(column.title, [column.cell(row) for row in wanted], is_text=column.is_text)
        found = [figure_of(part, column.key, row) for row in wanted]
        if any(found):
            values = [f"{one.value:g}" if one else "-" for one in found]
            add(PUBLISHED, values, is_text=False)
    return PageTable(view.caption, titles, cells, numbers)
