# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge export`` and ``mlbridge inspect``."""

import hashlib
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import onnx
import pytest
from typer.testing import CliRunner, Result

pytest.importorskip("torch", reason="needs scripts/make-venv train export")
pytest.importorskip("skl2onnx", reason="needs scripts/make-venv train export")

from sklearn.tree import DecisionTreeClassifier

from exported import run
from mlbridge import InvalidArgument, Malformed
from mlbridge.cli import app
from training_logs import write_log

POLICIES = """
import numpy as np
import torch
from gymnasium import spaces

torch.manual_seed(0)
network = torch.nn.Linear(5, 2)

def make():
    return torch.nn.Linear(5, 3)

space = spaces.Dict(a=spaces.Box(0, 9, (4,), np.int64), b=spaces.Box(0, 1, (1,)))
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of policies in the current folder; its name."""
    name = f"policies_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(POLICIES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("COLUMNS", "200")
    return name


def mlbridge(*arguments: str | Path, fails: bool = False) -> Result:
    result = CliRunner().invoke(app, [str(word) for word in arguments])
    assert (result.exit_code != 0) == fails, result.output
    return result


def test_a_network_and_features_of_a_log(module: str, tmp_path: Path) -> None:
    write_log(tmp_path / "a.log")
    (tmp_path / "vocabulary.json").write_text("{}")
    result = mlbridge(
        *("export", f"{module}:network", "--to", "m.onnx", "--features", "a.log"),
        *("--decide", "sample:output", "--reward", "bytes", "--seed", "3"),
        *("--vocabulary", "vocabulary.json"),
    )
    assert "m.onnx: 2 features to output, sample:output" in result.output
    assert "answers as torch" in result.output
    found = {e.key: e.value for e in onnx.load("m.onnx").metadata_props}
    assert [f["name"] for f in json.loads(found["mlbridge.features"])] == [
        "size",
        "weights",
    ]
    assert json.loads(found["mlbridge.training"])["seed"] == 3
    vocabulary = json.loads(found["mlbridge.vocabulary"])
    digest = hashlib.sha256(b"{}").hexdigest()
    assert vocabulary == {"name": "vocabulary.json", "hash": f"sha256:{digest}"}

    shown = mlbridge("inspect", "m.onnx").output
    assert "int64_t[N,1]" in shown
    assert "float[N,2,2]" in shown
    assert "float[N,2]" in shown
    assert "sample:output" in shown
    assert "reward" in shown
    assert "seed: 3" in shown
    assert "12" in shown, "weights"


@pytest.mark.parametrize("decide", [None, "", "argmax:output"])
def test_scores_without_a_rule(module: str, decide: str | None) -> None:
    write_log(Path("a.log"))
    options = [] if decide is None else ["--decide", decide]
    arguments = ("export", f"{module}:network", "--to", "m.onnx", "--features", "a.log")
    output = " ".join(mlbridge(*arguments, *options).output.split())
    assert ("add --decide argmax:output" in output) == (decide is None)


def test_a_feature_to_leave_out_that_a_log_lacks(module: str) -> None:
    """As logs of `record:` lack `inlining_default`, which those of LLVM have."""
    write_log(Path("a.log"))
    result = mlbridge(
        *("export", f"{module}:network", "--to", "m.onnx", "--features", "a.log"),
        *("--without", "inlining_default", "--decide", ""),
    )
    said = " ".join(result.output.split())
    assert "a.log has no feature 'inlining_default' to leave out" in said
    assert "2 features to output" in said


def test_a_function_that_makes_a_policy_and_features_of_a_space(module: str) -> None:
    mlbridge(
        *("export", f"{module}:make", "--to", "m.onnx", "--batch", "1"),
        *("--features", f"{module}:space"),
    )
    asked: dict[str, Any] = {"a": np.arange(4)[None], "b": np.ones((1, 1), "f")}
    assert run(Path("m.onnx"), asked)["output"].shape == (1, 3)


