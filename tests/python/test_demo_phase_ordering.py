# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The demo of phase ordering, without its training: its output and its failures."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("stable_baselines3", reason="the demo's packages are not installed")

import typer
from rich.console import Console
from typer.testing import CliRunner

import mlbridge
from mlbridge_optimizations import corpus
from mlbridge_optimizations.commands.demo import Steps
from mlbridge_optimizations.corpus import build, manifest
from mlbridge_optimizations.phase_ordering import __main__ as demo
from mlbridge_optimizations.training import policy
from mlbridge_optimizations.training.curve import Curve
from mlbridge_optimizations.training.experiment import Experiment

CURVE = Curve(
    steps=list(range(100)),
    returns=[0.0] * 100,
    values=[1.5] * 50 + [1.5 - n / 100 for n in range(50)],
)


def test_the_policy_of_the_plugin_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "mlbridge-oz.cfg"
    monkeypatch.setattr(demo, "CONFIG", config)
    for spec, has in ("none", False), ("builtin:phase_ordering_oz", True):
        config.write_text(f"-Oz\n-Xclang -mlbridge-phase-ordering={spec}\n")
        assert demo.has_built_in() == has


def test_a_training_that_ends_no_episode_is_too_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = []

    def train(experiment: Experiment, **_: Any) -> None:
        workers.append(experiment.settings.workers)
        Curve().write(experiment.settings.out, "none")

    monkeypatch.setattr(policy, "train", train)
    module = manifest.Module("zlib.bc", "zlib.c", 1, 9, "")
    zlib = manifest.Program(
        "zlib", "", "", "training", (), (), "", (module,), module, ""
    )
    found = corpus.Corpus(tmp_path, "", {"zlib": zlib})
    with (
        Steps(Console()) as steps,
        steps.step("Learn", 64) as step,
        pytest.raises(mlbridge.InvalidArgument, match="more --actions"),
    ):
        demo.learn(found, tmp_path, 64, 3, step)
    assert workers == [3]


def test_what_was_learned_is_the_two_ends_of_the_curve() -> None:
    first, last = demo.first_and_last(CURVE)
    assert first == 1.5
    assert last == pytest.approx(1.055)


def run_demo(status: int, *options: str | Path) -> str:
    app = typer.Typer()
    app.command()(demo.main)
    result = CliRunner().invoke(app, list(map(str, options)))
    assert result.exit_code == status
    return result.output


@pytest.mark.parametrize(("problem", "status"), [("", 0), ("not as expected: out", 1)])
def test_another_output_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str, status: int
) -> None:
    builds = {
        "clang -Oz": demo.Build(1000, 2.0, 3.0, ""),
        "by the policy": demo.Build(900, 4.0, 3.0, problem),
    }
    found = {"curve": CURVE, "is_built_in": False, "builds": builds}
    monkeypatch.setattr(demo, "demo", lambda *_: found)
    figures = tmp_path / "figures.json"
    output = run_demo(status, "--out", tmp_path, "--json", figures)
    assert "began at 1.500 of -Oz's size, and ended at 1.055" in output
    assert "no policy in this plug-in" in output
    assert (problem or "yes") in output
    saved = json.loads(figures.read_text())
    assert saved["builds"]["by the policy"]["text_bytes"] == 900


def test_a_package_that_cannot_be_downloaded_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(folder: Path, **more: Any) -> build.Fetched:
        return build.Fetched(corpus.Corpus(folder, ""), failed={"zstd": "no archive"})

    monkeypatch.setattr(corpus, "fetch", fetch)
    assert "zstd: no archive" in run_demo(1, "--out", tmp_path)
