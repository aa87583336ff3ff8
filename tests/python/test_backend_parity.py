# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One model of each kind gives the same answers whatever runs it.

What ONNX Runtime answers in Python is what all others are held against. TensorFlow's
models (tests/tensorflow) and PyTorch's packages (test_runtimes.py) are not made from
.onnx files, so they are compared with their frameworks.
"""

import importlib.util
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import aot_models
from conftest import MODULES, assert_close
from mlbridge import Features, ModelRunner, inprocess, serving
from mlbridge.runtimes import tvm

IN_PROCESS = ("onnx", "aot", "aot?cpu=baseline", "tvm")
SERVED = ("pipe", "shm", "shm?serdes=json", "grpc+unix")
PAIRS = [
    (backend, kind)
    for backend in IN_PROCESS + SERVED
    for kind in aot_models.MODELS
    # TVM reads no LSTM from ONNX, which test_runtimes.py holds it to.
    if (backend, kind) != ("tvm", "lstm")
]


class Reference:
    """An .onnx file, as ONNX Runtime alone runs it."""

    def __init__(self, path: Path) -> None:
        self._session = onnxruntime.InferenceSession(path)
        self.names = [output.name for output in self._session.get_outputs()]

    def __call__(self, features: Features) -> dict[str, Any]:
        found = self._session.run(self.names, features)
        return dict(zip(self.names, map(np.asarray, found), strict=True))


def made_by_tvm(model: Path) -> str:
    if (
        importlib.util.find_spec("tvm") is None
        or not (MODULES / "MLBridge-tvm.so").exists()
    ):
        pytest.skip("Apache TVM is not installed: `make test-full` does that")
    library = model.with_suffix(".tvm.so")
    if not library.exists():
        tvm.compile_model(model, library)
    return f"tvm:{library}?runtime={tvm.runtime()}"


def in_process(backend: str, model: Path) -> str:
    """The spec for a model."""
    scheme, question_mark, options = backend.partition("?")
    if scheme == "tvm":
        return made_by_tvm(model)
    if scheme == "onnx" and not any(s.name == "onnx" for s in inprocess.schemes()):
        pytest.skip("this build has no scheme onnx:")
    file = model if scheme == "onnx" else model.with_name(f"lib{model.stem}.so")
    return f"{scheme}:{file}{question_mark}{options}"


@pytest.mark.parametrize(("backend", "kind"), PAIRS)
def test_answers_are_those_of_onnx_runtime(
    backend: str,
    kind: str,
    aot_folder: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLBRIDGE_MODULES", str(MODULES))
    model = aot_folder / f"{kind}.onnx"
    reference = Reference(model)
    server: AbstractContextManager[Any] = nullcontext()
    if backend in SERVED:
        scheme, question_mark, options = backend.partition("?")
        if scheme.startswith("grpc"):
            pytest.importorskip("mlbridge._grpc", reason="this build has no gRPC")
        server = serving(reference, f"{scheme}:{name}")
        spec = f"{scheme}:{name}{question_mark}{options}"
    else:
        spec = in_process(backend, model)
    with server, ModelRunner(spec) as runner:
        for features in aot_models.questions(kind):
            found = runner.evaluate(features)
            expected = reference(features)
            assert sorted(found) == sorted(expected)
            for output in expected:
                assert_close(np.asarray(found[output]), expected[output])
