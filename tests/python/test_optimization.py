# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An optimisation in a file of its own: trained, evaluated, exported."""

import json
import subprocess
import sys
from pathlib import Path
from statistics import fmean

import onnx
import pytest

pytest.importorskip("stable_baselines3", reason="needs scripts/make-venv train")

from typer.testing import CliRunner

from mlbridge import ModelRunner
from mlbridge.cli import app
from mlbridge.errors import InvalidArgument, Malformed
from mlbridge_optimizations.registry import find, known
from mlbridge_optimizations.training.curve import Curve

PROGRAM = (
    Path(__file__).resolve().parents[2] / "build/release/examples/environment/spills"
)
pytestmark = pytest.mark.skipif(
    not PROGRAM.exists(), reason="needs scripts/build release"
)

SPILLS = f'''
"""Which live range goes to memory: the compiler of examples/environment."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from gymnasium import spaces
from torch import nn
from typer import Option

from mlbridge.envs import CompilerEnv
from mlbridge_optimizations import Optimization


@dataclass(frozen=True)
class Settings:
    """Options of the command line."""

    registers: Annotated[int, Option(help="That there are.")] = 4


class Ranges(nn.Module):
    """A network's beginning: the same layer for each live range."""

    def __init__(self, space):
        super().__init__()
        self.layer = nn.Linear(3, 8)
        self.out_features = 8 * space.shape[0] // 3

    def forward(self, row):
        return self.layer(row.unflatten(1, (-1, 3))).relu().flatten(1)


def make_env(settings, worker):
    return CompilerEnv(
        ["{PROGRAM}", f"--registers={{settings.registers}}", "--classes=1"],
        "shm",
        observation_space=spaces.Box(
            0, 2, (3 * (settings.registers + 1),), np.float32
        ),
        action_space=spaces.Discrete(settings.registers + 1),
        worker=worker,
    )


OPTIMIZATION = Optimization(
    "spills",
    "Which live range goes to memory.",
    make_env,
    Settings,
    encoder=lambda settings, space: Ranges(space),
    baselines={{
        "the cheapest": lambda settings: lambda row: int(np.argmin(row[1::3])),
        "the longest": lambda settings: lambda row: 0,
    }},
)
'''


@pytest.fixture(scope="module")
def spills(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file, and beside it what a training has left in out."""
    folder = tmp_path_factory.mktemp("spills")
    (folder / "spills.py").write_text(SPILLS)
    run(
        *("train", str(folder / "spills.py"), "--out", str(folder / "out")),
        *("--steps", "12000", "--registers", "3", "--hidden", "32"),
        *("--learning-rate", "1e-3", "--gamma", "0.9", "--seed", "1"),
    )
    return folder


def run(*arguments: str) -> str:
    """A command in a process of its own, as a user has it."""
    done = subprocess.run(
        [sys.executable, "-c", "from mlbridge.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_learns(spills: Path) -> None:
    curve = Curve().load(spills / "out/curve.csv")
    count = len(curve.returns) // 10
    begin, end = fmean(curve.returns[:count]), fmean(curve.returns[-count:])
    # -1 is the optimum: a third of what there is to win, at least.
    assert end - begin > (-1 - begin) / 3, (begin, end)
    settings = json.loads((spills / "out/settings.json").read_text())
    assert settings["environment"] == {"registers": 3}
    assert settings["optimization"] == "spills"


def test_it_is_evaluated(spills: Path) -> None:
    figures = spills / "figures.json"
    said = run(
        *("evaluate", str(spills / "spills.py"), str(spills / "out/model.onnx")),
        *("--registers", "3", "--episodes", "60", "--json", str(figures)),
    )
    found = json.loads(figures.read_text())["episodes"]
    assert list(found) == ["model", "the cheapest", "the longest", "at random"]
    for name, values in found.items():
        assert len(values) == 60
        assert name in said
    means = {name: sum(values) / 60 for name, values in found.items()}
    assert means["model"] > means["at random"]
    assert means["model"] >= means["the longest"]


def test_it_is_exported(spills: Path) -> None:
    target = spills / "again.onnx"
    # Elsewhere, where nothing of the file can be imported.
    run("export", str(spills / "out/checkpoint.zip"), "--to", str(target))
    first, again = (onnx.load(path) for path in (spills / "out/model.onnx", target))
    assert [i.name for i in first.graph.input] == [i.name for i in again.graph.input]
    row = [0.5] * 12
    import numpy as np

    answers = []
    for path in spills / "out/model.onnx", target:
        with ModelRunner(f"onnx:{path}") as runner:
            (name,) = (i.name for i in first.graph.input)
            answers.append(runner.evaluate({name: np.array(row, np.float32)}))
    assert [str(a) for a in answers[:1]] == [str(a) for a in answers[1:]]


def test_its_options_are_shown(spills: Path) -> None:
    result = CliRunner().invoke(app, ["train", str(spills / "spills.py"), "--help"])
    assert result.exit_code == 0, result.output
    for text in ("Which live range goes to memory", "--registers", "--algo", "--tune"):
        assert text in result.output


def test_those_that_there_are() -> None:
    assert "phase-ordering" in known()
    assert find("phase-ordering") is known()["phase-ordering"]
    with pytest.raises(InvalidArgument, match="no optimisation 'tea', only phase-"):
        find("tea")


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("1 / 0", Malformed, "ZeroDivisionError"),
        ("x = 1", InvalidArgument, "expected one Optimization, found 0"),
    ],
)
def test_a_file_that_describes_none(
    tmp_path: Path, text: str, error: type[Exception], problem: str
) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(error, match=problem):
        find(str(tmp_path / "mine.py"))
    with pytest.raises(InvalidArgument, match="there is no file"):
        find(str(tmp_path / "none.py"))
