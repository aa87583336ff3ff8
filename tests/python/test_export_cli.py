# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge export`` and ``mlbridge inspect``."""

import hashlib
import json
import os
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import onnx
import pytest

pytest.importorskip("torch", reason="needs scripts/make-venv train export")
pytest.importorskip("skl2onnx", reason="needs scripts/make-venv train export")

from sklearn.tree import DecisionTreeClassifier

from aot_models import FLOAT, GraphBuilder
from exported import metadata, run
from mlbridge import InvalidArgument, Malformed, ModelError, Unsupported, read_log
from mlbridge.doctor import find_llvm_plugin
from mlbridge.export import FeatureSpec, clang
from programs import run_cli, run_program, shell_script
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
    """Writes a module of policies to the current folder. Returns its name."""
    name = f"policies_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(POLICIES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return name


def exporting(*arguments: str) -> str:
    return run_cli("export", *arguments, "--to", "m.onnx")


def test_a_network_and_features_of_a_log(module: str, tmp_path: Path) -> None:
    write_log(tmp_path / "a.log")
    (tmp_path / "vocabulary.json").write_text("{}")
    printed = exporting(
        *(
            f"{module}:network",
            "--features",
            "a.log",
            "--vocabulary",
            "vocabulary.json",
        ),
        *("--decide", "sample:output", "--reward", "bytes", "--seed", "3"),
    )
    assert "m.onnx: 2 features to output, sample:output" in printed
    assert "answers as torch" in printed
    found = metadata(Path("m.onnx"))
    names = [feature["name"] for feature in json.loads(found["mlbridge.features"])]
    assert names == ["size", "weights"]
    assert json.loads(found["mlbridge.training"])["seed"] == 3
    vocabulary = json.loads(found["mlbridge.vocabulary"])
    digest = hashlib.sha256(b"{}").hexdigest()
    assert vocabulary == {"name": "vocabulary.json", "hash": f"sha256:{digest}"}

    shown = run_cli("inspect", "m.onnx")
    for text in ("int64_t[N,1]", "float[N,2,2]", "float[N,2]", "sample:output"):
        assert text in shown
    assert "reward" in shown
    assert "seed: 3" in shown
    assert "12" in shown, "the number of weights"
    model = onnx.load("m.onnx")
    model.opset_import.add(domain="ai.onnx", version=model.opset_import[0].version)
    model.opset_import.add(domain="ai.onnx.ml", version=3)
    onnx.save(model, "m.onnx")
    assert re.search(
        r", opsets onnx \d+, ai\.onnx\.ml 3 *\n", run_cli("inspect", "m.onnx")
    )


@pytest.mark.parametrize("decide", [None, "", "argmax:output"])
def test_scores_without_a_rule(module: str, decide: str | None) -> None:
    write_log(Path("a.log"))
    options = [] if decide is None else ["--decide", decide]
    arguments = ("export", f"{module}:network", "--to", "m.onnx", "--features", "a.log")
    output = " ".join(run_cli(*arguments, *options).split())
    assert ("add --decide argmax:output" in output) == (decide is None)


def test_a_feature_to_leave_out_that_a_log_lacks(module: str) -> None:
    """For example, logs of `record:` lack `inlining_default`, which LLVM logs."""
    write_log(Path("a.log"))
    printed = run_cli(
        *("export", f"{module}:network", "--to", "m.onnx", "--features", "a.log"),
        *("--without", "inlining_default", "--decide", ""),
    )
    said = " ".join(printed.split())
    assert "a.log has no feature 'inlining_default' to leave out" in said
    assert "2 features to output" in said


def test_a_function_that_makes_a_policy_and_features_of_a_space(module: str) -> None:
    exporting(f"{module}:make", "--batch", "1", "--features", f"{module}:space")
    asked: dict[str, Any] = {"a": np.arange(4)[None], "b": np.ones((1, 1), "f")}
    assert run(Path("m.onnx"), asked)["output"].shape == (1, 3)


def test_a_pickled_estimator(module: str, tmp_path: Path) -> None:
    x = np.array([[0, 1], [1, 0], [2, 2], [3, 0]], float)
    tree = DecisionTreeClassifier(random_state=0).fit(x, [0, 1, 0, 1])
    (tmp_path / "tree.pkl").write_bytes(pickle.dumps(tree))
    exporting("tree.pkl", "--feature", "int64 a", "--feature", "int64[1] b")
    asked = {"a": x[:, 0].astype(int), "b": x[:, 1:].astype(int)}
    assert run(Path("m.onnx"), asked)["label"].tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["none.zip"],
            "a file or MODULE:OBJECT, found 'none.zip', which is neither",
        ),
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
    printed = run_cli("export", *words, "--to", "m.onnx", status=2)
    assert message in " ".join(printed.replace("│", " ").split())


