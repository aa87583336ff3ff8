# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long the arrays of a request live, and what they show meanwhile."""

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import mlbridge
from conftest import assert_same
from mlbridge import create_model_runner
from programs import reply_of, until


@contextmanager
def recording(
    name: str, serdes: str
) -> Iterator[tuple[list[Any], mlbridge.ModelRunner]]:
    """A model that keeps all that it sees, and a runner to ask it."""
    seen: list[Any] = []

    def policy(features: mlbridge.Features) -> int:
        seen.append(features)
        return 0

    with (
        mlbridge.serving(policy, f"pipe:{name}"),
        create_model_runner(f"pipe:{name}?serdes={serdes}&timeout=20s") as runner,
    ):
        yield seen, runner


both = pytest.mark.parametrize("serdes", ["bitstream", "json"])


@both
def test_an_unchanged_layout_costs_no_new_arrays(name: str, serdes: str) -> None:
    with recording(name, serdes) as (seen, runner):
        for i in range(4):
            runner.evaluate({"x": np.full(8, i, np.float32), "n": np.int32(i)}, int)
        assert seen[0] is not seen[1]
        for key in ("x", "n"):
            assert seen[1][key] is seen[2][key] is seen[3][key]
        # A view shows the request at hand, whatever it was made for.
        assert_same(seen[1]["x"], np.full(8, 3, np.float32))
        assert_same(seen[1]["n"], np.array(3, np.int32))


@both
def test_another_layout_gets_other_arrays(name: str, serdes: str) -> None:
    with recording(name, serdes) as (seen, runner):
        for value in (np.zeros(3), np.ones((3, 1)), np.int8(7), [1.5] * 1000, "text"):
            runner.evaluate({"x": value}, int)
            assert_same(
                np.asarray(seen[-1]["x"]).copy(), np.asarray(value, None).copy()
            )
        runner.evaluate({"y": 1.0, "z": "more"}, int)
        assert seen[-1] == {"y": 1.0, "z": "more"}


@both
def test_a_dict_of_its_own_for_each_request(name: str, serdes: str) -> None:
    with recording(name, serdes) as (seen, runner):
        for _ in range(3):
            runner.evaluate({"x": 1, "text": "a", "more": [1.0, 2.0]}, int)
            seen[-1].clear()
            seen[-1]["mine"] = None
        runner.evaluate({"x": 1, "text": "b", "more": [1.0, 2.0]}, int)
        assert list(seen[-1]) != []
        assert seen[-1]["text"] == "b"
        assert "mine" not in seen[-1]


@both
def test_arrays_are_read_only(name: str, serdes: str) -> None:
    with recording(name, serdes) as (seen, runner):
        runner.evaluate({"x": [1.0, 2.0]}, int)
        with pytest.raises(ValueError, match="read-only"):
            seen[-1]["x"][0] = 3


@both
def test_arrays_outlive_buffers_sessions_and_servers(name: str, serdes: str) -> None:
    """Their contents may change, but reading them is always safe."""
    with recording(name, serdes) as (seen, runner):
        for size in (10, 100, 1000, 100_000, 1_000_000, 5):
            runner.evaluate({"x": np.arange(size, dtype=np.float64)}, int)
    kept = [features["x"] for features in seen]
    del seen
    gc.collect()
    junk = [np.ones(100_000) for _ in range(20)]
    assert [array.size for array in kept] == [10, 100, 1000, 100_000, 1_000_000, 5]
    for array in kept:
        array.sum()
    assert_same(kept[-1].copy(), np.arange(5.0))
    del junk


def test_memory_of_a_session_is_let_go(name: str) -> None:
    """When its compiler has gone, nothing but the policy's own views keeps it."""
    finalized: list[int] = []

    def policy(features: mlbridge.Features) -> int:
        array = features["x"]
        weakref.finalize(array, finalized.append, array.size)
        return 0

    with mlbridge.serving(policy, f"pipe:{name}"):
        for size in (1000, 2000, 3000):
            reply_of(f"pipe:{name}?timeout=20s", {"x": np.zeros(size)}, int)
        until(lambda: len(finalized) == 3)
        assert sorted(finalized) == [1000, 2000, 3000]


def test_interleaved_sessions_keep_their_own_views(name: str) -> None:
    with recording(name, "bitstream") as (seen, first):
        others = [create_model_runner(f"pipe:{name}?timeout=20s") for _ in range(3)]
        runners = [first, *others]
        for turn in range(5):
            for i, runner in enumerate(runners):
                runner.evaluate({"x": np.full(4, 10 * i + turn, np.int64)}, int)
                assert_same(seen[-1]["x"].copy(), np.full(4, 10 * i + turn, np.int64))
        for i in range(len(runners)):
            assert seen[4 + i]["x"] is seen[8 + i]["x"]
        for runner in others:
            runner.close()
