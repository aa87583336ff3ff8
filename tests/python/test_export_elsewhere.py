# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Policies of JAX and Keras, each exported in its own virtual environment."""

import json
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exported import metadata, run
from programs import ROOT, run_program

POLICIES = {"jax": {"function", "named", "flax"}, "keras": {"sequential", "functional"}}


def environment(framework: str) -> str:
    """Returns the framework's Python, which can also import this Python's packages."""
    folder = ROOT / "build/venvs" / framework
    environment = {**os.environ, "VENV": str(folder)}
    command = [str(ROOT / "scripts/make-venv"), framework]
    subprocess.run(command, env=environment, check=True, timeout=1200)
    packages = folder / "lib" / Path(sysconfig.get_path("stdlib")).name
    ours = sysconfig.get_path("purelib")
    line = f"import site; site.addsitedir({ours!r})\n"
    (packages / "site-packages" / "mlbridge-tests.pth").write_text(line)
    return str(folder / "bin/python")


@pytest.mark.parametrize("framework", POLICIES)
def test_the_same_answers(framework: str, tmp_path: Path) -> None:
    if "MLBRIDGE_TEST_FULL" not in os.environ:
        pytest.skip(f"{framework} is not installed: `make test-full` does that")
    script = Path(__file__).with_name("export_elsewhere.py")
    run_program(
        [environment(framework), script, framework, tmp_path],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        timeout=600,
        check=True,
    )
    assert {path.stem for path in tmp_path.glob("*.onnx")} == POLICIES[framework]
    for path in tmp_path.glob("*.onnx"):
        found = metadata(path)
        assert found["mlbridge.framework"].startswith(framework)
        arrays: dict[str, dict[str, Any]] = {"in": {}, "out": {}}
        with np.load(path.with_suffix(".npz")) as saved:
            for key, values in saved.items():
                side, _, name = key.partition(":")
                arrays[side][name] = values
        features = json.loads(found["mlbridge.features"])
        assert {feature["name"] for feature in features} == set(arrays["in"])
        outputs = run(path, arrays["in"])
        assert set(outputs) == set(arrays["out"])
        for name, values in arrays["out"].items():
            np.testing.assert_allclose(outputs[name], values, rtol=1e-4, atol=1e-5)
            assert np.ptp(values) > 0.1
