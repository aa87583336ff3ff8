# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The acceptance test of training: PPO of two libraries learns with each transport."""

import os
import tempfile
import time
from pathlib import Path
from statistics import fmean

import pytest

pytest.importorskip("stable_baselines3", reason="needs scripts/make-venv train")

from mlbridge_optimizations.training.curve import Curve
from programs import CLI, FULL, ROOT, run_python
from stock_llvm import TAG, wait_until_gone

LONG = [("sb3", "pipe", 1), ("sb3", "grpc", 1), ("rllib", "pipe", 2)]
LONG += [("rllib", transport, 1) for transport in ("pipe", "shm", "grpc")]


@pytest.mark.parametrize(
    ("engine", "transport", "agents"),
    [("sb3", "shm", 1), *(pytest.param(*case, marks=FULL) for case in LONG)],
)
def test_ppo_learns(engine: str, transport: str, agents: int, tmp_path: Path) -> None:
    """Runs the command with two compilers, which leave no process and no file."""
    tag = f"{os.getpid()}-{time.monotonic_ns()}"
    out = tmp_path / "out"
    with tempfile.TemporaryDirectory(prefix="mlb") as temporary:
        run_python(
            *(CLI, "train", "examples/environment/spills.py", "--engine", engine),
            *("--spec", transport, "--classes", str(agents), "--out", out),
            *("--steps", "2048", "--workers", "2", "--gamma", "0.9"),
            *("--learning-rate", "3e-3", "--rollout", "128"),
            check=True,
            cwd=ROOT,
            env={
                **os.environ,
                TAG: tag,
                "TMPDIR": temporary,
                # PyTorch always makes this folder.
                "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "torch"),
            },
            timeout=600,
        )
        assert wait_until_gone(tag, 10) == []
        # ONNX Runtime leaves this file.
        assert {path.name for path in Path(temporary).iterdir()} <= {".ses"}
    models = ["model"] if agents == 1 else ["float", "int"]
    assert sorted(path.stem for path in out.glob("*.onnx")) == models
    assert (out / "curve.png").stat().st_size > 0

    curve = Curve().load(out / "curve.csv")
    assert curve.steps[-1] >= 2000
    assert len(curve.returns) > 50
    assert max(curve.returns) <= -0.999, "-1 is the optimum"
    third = len(curve.returns) // 3
    first, last = fmean(curve.returns[:third]), fmean(curve.returns[-third:])
    assert last > first + 0.05, "it has learned something"
