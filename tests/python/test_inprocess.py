# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX models in this process, compared with ONNX Runtime's Python package."""

import multiprocessing
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import aot_models
import mlbridge
from aot_models import FLOAT, INT64
from mlbridge import ModelRunner, SchemaMismatch, Unsupported, inprocess
from mlbridge.doctor import checks
from mlbridge.files import spec_of
from programs import in_threads, reply_of, run_python

pytestmark = pytest.mark.skipif(
    not any(scheme.name == "onnx" for scheme in inprocess.schemes()),
    reason="this build has no ONNX: scripts/fetch-onnxruntime found no headers",
)


@pytest.fixture
def mlp(tmp_path: Path) -> Path:
    """The benchmarks' perceptron, 300-128-64-15."""
    onnx.save(aot_models.mlp("batch"), tmp_path / "mlp.onnx")
    return tmp_path / "mlp.onnx"


def lstm(path: Path) -> Path:
    """Maps opcodes and a weight to a distribution and its argmax."""
    g = aot_models.GraphBuilder(2)
    g.op("Gather", [g.weight(60, 4), "opcodes"], "seen")
    g.op("Unsqueeze", ["seen", g.constant([1])], "steps")
    weights = [g.weight(1, 32, 4), g.weight(1, 32, 8)]
    g.op("LSTM", ["steps", *weights], ["", "last"], hidden_size=8)
    g.op("Reshape", ["last", g.constant([1, 8])], "state")
    g.op("Unsqueeze", ["weight", g.constant([0])], "column")
    g.op("Concat", ["state", "column"], "all", axis=1)
    g.op("Gemm", ["all", g.weight(9, 5)], "scores")
    g.op("Softmax", ["scores"], "probabilities")
    g.op("ArgMax", ["scores"], "best", axis=1, keepdims=0)
    inputs: list[Any] = [("opcodes", INT64, ["length"]), ("weight", FLOAT, [1])]
    return g.save(
        path, inputs, [("probabilities", FLOAT, [1, 5]), ("best", INT64, [1])]
    )


@pytest.mark.parametrize(
    "name", ["lr=0.1/model", "a?b|c d%41&e", "{module}", "a,b=c", "é\udcff"]
)
def test_every_file_name_has_a_spec(
    mlp: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(mlp.parent)
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    mlp.rename(path)
    spec = spec_of("onnx", path)
    assert not set("?|=%&{}") & set(re.sub("%[0-9A-F]{2}", "", spec))
    request = {"x": np.zeros((1, 300), np.float32)}
    assert 0 <= reply_of(f"{spec}?decide=argmax", request, int) < 15


def test_answers_as_onnxruntime_does(mlp: Path) -> None:
    reference = onnxruntime.InferenceSession(mlp)
    rng = np.random.default_rng(1)
    with (
        ModelRunner(f"onnx:{mlp}") as ours,
        ModelRunner(f"onnx:{mlp}?decide=argmax") as decider,
    ):
        for batch in (1, 1, 7, 2, 1):
            x = rng.standard_normal((batch, 300)).astype(np.float32)
            (logits,) = reference.run(None, {"x": x})
            reply = ours.evaluate({"x": x})
            np.testing.assert_allclose(reply["logits"], logits, rtol=0, atol=1e-5)
            best = decider.evaluate({"x": x}, "int64", many=True)
            np.testing.assert_array_equal(best, logits.argmax(axis=1))
        # A vector is used as a batch of one row.
        one = rng.standard_normal(300).astype(np.float32)
        (logits,) = reference.run(None, {"x": one[np.newaxis]})
        assert decider.evaluate({"x": one}, int) == logits.argmax()


def test_sequences_of_any_length(tmp_path: Path) -> None:
    path = lstm(tmp_path / "lstm.onnx")
    reference = onnxruntime.InferenceSession(path)
    rng = np.random.default_rng(2)
    with ModelRunner(f"onnx:{path}") as ours:
        for length in (1, 5, 5, 40, 3):
            opcodes = rng.integers(0, 60, length)
            weight = np.float32(rng.standard_normal())
            wanted, best = reference.run(
                None, {"opcodes": opcodes, "weight": np.array([weight])}
            )
            reply = ours.evaluate({"weight": weight, "opcodes": opcodes, "more": 1})
            found = reply["probabilities"]
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)
            np.testing.assert_array_equal(reply["best"], best)


def test_many_threads_ask_one_model(mlp: Path) -> None:
    reference = onnxruntime.InferenceSession(mlp)
    wrong: list[int] = []

    def ask(seed: int) -> None:
        rng = np.random.default_rng(seed)
        with ModelRunner(f"onnx:{mlp}?decide=argmax") as runner:
            for _ in range(200):
                x = rng.standard_normal((1, 300)).astype(np.float32)
                (logits,) = reference.run(None, {"x": x})
                if runner.evaluate({"x": x}, int) != logits.argmax():
                    wrong.append(seed)

    in_threads(ask, 8)
    assert not wrong


