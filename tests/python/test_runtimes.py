# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The extensions AOTInductor and TVM, whose runtimes are separate modules."""

import os
import shutil
import signal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn
from torch._inductor import config as inductor

import aot_models
import mlbridge
from conftest import MODULES, assert_close, assert_replies_alike, libraries_in
from mlbridge import Malformed, ModelRunner, SchemaMismatch, Unsupported
from mlbridge.runtimes import aotinductor, tvm
from programs import FULL, in_threads, reply_of


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLBRIDGE_MODULES", str(MODULES))


QUICK = {
    "aot_inductor.compile_wrapper_opt_level": "O0",
    "cpp.vec_isa_ok": True,
    "cpp_cache_precompile_headers": False,
}
needs_aoti = pytest.mark.skipif(
    not (MODULES / "MLBridge-aoti.so").exists(),
    reason="this build has no MLBridge-aoti.so",
)


class GraphPolicy(nn.Module):
    """Returns scaled scores of n nodes after message passing, and their argmax."""

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
    """The package and its module. Making the package takes seconds."""
    torch.manual_seed(0)
    module = GraphPolicy()
    path = tmp_path_factory.mktemp("aoti") / "policy.pt2"
    example = {"nodes": torch.zeros(5, 16), "adjacency": torch.zeros(5, 5)}
    # Without these settings, g++ compiles PyTorch's headers five times more.
    with inductor.patch(QUICK):
        aotinductor.package(
            module,
            path,
            {**example, "scale": torch.tensor(2)},
            outputs=["scores", "best"],
            free={"nodes": ["n"], "adjacency": ["n", "n"]},
            metadata={"mlbridge.finite": "true"},
        )
    return path, module


