# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples: compilers with a model in Python, and policies for stock LLVM."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from examples.mlgo.policies import policies

from mlbridge.interactive import AdvisorName
from programs import BUILD, ROOT, run_program
from stock_llvm import needs_llvm

EXAMPLES = BUILD / "examples"

# The inliner accepts sizes below 10 and embeddings whose 300 floats, each 1 / size,
# add up to more than 20.
ANSWERS = """\
callee of size   3: inline? yes
callee of size  12: inline? yes
callee of size 500: inline? no
"""


@pytest.fixture
def model(name: str) -> Iterator[str]:
    """Runs examples/hello.py at this name."""
    command = [sys.executable, str(ROOT / "examples/hello.py"), f"pipe:{name}"]
    with subprocess.Popen(command) as server:
        yield name
        server.send_signal(signal.SIGINT)
        server.wait(20)


@pytest.mark.parametrize("program", ["hello", "hello-c"])
@pytest.mark.parametrize("scheme", ["pipe", "shm"])
def test_compilers_are_answered(model: str, program: str, scheme: str) -> None:
    result = run_program([str(EXAMPLES / program), f"{scheme}:{model}?timeout=30s"])
    assert (result.stdout, result.stderr, result.returncode) == (ANSWERS, "", 0)


def test_in_c_without_a_model_or_with_a_wrong_spec(name: str) -> None:
    result = run_program([str(EXAMPLES / "hello-c"), f"pipe:{name}?connect=50ms"])
    assert result.returncode == 0
    decisions = [line.split()[-1] for line in result.stdout.splitlines()]
    assert decisions == ["yes", "no", "no"]
    assert result.stderr.count("hello: Timeout: no model at ") == 3
    result = run_program([str(EXAMPLES / "hello-c"), "pipes:/tmp/x"])
    assert result.returncode == 1
    assert "unknown scheme 'pipes'" in result.stderr


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