def test_agents_by_label(mlp: Path, tmp_path: Path) -> None:
    b = lstm(tmp_path / "b.onnx")
    with ModelRunner(f"onnx:node={mlp},colour={b}?output=probabilities") as runner:
        reply = runner.evaluate(
            {"_agent": "colour", "opcodes": np.array([1, 2]), "weight": np.float32(0)}
        )
        assert reply["probabilities"].shape == (1, 5)
        with pytest.raises(SchemaMismatch, match="an output 'probabilities'"):
            runner.evaluate({"_agent": "node", "x": np.zeros(300, np.float32)})
        with pytest.raises(SchemaMismatch, match="models 'colour', 'node', found 'x'"):
            runner.evaluate({"_agent": "x"})


def test_mistakes_are_typed(mlp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.zeros((1, 300), np.float32)
    with ModelRunner(f"onnx:{mlp}") as runner:
        with pytest.raises(SchemaMismatch, match=r"expected a feature 'x' float\[\?"):
            runner.evaluate({"y": x})
        with pytest.raises(SchemaMismatch, match=r"found double\[1,300\]"):
            runner.evaluate({"x": x.astype(np.float64)})
        runner.evaluate({"x": x})
    with pytest.raises(mlbridge.OSFailure, match="No such file"):
        reply_of(f"onnx:{mlp}.none", {"x": x})
    monkeypatch.setenv("MLBRIDGE_ONNXRUNTIME", "/nowhere/lib.so")
    with pytest.raises(Unsupported, match=r"/nowhere/lib\.so: cannot open"):
        reply_of(f"onnx:{mlp}", {"x": x})
    (missing,) = [check for check in checks() if check.name == "onnx:"]
    assert missing.found is None
    assert "/nowhere/lib.so: no such file" in missing.hint


def test_doctor_says_which_library() -> None:
    (found,) = [check for check in checks() if check.name == "onnx:"]
    assert found.found is not None
    assert Path(found.found).name.startswith("libonnxruntime.so")


def test_the_process_ends_quietly(mlp: Path) -> None:
    program = (
        "import mlbridge, numpy\n"
        f"runner = mlbridge.ModelRunner('onnx:{mlp}?decide=argmax')\n"
        "print(runner.evaluate({'x': numpy.zeros(300, 'float32')}, int))\n"
    )
    done = run_python(program)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip().isdigit()


fork = multiprocessing.get_context("fork")


def test_parent_and_forked_child_go_on_asking(mlp: Path) -> None:
    results = fork.SimpleQueue()
    x = np.zeros(300, np.float32)

    def ask() -> list[int]:
        return [runner.evaluate({"x": x}, int) for _ in range(20)]

    with ModelRunner(f"onnx:{mlp}?decide=argmax") as runner:
        expected = ask()
        assert len({*expected}) == 1
        children = [fork.Process(target=lambda: results.put(ask())) for _ in range(4)]
        for child in children:
            child.start()
        assert ask() == expected
        for child in children:
            assert results.get() == expected
            child.join(30)
            assert child.exitcode == 0


def test_a_forked_child_does_not_write_the_log(tmp_path: Path) -> None:
    results = fork.SimpleQueue()
    log = tmp_path / "log"

    def record() -> None:
        with runner, pytest.raises(Unsupported) as caught:
            runner.evaluate({"x": 1}, int)
        results.put(str(caught.value))

    with ModelRunner(f"record:{log}|none") as runner:
        with pytest.raises(mlbridge.Deferred):
            runner.evaluate({"x": 1}, int)
        runner.log_outcome("y", 2)
        child = fork.Process(target=record)
        child.start()
        assert "forked from the one that writes this log" in results.get()
        child.join(30)
        assert child.exitcode == 0
    assert [np.asarray(o.advice).item() for o in mlbridge.read_log(log)] == [2]


def test_a_loop_without_an_end_is_interrupted(tmp_path: Path) -> None:
    def values(**kinds: int) -> list[Any]:
        return [helper.make_tensor_value_info(n, k, []) for n, k in kinds.items()]

    nodes = [
        helper.make_node("Identity", ["go"], ["on"]),
        helper.make_node("Add", ["sum", "sum"], ["twice"]),
    ]
    before = values(i=INT64, go=TensorProto.BOOL, sum=FLOAT)
    after = values(on=TensorProto.BOOL, twice=FLOAT)
    g = aot_models.GraphBuilder(0)
    body = helper.make_graph(nodes, "body", before, after)
    g.op("Loop", ["n", "", "x"], "out", body=body)
    inputs: list[Any] = [("x", FLOAT, []), ("n", INT64, [])]
    path = g.save(tmp_path / "loop.onnx", inputs, [("out", FLOAT, [])])
    with ModelRunner(f"onnx:{path}?timeout=200ms") as runner:
        one = np.float32(1)
        with pytest.raises(mlbridge.Timeout, match=r"loop\.onnx did not answer before"):
            runner.evaluate({"x": one, "n": 2**62}, float)
        assert runner.evaluate({"x": one, "n": 3}, float) == 8
