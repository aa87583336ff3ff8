# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exported policies, asked as a compiler asks them: features one by one, by spec."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch", reason="needs scripts/make-venv train export")
pytest.importorskip("onnxscript", reason="needs scripts/make-venv train export")

import torch
from torch import nn

from exported import run
from mlbridge import SchemaMismatch, _core, create_model_runner
from mlbridge.export import Metadata, export, features_of

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ["int64 callee_size", "float[3] embedding", "int64[1] height", "bool hot"]
COUNT = 50

Spec = Callable[[Path], str]


def in_process(path: Path) -> str:
    return f"onnx:{path}"


def as_machine_code(path: Path) -> str:
    library = path.with_suffix(".so")
    subprocess.run(
        [
            *(sys.executable, "-c", "from mlbridge.cli import main; main()"),
            *("compile", path, "-o", library),
        ],
        check=True,
        capture_output=True,
        timeout=300,
    )
    return f"aot:{library}"


@pytest.fixture(params=["onnx", "aot"])
def spec(request: pytest.FixtureRequest) -> Spec:
    if request.param == "onnx":
        return in_process
    if "aot" not in _core.schemes():
        pytest.skip("this build has no scheme aot:")
    return as_machine_code


def network() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4))


def requests() -> dict[str, NDArray[Any]]:
    random = np.random.default_rng(8)
    found = {one.name: one.draw(COUNT, random) for one in features_of(TEXTS)}
    found["callee_size"] %= 50
    found["height"] %= 9
    return found


def test_the_same_answers(tmp_path: Path, spec: Spec) -> None:
    path = tmp_path / "m.onnx"
    export(network(), path, features=TEXTS)
    asked = requests()
    expected = run(path, asked)["output"]
    with create_model_runner(spec(path)) as runner:
        for i in range(COUNT):
            features = {name: np.asarray(v[i]) for name, v in asked.items()}
            found = runner.evaluate({**features, "unused": np.array(1.0)})
            if isinstance(found, dict):
                found = found["output"]
            np.testing.assert_allclose(
                np.ravel(found), expected[i], rtol=1e-4, atol=1e-5
            )


def test_the_decision_is_the_metadata_s(tmp_path: Path, spec: Spec) -> None:
    path = tmp_path / "m.onnx"
    export(network(), path, features=TEXTS, decide="argmax:output")
    asked = requests()
    expected = run(path, asked)["output"].argmax(axis=1)
    assert len(np.unique(expected)) > 1
    with create_model_runner(spec(path)) as runner:
        for i in range(COUNT):
            found: Any = runner.evaluate(
                {k: np.asarray(v[i]) for k, v in asked.items()}
            )
            if isinstance(found, dict):
                (found,) = found.values()
            assert int(np.ravel(found)[0]) == expected[i]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_pipeline_that_scales(tmp_path: Path, spec: Spec) -> None:
    pytest.importorskip("skl2onnx", reason="needs scripts/make-venv export")
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x = np.random.default_rng(4).normal(50, 9, (200, 3)).astype(np.float32)
    classifier = MLPClassifier((8,), random_state=0)
    pipeline = make_pipeline(StandardScaler(), classifier).fit(x, x.sum(1) > 150)
    path = tmp_path / "m.onnx"
    rule = {"outputs": ["probabilities"], "decide": "argmax:probabilities"}
    export(pipeline, path, features=["float[3] x"], batch=1, **rule)
    with create_model_runner(spec(path)) as runner:
        found = [runner.evaluate({"x": row}, int) for row in x[:COUNT]]
    assert found == pipeline.predict(x[:COUNT]).tolist()


def test_what_the_metadata_forbids(tmp_path: Path, spec: Spec) -> None:
    asked = {name: values[0] for name, values in requests().items()}
    asked["embedding"] = np.array([0, np.nan, 0], np.float32)
    for finite in (True, False):
        path = tmp_path / f"{finite}.onnx"
        export(network(), path, features=TEXTS, metadata=Metadata(finite=finite))
        with create_model_runner(spec(path)) as runner:
            if finite:
                with pytest.raises(SchemaMismatch, match="embedding"):
                    runner.evaluate(asked)
            else:
                found = runner.evaluate(asked)
                values = found["output"] if isinstance(found, dict) else found
                assert np.isnan(np.ravel(values)).all()


def test_features_of_another_type(tmp_path: Path, spec: Spec) -> None:
    path = tmp_path / "m.onnx"
    export(network(), path, features=TEXTS)
    asked = {name: values[0] for name, values in requests().items()}
    asked["height"] = asked["height"].astype(np.int32)
    with (
        create_model_runner(spec(path)) as runner,
        pytest.raises(SchemaMismatch, match="height"),
    ):
        runner.evaluate(asked)
