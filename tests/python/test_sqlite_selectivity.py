# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of selectivities: training on a database, drift, and queries."""

import json
import math
import re
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs scripts/make-venv train")

import torch

from mlbridge.errors import InvalidArgument, Malformed
from mlbridge_optimizations.sqlite_selectivity import drift, networks, workloads
from mlbridge_optimizations.sqlite_selectivity.features import features_of, find_header
from mlbridge_optimizations.sqlite_selectivity.learning import pool_of
from mlbridge_optimizations.sqlite_selectivity.measure import (
    STOCK,
    System,
    build,
    opened,
)
from mlbridge_optimizations.sqlite_selectivity.settings import LearningOptions
from mlbridge_optimizations.sqlite_selectivity.synopsis import (
    codes_of,
    hash_of,
    known_of,
    trigrams_of,
)
from mlbridge_optimizations.sqlite_selectivity.tables import read_tables
from programs import BUILD, FULL, ROOT, run_cli, run_program

EXTENSION = BUILD / "compilers/sqlite/mlbridge_sqlite.so"
SOURCE = ROOT / "build/workloads/sqlite3-amalgamation"
pytestmark = pytest.mark.skipif(
    not EXTENSION.exists() or not shutil.which("sqlite3"),
    reason="the extension is not built: needs libsqlite3-dev and sqlite3",
)
ROWS = 4000
SMALL = ("--terms", "120", "--conjunctions", "300", "--epochs", "6", "--share", "1")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table in which the state determines the city. 2 % of notes have `needle`."""
    path = tmp_path_factory.mktemp("sqlite") / "shop.db"
    draw = np.random.default_rng(0)
    state = draw.choice(5, ROWS, p=[0.6, 0.2, 0.1, 0.06, 0.04])
    word = np.where(draw.random(ROWS) < 0.02, "needle", "hay")
    with closing(sqlite3.connect(path)) as made:
        made.execute(
            "create table sale(id integer primary key, state text, city text,"
            " total real, day text, note text)"
        )
        made.execute("create index sale_day on sale(day)")
        made.executemany(
            "insert into sale values (?, ?, ?, ?, ?, ?)",
            [
                (
                    i,
                    f"state{state[i]}",
                    f"city{state[i]}",
                    round(float(draw.exponential(100)), 2),
                    f"20{20 + i % 5}-{i % 12 + 1:02d}-01",
                    f"some {word[i]} here {i % 97}",
                )
                for i in range(ROWS)
            ],
        )
        made.commit()
    return path


@pytest.fixture(scope="module")
def model(database: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    assert "90 %" in run_cli(
        "train", "sqlite-selectivity", database, "--out", folder, *SMALL
    )
    assert {"curve.csv", "curve.png", "model.onnx"} <= {
        p.name for p in folder.iterdir()
    }
    return folder / "model.onnx"


def estimates(database: Path, model: Path, condition: str) -> list[float]:
    sql = f"select 1 from sale where {condition}"
    done = run_program(
        ["sqlite3", database],
        input=f".load {EXTENSION}\nselect mlbridge_model('onnx:{model}');\n"
        f"select mlbridge_terms('{sql.replace(chr(39), chr(39) * 2)}');",
        check=True,
    )
    found = re.findall(r": (0\.\d+|1\.0+|no advice)$", done.stdout, re.M)
    return [-1.0 if one == "no advice" else float(one) for one in found]


@pytest.mark.parametrize(
    ("condition", "shares"),
    [
        ("state = 'state3'", [0.06]),
        ("total > 300", [0.05]),
        ("total between 100 and 200", [0.23]),
        ("note like '%needle%'", [0.02]),
        ("strftime('%m', day) = '03'", [0.083]),
        ("state = 'state2' and note like '%needle%'", [0.1, 0.02]),
    ],
)
def test_estimates(
    database: Path, model: Path, condition: str, shares: list[float]
) -> None:
    found = estimates(database, model, condition)
    assert len(found) == len(shares)
    for one, share in zip(found, shares, strict=True):
        assert share / 4 < one < share * 4, found


def test_correlated_conditions(database: Path, model: Path) -> None:
    """A state determines the city, so that the second condition accepts all rows."""
    first, second = estimates(database, model, "state = 'state3' and city = 'city3'")
    assert 0.02 < first < 0.2
    assert second > 0.5


def test_sqlite_knows_indexed_columns(database: Path, model: Path) -> None:
    rare = "note like '%needle%'"
    assert estimates(database, model, "day = '2021-02-01'") == [-1]
    assert estimates(database, model, f"day > '2021-02-01' and {rare}")[0] == -1
    (found,) = estimates(database, model, "day like '%-03-%'")
    assert 0.02 < found < 0.3
    # The index finds fewer rows than the estimated condition, so no advice pays.
    assert estimates(database, model, f"id = 3 and {rare}") == [-1, -1]


@pytest.mark.parametrize(
    ("shares", "how", "expected"),
    [
        ([0.01], {}, 1),
        ([0.1], {}, 0),
        # Two conditions are on one table, or on two tables.
        ([0.1, 0.1], {}, 1),
        ([0.1, 0.1], {"tables": [0, 1]}, 0),
        # The condition with an index accepts fewer rows than the other condition in the
        # first case, and more rows in the second case.
        ([0.01, 0.001], {"sure": [1, 0], "indexed": [0, 1], "tables": [0, 1]}, 0),
        ([0.01, 0.1], {"sure": [1, 0], "indexed": [0, 1], "tables": [0, 1]}, 1),
        # The second condition has no advice. In the first three cases it is unknown.
        ([0.01, 0.3], {"sure": [1, 0], "error": [0.1, 2]}, 1),
        ([0.01, 0.3], {"sure": [1, 0], "error": [0.1, 2], "tables": [0, 1]}, 0),
        ([0.01, 0.3], {"sure": [1, 0], "known": [1, 0], "tables": [0, 1]}, 0),
        ([0.01, 0.3], {"sure": [1, 0], "tables": [0, 1]}, 1),
    ],
)
def test_when_estimates_pay(
    shares: list[float], how: dict[str, list[float]], expected: int
) -> None:
    n = len(shares)
    given: dict[str, list[float]] = {"sure": [1] * n, "known": [1] * n}
    given |= {"tables": [0] * n, "indexed": [0] * n, "error": [0.1] * n}
    found = {name: torch.tensor(values) for name, values in (given | how).items()}
    known, indexed = found["known"].float(), found["indexed"].float()
    terms = networks.Terms(torch.zeros(n, 1), torch.zeros(n), known, indexed)
    logs, sure = torch.log(torch.tensor(shares)), found["sure"].float()
    least = math.log(0.05)
    said = networks.pays(found["tables"], logs, found["error"], sure, terms, least)
    assert said.item() == expected


@pytest.mark.parametrize(
    "condition",
    ["abs(id) * 7 > 3", "total like '%1%'", "state = 5", "hex(note) > 'a'"],
)
def test_unknown_terms_are_left(database: Path, model: Path, condition: str) -> None:
    assert estimates(database, model, condition) == [-1]


def test_hashes_are_those_of_the_extension(database: Path) -> None:
    sql = (
        "select 1 from sale where note in ('It''s', 'B') and total in (-1.5, 7)"
        " and city like '%Ty1' and state > 'state12345'"
    )
    (found,) = features_of(database, EXTENSION, [sql])
    assert found is not None
    texts, numbers = found["literals"][:2, :2].tolist()
    assert texts == [hash_of("It's"), hash_of("B")]
    assert numbers == [hash_of(-1.5), hash_of(7)]
    (code,) = codes_of(["state12345"])
    assert found["values"][3, :2].tolist() == code.tolist()
    pattern = {*found["trigrams"][2].tolist()} - {-1}
    assert pattern
    assert pattern <= trigrams_of("city1")
    assert not pattern <= trigrams_of("city10")


def test_drift(database: Path, model: Path, tmp_path: Path) -> None:
    assert "as in the training" in run_cli(
        "train", "sqlite-selectivity", database, "--check", model
    )
    changed = tmp_path / "changed.db"
    shutil.copy(database, changed)
    with closing(sqlite3.connect(changed)) as opened:
        opened.execute("update sale set total = total * 3 where id % 2 = 0")
        opened.execute("create table other as select * from sale")
        opened.commit()
    said = run_cli("train", "sqlite-selectivity", changed, "--check", model, status=1)
    assert "sale.total" in said
    assert "other" in said
    assert "sale.state" not in said
    found = {
        (one.table, one.column): one.is_large
        for one in drift.drifts(changed, model, ROWS, 0)
    }
    assert found[("sale", "total")]
    assert not found[("sale", "")]


ODD: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "smallest": ("a int", [(-(2**63) if i == 3 else i,) for i in range(50)]),
    "wide": (
        ", ".join(f"c{i} text" for i in range(300)),
        [tuple(f"v{i} {j}" for j in range(300)) for i in range(10)],
    ),
    "nul": ("a text", [(f"x\0{i}",) for i in range(50)]),
    "n" * 300: ("a int", [(i,) for i in range(50)]),
    "elsewhere": ("a text collate foreign_order", [("x",), ("y",)]),
}
"""Tables: columns, and rows."""


def test_odd_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path, folder = Path("-odd.db"), tmp_path / 'a "b c'
    with closing(sqlite3.connect(path)) as made:
        made.create_collation("foreign_order", lambda a, b: (a > b) - (a < b))
        for name, (columns, rows) in ODD.items():
            made.execute(f"create table {name}({columns})")
            places = ", ".join("?" * len(rows[0]))
            made.executemany(f"insert into {name} values ({places})", rows)
        made.execute("create table bytes(a text)")
        made.execute("insert into bytes values (cast(x'ff41' as text)), ('b')")
        made.commit()
    folder.mkdir()
    extension = Path(shutil.copy(EXTENSION, folder))
    ask = partial(features_of, path, extension)
    tables = read_tables(path, 1000, 0)
    assert {table.name for table in tables} == {*ODD, "bytes"} - {"elsewhere"}
    known = known_of(tables, ask)
    counts = Counter(one.table.name for one in known)
    assert counts == {"smallest": 1, "wide": 2400, "nul": 8, "bytes": 8}
    options = LearningOptions(terms=30)
    for table in tables:
        if own := [one for one in known if one.table is table]:
            pool = pool_of(table, own, ask, options)
            assert pool.accepts.shape[0] == len(pool.features) > 0
    with pytest.raises(InvalidArgument, match="found none; names have at most"):
        known_of([table for table in tables if len(table.name) > 255], ask)


def test_queries_change_nothing(database: Path, tmp_path: Path) -> None:
    """A file of queries may have statements that are not SELECT. They must fail."""
    library = tmp_path / "bench.so"
    build(STOCK, find_header(), tmp_path, library)
    system = System(library, database, None, "")
    with opened(system):
        assert system.rows("delete from sale") is None
        assert system.rows("select count(*) from sale") == [f"{ROWS}|"]


def test_errors(database: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.db"
    sqlite3.connect(empty).close()
    with pytest.raises(InvalidArgument, match="found none"):
        read_tables(empty, 10, 0)
    text = tmp_path / "text.db"
    text.write_text("x" * 5000)
    with pytest.raises(InvalidArgument, match="expected a database of SQLite"):
        read_tables(text, 10, 0)
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"\xff" * 50)
    with pytest.raises(Malformed, match="expected an ONNX model"):
        run_cli("train", "sqlite-selectivity", database, "--check", broken)
    with pytest.raises(InvalidArgument, match="there is no database"):
        read_tables(tmp_path / "gone.db", 10, 0)
    with pytest.raises(InvalidArgument, match=r"found no such file; .*--extension"):
        run_cli(
            "train", "sqlite-selectivity", database, "--extension", tmp_path / "gone.so"
        )


def test_workloads(tmp_path: Path) -> None:
    """The same seed draws the same database and queries, which SQLite accepts."""
    for name in workloads.WORKLOADS:
        drawn = []
        for number in range(2):
            path = tmp_path / f"{name}-{number}.db"
            workloads.make_database(name, path, 0.05, 0)
            queries = workloads.Queries(path, 1)
            drawn.append([queries.query() for _ in range(40)])
        assert drawn[0] == drawn[1]
        assert 0 < sum(query.is_plain for query in drawn[0]) < 20
        with closing(sqlite3.connect(path)) as opened:
            for query in drawn[0]:
                opened.execute(f"explain {query.sql}").fetchall()


@FULL
@pytest.mark.skipif(
    not (SOURCE / "sqlite3.c").is_file(),
    reason="needs scripts/fetch-sqlite3 build/workloads",
)
def test_evaluate(database: Path, model: Path, tmp_path: Path) -> None:
    statements = tmp_path / "queries.sql"
    statements.write_text(
        "select count(*) from sale where note like '%needle%';\n"
        "select state, count(*) from sale where total > 5 group by state\n"
    )
    copy = tmp_path / "shop.db"
    shutil.copy(database, copy)
    result = tmp_path / "result.json"
    run_cli(
        *(
            "evaluate",
            "sqlite-selectivity",
            "--database",
            copy,
            "--model",
            f"onnx:{model}",
        ),
        *("--statements", statements, "--source", SOURCE),
        *("--out", tmp_path, "--json", result),
    )
    found: dict[str, Any] = json.loads(result.read_text())["shop.db"]
    assert [*found] == ["STAT4 and model", "stock and model"]
    for one in found.values():
        assert len(one["times"]) == 2
        assert one["wrong"] == []


def test_the_model_states_its_origin(model: Path) -> None:
    onnx = pytest.importorskip("onnx")
    entries = {e.key: e.value for e in onnx.load(str(model)).metadata_props}
    assert json.loads(entries["mlbridge.training"])["seed"] == 0
    tables = json.loads(entries[drift.KEY])["tables"]
    assert tables["sale"]["rows"] == ROWS
