# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stock SQLite with the extension in compilers/sqlite."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import mlbridge
from programs import BUILD, IS_FULL, ROOT, run_program
from sqlite_queries import SCHEMA, Queries

FOLDER = BUILD / "compilers/sqlite"
EXTENSION, PRELOAD = (
    FOLDER / "mlbridge_sqlite.so",
    FOLDER / "mlbridge_sqlite_preload.so",
)
NO_ADVICE = -1.0

pytestmark = pytest.mark.skipif(
    not EXTENSION.exists() or not shutil.which("sqlite3"),
    reason="the extension is not built: needs libsqlite3-dev and sqlite3",
)


MORE = """
create table event(id integer primary key, start int, end int, left int,
                   desc text collate nocase, untyped);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 60)
insert into event select i, i % 7, i % 11, i % 5, 'Desc' || (i % 3), i from n;
create view noted as select id, note, age from customer;
create virtual table document using fts5(body);
insert into document values ('a red house'), ('a blue car');
"""
"""Tables with keywords as names, with a collation, and without types."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sqlite") / "shop.db"
    run_program(["sqlite3", path], input=SCHEMA + MORE, check=True)
    return path


def shell(
    database: Path, script: str, spec: str = "", preload: Path | None = None
) -> tuple[list[str], str]:
    """Runs a script in SQLite's shell. Returns the lines of stdout, and stderr."""
    env = {**os.environ, "MLBRIDGE_SQLITE_MODEL": spec}
    if preload:
        env["LD_PRELOAD"] = str(preload)
    else:
        script = f".load {EXTENSION}\n{script}"
    done = run_program(
        ["sqlite3", "-bail", database], input=script, check=True, env=env, timeout=1800
    )
    return done.stdout.splitlines(), done.stderr


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def rewritten(database: Path, queries: list[str], spec: str) -> tuple[list[str], str]:
    script = (f"select quote(mlbridge_rewrite({quoted(q)}));" for q in queries)
    lines, said = shell(database, "\n".join(script), spec)
    return [line[1:-1].replace("''", "'") for line in lines], said


