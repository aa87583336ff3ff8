# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge doctor``: what is available here."""

import itertools

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from mlbridge.doctor import Check, checks
from mlbridge.terminal import console, errors


def doctor() -> None:
    """Show what is available here, with versions, and how to get what is missing.

    Exits with 1 when something is missing without which nothing works.
    """
    found = checks()
    table = Table(box=None, pad_edge=False)
    for column in ("", "", "found", ""):
        table.add_column(column, overflow="fold")
    for group, members in itertools.groupby(found, key=lambda check: check.group):
        for i, check in enumerate(members):
            table.add_row(group if i == 0 else "", *_doctor_row(check))
        table.add_section()
    console.print(table)
    missing = [check.name for check in found if check.found is None and check.required]
    if missing:
        errors.print(f"missing: {', '.join(missing)}", style="bold red")
        raise typer.Exit(1)


def _doctor_row(check: Check) -> tuple[RenderableType, ...]:
    style = "green" if check.found else "red" if check.required else "yellow"
    return (
        Text(check.name),
        Text(check.found or "missing", style),
        Text(check.hint, "dim"),
    )
