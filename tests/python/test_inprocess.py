# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models in this process, ``onnx:FILE``; ONNX Runtime's own Python is the judge."""

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
from mlbridge import (
    Deferred,
    ModelRunner,
    OSFailure,
    SchemaMismatch,
    Timeout,
    Unsupported,
    create_model_runner,
    inprocess,
    read_log,
)
from mlbridge.doctor import checks
from mlbridge.files import spec_of
from programs import in_threads, run_python

pytestmark = pytest.mark.skipif(
    not any(scheme.name == "onnx" for scheme in inprocess.schemes()),
    reason="this build has no ONNX: scripts/fetch-onnxruntime found no headers",
)

FLOAT = TensorProto.FLOAT
INT64 = TensorProto.INT64


def mlp(path: Path) -> Path:
    """The perceptron of the benchmarks, 300-128-64-15."""
    onnx.save(aot_models.mlp("batch"), path)
    return path


def lstm(path: Path) -> Path:
    """Of a sequence of opcodes and a number: a distribution and its best."""
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(mlp(tmp_path / "mlp.onnx").read_bytes())
    spec = spec_of("onnx", path)
    assert not set("?|=%&{}") & set(re.sub("%[0-9A-F]{2}", "", spec))
    with ModelRunner(f"{spec}?decide=argmax") as runner:
        best = runner.evaluate({"x": np.zeros((1, 300), np.float32)}, int)
    assert 0 <= best < 15


def test_answers_as_onnxruntime_does(tmp_path: Path) -> None:
    path = mlp(tmp_path / "mlp.onnx")
    judge = onnxruntime.InferenceSession(path)
    rng = np.random.default_rng(1)
    with (
        ModelRunner(f"onnx:{path}") as ours,
        ModelRunner(f"onnx:{path}?decide=argmax") as decider,
    ):
        for batch in (1, 1, 7, 2, 1):
            x = rng.standard_normal((batch, 300)).astype(np.float32)
            (logits,) = judge.run(None, {"x": x})
            reply = ours.evaluate({"x": x})
            np.testing.assert_allclose(reply["logits"], logits, rtol=0, atol=1e-5)
            best = decider.evaluate({"x": x}, "int64", many=True)
            np.testing.assert_array_equal(best, logits.argmax(axis=1))
        # A vector is a batch of one.
        one = rng.standard_normal(300).astype(np.float32)
        (logits,) = judge.run(None, {"x": one[np.newaxis]})
        assert decider.evaluate({"x": one}, int) == logits.argmax()


def test_sequences_of_any_length(tmp_path: Path) -> None:
    path = lstm(tmp_path / "lstm.onnx")
    judge = onnxruntime.InferenceSession(path)
    rng = np.random.default_rng(2)
    with ModelRunner(f"onnx:{path}") as ours:
        for length in (1, 5, 5, 40, 3):
            opcodes = rng.integers(0, 60, length)
            weight = np.float32(rng.standard_normal())
            wanted = judge.run(None, {"opcodes": opcodes, "weight": np.array([weight])})
            reply = ours.evaluate({"weight": weight, "opcodes": opcodes, "more": 1})
            np.testing.assert_allclose(
                reply["probabilities"], wanted[0], rtol=0, atol=1e-5
            )
            np.testing.assert_array_equal(reply["best"], wanted[1])


def test_many_threads_ask_one_model(tmp_path: Path) -> None:
    path = mlp(tmp_path / "mlp.onnx")
    judge = onnxruntime.InferenceSession(path)
    wrong: list[int] = []

    def ask(seed: int) -> None:
        rng = np.random.default_rng(seed)
        with ModelRunner(f"onnx:{path}?decide=argmax") as runner:
            for _ in range(200):
                x = rng.standard_normal((1, 300)).astype(np.float32)
                (logits,) = judge.run(None, {"x": x})
                if runner.evaluate({"x": x}, int) != logits.argmax():
                    wrong.append(seed)

    in_threads(ask, 8)
    assert not wrong