@pytest.mark.parametrize("data", [b"", b"no policy", b"PK\x03\x04", b"\x80\x05cnone\n"])
@pytest.mark.parametrize("name", ["broken.zip", "broken.pkl", "broken.joblib"])
def test_broken_files(module: str, name: str, data: bytes) -> None:
    Path(name).write_bytes(data)
    with pytest.raises(Malformed, match=f"^{re.escape(name)}: expected "):
        exporting(name)
    if name == "broken.pkl":
        with pytest.raises(Malformed):
            exporting(f"{module}:network", "--statistics", name)
    assert not Path("m.onnx").exists()


@pytest.mark.parametrize("name", ["tree.pkl", "tree.joblib"])
@pytest.mark.usefixtures("module")
def test_files_that_are_cut_short(name: str) -> None:
    tree = DecisionTreeClassifier(random_state=0).fit([[0], [1]], [0, 1])
    if name == "tree.pkl":
        Path(name).write_bytes(pickle.dumps(tree))
    else:
        joblib.dump(tree, name)
    os.truncate(name, Path(name).stat().st_size // 2)
    with pytest.raises(Malformed):
        exporting(name)


@pytest.mark.parametrize("what", ["input", "output"])
def test_a_type_that_is_none(tmp_path: Path, what: str) -> None:
    g = GraphBuilder(1)
    g.op("Identity", ["input"], "output")
    model = g.model("g", [("input", FLOAT, ["n", 3])], [("output", FLOAT, ["n", 3])])
    (value,) = getattr(model.graph, what)
    value.type.tensor_type.elem_type = 99
    onnx.save(model, tmp_path / "m.onnx")
    says = f"'{what}': expected an element type of ONNX, found 99"
    with pytest.raises(Malformed, match=says):
        run_cli("inspect", tmp_path / "m.onnx")


@pytest.mark.skipif(not find_llvm_plugin(), reason="the LLVM plug-in is not built")
def test_the_features_that_clang_sends(tmp_path: Path) -> None:
    """`mlbridge export` knows the inliner's features and their options."""
    (tmp_path / "x.c").write_text(
        "static int f() { return 1; } int g() { return f(); }"
    )
    *by_option, _ = clang.WITH
    options = ["-mlbridge-inliner=record:x.log|none", *by_option]
    run_program(
        [
            *("clang-22", "-Oz", f"-fpass-plugin={find_llvm_plugin()}"),
            *(word for option in options for word in ("-mllvm", option)),
            *("-c", "x.c"),
        ],
        cwd=tmp_path,
        check=True,
    )
    sent = [spec.name for spec in read_log(tmp_path / "x.log").features]
    expected = clang.ALWAYS.union(*(clang.WITH[option] for option in by_option))
    assert sorted(sent) == sorted(expected)


def inliner(*features: str) -> clang.Use | None:
    specs = [FeatureSpec(name, "int64") for name in features]
    return clang.use(specs, ["inlining_decision"], Path("/m.onnx"))


def test_how_clang_uses_an_inliner() -> None:
    start = "clang-22 -Oz -fpass-plugin=MLBridgeLLVM.so -mllvm -mlbridge-inliner=onnx:"
    assert inliner("threshold") == clang.Use(f"{start}/m.onnx -c x.c", ())
    used = inliner("callee_uses", "callee_weight", "inlining_default")
    assert used is not None
    assert used.unknown == ("callee_weight",)
    for option in ("default", "linkage"):
        assert f" -mllvm -mlbridge-inliner-include-{option} " in used.command
    assert clang.use([], ["logits"], Path("m.onnx")) is None


def test_a_saved_model_needs_tensorflow(tmp_path: Path) -> None:
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "saved_model.pb").write_bytes(b"")
    python = shell_script(tmp_path / "python", f'exec {sys.executable} -S -E -I "$@"')
    words = ("export", str(tmp_path / "policy"), "--to", str(tmp_path / "m.onnx"))
    with pytest.raises(Unsupported, match=r"needs the Python package 'tensorflow', wh"):
        run_cli(*words, "--python", str(python))
    shell_script(tmp_path / "python", "echo no TensorFlow >&2")
    with pytest.raises(ModelError, match=r"/python has ended: no TensorFlow"):
        run_cli(*words, "--python", str(python))
    said = run_cli(*words, "--constant", "step_type", status=2)
    assert "expected NAME=NUMBER, found 'step_type'" in " ".join(said.split())


def test_what_cannot_be_exported(module: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no policy")
    says = r"expected a \.zip of Stable-Baselines3"
    with pytest.raises(InvalidArgument, match=says):
        exporting("notes.txt")
    with pytest.raises(InvalidArgument, match="expected its features, in the order"):
        exporting(f"{module}:network")
    with pytest.raises(Malformed):
        run_cli("inspect", "notes.txt")