def request(n: int, seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    graph = aot_models.graph_inputs(n, random)
    return {**graph, "scale": np.array(random.integers(1, 9))}


@needs_aoti
def test_a_package_answers_as_the_module(policy: tuple[Path, GraphPolicy]) -> None:
    path, module = policy
    with ModelRunner(f"aoti:{path}") as runner:
        for n in (1, 2, 7, 61):
            asked = request(n, seed=n)
            found = runner.evaluate(asked)
            with torch.no_grad():
                expected = module(*map(torch.from_numpy, asked.values()))
            for name, theirs in zip(("scores", "best"), expected, strict=True):
                assert_close(np.asarray(found[name]), theirs.numpy())


@needs_aoti
def test_a_package_is_loaded_once_for_all_runners(
    policy: tuple[Path, GraphPolicy], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # PyTorch unpacks the package in this folder.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    package = tmp_path / "own.pt2"
    shutil.copy(policy[0], package)
    specs = [f"aoti:{package}", f"fallback|aoti:{package}", f"aoti:{package}"]
    assert_replies_alike(specs, request(4, seed=3))
    assert len(libraries_in(tmp_path)) == 1


@needs_aoti
def test_one_package_in_many_threads(policy: tuple[Path, GraphPolicy]) -> None:
    asked = request(9, seed=2)
    replies: list[Any] = []

    def ask(_: int) -> None:
        with ModelRunner(f"aoti:{policy[0]}") as runner:
            replies.extend(runner.evaluate(asked)["scores"] for _ in range(200))

    in_threads(ask, 4)
    assert len(replies) == 800
    assert all(np.array_equal(reply, replies[0]) for reply in replies)


@needs_aoti
def test_a_forked_child_is_told_not_to_ask(policy: tuple[Path, GraphPolicy]) -> None:
    asked = request(4, seed=4)
    with ModelRunner(f"aoti:{policy[0]}") as runner:
        expected = runner.evaluate(asked)["scores"]
        child = os.fork()
        if child == 0:
            # Set a limit, because an evaluation could wait for the parent's threads.
            signal.alarm(30)
            try:
                runner.evaluate(asked)
            except Unsupported as error:
                said = "used before this process was forked" in str(error)
                os._exit(0 if said else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert np.array_equal(runner.evaluate(asked)["scores"], expected)


@needs_aoti
def test_what_is_wrong_with_a_package_is_said(
    policy: tuple[Path, GraphPolicy], tmp_path: Path
) -> None:
    nodes = {"nodes": np.zeros((4, 16), np.float32), "scale": np.int64(1)}
    with ModelRunner(f"aoti:{policy[0]}") as runner:
        for more, problem in (
            ({}, "expected a feature 'adjacency'"),
            ({"adjacency": np.zeros((3, 3), "f4")}, "must be extent 0 of 'nodes'"),
            ({"adjacency": np.full((4, 4), np.nan, "f4")}, "found NaN"),
        ):
            with pytest.raises(SchemaMismatch, match=problem):
                runner.evaluate({**nodes, **more})
    short = tmp_path / "short.pt2"
    short.write_bytes(policy[0].read_bytes()[:5000])
    with pytest.raises(Malformed):
        reply_of(f"aoti:{short}", nodes)


def test_an_example_that_does_not_fit(tmp_path: Path) -> None:
    path, example = tmp_path / "x.pt2", {"x": torch.zeros(2)}
    with pytest.raises(
        mlbridge.InvalidArgument, match="expected an example of input, found x"
    ):
        aotinductor.package(nn.Linear(2, 2), path, example, outputs=["y"])
    named = {"input": torch.zeros(2)}
    with pytest.raises(SchemaMismatch, match="returns 1 tensors, and 2 are named"):
        aotinductor.package(nn.Linear(2, 2), path, named, outputs=["y", "z"])


NO_TVM = "Apache TVM is not installed: `make test-full` installs it"
needs_tvm = pytest.mark.skipif(
    not (find_spec("tvm") and (MODULES / "MLBridge-tvm.so").exists()), reason=NO_TVM
)


@pytest.fixture
def library(tmp_path: Path) -> Path:
    onnx.save(aot_models.mlp(), tmp_path / "m.onnx")
    tvm.compile_model(tmp_path / "m.onnx", tmp_path / "m.so")
    return tmp_path / "m.so"


@pytest.fixture
def features() -> dict[str, Any]:
    return next(iter(aot_models.requests("mlp")))


@needs_tvm
def test_what_is_wrong_with_a_library_is_said(
    tmp_path: Path, library: Path, features: dict[str, Any]
) -> None:
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
    (tmp_path / "m.onnx").write_bytes(b"no model")
    with pytest.raises(Malformed):
        tvm.compile_model(tmp_path / "m.onnx", library)


@needs_tvm
def test_a_library_is_loaded_once_for_all_runners(
    library: Path, features: dict[str, Any]
) -> None:
    spec = f"tvm:{library}?runtime={tvm.runtime()}"
    assert_replies_alike([spec, f"fallback|{spec}", spec], features)
    assert libraries_in(library.parent) == [str(library)]


@needs_tvm
def test_a_new_library_of_an_old_name_is_a_new_model(
    library: Path, features: dict[str, Any]
) -> None:
    def expected() -> Any:
        session = onnxruntime.InferenceSession(library.with_suffix(".onnx"))
        return session.run(["logits"], features)[0]

    first = expected()
    spec = f"tvm:{library}?runtime={tvm.runtime()}"
    with ModelRunner(spec) as old:
        assert_close(np.asarray(old.evaluate(features)["logits"]), first)
        onnx.save(aot_models.mlp(seed=2), library.with_suffix(".onnx"))
        new = library.with_name("new.so")
        tvm.compile_model(library.with_suffix(".onnx"), new)
        new.replace(library)
        assert_close(np.asarray(reply_of(spec, features)["logits"]), expected())
        assert_close(np.asarray(old.evaluate(features)["logits"]), first)


@FULL
def test_tvm_is_there_in_the_full_run() -> None:
    """`make test-full` installs TVM and must not skip its tests."""
    assert find_spec("tvm") is not None
    assert (MODULES / "MLBridge-tvm.so").exists()


@pytest.mark.skipif(not find_spec("tvm"), reason=NO_TVM)
def test_a_model_that_tvm_cannot_compile(tmp_path: Path) -> None:
    source = tmp_path / "m.onnx"
    onnx.save(aot_models.lstm(), source)
    with pytest.raises(mlbridge.ModelError, match="LSTM"):
        tvm.compile_model(source, tmp_path / "m.so")
    assert not (tmp_path / "m.so").exists()
