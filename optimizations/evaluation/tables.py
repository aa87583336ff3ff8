# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads and writes files of measurements, and writes files of results.

A file of measurements has one JSON object for each entry.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mlbridge.errors import InvalidArgument, Malformed

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Row = TypeVar("Row", bound="DataclassInstance")
Case = TypeVar("Case")


def extend_table(
    file: Path,
    missing: Iterable[Case],
    measure: Callable[[Case], Row],
    advance: Callable[[Row], object],
) -> list[Row]:
    """Measures cases, and appends each result to a file as soon as it is known.

    Returns the entries that were added.
    """
    added = []
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        for case in missing:
            entry = measure(case)
            print(json.dumps(asdict(entry)), file=out, flush=True)
            added.append(entry)
            advance(entry)
    return added


def read_table(file: Path, make: Callable[..., Row], command: str) -> Iterator[Row]:
    """Yields the entries of a file. `make` makes an entry from an object.

    Raises InvalidArgument if the file is missing, and Malformed if it is damaged.
    `command` is the command that writes the file.
    """
    if not file.is_file():
        raise InvalidArgument(
            f"{file}: no such file; write it with `mlbridge {command} --out {file}`"
        )
    # Each line is decoded on its own, so that an error names the damaged line.
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        try:
            yield make(**json.loads(line))
        except (ValueError, TypeError, KeyError) as error:
            why = f"no member {error}" if isinstance(error, KeyError) else error
            raise Malformed(f"{file}, line {number}: {why}") from error


def write_json(file: Path | None, value: Any) -> None:
    """Writes a value as JSON, if a file is given. Makes the file's folder."""
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
