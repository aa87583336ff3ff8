# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The common parts of fuzz tests: the log of the rounds, and the summary."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer
from rich.table import Table

from mlbridge.terminal import console, errors

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

R = TypeVar("R", bound="DataclassInstance")
"""A round, which is a dataclass."""
UNWANTED = re.compile(rb"^.*(?:warning|remark|error):.*$", re.MULTILINE)
"""Matches a message that a correct compile does not print, if no option enables
warnings or remarks."""


def logged(
    rounds: Iterable[R], out: Path, problems_of: Callable[[R], Iterable[str]]
) -> list[R]:
    """Returns all rounds. Appends each to a file as JSON, and prints its problems."""
    done = []
    with out.open("a", encoding="utf-8") as log:
        for one in rounds:
            done.append(one)
            print(json.dumps(asdict(one)), file=log, flush=True)
            for problem in problems_of(one):
                errors.print(problem, style="red", soft_wrap=True, markup=False)
    return done


def conclude(title: str, numbers: Mapping[str, int], wrong: str) -> None:
    """Prints numbers by name. Raises typer.Exit if the number of ``wrong`` is not 0."""
    table = Table("result", "number", title=title)
    for name, value in numbers.items():
        table.add_row(name, f"{value:,}")
    console.print(table)
    if numbers[wrong]:
        raise typer.Exit(1)
