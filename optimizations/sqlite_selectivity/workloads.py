# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generates databases with skewed and correlated columns, and queries on them.

``retail`` is like TPC-H, with long comments. ``films`` is like the Join Order
Benchmark, with names, titles and notes for conditions with LIKE. Both are drawn from a
seed.
"""

import random
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlbridge.files import replacing

from .tables import Expression, Table, Value, expressions, quoted, read_tables
from .terms import Term, draw_term

Ints = NDArray[np.int64]

_SYLLABLES = "bacedifogukaleminopurasetivozu"
SYLLABLES = [
    *(_SYLLABLES[i : i + 2] for i in range(0, len(_SYLLABLES), 2)),
    *("lan", "mer", "tin", "sol", "dra"),
]


def _skewed(draw: np.random.Generator, count: int, size: int, power: float) -> Ints:
    """Draws numbers from 0 to `size` - 1. Some numbers are much more frequent."""
    weights = 1.0 / np.arange(1, size + 1) ** power
    places = draw.permutation(size)
    return places[draw.choice(size, count, p=weights / weights.sum())]


def _words(draw: np.random.Generator, count: int) -> list[str]:
    """Returns words of two or three syllables."""
    found: dict[str, None] = {}
    while len(found) < count:
        parts = draw.choice(SYLLABLES, draw.integers(2, 4))
        found["".join(parts)] = None
    return list(found)


def _comments(
    draw: np.random.Generator, words: Sequence[str], topics: Ints, length: int
) -> list[str]:
    """Returns texts whose words depend on their topics."""
    count = len(topics)
    common = _skewed(draw, count * length, len(words), 1.0).reshape(count, length)
    own = (topics[:, None] * 37 + draw.integers(0, 12, (count, length))) % len(words)
    chosen = np.where(draw.random((count, length)) < 0.35, own, common)
    return [" ".join(words[i] for i in row) for row in chosen]


def _dates(days: Ints) -> list[str]:
    start = np.datetime64("1992-01-01")
    return [str(day) for day in start + days.astype("timedelta64[D]")]


def _fill(database: sqlite3.Connection, table: str, *columns: Any) -> None:
    plain = [c.tolist() if isinstance(c, np.ndarray) else c for c in columns]
    places = ", ".join("?" * len(plain))
    database.executemany(
        f"insert into {table} values ({places})", zip(*plain, strict=True)
    )


RETAIL = """
create table supplier(s_id integer primary key, s_name text, s_nation text,
  s_balance real, s_comment text);
create table part(p_id integer primary key, p_name text, p_brand text, p_type text,
  p_size int, p_container text, p_price real);
create table customer(c_id integer primary key, c_name text, c_nation text,
  c_segment text, c_balance real, c_comment text);
create table orders(o_id integer primary key, o_customer int references customer,
  o_status text, o_total real, o_date text, o_priority text, o_clerk text,
  o_comment text);
create table item(i_order int references orders, i_part int references part,
  i_supplier int references supplier, i_quantity int, i_price real, i_discount real,
  i_status text, i_shipped text, i_received text, i_mode text, i_comment text);