def test_agents_by_label(tmp_path: Path) -> None:
    a, b = mlp(tmp_path / "a.onnx"), lstm(tmp_path / "b.onnx")
    with ModelRunner(f"onnx:node={a},colour={b}?output=probabilities") as runner:
        reply = runner.evaluate(
            {"_agent": "colour", "opcodes": np.array([1, 2]), "weight": np.float32(0)}
        )
        assert reply["probabilities"].shape == (1, 5)
        with pytest.raises(SchemaMismatch, match="an output 'probabilities'"):
            runner.evaluate({"_agent": "node", "x": np.zeros(300, np.float32)})
        with pytest.raises(SchemaMismatch, match="models 'colour', 'node', found 'x'"):
            runner.evaluate({"_agent": "x"})


def test_mistakes_are_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = mlp(tmp_path / "mlp.onnx")
    x = np.zeros((1, 300), np.float32)
    with create_model_runner(f"onnx:{path}") as runner:
        with pytest.raises(SchemaMismatch, match=r"expected a feature 'x' float\[\?"):
            runner.evaluate({"y": x})
        with pytest.raises(SchemaMismatch, match=r"found double\[1,300\]"):
            runner.evaluate({"x": x.astype(np.float64)})
        runner.evaluate({"x": x})
    none = create_model_runner(f"onnx:{tmp_path}/none.onnx")
    with none, pytest.raises(OSFailure, match="No such file"):
        none.evaluate({"x": x})
    monkeypatch.setenv("MLBRIDGE_ONNXRUNTIME", "/nowhere/lib.so")
    lost = create_model_runner(f"onnx:{path}")
    with lost, pytest.raises(Unsupported, match=r"/nowhere/lib\.so: cannot open"):
        lost.evaluate({"x": x})
    (missing,) = [check for check in checks() if check.name == "onnx:"]
    assert missing.found is None
    assert "/nowhere/lib.so: no such file" in missing.hint


def test_doctor_says_which_library() -> None:
    (found,) = [check for check in checks() if check.name == "onnx:"]
    assert found.found is not None
    assert Path(found.found).name.startswith("libonnxruntime.so")


def test_the_process_ends_quietly(tmp_path: Path) -> None:
    path = mlp(tmp_path / "mlp.onnx")
    program = (
        "import mlbridge, numpy\n"
        f"runner = mlbridge.ModelRunner('onnx:{path}?decide=argmax')\n"
        "print(runner.evaluate({'x': numpy.zeros(300, 'float32')}, int))\n"
    )
    done = run_python(program)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip().isdigit()


def ask_in_child(runner: ModelRunner, results: Any) -> None:
    x = np.zeros(300, np.float32)
    results.put([runner.evaluate({"x": x}, int) for _ in range(20)])


def test_parent_and_forked_child_go_on_asking(tmp_path: Path) -> None:
    path = mlp(tmp_path / "mlp.onnx")
    fork = multiprocessing.get_context("fork")
    results = fork.SimpleQueue()
    with create_model_runner(f"onnx:{path}?decide=argmax") as runner:
        x = np.zeros(300, np.float32)
        expected = runner.evaluate({"x": x}, int)
        children = [
            fork.Process(target=ask_in_child, args=(runner, results)) for _ in range(4)
        ]
        for child in children:
            child.start()
        assert all(runner.evaluate({"x": x}, int) == expected for _ in range(20))
        for child in children:
            assert results.get() == [expected] * 20
            child.join(30)
            assert child.exitcode == 0


def record_in_child(runner: ModelRunner, results: Any) -> None:
    with runner:
        try:
            runner.evaluate({"x": 1}, int)
        except Unsupported as error:
            results.put(str(error))


def test_a_forked_child_does_not_write_the_log(tmp_path: Path) -> None:
    fork = multiprocessing.get_context("fork")
    results = fork.SimpleQueue()
    log = tmp_path / "log"
    with create_model_runner(f"record:{log}|none") as runner:
        with pytest.raises(Deferred):
            runner.evaluate({"x": 1}, int)
        runner.log_outcome("y", 2)
        child = fork.Process(target=record_in_child, args=(runner, results))
        child.start()
        assert "forked from the one that writes this log" in results.get()
        child.join(30)
        assert child.exitcode == 0
    assert [np.asarray(o.advice).item() for o in read_log(log)] == [2]


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
    with create_model_runner(f"onnx:{path}?timeout=200ms") as runner:
        one = np.float32(1)
        with pytest.raises(Timeout, match=r"loop\.onnx did not answer before"):
            runner.evaluate({"x": one, "n": 2**62}, float)
        assert runner.evaluate({"x": one, "n": 3}, float) == 8
