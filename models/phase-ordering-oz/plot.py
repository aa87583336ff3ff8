# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws held-out.png from the card's table of held-out programs.

Draws the rows that have an interval. Omits the random sequence, which would stretch
the axis.
"""

import re
from pathlib import Path

from mlbridge_optimizations.phase_ordering.evaluation.report import Interval, Row, draw

FOLDER = Path(__file__).parent
PROGRAMS = ("cadical", "gawk", "sqlite3", "zstd")


def rows(card: str) -> list[Row]:
    """The rows of the table of held-out programs that have an interval."""
    found = []
    for line in card.splitlines():
        cells = [cell.strip(" *") for cell in line.split("|")[1:-1]]
        interval = (
            re.fullmatch(r"([\d.]+) to ([\d.]+)", cells[3]) if len(cells) == 8 else None
        )
        if interval and "random sequence" not in line:
            name, mean = cells[0].removeprefix("the "), float(cells[2])
            numbers = Interval(mean, float(interval[1]), float(interval[2]))
            ratios = zip(PROGRAMS, map(float, cells[4:]), strict=True)
            found.append((name, numbers, list(ratios)))
    return found


if __name__ == "__main__":
    draw(FOLDER / "held-out.png", rows((FOLDER / "README.md").read_text()))
