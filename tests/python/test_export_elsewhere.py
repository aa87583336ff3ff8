# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Policies of JAX, Keras and TensorFlow, each in the framework's own environment."""

import json
import os
import re
import shlex
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exported import metadata, run
from mlbridge.doctor import find_llvm_plugin
from mlbridge.errors import Unsupported
from programs import ROOT, run_cli, run_program

POLICIES = {"jax": {"function", "named", "flax"}, "keras": {"sequential", "functional"}}


CALLS = """
int outside(int);
static int loop(int X) {
  int Sum = 0;
  for (int I = 0; I < X; I++)
    Sum += outside(I) * X;
  return Sum;
}
static int twice(int X) { return loop(X) + loop(X + 1) + outside(X); }
int calls(int X) { return twice(X) + twice(X * 2) + loop(3); }
"""


def environment(framework: str) -> str:
    """Makes the framework's environment. Returns its Python interpreter.

    The interpreter can also import the packages of the current environment.
    """
    if "MLBRIDGE_TEST_FULL" not in os.environ:
        pytest.skip(f"{framework} is not installed: `make test-full` does that")
    folder = ROOT / "build/venvs" / framework
    environment = {**os.environ, "VENV": str(folder)}
    command = [str(ROOT / "scripts/make-venv"), framework]
    subprocess.run(command, env=environment, check=True, timeout=1200)
    packages = folder / "lib" / Path(sysconfig.get_path("stdlib")).name
    ours = sysconfig.get_path("purelib")
    line = f"import site; site.addsitedir({ours!r})\n"
    (packages / "site-packages" / "mlbridge-tests.pth").write_text(line)
    return str(folder / "bin/python")


def make_policies(python: str, framework: str, folder: Path) -> None:
    script = Path(__file__).with_name("export_elsewhere.py")
    run_program(
        [python, script, framework, folder],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        timeout=600,
        check=True,
    )


def saved(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the requests and the replies in an .npz file."""
    arrays: dict[str, dict[str, Any]] = {"in": {}, "out": {}}
    with np.load(path) as file:
        for key, values in file.items():
            side, _, name = key.partition(":")
            arrays[side][name] = values
    return arrays["in"], arrays["out"]


@pytest.mark.parametrize("framework", POLICIES)
def test_the_same_answers(framework: str, tmp_path: Path) -> None:
    make_policies(environment(framework), framework, tmp_path)
    assert {path.stem for path in tmp_path.glob("*.onnx")} == POLICIES[framework]
    for path in tmp_path.glob("*.onnx"):
        found = metadata(path)
        assert found["mlbridge.framework"].startswith(framework)
        asked, replies = saved(path.with_suffix(".npz"))
        features = json.loads(found["mlbridge.features"])
        assert {feature["name"] for feature in features} == set(asked)
        outputs = run(path, asked)
        assert set(outputs) == set(replies)
        for name, values in replies.items():
            np.testing.assert_allclose(outputs[name], values, rtol=1e-4, atol=1e-5)
            assert np.ptp(values) > 0.1


def test_an_inliner_of_mlgo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One command converts a SavedModel, and prints the command that uses the file."""
    python = environment("keras")
    make_policies(python, "savedmodel", tmp_path)
    monkeypatch.chdir(tmp_path)

    def exporting(model: str, *options: str) -> str:
        return run_cli("export", model, "--python", python, *options, "--to", "m.onnx")

    said = exporting("released")
    assert "36 features to inlining_decision, outputs:inlining_decision" in said
    assert "step_type = 0, reward = 0, discount = 0" in " ".join(said.split())
    assert "warning" not in said
    asked, replies = saved(tmp_path / "released.npz")
    features = json.loads(metadata(Path("m.onnx"))["mlbridge.features"])
    assert {feature["name"] for feature in features} == set(asked)
    found = [
        run(Path("m.onnx"), {name: values[i] for name, values in asked.items()})
        for i in range(len(replies["inlining_decision"]))
    ]
    decisions = [reply["inlining_decision"] for reply in found]
    np.testing.assert_array_equal(decisions, replies["inlining_decision"])
    assert 0 < np.mean(decisions) < 1

    plugin = find_llvm_plugin()
    if plugin:
        Path("x.c").write_text(CALLS)
        printed = re.search(r"^To use it: (.*)$", said, re.MULTILINE)
        assert printed
        command = shlex.split(printed[1].replace("MLBridgeLLVM.so", str(plugin)))
        assert "-mlbridge-inliner-include-default" in command
        more = ["-mllvm", "-mlbridge-print-statistics"]
        statistics = run_program([*command, *more], check=True).stderr
        assert re.search(r"asked=[1-9]\d* .* deferred=0 failed=0 ", statistics)

    said = " ".join(exporting("other").split())
    assert "LLVM 22 has no feature 'register_pressure'" in said
    said = " ".join(exporting("other", "--constant", "register_pressure=7").split())
    assert "1 features to inlining_decision" in said
    assert "register_pressure = 7" in said
    assert "warning" not in said
    with pytest.raises(Unsupported, match="'none' to replace, found callee_users,"):
        exporting("other", "--constant", "none=0")
    with pytest.raises(Unsupported, match="a signature 'x', found action, get_initial"):
        exporting("other", "--signature", "x")
