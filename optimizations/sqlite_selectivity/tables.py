# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the tables of a SQLite database, and draws samples of their rows."""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mlbridge.errors import InvalidArgument, Malformed

Kind = Literal["number", "text", "date"]
Value = float | int | str | None

MOST_PAIRS = 15
"""The maximum number of column pairs per table that expressions combine."""

_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def quoted(name: str) -> str:
    """Returns a name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: Value) -> str:
    """Returns a value as SQL. A text in SQL cannot have NUL, which is left out."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("\0", "").replace("'", "''") + "'"
    return repr(value)


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        kind: the kind of the values. A date is a text that begins like 2024-12-31.
        is_key: whether other tables refer to the column, or it refers to other tables.
        is_indexed: whether the column is the first column of an index.
    """

    name: str
    kind: Kind
    is_key: bool
    is_indexed: bool


@dataclass(frozen=True)
class Expression:
    """An expression that terms compare: a column, or a function of one or two columns.

    Attributes:
        left: the SQL that is compared with literals, or with `right`.
        right: a column, or an empty string. With a column, `value` is the sign of the
            comparison: -1, 0 or 1.
        kind: the kind of the values.
    """

    left: str
    kind: Kind
    columns: tuple[Column, ...]
    right: str = ""

    @property
    def value(self) -> str:
        """The SQL of the expression's value in a row."""
        if not self.right:
            return self.left
        return f"({self.left} > {self.right}) - ({self.left} < {self.right})"

    @property
    def is_column(self) -> bool:
        """Whether this is a column alone."""
        return len(self.columns) == 1 and self.left == quoted(self.columns[0].name)


@dataclass
class Table:
    """A table and a sample of its rows.

    Attributes:
        rows: the number of rows of the whole table.
        create: the statement that creates the table.
        sample: rows in random order. They have the values of all columns in `stored`.
        stored: the names of the columns that are not generated.
    """

    name: str
    rows: int
    create: str
    stored: list[str]
    sample: list[tuple[Value, ...]]
    columns: list[Column] = field(default_factory=list)

    def memory(self, sample: Sequence[tuple[Value, ...]]) -> sqlite3.Connection:
        """Returns a database in memory that has only this table, with these rows."""
        made = sqlite3.connect(":memory:")
        made.execute(self.create)
        names = ", ".join(map(quoted, self.stored))
        places = ", ".join("?" * len(self.stored))
        made.executemany(
            f"insert into {quoted(self.name)} ({names}) values ({places})", sample
        )
        return made

    @property
    def is_portable(self) -> bool:
        """Whether `memory` works, which needs all collations and functions."""
        try:
            self.memory(self.sample).close()
        except sqlite3.Error:
            return False
        return True


def connect(path: Path) -> sqlite3.Connection:
    """Opens a database read-only. Raises InvalidArgument if this fails."""
    if not path.is_file():
        raise InvalidArgument(f"there is no database {path}")
    try:
        opened = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        opened.execute("select count(*) from sqlite_master")
    except sqlite3.Error as error:
        raise InvalidArgument(
            f"{path}: expected a database of SQLite: {error}"
        ) from error
    # Replace bytes that are not UTF-8.
    opened.text_factory = lambda text: text.decode("utf-8", "replace")
    return opened


def read_tables(path: Path, most_rows: int, seed: int) -> list[Table]:
    """Reads the tables of a database that have rows.

    The sample of a table has at most `most_rows` rows. These tables are left out:
    virtual tables, tables of SQLite itself, and tables whose collations or functions
    this process does not have.
    """
    random = np.random.default_rng(seed)
    found = []
    with closing(connect(path)) as database:
        made = database.execute(
            "select name, sql from sqlite_master where type = 'table' and"
            " sql not like 'create virtual%' and name not like 'sqlite\\_%' escape '\\'"
            " order by name"
        ).fetchall()
        for name, create in made:
            try:
                table = _table(database, name, create, most_rows, random)
            except sqlite3.Error as error:
                raise Malformed(f"{path}: table {name}: {error}") from error
            if table.sample and table.columns and table.is_portable:
                found.append(table)
    if not found:
        raise InvalidArgument(
            f"{path}: expected tables with rows that stock SQLite can read, found none"
        )
    return found


