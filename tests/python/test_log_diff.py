# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The comparison of two logs, which real runners have recorded."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlbridge
from mlbridge import create_model_runner, read_log
from mlbridge.cli.comparison import compare
from programs import run_cli

CALL = "x.c:sum\nmain:2:7"


def record(
    path: Path,
    requests: Iterable[tuple[str, dict[str, Any], Any]],
    name: str = "inline",
) -> Path:
    """Records decisions. A request has a context, features and a decision."""
    with create_model_runner(f"record:{path}|none") as runner:
        for context, features, decision in requests:
            runner.switch_context(context)
            with pytest.raises(mlbridge.Deferred):
                runner.evaluate(features)
            runner.log_outcome(name, decision)
    return path


@pytest.fixture
def logs(tmp_path: Path) -> tuple[Path, Path]:
    """Two logs with four common requests, three of which have other decisions."""
    first = [
        (CALL, {"size": 3, "kind": "loop"}, 1),
        (CALL, {"size": 4, "kind": "loop"}, 0),
        ("other", {"size": 5, "kind": "call"}, 0),
        ("removed", {"size": 6, "kind": "call"}, 1),
        ("last", {"size": 7, "kind": "call"}, 1),
    ]
    # The order differs, and strings have other lengths.
    second = [
        ("other", {"size": 8, "kind": "calls"}, 1),
        (CALL, {"size": 3, "kind": "loops"}, 1),
        ("last", {"size": 7, "kind": "calls"}, 0),
        (CALL, {"size": 4, "kind": "loops"}, 1),
        (CALL, {"size": 9, "kind": "loops"}, 1),
        ("added", {"size": 9, "kind": "loops"}, 1),
    ]
    return record(tmp_path / "a.log", first), record(tmp_path / "b.log", second)


def test_compares_by_context_and_number(logs: tuple[Path, Path]) -> None:
    found = compare(*map(read_log, logs))
    assert (found.in_both, found.only_in_first, found.only_in_second) == (4, 1, 2)
    assert [
        (d.first.context, d.first.index, *d.first.advice, *d.second.advice, d.features)
        for d in found.differences
    ] == [
        (CALL, 1, 0, 1, ("kind",)),
        ("other", 0, 0, 1, ("size", "kind")),
        ("last", 0, 1, 0, ("kind",)),
    ]


def test_table(logs: tuple[Path, Path]) -> None:
    said = run_cli("log", "diff", *logs)
    rows = [
        [cell.strip() for cell in line.strip("│").split("│")]
        for line in said.splitlines()
        if line.startswith("│")
    ]
    assert rows == [
        ["x.c:sum main:2:7", "1", "0", "1", "kind"],
        ["other", "0", "0", "1", "size, kind"],
        ["last", "0", "1", "0", "kind"],
    ]
    assert said.endswith(
        "3 of 4 common requests have different decisions; 1 requests are only in "
        f"{logs[0]}, and 2 only in {logs[1]}\n"
    )


def test_csv(logs: tuple[Path, Path]) -> None:
    said = run_cli("log", "diff", *logs, "--csv")
    assert list(csv.reader(io.StringIO(said))) == [
        ["context", "observation", "first inline", "second inline", "changed features"],
        ["x.c:sum main:2:7", "1", "0", "1", "kind"],
        ["other", "0", "0", "1", "size kind"],
        ["last", "0", "1", "0", "kind"],
    ]
    # A context with a line break is one line, so that `cut` and `diff` can read it.
    assert len(said.splitlines()) == 4
    assert len(run_cli("log", logs[0], "--csv").splitlines()) == 6


def test_equal_logs(tmp_path: Path) -> None:
    """Decisions may be vectors. NaN is equal to NaN."""
    vectors = [("f", {"x": np.float32("nan")}, np.array([np.nan, 1], np.float32))]
    log = record(tmp_path / "a.log", vectors)
    said = run_cli("log", "diff", log, log)
    assert said.startswith("0 of 1 common requests have different decisions; 0 ")
    other = [("f", {"x": np.float32(2)}, np.array([np.nan, 3], np.float32))]
    changed = run_cli("log", "diff", log, record(tmp_path / "b.log", other), "--csv")
    assert changed.splitlines()[1] == "f,0,nan,1.0,nan,3.0,x"


@pytest.mark.parametrize(
    ("features", "decision", "name", "says"),
    [
        ({"x": 1}, 1, "inline", "a.log, but these are missing: y"),
        ({"x": 1, "y": 1, "z": 1}, 1, "inline", "a.log, but found more: z"),
        ({"x": 1.5, "y": 1}, 1, "inline", r'"x": expected int64\[1\], found float64'),
        ({"x": 1, "y": [1, 2]}, 1, "inline", r'"y": expected int64\[1\], found .*2'),
        ({"x": 1, "y": 1}, 1, "unroll", '"inline" of .*a.log, found "unroll"'),
        ({"x": 1, "y": 1}, 1.5, "inline", r'"inline": expected int64\[1\], found fl'),
    ],
)
def test_logs_of_other_requests(
    tmp_path: Path, features: dict[str, Any], decision: float, name: str, says: str
) -> None:
    first = record(tmp_path / "a.log", [("f", {"x": 1, "y": 2}, 1)])
    second = record(tmp_path / "b.log", [("f", features, decision)], name)
    with pytest.raises(mlbridge.SchemaMismatch, match=f"b.log: .*{says}"):
        run_cli("log", "diff", first, second)
