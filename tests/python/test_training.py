# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The acceptance of training: PPO of two libraries, over every transport."""

import csv
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3", reason="needs scripts/make-venv train")

from compilers import TAG, wait_until_gone

ROOT = Path(__file__).resolve().parents[2]
TRANSPORTS = ["pipe", "shm", "grpc"]
STEPS = 2048

QUICK = ("sb3", "shm", 1)
"""The one that is not long."""

CASES = [
    *[("sb3", transport, 1) for transport in TRANSPORTS],
    *[("rllib", transport, 1) for transport in TRANSPORTS],
    ("rllib", "shm", 2),
]


@pytest.mark.parametrize(("library", "transport", "agents"), CASES)
def test_ppo_learns(library: str, transport: str, agents: int, tmp_path: Path) -> None:
    """As a user would run it: two compilers, and nothing is left of them, or of Ray."""
    if (library, transport, agents) != QUICK and "MLBRIDGE_TEST_FULL" not in os.environ:
        pytest.skip("it learns for a minute: `make test-full` runs it")
    tag = f"{os.getpid()}-{time.monotonic_ns()}"
    out = tmp_path / "curve"
    with tempfile.TemporaryDirectory(prefix="mlb") as temporary:
        options = {
            "--spec": transport,
            "--steps": str(STEPS),
            "--workers": "2",
            "--episodes": "20",
            "--out": str(out),
        }
        if library == "rllib":
            options["--agents"] = str(agents)
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                f"examples.environment.train_{library}",
                *[word for option in options.items() for word in option],
            ],
            cwd=ROOT,
            env={
                **os.environ,
                TAG: tag,
                "TMPDIR": temporary,
                # PyTorch makes this folder whatever it is asked to do.
                "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "torch"),
            },
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert wait_until_gone(tag, 10) == []
        assert list(Path(temporary).iterdir()) == []
    assert "what PPO has learned" in done.stdout
    assert out.with_suffix(".png").stat().st_size > 0

    with out.with_suffix(".csv").open() as file:
        episodes = [(int(r["steps"]), float(r["return"])) for r in csv.DictReader(file)]
    assert episodes[-1][0] >= 2000
    returns = [value for _, value in episodes]
    assert len(returns) > 50
    assert max(returns) <= -0.999, "nobody is better than the optimum"
    third = len(returns) // 3
    first, last = (sum(part) / third for part in (returns[:third], returns[-third:]))
    assert last > first + 0.05, "it has learned something"
