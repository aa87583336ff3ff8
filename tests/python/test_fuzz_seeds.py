# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the seeds of the Python fuzzers, including past findings, without Atheris."""

from importlib import import_module
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[1] / "fuzz"
SEEDS = sorted([*FUZZ.glob("seeds/interactive/*"), *FUZZ.glob("seeds/log/*")])


@pytest.mark.parametrize("seed", SEEDS, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_seed(seed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FUZZ))
    import_module(f"fuzz_{seed.parent.name}").check(seed.read_bytes())
