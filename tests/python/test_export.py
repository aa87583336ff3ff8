# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exported policies: features, PyTorch, scikit-learn, and metadata."""

import json
import math
import re
import struct
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from numpy.typing import NDArray

pytest.importorskip("torch", reason="needs scripts/make-venv train export")
pytest.importorskip("skl2onnx", reason="needs scripts/make-venv train export")

import gymnasium
import onnx
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from torch import Tensor, nn

from exported import metadata, run
from mlbridge import InvalidArgument, ModelError, SchemaMismatch, Unsupported, read_log
from mlbridge.export import Metadata, Training, export
from mlbridge.export.features import FeatureSpec, features_of, parse_feature
from mlbridge.onnx import load_onnx
from training_logs import context, header, write_log

TEXTS = ["int64 callee_size", "float[3] embedding", "int64[1] height", "bool hot"]
RANDOM = np.random.default_rng(5)


def network(inputs: int, outputs: int = 4, *, dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(inputs, 8),
        nn.Tanh(),
        nn.Dropout(dropout),
        nn.Linear(8, outputs),
    )


def features(count: int) -> dict[str, NDArray[Any]]:
    return {one.name: one.draw(count, RANDOM) for one in features_of(TEXTS)}


def assert_close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int64 x", FeatureSpec("x", "int64_t")),
        ("int64_t[1] x", FeatureSpec("x", "int64_t", (1,))),
        (" float[2, 3]  a.b ", FeatureSpec("a.b", "float", (2, 3))),
        ("double[] x", FeatureSpec("x", "double")),
        ("float64 x", FeatureSpec("x", "double")),
    ],
)
def test_features_as_text(text: str, expected: FeatureSpec) -> None:
    assert parse_feature(text) == expected
    assert parse_feature(str(expected)) == expected


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("x", InvalidArgument, "expected a feature such as 'int64 callee_size'"),
        ("float[3 x", InvalidArgument, "expected a feature such as"),
        ("complex64 x", InvalidArgument, "feature 'x'.*complex64"),
        ("float[0] x", InvalidArgument, "positive extents"),
        ("string x", Unsupported, "'x': .* found a string.*let the compiler send"),
        ("float x, int64 x", InvalidArgument, "found 'x' twice: 'float x' and"),
    ],
)
def test_features_that_are_none(text: str, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        features_of(text.split(", "))


def test_features_of_a_space_are_flattened_as_gymnasium_does(tmp_path: Path) -> None:
    """The graph encodes features, including one-hot categories, as gymnasium does."""
    space = spaces.Dict(
        size=spaces.Box(0, 1000, (), np.int64),
        kind=spaces.Discrete(3, start=2),
        flags=spaces.MultiBinary(2),
        choice=spaces.MultiDiscrete([2, 3]),
        nested=spaces.Dict(matrix=spaces.Box(-1, 1, (2, 2), np.float32)),
    )
    found = features_of(space)
    assert [(f.name, f.type, f.width) for f in found] == [
        ("size", "int64_t", 1),
        ("kind", "int64_t", 3),
        ("flags", "int8_t", 2),
        ("choice", "int64_t", 5),
        ("nested.matrix", "float", 4),
    ]
    path = tmp_path / "row.onnx"
    export(nn.Identity(), path, features=space)
    space.seed(3)
    for _ in range(20):
        sample = space.sample()
        row = gymnasium.spaces.flatten(space, sample)
        sample["nested.matrix"] = sample.pop("nested")["matrix"]
        asked = {name: np.asarray(value)[None] for name, value in sample.items()}
        np.testing.assert_array_equal(run(path, asked)["output"][0], row)


def test_features_of_a_log(tmp_path: Path) -> None:
    log = read_log(write_log(tmp_path / "a.log"))
    assert features_of(log) == (
        FeatureSpec("size", "int64_t", (1,), low=10, high=0x0A0A0A0A),
        FeatureSpec(
            "weights", "float", (2, 2), low=-1.5, high=float(np.float32(0x0A0A0A0A))
        ),
    )
    assert [f.name for f in features_of(log, without=["size"])] == ["weights"]
    with pytest.raises(InvalidArgument, match=r"no feature 'sise' .* only size, w"):
        features_of(log, without=["sise"])


def test_a_log_with_numbers_that_are_not_finite(tmp_path: Path) -> None:
    """Infinities and NaN set no limits, and the comparison still finds differences."""
    path, data = tmp_path / "a.log", header() + context("main")
    rows = [(-3.0, np.nan, 0.5, 1.0), (np.inf, 7.0, -np.inf, 1.0)]
    for index, row in enumerate(rows):
        packed = struct.pack("<q4fq", 10, *row, 1)
        data += b'{"observation":%d}\n%b\n' % (index, packed)
    path.write_bytes(data)
    weights = features_of(read_log(path), without=["size"])
    assert [(f.low, f.high) for f in weights] == [(-3, 7)]
    with pytest.raises(ModelError, match="output 'output' differs"):
        export(Noisy(), tmp_path / "m.onnx", features=weights)


@pytest.mark.parametrize("limits", [(math.nan, math.nan), (0, math.nan), (2, 1)])
def test_limits_that_are_none(limits: tuple[float, float]) -> None:
    with pytest.raises(InvalidArgument, match="'x': expected limits to draw numbers"):
        FeatureSpec("x", low=limits[0], high=limits[1])


@pytest.mark.parametrize("kind", ["bool", "int8_t", "uint64_t", "int64_t", "double"])
def test_what_is_drawn_keeps_to_its_limits(kind: str) -> None:
    limits = {"bool": (0, 1), "int8_t": (-128, 127)}.get(kind, (3, 1 << 15))
    spec = FeatureSpec("x", kind, (2, 3), low=limits[0], high=limits[1])
    values = spec.draw(500, RANDOM)
    assert values.shape == (500, 2, 3)
    assert values.dtype == spec.dtype
    assert values.min() >= limits[0]
    assert values.max() <= limits[1]
    assert len(np.unique(values)) > (1 if kind == "bool" else 50)


@pytest.mark.parametrize("kind", ["int64_t", "uint32_t", "double", "float"])
@pytest.mark.parametrize(
    "limits", [(1e7, 2e7), (-2e7, -1e7), (1e7, math.inf), (-math.inf, -1e7)]
)
def test_what_is_drawn_far_from_0_differs(kind: str, limits: Any) -> None:
    if kind == "uint32_t" and limits[1] < 0:
        pytest.skip("it has none of these")
    spec = FeatureSpec("x", kind, low=limits[0], high=limits[1])
    values = spec.draw(500, RANDOM)
    assert values.min() >= limits[0]
    assert values.max() <= limits[1]
    assert len(np.unique(values)) > 250


@pytest.mark.parametrize("batch", [None, 1, 3])
def test_a_module_takes_its_features_in_a_row(tmp_path: Path, batch: Any) -> None:
    module = network(6, dropout=0.5).train()
    path = tmp_path / "m.onnx"
    done = export(module, path, features=TEXTS, batch=batch)
    assert module.training
    assert [f.name for f in done.features] == [text.split()[1] for text in TEXTS]
    assert done.outputs == ("output",)
    assert done.decide is None
    assert done.comparison.requests == 256

    inputs = {v.name: v.type.tensor_type for v in onnx.load(path).graph.input}
    assert {name: kind.elem_type for name, kind in inputs.items()} == {
        "callee_size": onnx.TensorProto.INT64,
        "embedding": onnx.TensorProto.FLOAT,
        "height": onnx.TensorProto.INT64,
        "hot": onnx.TensorProto.BOOL,
    }
    shape = [d.dim_value or d.dim_param for d in inputs["embedding"].shape.dim]
    assert shape == [batch or "N", 3]

    asked = features(batch or 7)
    row = np.concatenate([v.reshape(len(v), -1).astype("f") for v in asked.values()], 1)
    with torch.no_grad():
        expected = module.eval()(torch.from_numpy(row)).numpy()
    assert_close(run(path, dict(reversed(asked.items())))["output"], expected)


def test_the_difference_is_relative_to_large_features(tmp_path: Path) -> None:
    torch.manual_seed(1)
    module = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
    done = export(module, tmp_path / "m.onnx", features=TEXTS)
    assert max(map(abs, features(256)["callee_size"])) > 1e5
    assert 0 < done.comparison.differences["output"] < 1e-6


def test_the_server_takes_it(tmp_path: Path) -> None:
    """The server batches features of several compilers, in LLVM's shapes."""
    path = tmp_path / "m.onnx"
    export(network(6), path, features=TEXTS)
    asked = features(5)
    requests = [{k: np.asarray(v[i]) for k, v in asked.items()} for i in range(5)]
    replies = np.stack(load_onnx(path)(requests))
    expected = run(path, asked)["output"]
    np.testing.assert_allclose(replies, expected, rtol=1e-5, atol=1e-6)


BY_NAME = [
    FeatureSpec("opcode", "int64", low=0, high=9),
    FeatureSpec("vector", shape=(2,)),
]


class ByName(nn.Module):
    """Concatenates the embedding of a number and a vector. Has two outputs."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.table = nn.Embedding(10, 3)
        self.layer = nn.Linear(5, 2)

    def forward(self, vector: Tensor, opcode: Tensor) -> dict[str, Tensor]:
        hidden = torch.cat([self.table(opcode), vector], dim=1)
        logits = self.layer(hidden)
        return {"logits": logits, "value": hidden.sum(dim=1)}


def test_a_policy_that_learned_nan_is_refused(tmp_path: Path) -> None:
    module, path = ByName(), tmp_path / "m.onnx"
    nn.init.constant_(module.layer.bias, float("nan"))
    with pytest.raises(ModelError, match=r"'logits': the policy itself .* NaN"):
        export(module, path, features=BY_NAME)
    assert not path.exists()


def test_a_module_takes_its_features_by_name(tmp_path: Path) -> None:
    module, path = ByName(), tmp_path / "m.onnx"
    done = export(module, path, features=BY_NAME, decide="argmax:logits")
    assert done.outputs == ("logits", "value")
    assert metadata(path)["mlbridge.decide"] == "argmax:logits"
    asked = {
        "opcode": RANDOM.integers(0, 10, 6),
        "vector": RANDOM.normal(size=(6, 2)).astype("f"),
    }
    with torch.no_grad():
        expected = module(*(torch.from_numpy(asked[k]) for k in ("vector", "opcode")))
    found = run(path, asked)
    for name, values in expected.items():
        assert_close(found[name], values.numpy())

    done = export(
        module, path, features=BY_NAME, decide="argmax:logits", decision="choice"
    )
    assert (done.outputs, done.decide) == (("choice",), None)
    assert "mlbridge.decide" not in metadata(path)
    found = run(path, asked)
    assert found.keys() == {"choice"}
    assert found["choice"].dtype == np.int64
    assert (found["choice"] == expected["logits"].argmax(dim=1).numpy()).all()

    export(module, path, features=BY_NAME, outputs=["logits"])
    model = onnx.load(path)
    assert [v.name for v in model.graph.output] == ["logits"]
    assert "ReduceSum" not in {node.op_type for node in model.graph.node}


@pytest.mark.parametrize(
    ("module", "given", "message"),
    [
        (
            network(6),
            TEXTS[:3],
            r"expected .* shape \[6\], .* vector of 5: int64_t callee",
        ),
        (network(6), [*TEXTS, "float more"], "a vector of 7: .*Name the features"),
        (ByName(), ["int64 opcode"], "vector, opcode; missing: vector"),
        (ByName(), [*BY_NAME, FeatureSpec("x")], "; unused: x"),
    ],
)
def test_features_that_do_not_fit(
    tmp_path: Path, module: nn.Module, given: list[str], message: str
) -> None:
    with pytest.raises(SchemaMismatch, match=message):
        export(module, tmp_path / "m.onnx", features=given)
    assert list(tmp_path.iterdir()) == []


class Cost(nn.Module):
    """The exporter refuses the subtraction of an integer from a float."""

    def forward(self, cost: Tensor, bonus: Tensor) -> Tensor:
        return 60.0 - cost + bonus


class Branching(nn.Module):
    def forward(self, cost: Tensor) -> Tensor:
        return cost if cost.sum() > 3 else -cost


class Linear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1, 2)

    def forward(self, cost: Tensor, bonus: Tensor) -> Any:
        return self.layer(cost) + bonus


@pytest.mark.parametrize(
    ("module", "line", "hint"),
    [
        (Cost(), r"`return 60.0 - cost \+ bonus`: RuntimeError: .*aten.sub", True),
        (Linear(), r"`return self.layer\(cost\) \+ bonus`: RuntimeError: mat1", True),
        (Branching(), r"`return cost if cost.sum\(\) > 3", False),
    ],
)
def test_a_module_that_fails_names_its_line(
    tmp_path: Path, module: nn.Module, line: str, hint: bool
) -> None:
    given = ["int64 cost", "int64 bonus"][: 1 if isinstance(module, Branching) else 2]
    with pytest.raises(InvalidArgument) as raised:
        export(module, tmp_path / "m.onnx", features=given)
    says = str(raised.value)
    name = type(module).__name__
    assert re.match(rf"{name} cannot be exported: test_export.py:\d+: {line}", says)
    assert (
        says.endswith(
            "; 'cost' arrives as int64: use .float() if the network"
            " computes with floats"
        )
        == hint
    )
    assert "\n" not in says
    assert list(tmp_path.iterdir()) == []


class Noisy(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.rand_like(x)


class Mixing(nn.Module):
    """Each row's output depends on the other rows."""

    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(dim=0)


@pytest.mark.parametrize("batch", [None, 512])
def test_a_graph_that_answers_otherwise_is_not_written(
    tmp_path: Path, batch: int | None
) -> None:
    says = r"output 'output' differs in .* returns .* x="
    with pytest.raises(ModelError, match=says) as caught:
        export(Noisy(), tmp_path / "m.onnx", features=["float[2] x"], batch=batch)
    assert "randomness" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_answers_that_depend_on_other_requests(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    with pytest.raises(ModelError, match=r"use batch=1 \(--batch 1\)"):
        export(Mixing(), path, features=["float[2] x"])
    export(Mixing(), path, features=["float[2] x"], batch=1)
    x = np.array([[3, 4]], np.float32)
    np.testing.assert_array_equal(run(path, {"x": x})["output"], [[0, 0]])


class Wrong(nn.Module):
    def forward(self, x: Tensor) -> Any:
        return [x, x]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": None}, "expected its features, in the order"),
        ({"framework": "caffe"}, "no framework 'caffe', only pytorch"),
        ({"statistics": None}, "pytorch has no such option.*statistics"),
        ({"features": ["float output"]}, "'output' is a feature and an output"),
        ({"outputs": ["logits"]}, "no output 'logits', only output"),
        ({"decide": "greedy:output"}, "expected argmax:OUTPUT.*'greedy:output'"),
        ({"decide": "argmax:q"}, "there is no output 'q', only output"),
        ({"decision": "d"}, "the decision 'd': expected the rule argmax:OUTPUT"),
        ({"decide": "argmax:output", "decision": "x"}, "'x' is a feature and an"),
    ],
)
def test_wrong_arguments(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    options = {"features": ["float x"], **options}
    with pytest.raises(InvalidArgument, match=message):
        export(network(1), tmp_path / "m.onnx", **options)


def test_policies_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    with pytest.raises(InvalidArgument, match=r"tensor, or a dict of tensors .* list"):
        export(Wrong(), path, features=["float x"])
    says = r"cannot export a builtins.dict: .* a PyTorch mod"
    with pytest.raises(Unsupported, match=says):
        export({"weights": 1}, path)


def test_features_named_as_the_policys_own_values(tmp_path: Path) -> None:
    export(network(2), tmp_path / "m.onnx", features=["float input", "int8 linear"])


def test_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    path = tmp_path / "m.onnx"
    export(
        network(6),
        path,
        features=TEXTS,
        decide="sample:output",
        metadata=Metadata(
            reward="bytes saved",
            vocabulary=("seed.json", "sha256:12"),
            finite=False,
            training=Training(seed=7, command="train.py"),
            more={"card": "models/README.md"},
        ),
    )
    found = metadata(path)
    assert json.loads(found["mlbridge.features"]) == [
        {"name": "callee_size", "type": "int64_t", "shape": []},
        {"name": "embedding", "type": "float", "shape": [3]},
        {"name": "height", "type": "int64_t", "shape": [1]},
        {"name": "hot", "type": "bool", "shape": []},
    ]
    assert found["mlbridge.decide"] == "sample:output"
    assert found["mlbridge.finite"] == "false"
    assert found["mlbridge.reward"] == "bytes saved"
    assert found["mlbridge.framework"] == f"torch {torch.__version__}"
    assert found["card"] == "models/README.md"
    vocabulary = json.loads(found["mlbridge.vocabulary"])
    assert vocabulary == {"name": "seed.json", "hash": "sha256:12"}
    training = json.loads(found["mlbridge.training"])
    assert training.pop("commit")[:40].isalnum()
    date = "1970-01-01T00:00:00+00:00"
    assert training == {"command": "train.py", "seed": 7, "date": date}
    before = path.read_bytes()
    again = Metadata(training=Training(seed=7, command="train.py"))
    for target in (path, tmp_path / "n.onnx"):
        export(network(6), target, features=TEXTS, metadata=again)
    assert path.read_bytes() == (tmp_path / "n.onnx").read_bytes() != before
    assert str(Path.cwd()).encode() not in path.read_bytes()


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["{scripts}/mlbridge", "train", "--out", "{here}/a b"], "train --out 'a b'"),
        (["{here}/train.py", "{here}"], "."),
        (["-m", "examples.rl", "/elsewhere/x"], "/elsewhere/x"),
    ],
)
def test_the_command_is_as_one_types_it(
    typed: list[str], said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    places = {"here": str(tmp_path), "scripts": sysconfig.get_path("scripts")}
    monkeypatch.chdir(tmp_path)
    words = [word.format(**places) for word in typed]
    monkeypatch.setattr(sys, "orig_argv", [sys.executable, *words])
    program = {"{s": "mlbridge", "{h": "python train.py", "-m": "python -m examples.rl"}
    expected = f"{program[typed[0][:2]]} {said.format(**places)}"
    assert Training().command == expected


def table(rows: int = 200) -> tuple[NDArray[Any], NDArray[Any]]:
    random = np.random.default_rng(9)
    x = random.integers(-20, 20, (rows, 3)).astype(float)
    return x, (x[:, 0] + 2 * x[:, 1] > x[:, 2]).astype(int)


ESTIMATORS: Sequence[Any] = [
    RandomForestClassifier(7, random_state=0),
    make_pipeline(StandardScaler(), LogisticRegression()),
    make_pipeline(StandardScaler(), MLPClassifier((8,), random_state=0, max_iter=50)),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=["forest", "linear", "network"])
@pytest.mark.parametrize("kind", [int, bool])
def test_a_classifier(tmp_path: Path, estimator: Any, kind: type) -> None:
    x, y = table()
    estimator.fit(x, y.astype(kind))
    path = tmp_path / "m.onnx"
    given = ["int64 a", "float b", "int8[1] c"]
    done = export(estimator, path, features=given)
    assert (done.outputs, done.decide) == (("label",), "outputs:label")
    asked = {
        "a": x[:, 0].astype(np.int64),
        "b": x[:, 1].astype("f"),
        "c": x[:, 2:].astype(np.int8),
    }
    np.testing.assert_array_equal(run(path, asked)["label"], estimator.predict(x))

    names = ["probabilities"]
    export(estimator, path, features=given, outputs=names, decide=f"argmax:{names[0]}")
    assert_close(run(path, asked)["probabilities"], estimator.predict_proba(x))


def test_a_regressor(tmp_path: Path) -> None:
    x, y = table()
    model, path = LinearRegression().fit(x, y), tmp_path / "m.onnx"
    done = export(model, path, features=["float[3] x"])
    assert (done.outputs, done.decide) == (("value",), None)
    found = run(path, {"x": x.astype("f")})["value"]
    assert_close(found[:, 0], model.predict(x))


@pytest.mark.parametrize(
    ("estimator", "error", "message"),
    [
        (RandomForestClassifier(), InvalidArgument, "not fitted"),
        (LinearRegression().fit(*table()), InvalidArgument, "expected its features"),
        (StandardScaler().fit(*table()), Unsupported, "neither a classifier nor"),
        (
            LogisticRegression().fit(table()[0], np.where(table()[1], "yes", "no")),
            Unsupported,
            "train it with classes 0, 1",
        ),
    ],
    ids=["not fitted", "no features", "no decision", "texts"],
)
def test_estimators_that_are_none(
    tmp_path: Path, estimator: Any, error: type[Exception], message: str
) -> None:
    given = [] if "its features" in message else ["float[3] x"]
    with pytest.raises(error, match=message):
        export(estimator, tmp_path / "m.onnx", features=given)


def test_other_columns(tmp_path: Path) -> None:
    model = LogisticRegression().fit(*table())
    says = r"shape \[3\], found features for .* 2"
    with pytest.raises(SchemaMismatch, match=says):
        export(model, tmp_path / "m.onnx", features=["float a", "float b"])


def test_columns_with_names(tmp_path: Path) -> None:
    """Features match columns by name, in any order. Other names are refused."""
    pandas = pytest.importorskip("pandas", reason="needs scripts/make-venv train")
    path = tmp_path / "m.onnx"
    x, _ = table()
    columns = pandas.DataFrame(x, columns=["a", "b", "c"])
    model = DecisionTreeRegressor(random_state=0).fit(columns, x[:, 0] - x[:, 1])
    done = export(model, path, features=["int8 c", "int64 b", "float[1] a"])
    assert [str(f) for f in done.features] == ["float[1] a", "int64_t b", "int8_t c"]
    asked = {
        "a": x[:, :1].astype("f"),
        "b": x[:, 1].astype(np.int64),
        "c": x[:, 2].astype(np.int8),
    }
    found = run(path, asked)["value"]
    np.testing.assert_allclose(found[:, 0], model.predict(columns), rtol=1e-4)
    assert [f.name for f in export(model, path).features] == ["a", "b", "c"]
    with pytest.raises(SchemaMismatch, match="features a, b, c; missing: c"):
        export(model, path, features=["float a", "float b", "float d"])
    with pytest.raises(SchemaMismatch, match="the features a, b, c"):
        export(model, path, features=["float[3] x"])


def test_a_package_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # None makes Python's import fail.
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(Unsupported, match=r"'onnxruntime'.*'\.\[export\]'"):
        export(network(6), tmp_path / "m.onnx", features=TEXTS)
    assert not (tmp_path / "m.onnx").exists()
