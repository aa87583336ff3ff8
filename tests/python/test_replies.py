# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The values that a policy may return, and the advice that the compiler receives."""

from typing import Any

import numpy as np
import pytest

import mlbridge
from conftest import assert_same
from mlbridge import serving
from programs import asked, asked_at, reply_of

both = pytest.mark.parametrize("serdes", ["bitstream", "json"])


def ask(
    name: str, reply: Any, dtype: Any = None, serdes: str = "bitstream", **how: Any
) -> Any:
    """Returns a compiler's advice from a policy that returns `reply`."""
    with serving(lambda _: reply, f"pipe:{name}"):
        spec = f"pipe:{name}?serdes={serdes}&timeout=20s"
        return reply_of(spec, {"x": 1}, dtype, **how)


@both
@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (True, np.array(True)),
        (7, np.array(7, np.int64)),
        (-0.5, np.array(-0.5, np.float64)),
        (np.float32(0.1), np.array(0.1, np.float32)),
        (np.uint8(200), np.array(200, np.uint8)),
        (np.array(3.0, ">f4"), np.array(3, np.float32)),
        (np.arange(8)[::-2], np.array([7, 5, 3, 1])),
        ([1, 2], np.array([1, 2])),
        ([], np.array([], np.float64)),
        ("yes", "yes"),
        (["a", ""], ["a", ""]),
        ({"hue": 3, "spill": [1.5]}, {"hue": np.array(3), "spill": np.array([1.5])}),
        ({"only": 3}, {"only": np.array(3)}),
    ],
    ids=repr,
)
def test_an_answer_as_it_is(name: str, serdes: str, reply: Any, expected: Any) -> None:
    assert_same(ask(name, reply, serdes=serdes), expected)


@both
@pytest.mark.parametrize(
    ("reply", "dtype", "many", "expected"),
    [
        (1, bool, False, True),
        (np.bool_(True), bool, False, True),
        (2.0, "int8_t", False, 2),
        (7, "float", False, 7.0),
        (0.1, "float", False, float(np.float32(0.1))),
        (np.float64(0.1), "float", False, float(np.float32(0.1))),
        (np.array([3]), np.int32, False, 3),
        (True, "uint64_t", False, 1),
        (2**63, np.uint64, False, 2**63),
        ([1, 2], "float", True, np.array([1, 2], np.float32)),
        ([], "int32_t", True, np.array([], np.int32)),
        ([0, 1], bool, True, np.array([False, True])),
        (["a"], str, True, ["a"]),
        ([], str, True, []),
        ("a", str, False, "a"),
        ({"out": 1, "why": "size"}, bool, False, True),
    ],
    ids=repr,
)
def test_an_answer_as_the_compiler_wants_it(
    name: str, serdes: str, reply: Any, dtype: Any, many: bool, expected: Any
) -> None:
    assert_same(ask(name, reply, dtype, many=many, serdes=serdes), expected)


@pytest.mark.parametrize(
    ("reply", "dtype", "says"),
    [
        (0.5, bool, ["0.5", "bool", "'out'"]),
        (300, "int8_t", ["300", "int8_t", "'out'"]),
        (2**24 + 1, "float", ["16777217", "float"]),
        ("yes", bool, ["bool", "str"]),
        (1, str, ["string", "int64_t"]),
        (["a"], "float", ["float", "str"]),
        (np.float16(1), "float", ["float16"]),
        pytest.param(object(), "float", ["object"], id="object"),
        ({"_error": "x"}, None, ["_error", "underscore"]),
        ({1: 2}, None, ["str", "1"]),
        ({}, None, ["empty"]),
    ],
    ids=repr,
)
def test_an_answer_that_cannot_be_sent(
    name: str, reply: Any, dtype: Any, says: list[str]
) -> None:
    """The log and the compiler both get the reason."""
    with pytest.raises(mlbridge.ModelError) as at_compiler:
        ask(name, reply, dtype)
    with (
        pytest.raises((mlbridge.SchemaMismatch, mlbridge.InvalidArgument)) as at_model,
        serving(lambda _: reply, f"pipe:{name}", on_error="raise"),
        pytest.raises(mlbridge.ModelError),
    ):
        reply_of(f"pipe:{name}?timeout=20s", {"x": 1}, dtype)
    for word in says:
        assert word in str(at_model.value)
        assert word in str(at_compiler.value)


