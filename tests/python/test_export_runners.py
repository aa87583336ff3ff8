# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exported policies, which reply to the requests of a runner."""

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
from mlbridge.aot import compile_model
from mlbridge.export import Metadata, export, features_of

TEXTS = ["int64 callee_size", "float[3] embedding", "int64[1] height", "bool hot"]
COUNT = 50

Spec = Callable[[Path], str]


def as_machine_code(path: Path) -> str:
    library = path.with_suffix(".so")
    compile_model(path, library)
    return f"aot:{library}"


@pytest.fixture(params=["onnx", "aot"])
def spec(request: pytest.FixtureRequest) -> Spec:
    if request.param == "onnx":
        return "onnx:{}".format
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


def replies_of(spec: str, asked: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """Returns the only output for each row of a batch, [N, ...]."""
    with create_model_runner(spec) as runner:
        replies = []
        for i in range(len(asked["height"])):
            features = {name: np.asarray(values[i]) for name, values in asked.items()}
            found = runner.evaluate({**features, "unused": np.array(1.0)})
            if isinstance(found, dict):
                (found,) = found.values()
            replies.append(np.ravel(found))
    return np.stack(replies)


@pytest.mark.parametrize("decide", [None, "argmax:output"])
def test_the_same_answers(tmp_path: Path, spec: Spec, decide: str | None) -> None:
    """A runner's reply is the outputs, or the decision that the metadata define."""
    path = tmp_path / "m.onnx"
    export(network(), path, features=TEXTS, decide=decide)
    asked = requests()
    expected = run(path, asked)["output"]
    found = replies_of(spec(path), asked)
    if decide is None:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    else:
        best = expected.argmax(axis=1)
        assert len(np.unique(best)) > 1
        np.testing.assert_array_equal(found[:, 0], best)


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
    rule: dict[str, Any] = {
        "outputs": ["probabilities"],
        "decide": "argmax:probabilities",
    }
    export(pipeline, path, features=["float[3] x"], batch=1, **rule)
    with create_model_runner(spec(path)) as runner:
        found = [runner.evaluate({"x": row}, int) for row in x[:COUNT]]
    assert found == pipeline.predict(x[:COUNT]).tolist()


def test_what_the_metadata_forbids(tmp_path: Path, spec: Spec) -> None:
    asked = {name: values[:1] for name, values in requests().items()}
    asked["embedding"] = np.array([[0, np.nan, 0]], np.float32)
    for finite in (True, False):
        path = tmp_path / f"{finite}.onnx"
        export(network(), path, features=TEXTS, metadata=Metadata(finite=finite))
        if finite:
            with pytest.raises(SchemaMismatch, match="embedding"):
                replies_of(spec(path), asked)
        else:
            assert np.isnan(replies_of(spec(path), asked)).all()


def test_features_of_another_type(tmp_path: Path, spec: Spec) -> None:
    path = tmp_path / "m.onnx"
    export(network(), path, features=TEXTS)
    asked = {name: values[:1] for name, values in requests().items()}
    asked["height"] = asked["height"].astype(np.int32)
    with pytest.raises(SchemaMismatch, match="height"):
        replies_of(spec(path), asked)
