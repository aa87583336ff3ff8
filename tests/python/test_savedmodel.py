# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The benchmarks' SavedModels, and their machine code.

scripts/test-tensorflow installs TensorFlow and runs all tests of this file.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from rich.console import Console

pytest.importorskip("onnx", reason="needs scripts/make-venv dev")

import onnx
import onnx.helper
import onnx.numpy_helper
import onnx.parser

from mlbridge import ModelError, ModelRunner, Unsupported
from mlbridge_benchmarks.common import options, savedmodel
from mlbridge_benchmarks.common.flows import in_process_spec
from mlbridge_benchmarks.common.imitation import MODEL
from programs import ROOT, run_program

needs_tensorflow = pytest.mark.skipif(
    "MLBRIDGE_TEST_TENSORFLOW" not in os.environ,
    reason="scripts/test-tensorflow installs TensorFlow and runs this test",
)

# Each operator of a policy that the benchmarks make or ship is in one of the models.
POLICY = """<ir_version: 9, opset_import: ["" : 18]>
policy (float[N,4] row, float[N,3] taken) => (float[N,3] logits) {
    both = Concat <axis = 1> (row, taken)
    first, rest = Split <axis = 1> (both, sizes)
    square = Mul (first, first)
    total = ReduceSum <keepdims = 1> (square, one)
    norm = Sqrt (total)
    unit = Div (first, norm)
    shifted = Add (norm, half)
    scale = Log (shifted)
    kept = Clip (rest, low, high)
    all = Concat <axis = 1> (unit, scale, kept)
    hidden = Gemm <transB = 1> (all, weights)
    active = Relu (hidden)
    scores = Gemm <alpha = 0.5, beta = 2.0> (active, more, bias)
    seen = Slice (kept, from, to, one, one)
    penalty = Mul (seen, half)
    logits = Sub (scores, penalty)
}"""


def parsed(text: str, **constants: Any) -> Any:
    model = onnx.parser.parse_model(text)
    for name, value in constants.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    return model


def policy(path: Path) -> Path:
    random = np.random.default_rng(6)
    numbers = {"half": 0.5, "low": -1, "high": 1}
    shapes = {"weights": (8, 8), "more": (8, 3), "bias": (3,)}
    lists = {"sizes": [4, 3], "one": [1], "from": [0], "to": [3]}
    model = parsed(
        POLICY,
        **{name: np.array(value, np.float32) for name, value in numbers.items()},
        **{n: random.standard_normal(s).astype(np.float32) for n, s in shapes.items()},
        **{name: np.array(value, np.int64) for name, value in lists.items()},
    )
    about = {"mlbridge.decide": "argmax:logits", "mlbridge.finite": "true"}
    onnx.helper.set_model_props(model, about)
    onnx.save(model, path)
    return path


def test_the_graph_of_a_model(tmp_path: Path) -> None:
    graph, arrays = savedmodel.graph_of(policy(tmp_path / "policy.onnx"))
    assert graph["inputs"] == [
        {"name": "row", "type": "float32", "shape": [1, 4]},
        {"name": "taken", "type": "float32", "shape": [1, 3]},
    ]
    assert graph["outputs"] == ["logits"]
    assert len(graph["nodes"]) == 16
    assert arrays[graph["constants"]["sizes"]].tolist() == [4, 3]
    graph, _ = savedmodel.graph_of(ROOT / MODEL)
    casts = [n["attributes"] for n in graph["nodes"] if n["operator"] == "Cast"]
    assert casts == [{"to": "float32"}, {"to": "int64"}]


@pytest.mark.parametrize(
    ("graph", "says"),
    [
        ("(float[N,M] x) => (float[N,M] y) { y = Relu (x) }", r"'x'.*\[1, None\]"),
        (
            '(float[N,3] x) => (float[N,3] y) { y = Gelu <approximate = "tanh"> (x) }',
            "Gelu: the attribute approximate",
        ),
    ],
)
def test_models_that_are_not_supported(graph: str, says: str, tmp_path: Path) -> None:
    head = '<ir_version: 9, opset_import: ["" : 20]> g '
    onnx.save(parsed(head + graph), tmp_path / "x.onnx")
    with pytest.raises(Unsupported, match=says):
        savedmodel.graph_of(tmp_path / "x.onnx")


def test_missing_runners() -> None:
    known = ("onnx", "tf-aot")

    def missing(name: str) -> str:
        return "needs [it]" if name == "tf-aot" else ""

    console = Console(width=80)
    with console.capture() as said:
        found = options.available(console, "--runner", None, known, missing)
    assert found == ("onnx",)
    assert said.get() == "no tf-aot: needs [it]\n"
    with pytest.raises(Unsupported, match="tf-aot: needs"):
        options.available(console, "--runner", ["tf-aot"], known, missing)
    with pytest.raises(typer.BadParameter, match="expected onnx, tf-aot"):
        options.available(console, "--runner", ["tf"], known, missing)


