# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of the benchmarks, and limits on their results."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table


@dataclass(frozen=True)
class Bound:
    """A result and its upper limit."""

    subject: str
    placement: str
    against: str
    found: float
    limit: float

    @property
    def holds(self) -> bool:
        """True if the result is within the limit."""
        return self.found <= self.limit


def plain_table(title: str, words: Sequence[str], numbers: Sequence[str]) -> Table:
    """Returns a table with columns of words, then columns of numbers."""
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    for column in words:
        table.add_column(column, no_wrap=True)
    for column in numbers:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def number(value: float) -> str:
    """Formats a number with at least three digits and at most two decimals."""
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def bounds_table(found: Sequence[Bound]) -> Table:
    """Returns a table of results and their limits."""
    table = plain_table("limits", ("", "", "against"), ("found", "limit", ""))
    for bound in found:
        table.add_row(
            *(bound.placement, bound.subject, bound.against),
            *(f"{bound.found:.3g}", f"{bound.limit:g}"),
            "[green]holds[/]" if bound.holds else "[red]missed[/]",
        )
    return table
