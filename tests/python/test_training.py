# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The acceptance of training: PPO of two libraries, over every transport."""

import os
import sys
import tempfile
import time
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3", reason="needs scripts/make-venv train")

from compilers import TAG, wait_until_gone
from mlbridge_optimizations.training.curve import Curve
from programs import FULL, run_program

ROOT = Path(__file__).resolve().parents[2]
TRANSPORTS = ["pipe", "shm", "grpc"]
STEPS = 2048

CASES = [
    ("sb3", "shm", 1),
    pytest.param("rllib", "pipe", 2, marks=FULL),
    *[pytest.param("sb3", one, 1, marks=FULL) for one in TRANSPORTS if one != "shm"],
    *[pytest.param("rllib", one, 1, marks=FULL) for one in TRANSPORTS],
]


@pytest.mark.parametrize(("engine", "transport", "agents"), CASES)
def test_ppo_learns(engine: str, transport: str, agents: int, tmp_path: Path) -> None:
    """As a user would run it: two compilers, and nothing is left of them, or of Ray."""
    tag = f"{os.getpid()}-{time.monotonic_ns()}"
    out = tmp_path / "out"
    with tempfile.TemporaryDirectory(prefix="mlb") as temporary:
        done = run_program(
            [
                *(sys.executable, "-c", "from mlbridge.cli import main; main()"),
                *("train", "examples/environment/spills.py", "--engine", engine),
                *("--spec", transport, "--classes", str(agents), "--out", str(out)),
                *("--steps", str(STEPS), "--workers", "2", "--gamma", "0.9"),
                *("--learning-rate", "3e-3", "--rollout", "128"),
            ],
            cwd=ROOT,
            env={
                **os.environ,
                TAG: tag,
                "TMPDIR": temporary,
                # PyTorch makes this folder whatever it is asked to do.
                "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "torch"),
            },
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        assert wait_until_gone(tag, 10) == []
        # ONNX Runtime's own is the only file.
        left = {path.name for path in Path(temporary).iterdir()}
        assert left <= {".ses"}
    models = ["model"] if agents == 1 else ["float", "int"]
    assert sorted(path.stem for path in out.glob("*.onnx")) == models
    assert (out / "curve.png").stat().st_size > 0

    curve = Curve().load(out / "curve.csv")
    assert curve.steps[-1] >= 2000
    assert len(curve.returns) > 50
    assert max(curve.returns) <= -0.999, "nobody is better than the optimum"
    third = len(curve.returns) // 3
    first, last = (
        sum(part) / third for part in (curve.returns[:third], curve.returns[-third:])
    )
    assert last > first + 0.05, "it has learned something"