def constant(features: mlbridge.Features) -> NDArray[np.float32]:
    return np.full(len(features["tables"]), 0.25, np.float32)


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = f"shm:{tmp_path_factory.mktemp('model') / 'm'}"
    with mlbridge.serving(constant, place):
        yield place


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("select 1 from orders where total > 5", ["total > 5"]),
        ("select 1 from orders where total > 5;", ["total > 5"]),
        ("select 1 from orders where 1 = 1", []),
        ("select 1 from orders where total > ?1", []),
        ("select 1 from orders where nothing > 1", []),
        ("select 1 from nothing where total > 1", []),
        ("select 1 from rich where total > 1", []),
        ("select 1 from orders, customer where total > age", []),
        ("select 1 from orders a, orders b where total > 1 and a.id = 2", ["a.id = 2"]),
        ("select 1 from orders where (id, total) = (1, 2)", []),
        ("select 1 from orders where total > 5 or id = 3", []),
        ("select 1 from orders where (total > 5 or id = 3)", ["(total > 5 or id = 3)"]),
        (
            "select 1 from orders where total between 1 and 2 /* and */"
            " and id in (1, 2)",
            ["total between 1 and 2", "id in (1, 2)"],
        ),
        (
            "select 1 from main.orders as [o x] where [o x].total > 5 and `id` = .5e1",
            ["[o x].total > 5", "`id` = .5e1"],
        ),
        (
            "select 1 from orders o join customer c on c.id = customer_id and age < 9",
            ["age < 9"],
        ),
        (
            "select 1 from orders o left join customer c on c.age < 9"
            " where o.id = 1 and c.id = 2",
            ["o.id = 1"],
        ),
        (
            "select 1 from (select id from orders where total = 1) where id = 3",
            ["total = 1"],
        ),
        (
            "select 1 from customer c where exists (select 1 from orders where"
            " customer_id = c.id and state = 'open') and c.age > 3",
            ["state = 'open'", "c.age > 3"],
        ),
        ("select max(total) from orders where id > 1", ["id > 1"]),
        ("select sum(total) + 1 x from orders where id > 1 group by state", ["id > 1"]),
        # No space is needed between a keyword and a term in brackets.
        (
            "select 1 from orders o join customer c on(o.id=c.id)and(age<9)"
            " where(total > 5)and(o.id < 9)",
            ["(age<9)", "(total > 5)", "(o.id < 9)"],
        ),
        # SQLite accepts some keywords as names.
        ("select 1 from event where start = 1 and end < 3 or left = 2", []),
        (
            "select 1 from event where end < 3 and left = 2 and end not like 'a'",
            ["end < 3", "left = 2", "end not like 'a'"],
        ),
        (
            "select 1 from event e left join orders o on e.left = o.id"
            " where case end when 3 then 1 else end end and left not in (1, 2)"
            " order by desc desc",
            ["case end when 3 then 1 else end end", "left not in (1, 2)"],
        ),
        ("select 1 from main.orders where main.orders.total > 5", None),
        # The text of a subquery without an alias is the name of a column.
        (
            "select (select max(total) from orders where id > 5), exists"
            " (select 1 from orders where id > 5) from item where price > 1",
            ["price > 1"],
        ),
        (
            "select (select max(total) from orders where id > 5) m from item",
            ["id > 5"],
        ),
        (
            "select o.state state, count(*) from orders o where id > 1 group by state",
            ["id > 1"],
        ),
        ("select * from orders where total = (select max(total) from orders)", []),
    ],
)
def test_terms(database: Path, spec: str, query: str, terms: list[str] | None) -> None:
    if terms is None:
        terms = query.partition(" where ")[2].split(" and ")
    lines, said = shell(database, f"select mlbridge_terms({quoted(query)});", spec)
    assert [line for line in lines if line] == [f"{term}: 0.2500" for term in terms]
    assert said == ""
    (new,), _ = rewritten(database, [query], spec)
    assert new.count("likelihood(") == len(terms)
    for term in terms:
        assert f"likelihood({term}, 0.250000000)" in new


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("delete from orders where id = 1", "not a SELECT"),
        ("with x as (select 1) delete from orders", "changes the database"),
        ("select id from orders where total > 5 limit 1", "order of rows"),
        ("select row_number() over () from orders where id > 1", "order of rows"),
        ("select group_concat(id) from orders where id > 1", "order of rows"),
        ("select my_own(id) from orders where id > 1", "order of rows"),
        ("select id, count(*) from orders where id > 1", "any row of a group"),
        ("select id, max(total) from orders group by state", "any row of a group"),
        ("select state from orders group by state having id > 1", "any row of a group"),
        ("select *, count(*) from orders where id > 1", "any row of a group"),
        ("select (select id from item) from orders where id > 1", "several rows"),
        ("select note, count(*) from customer group by note", "collation"),
        ("select id, count(*) from orders where total > 5 group by id", "primary key"),
        ("select total from orders o where total > 5 order by 2 + o.id", "primary key"),
        ("select distinct note from customer", "collation"),
        ("select distinct * from customer", "all columns"),
        # A collation, a view, or a column without a type.
        ("select max(note) from customer where age > 5", "collation"),
        ("select distinct main.customer.note from customer", "collation"),
        ("select distinct desc from event where left > 1", "collation"),
        ("select distinct name collate nocase from customer", "by a collation"),
        ("select max(name collate nocase) from customer", "by a collation"),
        ("select max(n) from (select note n from customer)", "collation"),
        ("select max(note) from (select * from customer)", "all columns"),
        ("select distinct note from noted, orders where total > 5", "a view"),
        ("select max(note) from noted, orders where total > 5", "a view"),
        ("select typeof(untyped) from event group by untyped", "without a type"),
        # Bare columns.
        ("select desc, count(*) from event where left > 1", "any row of a group"),
        ("select end, count(*) from event where left > 1", "any row of a group"),
        ("select left, count(*) from event where id > 1", "any row of a group"),
        ("select not total, count(*) from orders where id > 1", "any row of a group"),
        ("select 1 and total, sum(id) from orders where id > 1", "any row of a group"),
        ("select max(total, 5), count(*) from orders", "any row of a group"),
        ("select total from orders where id > 1 order by count(*)", "any row"),
        ("select id as state, count(*) from orders group by state", "any row"),
        ("select id 'x', count(*) from orders group by 'x'", "any row of a group"),
        (
            "select state = 'Open', count(*) from orders group by state = 'open'",
            "any row of a group",
        ),
        (
            "select total > ?, count(*) from orders group by total > ?",
            "any row of a group",
        ),
        (
            "select name, (select sum(c.age) from orders o) s from customer c",
            "the query around a subquery",
        ),
        # Several rows.
        ("select (select max(id, total) from orders) m from item", "several rows"),
        (
            "select 1 from orders where total is distinct from"
            " (select price from item where amount > 3)",
            "several rows",
        ),
        (
            "select 1 from orders o join customer c on"
            " coalesce(null, (select order_id from item where price > 3)) = c.id",
            "several rows",
        ),
        (
            "select state, count(*) from orders group by state having my_own(id) > 1",
            "order of rows",
        ),
        ("select 1 from orders where (id = 1", "parentheses"),
        (f"select 1 from orders{', on id' * 70}", "too many conditions"),
        ("select 1 from orders where id = 'a", "unknown token"),
    ],
)
def test_statements_that_are_left_as_they_are(
    database: Path, spec: str, query: str, why: str
) -> None:
    (line,), _ = shell(database, f"select mlbridge_terms({quoted(query)});", spec)
    assert line.startswith("left as it is, because ")
    assert why in line
    assert rewritten(database, [query], spec) == ([query], "")


