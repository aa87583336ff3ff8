# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of the benchmarks' look, and limits that hold or do not."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table


@dataclass(frozen=True)
class Bound:
    """Something that a row is to stay below."""

    subject: str
    placement: str
    against: str
    found: float
    limit: float

    @property
    def holds(self) -> bool:
        """Whether it does."""
        return self.found <= self.limit


def plain_table(title: str, words: Sequence[str], numbers: Sequence[str]) -> Table:
    """A table of the benchmarks' look, with columns of words and then of numbers."""
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    for column in words:
        table.add_column(column, no_wrap=True)
    for column in numbers:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def number(value: float) -> str:
    """With three digits at least, and two behind the point at most."""
    decimals = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{decimals}f}"


def bounds_table(found: Sequence[Bound]) -> Table:
    """Which limits hold."""
    table = plain_table("limits", ("", "", "against"), ("found", "limit", ""))
    for bound in found:
        table.add_row(
            bound.placement,
            bound.subject,
            bound.against,
            f"{bound.found:.3g}",
            f"{bound.limit:g}",
            "[green]holds[/]" if bound.holds else "[red]missed[/]",
        )
    return table
