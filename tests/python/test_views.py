# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lifetime and contents of the arrays that a policy gets as features."""

import gc
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import pytest

import mlbridge
from conftest import assert_same
from mlbridge import create_model_runner
from programs import asked_at, reply_of, until


@contextmanager
def recording(
    name: str, serdes: str
) -> Iterator[tuple[list[Any], mlbridge.ModelRunner]]:
    """Yields a list of all requests to a model, and the model's runner."""
    seen: list[Any] = []

    def policy(features: mlbridge.Features) -> int:
        seen.append(features)
        return 0

    spec = f"pipe:{name}?serdes={serdes}&timeout=20s"
    with asked_at(policy, f"pipe:{name}", spec) as (_, runner):
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
        # An old view has the values of the current request.
        assert_same(seen[1]["x"], np.full(8, 3, np.float32))
        assert_same(seen[1]["n"], np.array(3, np.int32))


@both
def test_another_layout_gets_other_arrays(name: str, serdes: str) -> None:
    with recording(name, serdes) as (seen, runner):
        for value in (np.zeros(3), np.ones((3, 1)), np.int8(7), [1.5] * 1000, "text"):
            runner.evaluate({"x": value}, int)
            assert_same(np.array(seen[-1]["x"]), np.array(value))
        runner.evaluate({"y": 1.0, "z": "more"}, int)
        assert seen[-1] == {"y": 1.0, "z": "more"}


@both
def test_a_dict_of_its_own_for_each_request(name: str, serdes: str) -> None:
    with recording(name, serdes) as (seen, runner):
        for text in "aaab":
            runner.evaluate({"x": 1, "text": text, "more": [1.0, 2.0]}, int)
            assert set(seen[-1]) == {"x", "text", "more"}
            assert seen[-1].pop("text") == text
            seen[-1].clear()
            seen[-1]["mine"] = None


@both
def test_arrays_are_read_only(name: str, serdes: str) -> None:
    with recording(name, serdes) as (seen, runner):
        runner.evaluate({"x": [1.0, 2.0]}, int)
        with pytest.raises(ValueError, match="read-only"):
            seen[-1]["x"][0] = 3


@both
def test_arrays_outlive_buffers_sessions_and_servers(name: str, serdes: str) -> None:
    """The arrays' contents may change, but reading them is always safe."""
    sizes = [10, 100, 1000, 100_000, 1_000_000, 5]
    with recording(name, serdes) as (seen, runner):
        for size in sizes:
            runner.evaluate({"x": np.arange(size, dtype=np.float64)}, int)
    kept = [features["x"] for features in seen]
    del seen
    gc.collect()
    junk = [np.ones(100_000) for _ in range(20)]
    assert [array.size for array in kept] == sizes
    for array in kept:
        array.sum()
    assert_same(kept[-1].copy(), np.arange(5.0))
    del junk


def test_memory_of_a_session_is_let_go(name: str) -> None:
    """After the session's end, only views that the policy keeps hold its memory."""
    finalized: list[int] = []

    def policy(features: mlbridge.Features) -> int:
        array = features["x"]
        weakref.finalize(array, finalized.append, array.size)
        return 0

    with mlbridge.serving(policy, f"pipe:{name}"):
        for size in (1000, 2000, 3000):
            reply_of(f"pipe:{name}?timeout=20s", {"x": np.zeros(size)}, int)
        until(lambda: sorted(finalized) == [1000, 2000, 3000])


def test_interleaved_sessions_keep_their_own_views(name: str) -> None:
    with recording(name, "bitstream") as (seen, first), ExitStack() as stack:
        spec = f"pipe:{name}?timeout=20s"
        others = [stack.enter_context(create_model_runner(spec)) for _ in range(3)]
        for turn in range(5):
            for i, runner in enumerate([first, *others]):
                x = np.full(4, 10 * i + turn, np.int64)
                runner.evaluate({"x": x}, int)
                assert_same(seen[-1]["x"].copy(), x)
        for i in range(4):
            assert seen[4 + i]["x"] is seen[8 + i]["x"]
