# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of mistakes in the options of `mlbridge train smallest-code`."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from mlbridge.cli import app
from mlbridge.errors import InvalidArgument
from mlbridge.files import with_absolute_paths
from mlbridge_optimizations.smallest_code.calls import Calls
from mlbridge_optimizations.smallest_code.imitation import OF_MODULE, train
from mlbridge_optimizations.smallest_code.settings import ImitationOptions
from phase_ordering import PLUGIN


@pytest.mark.parametrize("rate", [1e30, float("inf")])
def test_a_diverging_training_fails(rate: float) -> None:
    merged = ("callee_files", "callee_is_merged")
    names = (*merged, "cost_estimate", "threshold", *OF_MODULE)
    draw = np.random.default_rng(1)
    calls = Calls(
        names,
        draw.integers(0, 9, (40, len(names))),
        draw.random(40) < 0.5,
        tuple(("callee", str(row)) for row in range(40)),
        draw.normal(size=40),
        np.ones(40),
    )
    assert train([calls], ImitationOptions(epochs=2)).training is False
    with pytest.raises(InvalidArgument, match="diverged; use a smaller --rate"):
        train([calls], ImitationOptions(epochs=20, rate=rate))


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["train", "smallest-code", "--rate", "nan"], "--rate"),
        (["train", "smallest-code", "--min-weight", "0"], "--min-weight"),
        (["train", "smallest-code", "--dropout", "2"], "--dropout"),
        (["train", "smallest-code-rule", "--sigma", "nan"], "--sigma"),
        (["train", "smallest-code-rule", "--sigma", "-1"], "--sigma"),
    ],
)
def test_numbers_have_limits(command: list[str], said: str) -> None:
    result = CliRunner().invoke(app, [*command, "folder"])
    assert result.exit_code == 2
    assert f"Invalid value for '{said}'" in result.output


def test_paths_in_specs_become_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b.onnx").touch()
    spec = f"onnx:{tmp_path}/a%20b.onnx?threads=1"
    assert with_absolute_paths("fallback|onnx:a%20b.onnx?threads=1") == (
        f"fallback|{spec}"
    )
    for same in (spec, "builtin:smallest_code", "onnx:absent.onnx", "none"):
        assert with_absolute_paths(same) == same


def test_outputs_are_checked_first(tmp_path: Path) -> None:
    """A wrong output is reported before a missing search."""
    command = ["train", "smallest-code", "absent", "--plugin", str(PLUGIN)]
    result = CliRunner().invoke(app, [*command, "--out", str(tmp_path)])
    assert isinstance(result.exception, InvalidArgument)
    assert str(result.exception).endswith("expected a regular file, found a folder")
