# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An .onnx file as a policy, alone and for several compilers at once."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from typer.testing import CliRunner

from mlbridge import SchemaMismatch, Unsupported, create_model_runner, serving
from mlbridge.cli import app
from mlbridge.onnx import load_onnx


def linear(path: Path, batch: str | int = "N", kind: int = TensorProto.FLOAT) -> Path:
    """A model of y = x . w, with a decision y > 0, for x of 4 numbers."""
    weights = np.array([[1.0], [-2.0], [3.0], [-4.0]], np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["y"]),
            helper.make_node("Greater", ["y", "zero"], ["decision"]),
        ],
        "linear",
        [helper.make_tensor_value_info("x", kind, [batch, 4])],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 1]),
            helper.make_tensor_value_info("decision", TensorProto.BOOL, [batch, 1]),
        ],
        [
            onnx.numpy_helper.from_array(weights, "w"),
            onnx.numpy_helper.from_array(np.zeros(1, np.float32), "zero"),
        ],
    )
    return save(graph, path)


def identity(path: Path, shape: list[Any], kind: int = TensorProto.FLOAT) -> Path:
    return save(
        helper.make_graph(
            [helper.make_node("Identity", ["x"], ["y"])],
            "identity",
            [helper.make_tensor_value_info("x", kind, shape)],
            [helper.make_tensor_value_info("y", kind, shape)],
        ),
        path,
    )


def save(graph: Any, path: Path) -> Path:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("batch", ["N", 1])
def test_each_question_gets_its_own_answer(tmp_path: Path, batch: str | int) -> None:
    policy = load_onnx(linear(tmp_path / "m.onnx", batch))
    rows = np.random.default_rng(7).normal(size=(5, 4)).astype(np.float32)
    answers = policy([{"x": row, "unused": np.array(1)} for row in rows])
    for row, answer in zip(rows, answers, strict=True):
        expected = row @ np.array([1, -2, 3, -4], np.float32)
        np.testing.assert_allclose(answer["y"], expected, rtol=1e-5)
        assert answer["y"].shape == ()
        assert answer["decision"] == (expected > 0)


def test_a_compiler_is_served(tmp_path: Path) -> None:
    with (
        serving(load_onnx(linear(tmp_path / "m.onnx")), f"shm:{tmp_path / 'at'}"),
        create_model_runner(f"shm:{tmp_path / 'at'}") as runner,
    ):
        advice = runner.evaluate({"x": np.array([1, 0, 0, 0], np.float32)})
        assert advice["y"] == 1.0
        assert advice["decision"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["N"], ()),
        (["N", 1], ()),
        (["N", 1], (1,)),
        (["N", 3], (3,)),
        (["N", 3], (1, 3)),
        (["N", 1, 3], (3,)),
        (["N", 2, 3], (2, 3)),
        (["N", "a", "b"], (2, 3)),
        (["N", "a", 3], (3,)),
        ([2, 3], (2, 3)),
        ([1, 3], (3,)),
    ],
)
def test_dimensions_of_one_come_and_go(
    tmp_path: Path, wanted: list[Any], found: tuple[int, ...]
) -> None:
    policy = load_onnx(identity(tmp_path / "m.onnx", wanted))
    x = np.arange(np.prod(found, dtype=int), dtype=np.float32).reshape(found)
    for answer in policy([{"x": x}, {"x": x}]):
        np.testing.assert_array_equal(np.ravel(answer), np.ravel(x))


@pytest.mark.parametrize(
    ("wanted", "found"),
    [(["N"], (2,)), (["N", 3], (4,)), (["N", 3], (3, 3)), (["N", 2, 3], (3, 2))],
)
def test_shapes_that_do_not_fit(
    tmp_path: Path, wanted: list[Any], found: tuple[int, ...]
) -> None:
    policy = load_onnx(identity(tmp_path / "m.onnx", wanted))
    with pytest.raises(SchemaMismatch, match="input 'x' takes float32 of the shape"):
        policy([{"x": np.zeros(found, np.float32)}])


def test_types_are_converted_where_that_is_what_a_model_means(tmp_path: Path) -> None:
    floats = load_onnx(identity(tmp_path / "f.onnx", ["N"]))
    assert floats([{"x": np.array(3, np.int64)}])[0] == np.float32(3)
    assert floats([{"x": np.array(0.1)}])[0] == np.float32(0.1)
    ints = load_onnx(identity(tmp_path / "i.onnx", ["N"], TensorProto.INT64))
    assert ints([{"x": np.array(7, np.int8)}])[0] == 7
    with pytest.raises(SchemaMismatch, match=r"takes int64 .* the feature has float32"):
        ints([{"x": np.array(0.5, np.float32)}])
    small = load_onnx(identity(tmp_path / "s.onnx", ["N"], TensorProto.INT8))
    with pytest.raises(SchemaMismatch, match="a value that int8 cannot hold"):
        small([{"x": np.array(300, np.int64)}])
    with pytest.raises(SchemaMismatch, match="the feature has a text"):
        ints([{"x": "seven"}])
    with pytest.raises(SchemaMismatch, match=r"'x' has no feature .* \['y'\]"):
        ints([{"y": np.array(1)}])


def test_inputs_that_are_no_numbers(tmp_path: Path) -> None:
    path = identity(tmp_path / "m.onnx", ["N"], TensorProto.STRING)
    with pytest.raises(Unsupported, match="expected numbers for the input 'x'"):
        load_onnx(path)


def test_the_command_line_says_what_is_wrong(tmp_path: Path) -> None:
    at = ["--at", f"pipe:{tmp_path / 'at'}"]
    result = CliRunner().invoke(app, ["serve", str(tmp_path / "none.onnx"), *at])
    assert result.exit_code == 2
    assert "there is no file" in " ".join(result.output.split())
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    result = CliRunner().invoke(app, ["serve", str(broken), *at])
    assert result.exit_code == 2
    assert "is no model" in " ".join(result.output.split())
