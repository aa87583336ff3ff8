# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""examples/mlgo: each of its policies compiles, and one is LLVM's own."""

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from examples.mlgo.policies import policies

from mlbridge.interactive import AdvisorName
from programs import run_program
from stock_llvm import needs_llvm, sources

ROOT = Path(__file__).resolve().parents[2]

__all__ = ["sources"]

pytestmark = needs_llvm

ALL = [(name, policy) for name in get_args(AdvisorName) for policy in policies(name, 0)]


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run_program(
        [sys.executable, "-m", "examples.mlgo", *arguments], cwd=ROOT, timeout=120
    )


@pytest.mark.parametrize(("advisor", "policy"), ALL)
def test_policies_compile(sources: Path, advisor: str, policy: str) -> None:
    files = [sources / "calls.c", sources / "pressure.c"]
    done = run("--advisor", advisor, "--policy", policy, *files)
    assert done.returncode == 0, done.stderr
    (total,) = [line.split() for line in done.stdout.splitlines() if " all " in line]
    assert int(total[3]) > 0
    if policy == "stock":
        assert total[-2] == "+0.00%"


def test_what_it_cannot_do(sources: Path) -> None:
    done = run("--policy", "heaviest", sources / "calls.c")
    assert done.returncode == 2
    assert "the inliner has stock, never" in done.stderr
    done = run(sources / "missing.c")
    assert done.returncode == 1
    assert "no such file" in done.stderr
