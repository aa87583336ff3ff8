# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What lib/TF/AOT/compile.py says where nothing comes of a SavedModel.

What comes of one is tested where TensorFlow is: tests/tensorflow.
"""

import sys
from pathlib import Path

import pytest

from programs import run_program

COMPILE = Path(__file__).parents[2] / "lib" / "TF" / "AOT" / "compile.py"


def compile_by(saved_model_cli: str, folder: Path, *cpu: str) -> str:
    """What it writes to stderr, with a tool in TensorFlow's place."""
    python, tool = folder / "python", folder / "saved_model_cli"
    python.symlink_to(sys.executable)
    tool.write_text(f"#!/bin/sh\n{saved_model_cli}\n")
    tool.chmod(0o755)
    done = run_program(
        [python, COMPILE, "model", folder, "policy", "serving_default", *cpu]
    )
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("echo first >&2; echo last >&2; exit 3", "model: last\n"),
        ("exit 3", "model: saved_model_cli ended with status 3\n"),
        ("kill -9 $$", "model: saved_model_cli ended with status -9\n"),
    ],
)
def test_a_tool_that_fails(tmp_path: Path, tool: str, said: str) -> None:
    assert compile_by(tool, tmp_path) == said


def test_a_cpu_that_nothing_could_check_for(tmp_path: Path) -> None:
    said = compile_by(f"touch {tmp_path}/called", tmp_path, "znver9")
    assert said.startswith("model: CPU: expected one of x86-64-v3, haswell, ")
    assert said.endswith(", found 'znver9'\n")
    assert not (tmp_path / "called").exists()