"""
RETAIL_INDEXES = """
create index orders_customer on orders(o_customer);
create index orders_date on orders(o_date);
create index item_order on item(i_order);
create index item_part on item(i_part);
create index item_supplier on item(i_supplier);
create index item_shipped on item(i_shipped);
create index customer_nation on customer(c_nation);
create index part_brand on part(p_brand);
"""


def _retail(database: sqlite3.Connection, scale: float, seed: int) -> None:
    draw = np.random.default_rng(seed)
    suppliers, parts = int(400 * scale), int(8000 * scale)
    customers, orders = int(6000 * scale), int(40000 * scale)
    items = 4 * orders
    words, nations = _words(draw, 400), _words(draw, 25)
    database.executescript(RETAIL)
    nation = _skewed(draw, suppliers, 25, 0.8)
    _fill(
        *(database, "supplier", range(1, suppliers + 1)),
        [f"Supplier {words[n]} {n:05d}" for n in draw.integers(0, 400, suppliers)],
        [nations[n] for n in nation],
        np.round(draw.normal(4000, 2500, suppliers), 2),
        _comments(draw, words, nation, 7),
    )
    kind = _skewed(draw, parts, 60, 0.9)
    brand = (kind + _skewed(draw, parts, 40, 1.3)) % 45
    size = 1 + (kind * 7 + draw.geometric(0.15, parts)) % 50
    price = np.round(900 + 20 * size + draw.exponential(150, parts), 2)
    _fill(
        *(database, "part", range(1, parts + 1)),
        _comments(draw, words, kind, 3),
        [f"Brand#{n // 9 + 1}{n % 9 + 1}" for n in brand],
        [f"{words[n % 12]} {words[20 + n // 12]} {words[30 + n % 5]}" for n in kind],
        *(size, [f"{words[40 + n % 8]} {words[50 + n % 5]}" for n in size], price),
    )
    nation = _skewed(draw, customers, 25, 1.0)
    segment = (nation + _skewed(draw, customers, 5, 1.5)) % 5
    _fill(
        *(database, "customer", range(1, customers + 1)),
        [f"Customer {words[n]} {n:06d}" for n in draw.integers(0, 400, customers)],
        [nations[n] for n in nation],
        [words[60 + n].upper() for n in segment],
        np.round(draw.normal(2000 + 100 * segment, 2500), 2),
        _comments(draw, words, nation, 8),
    )
    customer = 1 + _skewed(draw, orders, customers, 0.7)
    day = np.minimum(2500, draw.gamma(4.0, 400.0, orders)).astype(np.int64)
    status = np.where(day < 1500, 0, np.where(draw.random(orders) < 0.9, 1, 2))
    urgent = (customer + _skewed(draw, orders, 5, 1.2)) % 5
    _fill(
        *(database, "orders", range(1, orders + 1), customer),
        ["FOP"[n] for n in status],
        np.round(draw.lognormal(10.5, 1.0, orders), 2),
        _dates(day),
        [f"{n + 1}-{words[70 + n].upper()}" for n in urgent],
        [f"Clerk#{n:05d}" for n in _skewed(draw, orders, 500, 0.9)],
        _comments(draw, words, urgent, 9),
    )
    order = np.sort(draw.integers(0, orders, items))
    part = 1 + _skewed(draw, items, parts, 0.7)
    shipped = day[order] + draw.geometric(0.03, items)
    received = shipped + draw.geometric(0.08, items)
    quantity = 1 + (part % 7) * 7 + draw.integers(0, 9, items)
    mode = (urgent[order] + _skewed(draw, items, 7, 1.2)) % 7
    _fill(
        *(database, "item", order + 1, part),
        1 + (part * 13 + draw.integers(0, 4, items)) % suppliers,
        *(quantity, np.round(quantity * price[part - 1], 2)),
        np.round(draw.integers(0, 11, items) / 100, 2),
        [("RAN"[0] if s < 1500 else "RAN"[2]) for s in shipped],
        *(_dates(shipped), _dates(received), [words[80 + n].upper() for n in mode]),
        _comments(draw, words, mode, 4),
    )
    database.executescript(RETAIL_INDEXES)


FILMS = """
create table title(t_id integer primary key, t_title text, t_kind text, t_year int,
  t_votes int);
create table person(n_id integer primary key, n_name text, n_gender text, n_born int);
create table cast_info(ci_title int references title, ci_person int references person,
  ci_role text, ci_order int, ci_note text);
create table company(co_id integer primary key, co_name text, co_country text);
create table title_company(tc_title int references title,
  tc_company int references company, tc_type text, tc_note text);
create table keyword(k_id integer primary key, k_keyword text);
create table title_keyword(tk_title int references title,
  tk_keyword int references keyword);
