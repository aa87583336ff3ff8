# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runtimes that are extensions: AOTInductor and TVM, each a module of its own."""

import importlib.util
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import aot_models
from conftest import MODULES, assert_close, assert_replies_alike, libraries_in
from mlbridge import ModelRunner
from mlbridge.errors import (
    InvalidArgument,
    Malformed,
    ModelError,
    SchemaMismatch,
    Unsupported,
)
from mlbridge.runtimes import aotinductor, tvm
from programs import FULL, in_threads, reply_of


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLBRIDGE_MODULES", str(MODULES))


def needs(module: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        not (MODULES / module).exists(), reason=f"this build has no {module}"
    )


# ----------------------------------------------------------------------------
# AOTInductor
# ----------------------------------------------------------------------------


class GraphPolicy(nn.Module):
    """Message passing over n nodes, a scale for all, and the best node's index."""

    def __init__(self) -> None:
        super().__init__()
        self.message = nn.Linear(16, 16)
        self.score = nn.Linear(16, 1)

    def forward(
        self, nodes: Tensor, adjacency: Tensor, scale: Tensor
    ) -> tuple[Tensor, Tensor]:
        state = nodes
        for _ in range(3):
            state = torch.tanh(adjacency @ self.message(state) + state)
        scores = self.score(state).squeeze(1) * scale.to(torch.float32)
        return scores, scores.argmax()


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, GraphPolicy]:
    """The module and its package, which takes seconds to make."""
    torch.manual_seed(0)
    module = GraphPolicy()
    path = tmp_path_factory.mktemp("aoti") / "policy.pt2"
    aotinductor.package(
        module,
        path,
        {
            "nodes": torch.zeros(5, 16),
            "adjacency": torch.zeros(5, 5),
            "scale": torch.tensor(2),
        },
        outputs=["scores", "best"],
        free={"nodes": ["n"], "adjacency": ["n", "n"]},
        metadata={"mlbridge.finite": "true"},
    )
    return path, module


@needs("MLBridge-aoti.so")
def test_a_package_answers_as_the_module(policy: tuple[Path, GraphPolicy]) -> None:
    path, module = policy
    random = np.random.default_rng(1)
    with ModelRunner(f"aoti:{path}") as runner:
        for n in (1, 2, 7, 61):
            asked = aot_models.graph_inputs(n, random)
            scale = np.int64(random.integers(1, 9))
            found = runner.evaluate({**asked, "scale": scale})
            with torch.no_grad():
                tensors = map(torch.from_numpy, asked.values())
                expected = module(*tensors, torch.tensor(scale))
            for name, theirs in zip(("scores", "best"), expected, strict=True):
                assert_close(np.asarray(found[name]), theirs.numpy())