def number_or_text(value: str) -> Any:
    try:
        return f"{float(value):.9g}"
    except ValueError:
        return value


def results(database: Path, queries: list[str]) -> list[list[Any]]:
    """Returns the sorted rows of each query, with floats of 9 digits."""
    script = "".join(f"select '@';\n{query};\n" for query in queries)
    found: list[list[Any]] = []
    for line in shell(database, script)[0]:
        if line == "@":
            found.append([])
        else:
            found[-1].append([number_or_text(value) for value in line.split("|")])
    return [sorted(rows) for rows in found]


POLICIES = 1000 if IS_FULL else 40
"""The number of random policies. Each policy is used for 8 queries."""


def test_random_policies_do_not_change_results(database: Path, tmp_path: Path) -> None:
    draw, generator = np.random.default_rng(0), Queries(0)
    left = 0
    scale = share = 0.0

    def policy(features: mlbridge.Features) -> NDArray[np.float32]:
        """Returns numbers of a narrow or a wide range. Leaves some terms to SQLite."""
        nonlocal left, scale, share
        if left == 0:
            left, scale, share = 8, draw.uniform(0, 8), draw.choice([0, 0.1, 0.5])
        left -= 1
        found = 10 ** draw.uniform(-scale, 0, len(features["tables"]))
        found[draw.random(len(found)) < share] = NO_ADVICE
        return found.astype(np.float32)

    queries = [generator.query() for _ in range(8 * POLICIES)]
    place = f"shm:{tmp_path / 'm'}"
    with mlbridge.serving(policy, place):
        new, said = rewritten(database, queries, place)
    assert said == ""
    assert sum(a != b for a, b in zip(queries, new, strict=True)) > len(queries) / 3
    for query, old_rows, new_rows in zip(
        new, results(database, queries), results(database, new), strict=True
    ):
        assert new_rows == old_rows, query