create table info(in_title int references title, in_type text, in_info text);
"""
FILMS_INDEXES = """
create index title_year on title(t_year);
create index cast_title on cast_info(ci_title);
create index cast_person on cast_info(ci_person);
create index company_country on company(co_country);
create index title_company_title on title_company(tc_title);
create index title_company_company on title_company(tc_company);
create index title_keyword_title on title_keyword(tk_title);
create index title_keyword_keyword on title_keyword(tk_keyword);
create index info_title on info(in_title);
"""


def _films(database: sqlite3.Connection, scale: float, seed: int) -> None:
    draw = np.random.default_rng(seed + 1000)
    titles, people = int(20000 * scale), int(25000 * scale)
    casts, companies = int(120000 * scale), int(3000 * scale)
    keywords = int(4000 * scale)
    words = _words(draw, 600)
    capital = [word.capitalize() for word in words]
    kinds = ["movie", "tv series", "episode", "video", "game", "short"]
    roles = ["actor", "actress", "writer", "producer", "director", "editor", "guest"]
    countries = [f"[{word[:2]}]" for word in words[:40]]
    database.executescript(FILMS)
    kind = _skewed(draw, titles, 6, 1.1)
    year = (2020 - np.minimum(120, draw.exponential(15 + 4 * kind))).astype(np.int64)
    first = _skewed(draw, titles, 600, 0.7)
    second = (first + kind * 50 + draw.integers(0, 80, titles)) % 600
    names = [
        f"The {capital[a]} of {capital[b]}" if a % 3 else f"{capital[b]} {capital[a]}"
        for a, b in zip(first, second, strict=True)
    ]
    votes = (draw.pareto(1.1, titles) * (10 + 20 * (kind == 0))).astype(np.int64)
    _fill(
        *(database, "title", range(1, titles + 1), names),
        *([kinds[n] for n in kind], year, votes),
    )
    family, given = _skewed(draw, people, 600, 0.6), _skewed(draw, people, 300, 1.0)
    gender = [None if n % 10 == 0 else "mf"[int(n % 3 == 1)] for n in given]
    born = 1900 + (given * 3 + draw.integers(0, 40, people)) % 100
    _fill(
        *(database, "person", range(1, people + 1)),
        [f"{capital[a]}, {capital[b]}" for a, b in zip(family, given, strict=True)],
        *(gender, [None if n % 4 == 0 else int(n) for n in born]),
    )
    film = _skewed(draw, casts, titles, 0.6)
    person = _skewed(draw, casts, people, 0.6)
    role = (kind[film] + _skewed(draw, casts, 7, 1.2)) % 7
    notes = [None, "(voice)", "(uncredited)", "(executive producer)", "(as himself)"]
    note = np.where(
        draw.random(casts) < 0.5, 0, (role + draw.integers(0, 2, casts)) % 5
    )
    _fill(
        *(database, "cast_info", film + 1, person + 1, [roles[n] for n in role]),
        draw.geometric(0.1, casts),
        [
            f"{notes[n]} ({words[f % 20]})" if n and f % 7 == 0 else notes[n]
            for n, f in zip(note, film, strict=True)
        ],
    )
    country = _skewed(draw, companies, 40, 1.2)
    suffixes = ["Pictures", "Films", "Television", "Entertainment", "Studio"]
    _fill(
        *(database, "company", range(1, companies + 1)),
        [
            f"{capital[n]} {suffixes[(c + n) % 5]}"
            for n, c in zip(draw.integers(0, 600, companies), country, strict=True)
        ],
        [countries[c] for c in country],
    )
    film = _skewed(draw, 2 * titles, titles, 0.5)
    company = (film * 11 + _skewed(draw, 2 * titles, companies, 0.9)) % companies
    _fill(
        *(database, "title_company", film + 1, company + 1),
        [("distributors", "production companies")[int(f % 3 == 0)] for f in film],
        [
            None if f % 2 else f"({year[f]}) {countries[country[c]]} (theatrical)"
            for f, c in zip(film, company, strict=True)
        ],
    )
    _fill(
        *(database, "keyword", range(1, keywords + 1)),
        _comments(draw, words, draw.integers(0, 50, keywords), 2),
    )
    film = _skewed(draw, 3 * titles, titles, 0.5)
    _fill(
        *(database, "title_keyword", film + 1),
        1 + (kind[film] * 200 + _skewed(draw, 3 * titles, keywords, 0.9)) % keywords,
    )
    film = _skewed(draw, 3 * titles, titles, 0.4)
    types = ["genres", "release dates", "languages", "budget", "rating"]
    kind_of = _skewed(draw, 3 * titles, 5, 0.8)
    values = [
        (words[100 + f % 20].capitalize(), f"USA: {year[f]}", words[130 + f % 9])[t]
        if t < 3
        else str(f * 7919 % 10000)
        for f, t in zip(film, kind_of, strict=True)
    ]
    _fill(database, "info", film + 1, [types[t] for t in kind_of], values)
    database.executescript(FILMS_INDEXES)


WORKLOADS: dict[str, Callable[[sqlite3.Connection, float, int], None]] = {
    "films": _films,
    "retail": _retail,
}


def make_database(workload: str, path: Path, scale: float, seed: int) -> None:
    """Writes a database and its statistics (ANALYZE, without STAT4)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as new:
        new.unlink(missing_ok=True)
        with closing(sqlite3.connect(new)) as database:
            WORKLOADS[workload](database, scale, seed)
            database.commit()
            database.execute("analyze")
            database.commit()


@dataclass(frozen=True)
class Query:
    """A query that was drawn.

    Attributes:
        is_plain: whether all terms compare indexed columns with literals.
    """

    sql: str
    is_plain: bool