@needs("MLBridge-aoti.so")
def test_a_package_is_loaded_once_for_all_runners(
    policy: tuple[Path, GraphPolicy], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where PyTorch unpacks it.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    package = tmp_path / "own.pt2"
    shutil.copy(policy[0], package)
    asked = aot_models.graph_inputs(4, np.random.default_rng(3))
    specs = [f"aoti:{package}", f"fallback|aoti:{package}", f"aoti:{package}"]
    assert_replies_alike(specs, {**asked, "scale": np.int64(2)})
    assert len(libraries_in(tmp_path)) == 1


@needs("MLBridge-aoti.so")
def test_one_package_in_many_threads(policy: tuple[Path, GraphPolicy]) -> None:
    random = np.random.default_rng(2)
    asked = {**aot_models.graph_inputs(9, random), "scale": np.int64(1)}
    replies: list[Any] = []

    def ask(_: int) -> None:
        with ModelRunner(f"aoti:{policy[0]}") as runner:
            replies.extend(runner.evaluate(asked)["scores"] for _ in range(200))

    in_threads(ask, 4)
    assert len(replies) == 800
    assert all(np.array_equal(reply, replies[0]) for reply in replies)


@needs("MLBridge-aoti.so")
def test_a_forked_child_is_told_not_to_ask(policy: tuple[Path, GraphPolicy]) -> None:
    random = np.random.default_rng(4)
    asked = {**aot_models.graph_inputs(4, random), "scale": np.int64(1)}
    with ModelRunner(f"aoti:{policy[0]}") as runner:
        expected = runner.evaluate(asked)["scores"]
        child = os.fork()
        if child == 0:
            signal.alarm(30)  # It would wait for threads for ever.
            try:
                runner.evaluate(asked)
            except Unsupported as error:
                said = "used before this process was forked" in str(error)
                os._exit(0 if said else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert np.array_equal(runner.evaluate(asked)["scores"], expected)


@needs("MLBridge-aoti.so")
def test_what_is_wrong_with_a_package_is_said(
    policy: tuple[Path, GraphPolicy], tmp_path: Path
) -> None:
    nodes = {"nodes": np.zeros((4, 16), np.float32), "scale": np.int64(1)}
    with ModelRunner(f"aoti:{policy[0]}") as runner:
        with pytest.raises(SchemaMismatch, match="expected a feature 'adjacency'"):
            runner.evaluate(nodes)
        with pytest.raises(SchemaMismatch, match="must be extent 0 of 'nodes'"):
            runner.evaluate({**nodes, "adjacency": np.zeros((3, 3), np.float32)})
        with pytest.raises(SchemaMismatch, match="found NaN"):
            runner.evaluate({**nodes, "adjacency": np.full((4, 4), np.nan, "f4")})
    short = tmp_path / "short.pt2"
    short.write_bytes(policy[0].read_bytes()[:5000])
    with pytest.raises(Malformed):
        reply_of(f"aoti:{short}", nodes)


def test_an_example_that_does_not_fit(tmp_path: Path) -> None:
    path, example = tmp_path / "x.pt2", {"x": torch.zeros(2)}
    with pytest.raises(InvalidArgument, match="takes input, and the example has x"):
        aotinductor.package(nn.Linear(2, 2), path, example, outputs=["y"])
    named = {"input": torch.zeros(2)}
    with pytest.raises(SchemaMismatch, match="returns 1 tensors, and 2 are named"):
        aotinductor.package(nn.Linear(2, 2), path, named, outputs=["y", "z"])


# ----------------------------------------------------------------------------
# TVM
# ----------------------------------------------------------------------------

needs_tvm = pytest.mark.skipif(
    importlib.util.find_spec("tvm") is None
    or not (MODULES / "MLBridge-tvm.so").exists(),
    reason="Apache TVM is not installed: `make test-full` does that",
)


@needs_tvm
def test_what_is_wrong_with_a_library_is_said(tmp_path: Path) -> None:
    source, library = tmp_path / "m.onnx", tmp_path / "m.so"
    onnx.save(aot_models.mlp(), source)
    tvm.compile_model(source, library)
    features = next(iter(aot_models.requests("mlp")))
    runtime = tvm.runtime()
    short = tmp_path / "short.so"
    short.write_bytes(library.read_bytes()[:20_000])
    wrong: list[tuple[str, Any, type[Exception], str]] = [
        (f"{library}?runtime=/nowhere.so", features, Unsupported, "apache-tvm"),
        (f"{library}?runtime={short}", features, Unsupported, "load.*: .*cut short"),
        (f"{short}?runtime={runtime}", features, Malformed, "cut short"),
        (f"{runtime}?runtime={runtime}", features, Malformed, "mlbridge_signature"),
        (f"{library}?runtime={runtime}", {}, SchemaMismatch, "a feature 'x'"),
    ]
    for spec, asked, error, problem in wrong:
        with pytest.raises(error, match=problem):
            reply_of(f"tvm:{spec}", asked)
    source.write_bytes(b"no model")
    with pytest.raises(Malformed):
        tvm.compile_model(source, library)


@needs_tvm
def test_a_library_is_loaded_once_for_all_runners(tmp_path: Path) -> None:
    source, library = tmp_path / "m.onnx", tmp_path / "m.so"
    onnx.save(aot_models.mlp(), source)
    tvm.compile_model(source, library)
    spec = f"tvm:{library}?runtime={tvm.runtime()}"
    specs = [spec, f"fallback|{spec}", spec]
    assert_replies_alike(specs, next(iter(aot_models.requests("mlp"))))
    assert libraries_in(tmp_path) == [str(library)]


@needs_tvm
def test_a_new_library_of_an_old_name_is_a_new_model(tmp_path: Path) -> None:
    source, library = tmp_path / "m.onnx", tmp_path / "m.so"
    features = next(iter(aot_models.requests("mlp")))
    replies = []

    def put(seed: int) -> None:
        onnx.save(aot_models.mlp(seed=seed), source)
        tvm.compile_model(source, tmp_path / "new.so")
        (tmp_path / "new.so").replace(library)
        session = onnxruntime.InferenceSession(source)
        replies.append(session.run(["logits"], features)[0])

    put(1)
    spec = f"tvm:{library}?runtime={tvm.runtime()}"
    with ModelRunner(spec) as old:
        assert_close(np.asarray(old.evaluate(features)["logits"]), replies[0])
        put(2)
        assert_close(np.asarray(reply_of(spec, features)["logits"]), replies[1])
        assert_close(np.asarray(old.evaluate(features)["logits"]), replies[0])


@FULL
def test_tvm_is_there_in_the_full_run() -> None:
    """What `make test-full` installs is not skipped there."""
    assert importlib.util.find_spec("tvm") is not None
    assert (MODULES / "MLBridge-tvm.so").exists()


def test_a_model_that_tvm_cannot_compile(tmp_path: Path) -> None:
    if importlib.util.find_spec("tvm") is None:
        pytest.skip("Apache TVM is not installed: `make test-full` does that")
    source = tmp_path / "m.onnx"
    onnx.save(aot_models.lstm(), source)
    with pytest.raises(ModelError, match="LSTM"):
        tvm.compile_model(source, tmp_path / "m.so")
    assert not (tmp_path / "m.so").exists()
