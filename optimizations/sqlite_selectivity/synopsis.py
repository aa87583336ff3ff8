# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Summarises the values of expressions: quantiles, frequent values, trigrams, a sample.

The summaries are constants of the model. The hash function is the same as in
compilers/sqlite/Tokens.c and Rewrite.c.
"""

import struct
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlbridge.errors import InvalidArgument
from mlbridge_optimizations.show import quiet

from .features import Rows
from .tables import Expression, Table, Value, expressions, quoted

QUANTILES = 128
FREQUENT = 64
SAMPLE = 256
TRIGRAMS, SHORT = 512, 256
BUCKETS = TRIGRAMS + SHORT
"""The number of hashes of trigrams, plus the number of hashes of one or two characters.
See Rewrite.c."""
MOST_TRIGRAMS = 200
COLUMNS = 1000
"""The number of expressions that one query evaluates. SQLite's limit is 2000."""

_PRIME, _START, _MASK = 16777619, 2166136261, (1 << 32) - 1


def hash_bytes(text: bytes) -> int:
    """Returns FNV-1a of bytes in lower case."""
    found = _START
    for byte in text.lower():
        found = (found ^ byte) * _PRIME & _MASK
    return found


def hash_of(value: float | str) -> int:
    """Returns the hash of a literal, as an int32."""
    if isinstance(value, str):
        text = value.encode("utf-8", "surrogateescape")[:256]
    else:
        text = struct.pack("<d", float(value) + 0.0)
    found = hash_bytes(text)
    return found - (1 << 32) if found >> 31 else found


def codes_of(values: Sequence[float | str]) -> NDArray[np.float64]:
    """Returns a pair of numbers per value, [n, 2]. Pairs sort like the values.

    A text's pair depends only on its first 12 bytes.
    """
    if not values or not isinstance(values[0], str):
        found = np.zeros((len(values), 2))
        found[:, 0] = values
        return found
    texts = [str(v).encode("utf-8", "surrogateescape")[:12] for v in values]
    padded = b"".join(text.ljust(12, b"\0") for text in texts)
    digits = np.frombuffer(padded, np.uint8).reshape(-1, 2, 6)
    found = digits @ (256.0 ** -np.arange(1, 7))
    return np.asarray(found, np.float64)


_trigrams: dict[bytes, int] = {}


def trigrams_of(text: str) -> set[int]:
    """Returns the hashes of a text's substrings of one, two and three characters.

    The beginning and the end of the text count as characters.
    """
    marked = b"\2" + text.encode("utf-8", "surrogateescape").lower() + b"\3"
    found = set()
    for i in range(min(len(marked), MOST_TRIGRAMS)):
        for gram in (marked[i : i + 1], marked[i : i + 2], marked[i : i + 3]):
            if gram not in _trigrams:
                _trigrams[gram] = _bucket(gram)
            found.add(_trigrams[gram])
    return found


def _bucket(gram: bytes) -> int:
    found = hash_bytes(gram)
    return found % TRIGRAMS if len(gram) == 3 else TRIGRAMS + found % SHORT


@dataclass
class Synopsis:
    """The summaries of c expressions. Of these expressions, t have trigrams.

    Attributes:
        keys: int32 [c, 3], hashes of two columns and of the expression.
        texts: float32 [c], 1 for texts, 0 for numbers.
        indexed: float32 [c], 1 for the first column of an index.
        places: int64 [c], the row in the tables of trigrams, 0 for none.
        quantiles: float64 [c, QUANTILES, 2], the codes of values in order.
        frequent: int32 [c, FREQUENT], hashes of frequent values.
        shares: float32 [c, FREQUENT], the frequent values' shares of all rows.
        rare: float32 [c], the mean share of a value that is not frequent.
        nulls: float32 [c], the share of rows that are null.
        trigrams: float32 [t + 1, BUCKETS + 1], the share of texts with the trigram.
        ranks: float32 [c, SAMPLE], the number of quantiles up to the value of each
            sampled row, -1 for null.
        present: int32 [t + 1, BUCKETS + 1, SAMPLE / 32], a bit for each row of the
            sample, which is 1 if the row's text has the trigram.
    """

    keys: NDArray[np.int32]
    texts: NDArray[np.float32]
    indexed: NDArray[np.float32]
    places: NDArray[np.int64]
    quantiles: NDArray[np.float64]
    frequent: NDArray[np.int32]
    shares: NDArray[np.float32]
    rare: NDArray[np.float32]
    nulls: NDArray[np.float32]
    trigrams: NDArray[np.float32]
    ranks: NDArray[np.float32]
    present: NDArray[np.int32]


@dataclass
class Known:
    """An expression of a table, with its values in the table's sample."""

    table: Table
    expression: Expression
    key: NDArray[np.int32]
    values: list[Value]


def known_of(
    tables: Sequence[Table],
    ask: Callable[[Sequence[str]], list[Rows | None]],
    advance: Callable[[], None] = quiet,
) -> list[Known]:
    """Returns the expressions that the extension recognises, and their values.

    Args:
        tables: the tables with samples.
        ask: returns the features of statements, like `features_of`.
        advance: is called after each table.
    """
    found = []
    for table in tables:
        listed = [*expressions(table)]
        features = ask([_statement(table, one) for one in listed])
        for one, asked, values in zip(
            listed, features, _values(table, listed), strict=True
        ):
            if asked is not None:
                key = np.concatenate([asked["columns"][0], asked["expressions"]])
                found.append(Known(table, one, key.astype(np.int32), values))
        advance()
    if not found:
        raise InvalidArgument(
            "expected columns that mlbridge_sqlite.so recognises, found none; names"
            " have at most 255 bytes"
        )
    return found