def test_features(database: Path, tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []

    def policy(features: mlbridge.Features) -> NDArray[np.float32]:
        seen.append({name: np.array(value) for name, value in features.items()})
        return constant(features)

    query = (
        "select 1 from orders o, customer c where o.total between -1 and 2.5"
        " and 'b' < c.name and lower(city) like '%City%' and o.id in (4, 5, 6)"
        " and o.day is not null"
    )
    with mlbridge.serving(policy, f"shm:{tmp_path / 'm'}") as served:
        rewritten(database, [query], f"shm:{tmp_path / 'm'}")
        assert served.statistics.requests == 1
    (found,) = seen
    assert found["tables"].tolist() == [0, 1, 1, 0, 0]
    assert found["operators"].tolist() == [7, 5, 11, 9, 16]
    assert found["operands"].tolist() == [1, 2, 2, 3, 0]
    assert found["values"][[0, 3]].tolist() == [[-1, 0, 2.5, 0], [3, 0, 0, 0]]
    assert found["values"][1].tolist() == [ord("b") / 256, 0, 0, 0]
    assert (found["expressions"] != 0).tolist() == [False, False, True, False, False]
    assert len({*found["columns"][:, 0].tolist()}) == 5
    assert (found["literals"] != 0).sum(axis=1).tolist() == [1, 1, 1, 3, 0]
    assert (found["trigrams"] >= 0).sum(axis=1).tolist() == [0, 0, 2, 0, 0]


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("like '%ity%'", 1),
        # A text between wildcards that is shorter than a trigram is one part. The
        # beginning and the end of a value count as characters.
        ("like '%it%y%'", 2),
        ("like 'C%'", 1),
        ("like '%%'", 0),
        ("like 'C'", 1),
        # A set of characters is a wildcard.
        ("glob '*it[abc]*'", 1),
        ("glob '[^]abcdef]y'", 1),
        ("glob 'Cit[y'", 2),
        (f"like '{'x' * 300}'", 8),
    ],
)
def test_parts_of_patterns(
    database: Path, tmp_path: Path, pattern: str, count: int
) -> None:
    seen: list[int] = []

    def policy(features: mlbridge.Features) -> NDArray[np.float32]:
        seen.append(int((features["trigrams"] >= 0).sum()))
        return constant(features)

    place = f"shm:{tmp_path / 'm'}"
    with mlbridge.serving(policy, place):
        rewritten(database, [f"select 1 from customer where city {pattern}"], place)
    assert seen == [count]


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (np.float32(0.5), "expected a selectivity for each term"),
        ("text", "expected"),
        (np.full(2, np.nan, np.float32), ""),
        (np.full(2, 7, np.float32), ""),
    ],
)
def test_wrong_replies(database: Path, tmp_path: Path, reply: Any, says: str) -> None:
    query = "select 1 from orders where total > 5 and id < 9"
    place = f"shm:{tmp_path / 'm'}"
    with mlbridge.serving(lambda features: reply, place):
        found, said = rewritten(database, [query, query], place)
    assert found == [query, query]
    assert said.count("SQLite plans alone") == bool(says)
    assert says in said


@pytest.mark.parametrize("spec", ["none", "shm:{}/gone?connect=50ms", "nonsense:x"])
def test_sqlite_plans_alone(database: Path, tmp_path: Path, spec: str) -> None:
    query = "select 1 from orders where total > 5"
    found, said = rewritten(database, [query, query], spec.format(tmp_path))
    assert found == [query, query]
    assert said.count("SQLite plans alone") == (spec != "none")


def test_queries_do_not_wait_long(database: Path, tmp_path: Path) -> None:
    query = "select count(*) from orders where id < 3;"
    lines, said = shell(database, query, f"shm:{tmp_path}/gone", PRELOAD)
    assert lines == ["2"]
    assert "within 5 s" in said


def test_an_old_sqlite(database: Path, tmp_path: Path) -> None:
    library = tmp_path / "old.so"
    code = "int sqlite3_libversion_number(void) { return 3023001; }"
    flags = ["-shared", "-fPIC", "-x", "c", "-"]
    run_program(["gcc", *flags, "-o", library], input=code, check=True)
    done = run_program(
        ["sqlite3", database, f".load {EXTENSION}"],
        env={**os.environ, "LD_PRELOAD": str(library)},
    )
    assert "mlbridge_sqlite: expected SQLite 3.24 or newer" in done.stderr


PLAN = """explain query plan
select count(*) from orders where state = 'open' and customer_id = 3;"""


def test_a_program_that_does_not_know(database: Path, tmp_path: Path) -> None:
    def policy(features: mlbridge.Features) -> NDArray[np.float32]:
        return np.array([0.00001, 0.9], np.float32)

    place = f"shm:{tmp_path / 'm'}"
    stock, _ = shell(database, PLAN)
    with mlbridge.serving(policy, place):
        planned, said = shell(database, PLAN, place, PRELOAD)
    assert said == ""
    assert "orders_customer" in stock[-1]
    assert "orders_state" in planned[-1]