def _table(
    database: sqlite3.Connection,
    name: str,
    create: str,
    most_rows: int,
    random: np.random.Generator,
) -> Table:
    about = database.execute(f"pragma table_xinfo({quoted(name)})").fetchall()
    stored = [column[1] for column in about if column[6] == 0]
    names = ", ".join(map(quoted, stored))
    rows = database.execute(f"select count(*) from {quoted(name)}").fetchone()[0]
    chosen = random.permutation(rows)[:most_rows]
    wanted = np.zeros(rows, bool)
    wanted[chosen] = True
    cursor = database.execute(f"select {names} from {quoted(name)}")
    sample = [row for row, wants in zip(cursor, wanted, strict=False) if wants]
    order = random.permutation(len(sample))
    table = Table(name, rows, create, stored, [sample[i] for i in order])
    keys, indexed = _keys(database, name, about)
    for i, column in enumerate(stored):
        kind = _kind([row[i] for row in table.sample[:2000]])
        if kind:
            table.columns.append(
                Column(column, kind, column in keys, column in indexed)
            )
    return table


def _keys(
    database: sqlite3.Connection, table: str, about: list[tuple[Any, ...]]
) -> tuple[set[str], set[str]]:
    """Returns the names of keys, and of the first columns of indexes."""
    primary = [column[1] for column in about if column[5]]
    keys = {*primary} if len(primary) == 1 else set()
    references = database.execute(f"pragma foreign_key_list({quoted(table)})")
    keys |= {row[3] for row in references}
    indexed = {*primary[:1]}
    for index in database.execute(f"pragma index_list({quoted(table)})").fetchall():
        first = database.execute(f"pragma index_info({quoted(index[1])})").fetchone()
        if first and first[2]:
            indexed.add(first[2])
    return keys, indexed


def _kind(values: Sequence[Any]) -> Kind | None:
    """Returns the kind of a column, or None if its values are of several kinds."""
    given = [value for value in values if value is not None]
    if not given:
        return None
    if all(isinstance(value, (int, float)) for value in given):
        return "number"
    if not all(isinstance(value, str) for value in given):
        return None
    return "date" if all(map(_DATE.match, given)) else "text"


def expressions(table: Table) -> Iterator[Expression]:
    """Yields the expressions that a model of a table knows."""
    for column in table.columns:
        name = quoted(column.name)
        yield Expression(name, column.kind, (column,))
        if column.is_key:
            continue
        forms: list[tuple[str, Kind]] = []
        if column.kind == "number":
            # SQLite has no absolute value of the smallest integer.
            at = table.stored.index(column.name)
            if all(row[at] != -(1 << 63) for row in table.sample):
                forms = [(f"abs({name})", "number")]
        elif column.kind == "text":
            forms = [(f"{word}({name})", "text") for word in ("lower", "upper")]
            forms += [(f"length({name})", "number")]
            forms += [(f"substr({name}, 1, {n})", "text") for n in range(1, 5)]
        else:
            parts = ("1, 4", "1, 7", "6, 2")
            forms = [(f"substr({name}, {part})", "text") for part in parts]
            forms += [(f"strftime('{f}', {name})", "text") for f in ("%Y", "%m")]
        for left, kind in forms:
            yield Expression(left, kind, (column,))
    yield from _pairs(table)


def _pairs(table: Table) -> Iterator[Expression]:
    """Yields expressions of two columns of one kind."""
    given = [column for column in table.columns if not column.is_key]
    pairs = [
        (one, other)
        for one in given
        for other in given
        if one is not other and one.kind == other.kind
    ]
    if len(pairs) > 2 * MOST_PAIRS:
        return
    for one, other in pairs:
        first, second = quoted(one.name), quoted(other.name)
        yield Expression(first, "number", (one, other), right=second)
        if one.kind == "number":
            yield Expression(f"{first} - {second}", "number", (one, other))
            yield Expression(f"{first} + {second}", "number", (one, other))
            yield Expression(f"{first} * {second}", "number", (one, other))
        elif one.kind == "date":
            days = f"julianday({first}) - julianday({second})"
            yield Expression(days, "number", (one, other))
