# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Policies of JAX and of Keras, each exported in a virtual environment of its own."""

import json
import os
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import onnx
import pytest

from exported import run

ROOT = Path(__file__).resolve().parents[2]
POLICIES = {"jax": {"function", "named", "flax"}, "keras": {"sequential", "functional"}}


def environment(framework: str) -> str:
    """Its Python, which also has what this one has, behind its own packages."""
    folder = ROOT / "build/venvs" / framework
    subprocess.run(
        [ROOT / "scripts/make-venv", framework],
        env={**os.environ, "VENV": str(folder)},
        check=True,
        timeout=1200,
    )
    packages = folder / "lib" / Path(sysconfig.get_path("stdlib")).name
    ours = sysconfig.get_path("purelib")
    line = f"import site; site.addsitedir({ours!r})\n"
    (packages / "site-packages" / "mlbridge-tests.pth").write_text(line)
    return str(folder / "bin/python")


@pytest.mark.parametrize("framework", POLICIES)
def test_the_same_answers(framework: str, tmp_path: Path) -> None:
    if "MLBRIDGE_TEST_FULL" not in os.environ:
        pytest.skip(f"{framework} is not installed: `make test-full` does that")
    python = environment(framework)
    script = Path(__file__).with_name("export_elsewhere.py")
    done = subprocess.run(
        [python, script, framework, tmp_path],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {path.stem for path in tmp_path.glob("*.onnx")} == POLICIES[framework]
    for path in tmp_path.glob("*.onnx"):
        metadata = {e.key: e.value for e in onnx.load(path).metadata_props}
        assert metadata["mlbridge.framework"].startswith(framework)
        with np.load(path.with_suffix(".npz")) as arrays:
            asked, expected = (
                {
                    name.removeprefix(part): values
                    for name, values in arrays.items()
                    if name.startswith(part)
                }
                for part in ("in:", "out:")
            )
        features = json.loads(metadata["mlbridge.features"])
        assert {feature["name"] for feature in features} == set(asked)
        found = run(path, asked)
        assert set(found) == set(expected)
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], values, rtol=1e-4, atol=1e-5)
            assert np.ptp(values) > 0.1