ODD = [
    "select /* ' */ count(*) from orders /* ; */ where /*(*/ total > 3 /*)*/",
    "select count(*) from orders where likelihood(total > 3, 0.5) and state = 'open'",
    "with orders as (select 1 id, 9.5 total) select * from orders where total > 1",
    "with a(x) as (select state from orders where id > 5) select x from a where x > ''",
    'select count(*) from orders where state = "open" and total > 3',
    "select count(*) from orders where (state, id) > ('open', 3) and total > 3",
    "select count(*) from customer left join orders o on o.id = age where o.id is null",
    "select count(*) from customer right join orders on age = total where age > 3",
    "select count(*) from orders where case when total > 3 then 1 end and id > 2",
    "select count(*) from orders where total > 9e999 or id < 99999999999999999999",
    "select count(*) from orders where not total between 3 and 10 and id not in ()",
    "select count(*) from orders not indexed where state glob '[^a]*' and total > 0x3",
    "select count(*) from orders where state like '%\\_%' escape '\\' and total > 3",
    "select id from orders where total > 30 union select id from customer",
    f"select count(*) from orders where {'(' * 60}total > 3{')' * 60} and id > 1",
    f"select count(*) from orders where {' and '.join(['total > 3'] * 900)}",
    f"select count(*) from orders where id in ({', '.join(map(str, range(3000)))})",
    "select count(*) from orders o join item i on(o.id=i.order_id)and(price<9)"
    " where(total>5)and(o.id<400)",
    "select id from event where start = 1 and end < 3 or left = 2",
    "select body from document where document = 'red' and body > 'a'",
]


def test_odd_statements(database: Path, spec: str) -> None:
    new, said = rewritten(database, ODD, spec)
    assert said == ""
    for query, before, after in zip(
        ODD, results(database, ODD), results(database, new), strict=True
    ):
        assert before == after, query


def test_a_long_list(database: Path) -> None:
    """The time to rewrite a statement is proportional to the statement's length."""
    query = f"select count(*), 7 in ({'1, ' * 100_000}1) n from orders where id > 1"
    script = f".timer on\nselect length(mlbridge_rewrite({quoted(query)}));"
    lines, _ = shell(database, script, "none")
    found = re.search(r"user (\S+)", lines[-1])
    assert found
    assert float(found[1]) < 2


CHANGES = """create table made as select * from orders where total > 5;
alter table made rename column total to price;
alter table made add column more default 5;
select count(*), sum(more) from made where price > 5 and state = 'open';
alter table made drop column more;
create index made_state on made(state);
analyze;
vacuum;
pragma integrity_check;
select count(*) from sqlite_schema where name like 'made%';
drop table made;"""


def test_the_schema_is_changed_as_without_it(
    database: Path, spec: str, tmp_path: Path
) -> None:
    """SQLite itself prepares statements while the schema is incomplete."""
    said = []
    for preload in (None, PRELOAD):
        copy = tmp_path / f"{preload is None}.db"
        shutil.copy(database, copy)
        said.append(shell(copy, CHANGES, spec, preload))
    assert said[0] == said[1]
    assert said[0][0][-2:] == ["ok", "2"]


def compiled(source: str, executable: Path) -> Path:
    """Compiles a program that uses MLBridgeSQLite.h."""
    file = executable.with_suffix(".c")
    file.write_text(source)
    flags = ["-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'compilers/sqlite'}"]
    run_program(["gcc", *flags, file, "-lsqlite3", "-o", executable], check=True)
    return executable


RUN_ONE = """
#include "MLBridgeSQLite.h"
#include <locale.h>
#include <stdio.h>
int main(int Count, char **Given) {
  sqlite3 *DB;
  sqlite3_stmt *Statement;
  if (!setlocale(LC_ALL, ""))
    return 3;
  sqlite3_open(Given[1], &DB);
  sqlite3_enable_load_extension(DB, 1);
  if (sqlite3_load_extension(DB, Given[2], NULL, NULL) != SQLITE_OK)
    return 4;
  sqlite3_enable_load_extension(DB, 0);
  for (int I = 3; I != Count; ++I) {
    if (mlbridgeSqlitePrepare(DB, Given[I], -1, 0, &Statement, NULL) ||
        (sqlite3_step(Statement) != SQLITE_ROW))
      puts(sqlite3_errmsg(DB));
    sqlite3_finalize(Statement);
  }
  return sqlite3_close(DB);
}
"""
"""Runs statements after the extension was loaded."""


