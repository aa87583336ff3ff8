# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of every type, shape and value survive every SerDes."""

import contextlib
from collections.abc import Callable
from typing import Any

import hypothesis.extra.numpy as npst
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

import mlbridge
from conftest import as_array, assert_same
from mlbridge.codec import deserialize, formats, serialize

SERDES = [known.name for known in formats()]
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
DTYPES = [*INTEGERS, "float32", "float64", "bool"]

shapes = npst.array_shapes(min_dims=0, max_dims=8, min_side=0, max_side=3)
arrays = st.sampled_from(DTYPES).flatmap(lambda dtype: npst.arrays(dtype, shapes))
texts = st.text(max_size=30)
values = arrays | texts | st.lists(texts, max_size=5)
names = st.text(min_size=1, max_size=20).filter(lambda name: not name.startswith("_"))

both = pytest.mark.parametrize("serdes", SERDES)


def round_trip(tensors: dict[str, Any], serdes: str) -> dict[str, Any]:
    return dict(deserialize(serialize(tensors, serdes), serdes))


@both
@given(st.dictionaries(names, values, max_size=6))
@example({"nan": np.array([np.nan, -np.inf, np.inf, -0.0, 5e-324], np.float64)})
@example({"nan": np.array([np.nan, -np.inf, np.inf, -0.0, 1e-45], np.float32)})
@example({"one": np.float32(0.1), "text": "", "texts": ["", "", "x", ""], "none": []})
def test_round_trip(serdes: str, tensors: dict[str, Any]) -> None:
    # An empty list has no element type, but an empty array of strings has one.
    sent = {
        name: np.array([], str) if isinstance(value, list) and not value else value
        for name, value in tensors.items()
    }
    found = round_trip(sent, serdes)
    assert_same(found, {name: as_array(value) for name, value in tensors.items()})


@both
@pytest.mark.parametrize("dtype", [*INTEGERS, "float32", "float64"])
def test_extremes(serdes: str, dtype: Any) -> None:
    if dtype in INTEGERS:
        extremes: list[Any] = [np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1]
    else:
        limits = np.finfo(dtype)
        extremes = [limits.max, limits.min, limits.tiny, limits.smallest_subnormal]
        extremes += [-value for value in extremes] + [-0.0, 0.0, np.inf, -np.inf]
    sent = {"x": np.array(extremes, dtype)}
    assert_same(round_trip(sent, serdes), sent)


@both
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, np.array(True)),
        (7, np.array(7, np.int64)),
        (2**64 - 1, np.array(2**64 - 1, np.uint64)),
        (0.5, np.array(0.5)),
        (np.float32(0.1), np.array(0.1, np.float32)),
        (np.int8(-3), np.array(-3, np.int8)),
        (np.bool_(False), np.array(False)),
        ([1, 2, 3], np.array([1, 2, 3], np.int64)),
        ((1, 2.5), np.array([1, 2.5])),
        ([True, False], np.array([True, False])),
        ([[1, 2], [3, 4]], np.array([[1, 2], [3, 4]], np.int64)),
        ([2**63, 1], np.array([2**63, 1], np.uint64)),
        ([np.float32(1), np.float32(2)], np.array([1, 2], np.float32)),
        (("a", "b"), ["a", "b"]),
        (np.array(["a", "bc"]), ["a", "bc"]),
        (np.str_("a"), "a"),
        (bytearray(b"\1\2"), np.array([1, 2], np.uint8)),
    ],
    ids=repr,
)
def test_python_values(serdes: str, value: Any, expected: Any) -> None:
    assert_same(round_trip({"x": value}, serdes), {"x": expected})


def unaligned(array: NDArray[Any]) -> NDArray[Any]:
    shifted = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype)
    shifted[:] = array.ravel()
    return shifted.reshape(array.shape)


LAYOUTS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "reversed rows": lambda array: array[::-1],
    "columns": lambda array: array[:, 1:3],
    "transposed": lambda array: array.T,
    "swapped": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "unaligned": unaligned,
}