MASKED = np.ma.array([1, 2, 3], mask=[False, True, False])


TEXTS = np.ma.array(["a", "b"], mask=[False, True])


@pytest.mark.parametrize("dtype", [None, "double"])
@pytest.mark.parametrize(
    "reply",
    [MASKED, np.ma.masked, [MASKED, MASKED], TEXTS],
    ids=["array", "scalar", "list", "text"],
)
def test_what_is_under_a_mask_is_no_answer(name: str, reply: Any, dtype: Any) -> None:
    if reply is TEXTS:
        dtype = None
    with pytest.raises(mlbridge.ModelError, match=r"masked .*numpy\.ma\.filled"):
        ask(name, reply, dtype, many=dtype is not None)


def test_arrays_of_other_classes(name: str) -> None:
    np.testing.assert_array_equal(ask(name, np.ma.array([1, 2])), [1, 2])
    np.testing.assert_array_equal(ask(name, np.ma.filled(MASKED, 0)), [1, 0, 3])
    np.testing.assert_array_equal(ask(name, np.array([1, 2]).view(np.recarray)), [1, 2])


def test_a_feature_under_a_mask(name: str) -> None:
    with pytest.raises(mlbridge.SchemaMismatch, match=r"feature 'x'.*masked values"):
        reply_of("none", {"x": MASKED})


def test_what_a_later_request_wants_is_the_compilers_affair(name: str) -> None:
    """A session announces its first request's advice type. Later types may differ."""
    with asked(lambda f: f["answer"], name) as (served, runner):
        assert runner.evaluate({"answer": 1}, bool) is True
        assert runner.evaluate({"answer": 0.5}, float) == 0.5
        assert runner.evaluate({"answer": "text"}, str) == "text"
        with pytest.raises(mlbridge.SchemaMismatch, match=r"0\.5"):
            runner.evaluate({"answer": 0.5}, bool)
    assert served.statistics.errors == 0


@both
def test_deferring(name: str, serdes: str) -> None:
    def policy(features: mlbridge.Features) -> None:
        if features["how"] == "raise":
            raise mlbridge.Deferred("too far from what I know")

    spec = f"pipe:{name}?serdes={serdes}&timeout=20s"
    with asked_at(policy, f"pipe:{name}", spec) as (served, runner):
        with pytest.raises(mlbridge.Deferred, match="None"):
            runner.evaluate({"how": "return"}, bool)
        with pytest.raises(mlbridge.Deferred, match="too far"):
            runner.evaluate({"how": "raise"}, bool)
    assert (served.statistics.deferred, served.statistics.errors) == (2, 0)


def test_an_array_protocol(name: str) -> None:
    """Objects that convert to an array, such as tensors of PyTorch."""

    class Tensor:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.array([1.5, 2.5], np.float32)

    assert_same(ask(name, Tensor()), np.array([1.5, 2.5], np.float32))


def test_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    assert_same(ask(name, torch.tensor([1.5])), np.array([1.5], np.float32))
    assert ask(name, torch.tensor(3), int) == 3
    assert ask(name, torch.tensor(0.25), "float") == 0.25


def test_large_messages(name: str) -> None:
    rng = np.random.default_rng(0)
    with asked(lambda f: f["x"][::-1], name) as (_, runner):
        for size in (0, 1, 15_000, 16_384, 1 << 18, 1 << 22):
            sent = rng.standard_normal(size).astype(np.float32)
            assert_same(runner.evaluate({"x": sent}), sent[::-1].copy())
