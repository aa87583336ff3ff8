# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`mlbridge bench serve` and `neighbour`, but for times, which no test depends on."""

from pathlib import Path

import pytest

from bench_build import build_or_skip, measured, refused
from mlbridge import PeerClosed
from mlbridge_benchmarks.common.processes import placements
from mlbridge_benchmarks.serve.command import Load, measure
from stock_llvm import children


@pytest.fixture
def build() -> Path:
    return build_or_skip()


def test_every_row_is_measured(build: Path, tmp_path: Path) -> None:
    _, rows = measured(
        tmp_path,
        *("serve", "--clients", "1,4", "--seconds", "0.3", "--model-ms", "1"),
        *("--max-batch", "8", "--max-delay", "0.5", "--build", build),
    )
    assert [
        (r["load"]["runner"], r["load"]["clients"], r["load"]["max_batch"])
        for r in rows
    ] == [(n, c, b) for n in ("pipe", "shm") for c in (1, 4) for b in (1, 8)]
    for row in rows:
        assert row["decisions_per_second"] > 0
        assert 0 < row["slowest_client"] <= 1
        batch = min(row["load"]["max_batch"], row["load"]["clients"])
        assert 1 <= row["batch_size"] <= batch
        latency = row["latency_ms"]
        # No answer leaves before the model has taken its time.
        assert 0.9 <= latency["p50"] <= latency["p90"] <= latency["p99"]
    assert any(row["batch_size"] > 1 for row in rows)


def test_a_model_that_fails_ends_the_run(build: Path) -> None:
    before = children()
    with pytest.raises(PeerClosed, match="did not get its first answer"):
        # No such runner, so that there is no model and nobody to ask.
        measure(Load("smoke", 2, 1, 0.0, 1.0, 10, 0.1), build)
    assert children() == before


@pytest.mark.parametrize("clients", ["", "0", "1,x"])
def test_counts_that_are_none(clients: str) -> None:
    assert "expected N,N,..." in refused("serve", "--clients", clients)


def test_a_busy_neighbour(build: Path, tmp_path: Path) -> None:
    _, rows = measured(
        tmp_path,
        *("neighbour", "--trips", "1500", "--floats", "10", "--runner", "shm"),
        *("--build", build),
    )
    assert [(r["placement"], r["busy"]) for r in rows] == [
        (p.name, busy) for p in placements() for busy in (False, True)
    ]
    for row in rows:
        assert row["trips"] == 2000
        assert 0 < row["median_us"] <= row["p99_us"] <= row["max_us"]
