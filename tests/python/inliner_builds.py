# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests that compile real programs by the demo's model share."""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlbridge.doctor import find_llvm_plugin
from mlbridge_optimizations.corpus.sources import SourceProgram
from mlbridge_optimizations.corpus.toolchain import CLANG, mllvm, run
from mlbridge_optimizations.inlining.network import InliningNetwork
from mlbridge_optimizations.inlining.policy import Policy
from mlbridge_optimizations.inlining.toolchain import model_flags

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "inlining-imitation"
WORKLOADS = ROOT / "build" / "workloads"

CLOSE = 1e-5
"""Sums in another order: so close to 0, a decision may be another one."""


class CountingPolicy:
    """The demo's policy, which counts its decisions and the close ones."""

    def __init__(self) -> None:
        self._policy = Policy(InliningNetwork.load(MODEL / "inliner.pt"))
        self.decisions = 0
        self.close = 0
        self.largest_batch = 0

    def __call__(self, features: Mapping[str, Any]) -> int:
        return self.together([features])[0]

    def together(self, questions: Sequence[Mapping[str, Any]]) -> list[int]:
        """The decisions of several compilers."""
        rows = [np.concatenate(self._policy._gather(q)) for q in questions]
        logits = self._policy.logit(np.stack(rows))
        self.decisions += len(questions)
        self.close += int(np.count_nonzero(np.abs(logits) < CLOSE))
        self.largest_batch = max(self.largest_batch, len(questions))
        return [int(logit > 0) for logit in logits]


@dataclass(frozen=True)
class Made:
    """An object file, and what the plug-in said while it was made."""

    contents: bytes
    decisions: int
    """By the model: had another decided, the compile would have failed."""


@dataclass(frozen=True)
class Unit:
    """A file to be compiled, and as what."""

    program: SourceProgram
    source: Path

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.program.name}/{self.source.name}"

    def compile(self, into: Path, plugin: Path, spec: str) -> Made:
        """Its object file, inlined by the model at the spec."""
        into.mkdir(exist_ok=True)
        target = into / f"{self.program.name}-{self.source.stem}.o"
        flags = ("-Oz", "-w", *self.program.flags, *model_flags(plugin, spec))
        told = mllvm(["-mlbridge-print-statistics"])
        _, stderr = run([CLANG, *flags, *told, "-c", self.source, "-o", target])
        lines = re.findall(r"\basked=(\d+) .* deferred=0 failed=0 ", stderr.decode())
        return Made(target.read_bytes(), sum(map(int, lines)))


def fetch_sqlite3() -> SourceProgram:
    """SQLite as one file, made of Debian's source package."""
    script = ROOT / "scripts" / "fetch-sqlite3"
    subprocess.run(
        [script, WORKLOADS], check=True, stdout=subprocess.DEVNULL, timeout=600
    )
    source = WORKLOADS / "sqlite3-amalgamation" / "sqlite3.c"
    return SourceProgram("sqlite3", "", (source,), ())


def plugin_or_skip() -> Path:
    """MLBridgeLLVM.so, for the tests that need it and clang."""
    if not shutil.which(CLANG):
        pytest.skip(f"no {CLANG} here")
    found = find_llvm_plugin()
    if found is None:
        pytest.skip("the LLVM plug-in is not built")
    return found
