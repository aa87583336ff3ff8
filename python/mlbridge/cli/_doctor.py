# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge doctor``: shows which parts are installed on this machine."""

import itertools

import typer
from rich.table import Table
from rich.text import Text

from mlbridge.doctor import checks
from mlbridge.terminal import console, errors

_MOST_COLUMNS = 100


def doctor() -> None:
    """List the installed parts, and how to install the missing ones.

    The command exits with 1 if a required part is missing.
    """
    found = checks()
    # In a file or a pipe, do not break paths.
    wraps = console.is_terminal
    table = Table(box=None, pad_edge=False)
    table.add_column()
    table.add_column(overflow="fold", max_width=22 if wraps else None)
    table.add_column("found", overflow="fold", max_width=30 if wraps else None)
    table.add_column("purpose, or how to install it", overflow="fold")
    for group, members in itertools.groupby(found, key=lambda check: check.group):
        for i, check in enumerate(members):
            style = "green" if check.found else "red" if check.required else "yellow"
            table.add_row(
                group if i == 0 else "",
                Text(check.name),
                Text(check.found or "missing", style),
                Text(check.hint, "dim" if check.found else ""),
            )
        table.add_section()
    width = min(_MOST_COLUMNS, console.width) if wraps else None
    console.print(table, width=width)
    absent = [check for check in found if check.found is None]
    if optional := [check.name for check in absent if not check.required]:
        console.print(f"absent, but optional: {', '.join(optional)}", width=width)
    if missing := [check.name for check in absent if check.required]:
        errors.print(f"missing: {', '.join(missing)}", style="bold red")
        raise typer.Exit(1)