@pytest.mark.skipif(not shutil.which("localedef"), reason="needs localedef")
def test_a_decimal_comma(database: Path, tmp_path: Path) -> None:
    """The features do not depend on the locale of the program."""
    locale = tmp_path / "de_DE.UTF-8"
    run_program(["localedef", "-i", "de_DE", "-f", "UTF-8", locale], check=True)
    seen: list[float] = []

    def policy(features: mlbridge.Features) -> NDArray[np.float32]:
        seen.extend(features["values"][:, 0].tolist())
        return constant(features)

    place = f"shm:{tmp_path / 'm'}"
    env = {**os.environ, "MLBRIDGE_SQLITE_MODEL": place, "LC_ALL": "de_DE.UTF-8"}
    executable = compiled(RUN_ONE, tmp_path / "program")
    query = "select count(*) from orders where total > 2.5 and id < 1e2"
    with mlbridge.serving(policy, place):
        run_program(
            [executable, database, EXTENSION, query],
            check=True,
            env={**env, "LOCPATH": str(tmp_path)},
        )
    assert seen == [2.5, 100]


def test_sql_cannot_choose_a_model(database: Path, spec: str, tmp_path: Path) -> None:
    """A spec can load a library, so it needs the permission to load extensions."""
    executable = compiled(RUN_ONE, tmp_path / "program")
    query = f"select mlbridge_model('{spec}')"
    done = run_program([executable, database, EXTENSION, query], check=True)
    assert "may not load extensions" in done.stdout


def test_a_removed_function(database: Path, spec: str, tmp_path: Path) -> None:
    """The other functions keep the model if a program removes mlbridge_model()."""
    source = RUN_ONE.replace(
        "for (int",
        'sqlite3_create_function(DB, "mlbridge_model", 1, SQLITE_UTF8, NULL, NULL,'
        " NULL, NULL);\n  for (int",
    )
    executable = compiled(source, tmp_path / "program")
    env = {**os.environ, "MLBRIDGE_SQLITE_MODEL": spec, "MALLOC_PERTURB_": "85"}
    query = "select count(*) from orders where total > 5"
    done = run_program([executable, database, EXTENSION, query], check=True, env=env)
    assert done.stdout == done.stderr == ""


def test_a_program_in_c(database: Path, spec: str, tmp_path: Path) -> None:
    program = tmp_path / "program.c"
    program.write_text(
        """
#include "MLBridgeSQLite.h"
#include <stdio.h>
int main(int Count, char **Given) {
  (void)Count;
  sqlite3 *DB;
  sqlite3_stmt *Statement;
  const char *Tail;
  sqlite3_open(Given[1], &DB);
  sqlite3_enable_load_extension(DB, 1);
  for (int I = 0; I != 2; ++I) {
    const char *SQL = "select count(*) from orders where total > 5; select 2";
    if (mlbridgeSqlitePrepare(DB, SQL, -1, 0, &Statement, &Tail) != SQLITE_OK)
      return 1;
    sqlite3_step(Statement);
    printf("%s|%s|%d\\n", sqlite3_sql(Statement), Tail,
           sqlite3_column_int(Statement, 0));
    sqlite3_finalize(Statement);
    if (sqlite3_load_extension(DB, Given[2], NULL, NULL) != SQLITE_OK)
      return 2;
  }
  if (mlbridgeSqlitePrepare(DB, "selec", -1, 0, &Statement, &Tail) == SQLITE_OK)
    return 3;
  printf("%s\\n", sqlite3_errmsg(DB));
  return sqlite3_close(DB);
}
"""
    )
    executable = tmp_path / "program"
    include = f"-I{ROOT / 'compilers/sqlite'}"
    flags = ["-Wall", "-Wextra", "-Werror", include]
    run_program(["gcc", *flags, program, "-lsqlite3", "-o", executable], check=True)
    env = {**os.environ, "MLBRIDGE_SQLITE_MODEL": spec}
    done = run_program([executable, database, EXTENSION], check=True, env=env)
    stock, ours, error = done.stdout.splitlines()
    text, rest, count = stock.rsplit("|", 2)
    assert text == "select count(*) from orders where total > 5;"
    assert rest == " select 2"
    new = text.replace("total > 5", "likelihood(total > 5, 0.250000000)")
    assert ours == f"{new}|{rest}|{count}"
    assert error == 'near "selec": syntax error'