def _values(table: Table, listed: Sequence[Expression]) -> list[list[Value]]:
    """Returns each expression's values in the sample."""
    found: list[list[Value]] = []
    with closing(table.memory(table.sample)) as made:
        for begin in range(0, len(listed), COLUMNS):
            names = ", ".join(one.value for one in listed[begin:][:COLUMNS])
            cursor = made.execute(f"select {names} from {quoted(table.name)}")
            found += [[*map(_plain, column)] for column in zip(*cursor, strict=True)]
    return found


def _plain(value: Value) -> Value:
    """Returns a value, or None if it is infinite or NaN."""
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def _statement(table: Table, expression: Expression) -> str:
    right = expression.right or ("0" if expression.kind == "number" else "''")
    return f"select 1 from {quoted(table.name)} where {expression.left} > {right}"


def summarise(
    known: Sequence[Known], seed: int, advance: Callable[[], None] = quiet
) -> Synopsis:
    """Summarises expressions. `advance` is called after each."""
    draw = np.random.default_rng(seed)
    count = len(known)
    what = [one.expression for one in known]
    places = _places(known)
    tables = max(places) + 1
    rows = {}
    for one in known:
        size = len(one.values)
        if one.table.name not in rows:
            every = draw.permutation(size)
            rows[one.table.name] = np.resize(every, SAMPLE)
    found = Synopsis(
        np.stack([one.key for one in known]),
        np.array([one.kind != "number" for one in what], np.float32),
        np.array([one.is_column and one.columns[0].is_indexed for one in what], "f4"),
        np.array(places, np.int64),
        np.zeros((count, QUANTILES, 2)),
        np.zeros((count, FREQUENT), np.int32),
        np.zeros((count, FREQUENT), np.float32),
        np.zeros(count, np.float32),
        np.zeros(count, np.float32),
        np.ones((tables, BUCKETS + 1), np.float32),
        np.full((count, SAMPLE), -1, np.float32),
        np.full((tables, BUCKETS + 1, SAMPLE // 32), -1, np.int32),
    )
    for i, one in enumerate(known):
        has_trigrams = places[i] > max(places[:i], default=0)
        _fill(found, i, one.values, rows[one.table.name], has_trigrams=has_trigrams)
        advance()
    return found


def _places(known: Sequence[Known]) -> list[int]:
    """Returns each expression's row in the tables of trigrams, or 0 for none.

    A column of texts has a row. An expression that only changes the case uses the row
    of its column.
    """
    own: dict[tuple[str, str], int] = {}
    found = []
    for one in known:
        what, column = one.expression, one.expression.columns[0]
        key = (one.table.name, column.name)
        if what.is_column and what.kind != "number":
            own[key] = len(own) + 1
        is_case = what.left in [
            f"{f}({quoted(column.name)})" for f in ("lower", "upper")
        ]
        found.append(own.get(key, 0) if what.is_column or is_case else 0)
    return found


def _fill(
    found: Synopsis,
    i: int,
    values: Sequence[Value],
    rows: NDArray[np.int64],
    *,
    has_trigrams: bool,
) -> None:
    """Summarises one expression."""
    given = [value for value in values if value is not None]
    found.nulls[i] = 1 - len(given) / len(values)
    if not given:
        return
    codes = codes_of(given)
    order = np.lexsort((codes[:, 1], codes[:, 0]))
    at = ((np.arange(QUANTILES) + 0.5) * len(given) / QUANTILES).astype(np.int64)
    quantiles = codes[order[at]]
    found.quantiles[i] = quantiles
    counts = Counter(given)
    top = counts.most_common(FREQUENT)
    for k, (value, number) in enumerate(top):
        found.frequent[i, k] = hash_of(value)
        found.shares[i, k] = number / len(values)
    rest = len(given) - sum(number for _, number in top)
    found.rare[i] = rest / max(1, len(counts) - len(top)) / len(values)
    sampled = [values[row] for row in rows]
    valid = np.array([value is not None for value in sampled])
    found.ranks[i, valid] = _ranks(
        quantiles, codes_of([value for value in sampled if value is not None])
    )
    if has_trigrams:
        _fill_trigrams(found, int(found.places[i]), given, sampled)


def _ranks(
    quantiles: NDArray[np.float64], codes: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Returns how many quantiles are up to each code, [n]."""
    high, low = quantiles[None, :, 0], quantiles[None, :, 1]
    first, second = codes[:, :1], codes[:, 1:]
    upto = (high < first) | ((high == first) & (low <= second))
    return np.asarray(upto.sum(axis=1), np.float32)


def _fill_trigrams(
    found: Synopsis, row: int, given: Sequence[Value], sampled: Sequence[Value]
) -> None:
    step = max(1, len(given) // 20000)
    chosen = Counter(map(str, given[::step]))
    shares = np.zeros(BUCKETS)
    for text, number in chosen.items():
        shares[[*trigrams_of(text)]] += number
    found.trigrams[row, :BUCKETS] = shares / max(1, chosen.total())
    present = np.zeros((BUCKETS, SAMPLE), np.uint8)
    for r, value in enumerate(sampled):
        if value is not None:
            present[[*trigrams_of(str(value))], r] = 1
    found.present[row, :BUCKETS] = np.packbits(present, axis=1, bitorder="little").view(
        "<i4"
    )