class Queries:
    """Draws queries on a database from a seed.

    A query joins up to five tables along foreign keys. Each table has up to three
    terms, whose literals often come from the same row, because users often ask for
    values that exist.
    """

    def __init__(self, path: Path, seed: int) -> None:
        self.draw = random.Random(seed)
        self.tables = {t.name: t for t in read_tables(path, 5000, seed)}
        self.expressions = {n: [*expressions(t)] for n, t in self.tables.items()}
        self.values = {n: self._values(t) for n, t in self.tables.items()}
        self.joins = self._joins(path)

    def _values(self, table: Table) -> dict[str, list[Value]]:
        with closing(table.memory(table.sample)) as made:
            known = self.expressions[table.name]
            names = ", ".join(e.value for e in known)
            rows = made.execute(f"select {names} from {quoted(table.name)}").fetchall()
        return {e.value: [r[i] for r in rows] for i, e in enumerate(known)}

    def _joins(self, path: Path) -> list[tuple[str, str, str, str]]:
        found = []
        with closing(sqlite3.connect(path)) as database:
            for name in self.tables:
                about = database.execute(f"pragma foreign_key_list({quoted(name)})")
                for row in about.fetchall():
                    key = next(c.name for c in self.tables[row[2]].columns if c.is_key)
                    found.append((name, row[3], row[2], key))
        return found

    def _term(self, table: str, row: int, choice: Sequence[Expression]) -> Term:
        expression = self.draw.choice(choice)
        values = self.values[table][expression.value]
        return draw_term(self.draw, expression, values[row], self.draw.choice(values))

    def _choice(self, table: str, *, plain: bool) -> Sequence[Expression]:
        """Returns the expressions to draw from.

        If `plain` is true, these are indexed columns. Otherwise, 75 % of the calls
        return only columns.
        """
        known = self.expressions[table]
        own = [e for e in known if not e.columns[0].is_key]
        columns = [e for e in own if e.is_column]
        if plain:
            return [e for e in known if e.is_column and e.columns[0].is_indexed]
        return columns if columns and self.draw.random() < 0.75 else own

    def _tables(self) -> tuple[list[str], list[str]]:
        """Draws tables that are connected, and the conditions that join them."""
        tables, on = [self.draw.choice([*self.tables])], list[str]()
        wanted = self.draw.choice((1, 2, 2, 3, 3, 4, 5))
        while len(tables) < wanted:
            joins = [j for j in self.joins if (j[0] in tables) != (j[2] in tables)]
            if not joins:
                break
            one, column, other, key = self.draw.choice(joins)
            tables.append(other if one in tables else one)
            on.append(f"{one}.{column} = {other}.{key}")
        return tables, on

    def query(self) -> Query:
        """Draws a query whose result does not depend on the order of rows."""
        plain = self.draw.random() < 0.2
        terms = list[Term]()
        while not terms:
            tables, on = self._tables()
            for table in tables:
                choice = self._choice(table, plain=plain)
                if not choice or self.draw.random() < 0.3:
                    continue
                rows = len(self.tables[table].sample)
                row = self.draw.randrange(rows)
                for _ in range(self.draw.choice((1, 1, 1, 2, 2, 3))):
                    if not choice:
                        break
                    if self.draw.random() < 0.3:
                        row = self.draw.randrange(rows)
                    new = self._term(table, row, choice)
                    terms.append(new)
                    # Put at most one condition on each column.
                    used = new.expression.columns
                    choice = [e for e in choice if e.columns[0] not in used]
        order = [*tables]
        self.draw.shuffle(order)
        where = " and ".join([*on, *dict.fromkeys(term.sql for term in terms)])
        text = f"select {self._result(tables)} from {', '.join(order)} where {where}"
        if "group by" in text:
            result, _, rest = text.partition(" group by ")
            grouped, _, rest = rest.partition(" from ")
            text = f"{result} from {rest} group by {grouped}"
        return Query(text, all(term.is_plain for term in terms))

    def _result(self, tables: Sequence[str]) -> str:
        columns = [c for table in tables for c in self.tables[table].columns]
        one, other = self.draw.choice(columns).name, self.draw.choice(columns).name
        form = self.draw.random()
        if form < 0.5:
            return f"count(*), min({one}), max({other})"
        if form < 0.7:
            return f"count(*), total({one})"
        if form < 0.85:
            return f"{one}, count(*) group by {one}"
        return f"{one}, {other}"