@both
@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_layouts(serdes: str, layout: str) -> None:
    array = LAYOUTS[layout](np.arange(12, dtype=np.int32).reshape(3, 4))
    expected = np.ascontiguousarray(array).astype(np.int32)
    assert_same(round_trip({"x": array}, serdes), {"x": expected})


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (np.float16(1), "dtype float16"),
        (np.array([1j]), "dtype complex128"),
        (np.array([{}], object), "dtype object"),
        (np.longdouble(1), "dtype longdouble|dtype float128"),
        (np.datetime64("2026-01-01"), "dtype datetime64"),
        (2**64, "more than 64 bits"),
        (-(2**63) - 1, "more than 64 bits"),
        (["a", 1], "str and something else"),
        ([["a"]], "lists of str"),
        ([2**64], "more than 64 bits"),
        ([2**63, -1], "more than 64 bits"),
        ([[1], [2, 3]], "inhomogeneous"),
        pytest.param(object(), "found object", id="object"),
        (b"raw", "found bytes"),
        (None, "found NoneType"),
        ([0.5, 2**53 + 1], "a double cannot hold"),
        (np.zeros((1,) * 9), "rank 9"),
    ],
    ids=repr,
)
def test_values_that_are_no_tensors(value: Any, says: str) -> None:
    with pytest.raises(mlbridge.SchemaMismatch, match=says) as caught:
        serialize({"size": value})
    assert "tensor 'size'" in str(caught.value)
    assert isinstance(caught.value, TypeError)
    assert caught.value.code == "SchemaMismatch"


@both
@given(data=st.data())
def test_damaged_messages_are_errors(serdes: str, data: st.DataObject) -> None:
    """Any bytes deserialize to tensors or raise an error."""
    tensors = {"a": np.arange(3, dtype=np.float32), "b": ["x", "yz"], "c": 7, "d": True}
    message = bytearray(serialize(tensors, serdes))
    if data.draw(st.booleans()):
        message = message[: data.draw(st.integers(0, len(message)))]
    for _ in range(data.draw(st.integers(0, 4)) if message else 0):
        place = data.draw(st.integers(0, len(message) - 1))
        message[place] = data.draw(st.integers(0, 255))
    found: Any = None
    errors = (mlbridge.Malformed, mlbridge.SchemaMismatch, mlbridge.Unsupported)
    with contextlib.suppress(*errors):
        found = deserialize(bytes(message), serdes)
    repr(found)


@both
def test_bytes_that_are_no_utf8_survive_or_are_refused(serdes: str) -> None:
    """Symbol names may be any bytes, which Python decodes as os.fsdecode does."""
    symbol = b"f\xff\xfe".decode("utf-8", "surrogateescape")
    try:
        message = serialize({"x": symbol}, serdes)
    except mlbridge.Error as error:
        assert "x" in str(error)
    else:
        assert deserialize(message, serdes) == {"x": symbol}


@both
def test_an_error_and_a_deferral_are_raised(serdes: str) -> None:
    with pytest.raises(mlbridge.ModelError, match="no weights"):
        deserialize(serialize({"_error": "no weights"}, serdes), serdes)
    with pytest.raises(mlbridge.Deferred, match="not sure"):
        deserialize(serialize({"_deferred": "not sure"}, serdes), serdes)


def test_arrays_are_read_only_and_aligned() -> None:
    message = serialize({"b": [True], "x": np.arange(3.0), "s": np.int16(1)})
    for value in deserialize(message).values():
        assert isinstance(value, np.ndarray)
        assert not value.flags.writeable
        assert value.flags.aligned
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            value.flags.writeable = True


def test_a_view_outlives_its_message() -> None:
    view = deserialize(serialize({"x": np.arange(100_000.0)}))["x"]
    for _ in range(20):
        deserialize(serialize({"x": np.zeros(100_000)}))
    assert_same(view, np.arange(100_000.0))


def test_wrong_arguments() -> None:
    with pytest.raises(mlbridge.Error, match="carrier-pigeon"):
        serialize({}, "carrier-pigeon")
    with pytest.raises(mlbridge.InvalidArgument, match="both"):
        serialize({}, bare="both")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        deserialize(serialize({"x": 1}), dtype="complex64")
