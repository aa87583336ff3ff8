# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares a database with its description from the training of a model."""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mlbridge.errors import InvalidArgument, Malformed

from .tables import Table, Value, read_tables

KEY = "sqlite-selectivity.tables"
"""The key of the tables' description in the model's metadata."""

DECILES = 10
MOST_TEXT = 60
SHARE = 0.1
"""A column has drifted if the share of nulls, or of values up to one of the old
deciles, has changed by more than this."""
ROWS = 2.0
"""A table has drifted if its number of rows has changed by more than this factor."""


@dataclass(frozen=True)
class Drift:
    """A change in a table's number of rows, or in the values of a column.

    Attributes:
        amount: for rows, the factor. For values, the change of a share.
    """

    table: str
    column: str
    text: str
    amount: float

    @property
    def is_large(self) -> bool:
        """Whether the model should be trained again."""
        return self.amount > (SHARE if self.column else ROWS)


def profile(tables: Sequence[Table]) -> str:
    """Describes tables for the metadata of a model, as JSON."""
    described = {}
    for table in tables:
        columns = {}
        for i, column in enumerate(table.columns):
            given, nulls = _values(table, i)
            at = np.linspace(0, max(0, len(given) - 1), DECILES + 1).astype(int)
            limits = [_short(given[k]) for k in at[1:-1]] if given else []
            columns[column.name] = {"nulls": nulls, "limits": _shares(given, limits)}
        described[table.name] = {"rows": table.rows, "columns": columns}
    return json.dumps({"tables": described})


def _values(table: Table, number: int) -> tuple[list[Any], float]:
    """Returns a column's values in order, and the share of nulls."""
    at = table.stored.index(table.columns[number].name)
    given = [row[at] for row in table.sample]
    kept = sorted(
        value
        for value in given
        if value is not None
        and isinstance(value, str) == (table.columns[number].kind != "number")
    )
    return kept, 1 - len(kept) / len(given)


def _short(value: Value) -> Value:
    return value[:MOST_TEXT] if isinstance(value, str) else value


def _shares(given: Sequence[Any], limits: Sequence[Any]) -> list[list[Any]]:
    """Returns each limit, the share of values below it, and the share up to it."""
    count = max(1, len(given))
    return [
        [limit, bisect_left(given, limit) / count, bisect_right(given, limit) / count]
        for limit in limits
    ]


def drifts(database: Path, model: Path, rows: int, seed: int) -> Iterator[Drift]:
    """Yields the differences between the tables of a database and of the training.

    Raises InvalidArgument if the file has no description of tables.
    """
    import onnx
    from google.protobuf.message import (  # type: ignore[import-untyped]
        DecodeError,
    )

    try:
        loaded = onnx.load(str(model), load_external_data=False)
    except DecodeError as error:
        raise Malformed(f"{model}: expected an ONNX model: {error}") from error
    entries = {entry.key: entry.value for entry in loaded.metadata_props}
    if KEY not in entries:
        raise InvalidArgument(
            f"{model}: expected a model of `mlbridge train sqlite-selectivity`, found"
            f" no metadata {KEY}"
        )
    then = json.loads(entries[KEY])["tables"]
    now = {table.name: table for table in read_tables(database, rows, seed)}
    for name in sorted({*then, *now}):
        if name not in then or name not in now:
            what = "is new" if name in now else "is empty or missing"
            yield Drift(name, "", f"the table {what}", float("inf"))
        else:
            yield from _of_table(then[name], now[name])


def _of_table(then: dict[str, Any], now: Table) -> Iterator[Drift]:
    before, after = max(1, then["rows"]), max(1, now.rows)
    factor = max(before, after) / min(before, after)
    yield Drift(now.name, "", f"{before} rows, now {after}", factor)
    for i, column in enumerate(now.columns):
        known = then["columns"].get(column.name)
        if known is None:
            yield Drift(now.name, column.name, "is new", 1.0)
            continue
        given, nulls = _values(now, i)
        amount = abs(nulls - known["nulls"])
        text = f"{known['nulls']:.0%} null, now {nulls:.0%}"
        limits = [limit for limit, _, _ in known["limits"]]
        is_text = column.kind != "number"
        if any(isinstance(limit, str) != is_text for limit in limits):
            yield Drift(now.name, column.name, "has another type", 1.0)
            continue
        for old, new in zip(known["limits"], _shares(given, limits), strict=True):
            for was, is_now in zip(old[1:], new[1:], strict=True):
                if abs(was - is_now) > amount:
                    amount = abs(was - is_now)
                    text = f"{was:.0%} up to {old[0]!r}, now {is_now:.0%}"
        yield Drift(now.name, column.name, text, amount)