def test_without_tensorflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(savedmodel, "ROOT", tmp_path)
    for name in ("MLBRIDGE_TF_AOT_PYTHON", "MLBRIDGE_TENSORFLOW"):
        monkeypatch.delenv(name, raising=False)
    for runner, venv in savedmodel.SETS.items():
        assert f"scripts/make-venv {venv}" in savedmodel.missing(runner)
        with pytest.raises(Unsupported, match=f"scripts/make-venv {venv}"):
            savedmodel.make(runner, [tmp_path / "x.onnx"])
    assert savedmodel.missing("onnx") == ""
    assert "MLBRIDGE_TENSORFLOW" not in savedmodel.variables()


@needs_tensorflow
def test_machine_code_answers_as_onnx_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(savedmodel, "MODELS", tmp_path / "models")
    random = np.random.default_rng(6)

    def draw(one: dict[str, Any]) -> Any:
        shape = one["shape"][1:]
        if one["type"] == "int64":
            return random.integers(0, 50, shape)
        return random.standard_normal(shape).astype(one["type"])

    for model in (policy(tmp_path / "policy.onnx"), ROOT / MODEL):
        graph, _ = savedmodel.graph_of(model)
        spec = in_process_spec(savedmodel.TF_AOT, model, tmp_path)
        ours, theirs = ModelRunner(spec), ModelRunner(f"onnx:{model}")
        replies = set()
        for _ in range(100):
            features = {one["name"]: draw(one) for one in graph["inputs"]}
            reply = ours.evaluate(features, np.int64)
            assert reply == theirs.evaluate(features, np.int64)
            replies.add(int(reply))
        assert len(replies) > 1
    # Finished models are kept.
    made = savedmodel.make(savedmodel.TF_AOT, [model])[0]
    changed = made.stat().st_mtime_ns
    assert savedmodel.make(savedmodel.TF_AOT, [model])[0].stat().st_mtime_ns == changed


SAVE = """
import sys
import tensorflow as tf

module = tf.Module()
module.count = tf.Variable([0.0, 2.0])


@tf.function(input_signature=[tf.TensorSpec([1, 2], name="x")])
def read(x):
    return {"y": x * module.count}


@tf.function(input_signature=[tf.TensorSpec([1, 2], name="x")])
def change(x):
    return {"y": x * module.count.assign_add([1.0, 1.0])}


@tf.function(input_signature=[tf.TensorSpec([1, 2], name="x")])
def constant(x):
    return {"y": x + 1}


for name, each in {"read": read, "change": change, "constant": constant}.items():
    tf.saved_model.save(module, f"{sys.argv[1]}/{name}", each)
"""


@needs_tensorflow
def test_weights_outside_the_code(tmp_path: Path) -> None:
    python = savedmodel.python_of(savedmodel.TF_AOT)
    models = tmp_path / "models"
    run_program([python, "-c", SAVE, models], check=True, timeout=300)

    def compiled(name: str) -> Any:
        command = [python, ROOT / "lib/TF/AOT/compile.py", models / name, tmp_path]
        return run_program([*command, name, "--separate-weights"], timeout=300)

    done = compiled("read")
    assert done.returncode == 0, done.stderr
    weights = (tmp_path / "read.weights").read_bytes()
    assert len(weights) == 64, "each variable starts at a multiple of 64 bytes"
    assert np.frombuffer(weights, np.float32)[:2].tolist() == [0.0, 2.0]
    assert f'.incbin \\"{tmp_path}/read.weights' in (tmp_path / "read.c").read_text()
    for name, says in (
        ("change", "expected constant variables, but the model changes '"),
        ("constant", "expected variables, but all weights are constants"),
    ):
        done = compiled(name)
        assert done.returncode == 1
        assert says in done.stderr
        assert not (tmp_path / f"{name}.c").exists()


@needs_tensorflow
def test_an_operator_that_is_not_supported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(savedmodel, "MODELS", tmp_path / "models")
    head = '<ir_version: 9, opset_import: ["" : 20]> g '
    onnx.save(
        parsed(f"{head} (float[N,3] x) => (float[N,3] y) {{ y = Erf (x) }}"),
        tmp_path / "x.onnx",
    )
    with pytest.raises(ModelError, match="the operator Erf is not supported"):
        savedmodel.make(savedmodel.TF_AOT, [tmp_path / "x.onnx"])
