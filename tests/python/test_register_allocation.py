# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs whose registers are allocated at random print the same.

Tries one program; with MLBRIDGE_TEST_FULL=1, programs of Debian with a million
decisions.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mlbridge_optimizations.register_allocation import fuzz
from programs import BUILD, FULL, ROOT
from test_outputs import OVERFLOW, small_corpus

PLUGIN = BUILD / "lib/MLBridgeLLVM.so"
PRESSURE = (ROOT / "tests/lit/Inputs/pressure.c").read_text()
pytestmark = pytest.mark.skipif(
    not PLUGIN.exists(), reason="needs scripts/build release"
)


def test_random_policies(tmp_path: Path) -> None:
    # LLVM's allocator, which some rounds leave live ranges to, is wrong for asm goto.
    corpus = small_corpus(tmp_path, pressure=f"#define NO_ASM\n{PRESSURE}")
    programs = list(corpus.programs.values())
    rounds = list(fuzz.fuzz(corpus, programs, PLUGIN, 10_000, jobs=2))
    assert [one.problem for one in rounds if one.problem] == []
    assert [one.seed for one in rounds] == list(range(len(rounds)))
    assert sum(one.decisions for one in rounds) >= 10_000
    for name in ("evicted", "split", "spilled"):
        assert sum(getattr(one, name) for one in rounds) > 100, name
    again = list(fuzz.fuzz(corpus, programs, PLUGIN, 1, seed=rounds[-1].seed))
    assert again == rounds[-1:]


def test_a_wrong_program_is_found(tmp_path: Path) -> None:
    corpus = small_corpus(tmp_path, overflow=OVERFLOW)
    programs = list(corpus.programs.values())
    (found,) = fuzz.fuzz(corpus, programs, PLUGIN, 1)
    assert "not as expected: out" in found.problem
    # The command compiles the file as the round did.
    words = shlex.split(found.command.partition(" && ")[2])
    words[-1] = str(tmp_path / "again.o")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=True)
    assert f"{found.decisions} decisions".encode() in done.stderr
    (failed,) = fuzz.fuzz(corpus, programs, tmp_path / "no.so", 0)
    assert "no.so" in failed.problem


@FULL
def test_a_million_decisions(tmp_path: Path) -> None:
    out = tmp_path / "rounds.jsonl"
    command = [sys.executable, "-m", fuzz.__name__, "--out", str(out)]
    command += ["--corpus", str(ROOT / "build/corpus")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    rounds = [json.loads(line) for line in out.read_text().splitlines()]
    assert sum(one["decisions"] for one in rounds) >= 1_000_000
