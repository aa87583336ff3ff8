# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An .onnx file as a policy, for one request and for a batch."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from aot_models import FLOAT, GraphBuilder
from mlbridge import SchemaMismatch, Unsupported
from mlbridge.onnx import load_onnx
from programs import run_cli


def linear(path: Path, batch: str | int = "N") -> Path:
    """Writes a model of y = x . w for 4 numbers x, and of the decision y > 0."""
    g = GraphBuilder(0)
    g.op("MatMul", ["x", g.constant([[1], [-2], [3], [-4]], np.float32)], "y")
    g.op("Greater", ["y", g.constant([0], np.float32)], "decision")
    outputs = [("y", FLOAT, [batch, 1]), ("decision", TensorProto.BOOL, [batch, 1])]
    return g.save(path, [("x", FLOAT, [batch, 4])], outputs)


def identity(path: Path, shape: list[Any], kind: int = FLOAT) -> Path:
    g = GraphBuilder(0)
    g.op("Identity", ["x"], "y")
    return g.save(path, [("x", kind, shape)], [("y", kind, shape)])


@pytest.mark.parametrize("batch", ["N", 1])
def test_each_request_gets_its_own_answer(tmp_path: Path, batch: str | int) -> None:
    policy = load_onnx(linear(tmp_path / "m.onnx", batch))
    rows = np.random.default_rng(7).normal(size=(5, 4)).astype(np.float32)
    replies = policy([{"x": row, "unused": np.array(1)} for row in rows])
    for row, reply in zip(rows, replies, strict=True):
        expected = row @ np.array([1, -2, 3, -4], np.float32)
        np.testing.assert_allclose(reply["y"], expected, rtol=1e-5)
        assert reply["y"].shape == ()
        assert reply["decision"] == (expected > 0)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        *((["N"], ()), (["N", 1], ()), (["N", 1], (1,)), (["N", 3], (3,))),
        *((["N", 3], (1, 3)), (["N", 1, 3], (3,)), (["N", 2, 3], (2, 3))),
        *((["N", "a", "b"], (2, 3)), (["N", "a", 3], (3,))),
        *(([2, 3], (2, 3)), ([1, 3], (3,))),
    ],
)
def test_dimensions_of_one_come_and_go(
    tmp_path: Path, wanted: list[Any], found: tuple[int, ...]
) -> None:
    policy = load_onnx(identity(tmp_path / "m.onnx", wanted))
    x = np.arange(np.prod(found, dtype=int), dtype=np.float32).reshape(found)
    for reply in policy([{"x": x}, {"x": x}]):
        np.testing.assert_array_equal(np.ravel(reply), np.ravel(x))


@pytest.mark.parametrize(
    ("wanted", "found"),
    [(["N"], (2,)), (["N", 3], (4,)), (["N", 3], (3, 3)), (["N", 2, 3], (3, 2))],
)
def test_wrong_shapes(
    tmp_path: Path, wanted: list[Any], found: tuple[int, ...]
) -> None:
    policy = load_onnx(identity(tmp_path / "m.onnx", wanted))
    with pytest.raises(SchemaMismatch, match="feature 'x': expected float32 of shape"):
        policy([{"x": np.zeros(found, np.float32)}])


def test_types_are_converted_where_that_is_what_a_model_means(tmp_path: Path) -> None:
    floats = load_onnx(identity(tmp_path / "f.onnx", ["N"]))
    assert floats([{"x": np.array(3, np.int64)}])[0] == np.float32(3)
    assert floats([{"x": np.array(0.1)}])[0] == np.float32(0.1)
    ints = load_onnx(identity(tmp_path / "i.onnx", ["N"], TensorProto.INT64))
    assert ints([{"x": np.array(7, np.int8)}])[0] == 7
    with pytest.raises(SchemaMismatch, match=r"expected int64 .* found float32"):
        ints([{"x": np.array(0.5, np.float32)}])
    small = load_onnx(identity(tmp_path / "s.onnx", ["N"], TensorProto.INT8))
    with pytest.raises(SchemaMismatch, match="a value that int8 cannot hold"):
        small([{"x": np.array(300, np.int64)}])
    for wrong, says in (
        ({"x": "seven"}, "found a string"),
        ({"y": np.array(1)}, r"'x' has no feature .* has 'y'"),
    ):
        with pytest.raises(SchemaMismatch, match=says):
            ints([wrong])


def test_inputs_that_are_no_numbers(tmp_path: Path) -> None:
    path = identity(tmp_path / "m.onnx", ["N"], TensorProto.STRING)
    with pytest.raises(Unsupported, match="expected numbers for the input 'x'"):
        load_onnx(path)


def test_the_command_line_says_what_is_wrong(tmp_path: Path) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    for file, says in ((tmp_path / "none.onnx", "no file"), (broken, "cannot load")):
        said = run_cli("serve", file, "--at", f"pipe:{tmp_path / 'at'}", status=2)
        assert says in " ".join(said.split())