def test_a_pickled_estimator(module: str, tmp_path: Path) -> None:
    x = np.array([[0, 1], [1, 0], [2, 2], [3, 0]], float)
    tree = DecisionTreeClassifier(random_state=0).fit(x, [0, 1, 0, 1])
    (tmp_path / "tree.pkl").write_bytes(pickle.dumps(tree))
    mlbridge(
        *("export", "tree.pkl", "--to", "m.onnx"),
        *("--feature", "int64 a", "--feature", "int64[1] b"),
    )
    asked = {"a": x[:, 0].astype(int), "b": x[:, 1:].astype(int)}
    assert run(Path("m.onnx"), asked)["label"].tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.zip"], "there is no file 'none.zip', and it is no MODULE:OBJECT"),
        (["nowhere:network"], "there is no module 'nowhere' here"),
        (["{module}:other"], "has no 'other'"),
        (
            ["{module}:network", "--feature", "int x", "--features", "a.log"],
            "--feature and --features are mutually exclusive",
        ),
        (["{module}:network", "--without", "x"], "--without goes with --features"),
    ],
)
def test_wrong_use(module: str, arguments: list[str], message: str) -> None:
    words = [word.format(module=module) for word in arguments]
    result = mlbridge("export", *words, "--to", "m.onnx", fails=True)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


@pytest.mark.parametrize("data", [b"", b"no policy", b"PK\x03\x04", b"\x80\x05cnone\n"])
@pytest.mark.parametrize("name", ["broken.zip", "broken.pkl", "broken.joblib"])
def test_broken_files(module: str, name: str, data: bytes) -> None:
    Path(name).write_bytes(data)
    result = mlbridge("export", name, "--to", "m.onnx", fails=True)
    assert isinstance(result.exception, Malformed)
    assert str(result.exception).startswith(f"{name}: expected ")
    if name == "broken.pkl":
        result = mlbridge(
            *("export", f"{module}:network", "--statistics", name, "--to", "m.onnx"),
            fails=True,
        )
        assert isinstance(result.exception, Malformed)
    assert not Path("m.onnx").exists()


def test_files_that_are_cut_short(module: str) -> None:
    del module
    tree = DecisionTreeClassifier(random_state=0).fit([[0], [1]], [0, 1])
    whole = pickle.dumps(tree)
    Path("tree.pkl").write_bytes(whole[: len(whole) // 2])
    joblib.dump(tree, "tree.joblib")
    whole = Path("tree.joblib").read_bytes()
    Path("tree.joblib").write_bytes(whole[: len(whole) // 2])
    for name in ("tree.pkl", "tree.joblib"):
        result = mlbridge("export", name, "--to", "m.onnx", fails=True)
        assert isinstance(result.exception, Malformed)


@pytest.mark.parametrize("what", ["input", "output"])
def test_a_type_that_is_none(tmp_path: Path, what: str) -> None:
    values = {
        name: onnx.helper.make_tensor_value_info(
            name, 99 if name == what else onnx.TensorProto.FLOAT, ["n", 3]
        )
        for name in ("input", "output")
    }
    node = onnx.helper.make_node("Identity", ["input"], ["output"])
    graph = onnx.helper.make_graph([node], "g", [values["input"]], [values["output"]])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "m.onnx")
    result = mlbridge("inspect", tmp_path / "m.onnx", fails=True)
    assert isinstance(result.exception, Malformed)
    assert f"'{what}': expected an element type of ONNX, found 99" in str(
        result.exception
    )


def test_what_cannot_be_exported(module: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no policy")
    result = mlbridge("export", "notes.txt", "--to", "m.onnx", fails=True)
    assert isinstance(result.exception, InvalidArgument)
    assert "expected a .zip of Stable-Baselines3" in str(result.exception)
    result = mlbridge("export", f"{module}:network", "--to", "m.onnx", fails=True)
    assert "say which features it takes" in str(result.exception)
    result = mlbridge("inspect", "notes.txt", fails=True)
    assert isinstance(result.exception, Malformed)
