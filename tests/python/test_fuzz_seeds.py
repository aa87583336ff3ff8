# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The seeds of the fuzzers in Python, also where Atheris cannot be installed.

What a fuzzer found is one of them from then on.
"""

import sys
from importlib import import_module
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[1] / "fuzz"
SEEDS = [
    pytest.param(name, seed, id=f"{name}-{seed.name}")
    for name in ("interactive", "log")
    for seed in sorted((FUZZ / "seeds" / name).iterdir())
]


@pytest.mark.parametrize(("name", "seed"), SEEDS)
def test_seed(name: str, seed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(FUZZ), *sys.path])
    import_module(f"fuzz_{name}").check(seed.read_bytes())
