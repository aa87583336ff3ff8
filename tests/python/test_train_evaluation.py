# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests the evaluation of phase ordering, at small scale."""

import hashlib
import json
import math
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

pytest.importorskip("stable_baselines3", reason="needs scripts/make-venv train")

import aot_models
from core_sets import SMALL, evaluated, pipeline_of, records
from mlbridge.errors import InvalidArgument, SchemaMismatch
from mlbridge_optimizations import corpus
from mlbridge_optimizations.evaluation.statistics import few_interval
from mlbridge_optimizations.phase_ordering.environment.actions import (
    Action,
    ActionSpace,
)
from mlbridge_optimizations.phase_ordering.environment.measure import oz_size
from mlbridge_optimizations.phase_ordering.evaluation import poset_rl
from mlbridge_optimizations.phase_ordering.evaluation.evaluate import Evaluation, Way
from mlbridge_optimizations.phase_ordering.evaluation.programs import run_programs
from mlbridge_optimizations.phase_ordering.evaluation.report import Statistics
from mlbridge_optimizations.phase_ordering.model.coreset import CoreSet
from mlbridge_optimizations.phase_ordering.model.model import Model, Task
from mlbridge_optimizations.phase_ordering.search import coreset
from programs import IS_FULL, ROOT, run_cli


def test_statistics_are_by_program_and_paired() -> None:
    draw = np.random.default_rng(0)
    oz = draw.uniform(1_000, 100_000, 40).round()
    programs = ["a"] * 30 + ["b"] * 10
    noise = draw.uniform(0.9, 1.05, 40)
    ways = [
        Way("model, alone", 1, 0, oz * noise * 0.99),
        Way("best fixed sequence", 1, 0, oz * noise),
        Way("one random sequence", 1, 0, oz * draw.permutation(noise)),
    ]
    statistics = Statistics(Evaluation(["x"] * 40, programs, oz, ways))
    ratio = {p: 0.99 * (oz * noise)[s].sum() / oz[s].sum() for p, s in SLICES.items()}
    assert statistics.by_program(ways[0]) == pytest.approx(ratio)
    interval = statistics.interval(ways[0])
    assert interval.mean == pytest.approx(math.sqrt(ratio["a"] * ratio["b"]))
    assert interval.low < interval.mean < interval.high
    # The ways differ by 1 %, which only the paired comparison shows.
    assert interval.high > statistics.interval(ways[1]).low
    assert statistics.difference(ways[0], ways[1]) == pytest.approx((0.99, 0.99))
    said = statistics.pairs()
    assert said[0].endswith(", smaller")
    assert said[1].endswith("not clearly different")


SLICES = {"a": slice(0, 30), "b": slice(30, 40)}


def test_the_interval_of_few_values_is_student_s() -> None:
    low, high = few_interval([0.98, 1.0, 0.99, 0.97, 1.01])
    # The standard deviation is 0.0158, and the quantile for 4 degrees is 2.776.
    assert (low, high) == pytest.approx((0.99 - 0.01963, 0.99 + 0.01963), abs=1e-5)


def test_the_evaluation_on_the_command_line(
    trained_core: coreset.Trained, small_corpus: Path, tmp_path: Path
) -> None:
    most = SMALL if IS_FULL else 1000
    out, plot = tmp_path / "found.json", tmp_path / "found.png"
    run_cli(
        *("evaluate", "phase-ordering", trained_core.model, "--corpus", small_corpus),
        *("--split", "training", "--max-instructions", most, "--tries", "3"),
        *("--json", out, "--plot", plot, "--jobs", "2"),
    )
    assert plot.read_bytes().startswith(b"\x89PNG")
    found = json.loads(out.read_text())
    assert found["failures"] == []
    root = corpus.load(small_corpus).folder
    assert found["oz"] == [oz_size(root / file) for file in found["files"]]
    ways = {way["name"]: way for way in found["ways"]}
    assert ways["model, alone"]["objects_emitted_to_decide"] == 0
    alone = {
        "model, alone": "model, best of 3",
        "best fixed sequence": "3 fixed sequences",
        "one random sequence": "random, best of 3",
    }
    for name in alone.values():
        assert ways[name]["objects_emitted_to_decide"] == 4
        # -Oz is one of the candidates.
        pairs = zip(ways[name]["sizes"], found["oz"], strict=True)
        assert all(size <= oz for size, oz in pairs)
    # The best of three is at most as large as the first alone.
    for one, several in alone.items():
        pairs = zip(ways[one]["sizes"], ways[several]["sizes"], strict=True)
        assert all(few >= many for few, many in pairs)
    assert ways["clang -O2"]["geomean"]["mean"] > 1.1
    inside = ways["clang -Oz, in the plug-in"]["geomean"]["mean"]
    assert inside == pytest.approx(1, abs=0.01)
    by_instructions = {way["name"]: way for way in found["instructions"]["ways"]}
    assert found["instructions"]["files"] == found["files"]
    for name, counted in by_instructions.items():
        assert counted["sizes"] != ways[name]["sizes"]
        if "best of" in name or "3 fixed" in name:
            pairs = zip(counted["sizes"], found["instructions"]["oz"], strict=True)
            assert all(count <= oz for count, oz in pairs)
    # The sizes equal those from which the core set was chosen, also on larger modules.
    lines = records(trained_core.model.with_name("table.jsonl"))
    table = {Path(line["module"]): line for line in lines}
    assert len(table) > len(found["files"])
    pipeline = trained_core.core.actions.joined(trained_core.core.sequences[0])
    name = hashlib.sha256(pipeline.encode()).hexdigest()[:24]
    assert ways["best fixed sequence"]["sizes"] == [
        table[root / file]["found"][name] for file in found["files"]
    ]


class _Crashing(Model):
    """A policy with given actions, some of which crash the compiler."""

    def __init__(self, space: ActionSpace, taken: tuple[int, ...]) -> None:
        self.task = Task(space, len(taken), stop=False, observation=("step",))
        self.features = ("step",)
        self.taken = taken

    def scores(self, features: dict[str, Any]) -> NDArray[np.float64]:
        action = self.taken[int(features["step"][0])]
        return np.where(np.arange(len(self.task.actions.actions)) == action, 50.0, 0.0)


@pytest.mark.usefixtures("quick_runs")
def test_a_rollout_that_crashes_is_oz(
    trained_core: coreset.Trained, whole_corpus: Path
) -> None:
    found, base = corpus.load(whole_corpus), trained_core.core.actions
    crash = Action("crash", "trigger-crash-module")
    space = replace(base, actions=(*base.actions[:3], crash))
    core = CoreSet(space, ((0, 1, 2), (3,)), (1.0, 1.0), 2)
    programs = ["bzip2", "lua"] if IS_FULL else ["bzip2"]
    settings: Any = {"draws": 2, "most": 5000, "programs": programs}
    result, ways = evaluated(found, _Crashing(space, (0, 3)), core, **settings)
    assert len(result.files) > 2
    for name in ("model, alone", "model, best of 2"):
        assert ways[name].chosen == [None] * len(result.files)
        np.testing.assert_array_equal(ways[name].sizes, result.oz)
    # The fixed sequence that does not crash counts if it beats -Oz.
    fixed = {None, pipeline_of(space, (0, 1, 2))}
    assert set(ways["2 fixed sequences"].chosen) <= fixed
    assert {failure.kind for failure in result.failures} == {"crash"}
    assert {failure.file for failure in result.failures} == set(result.files)
    rolled = pipeline_of(space, (0, 3))
    assert rolled in {failure.pipeline for failure in result.failures}
    # If a program fell back to -Oz, the model's pipeline does not compile it.
    runs = run_programs(found, result, ways["model, alone"], space.prologue, repeat=1)
    assert set(runs) == set(result.programs)
    assert all(run.passed for both in runs.values() for run in both)


def test_without_a_core_set_only_chance_is_compared_with(
    trained_core: coreset.Trained, small_corpus: Path, tmp_path: Path
) -> None:
    model, out = tmp_path / "model.onnx", tmp_path / "found.json"
    model.write_bytes(trained_core.model.read_bytes())
    arguments = (
        *("evaluate", "phase-ordering", model, "--corpus", small_corpus),
        *("--program", "lua", "--max-instructions", "700", "--tries", "2"),
        *("--json", out),
    )
    assert "core.json" in run_cli(*arguments)
    found = json.loads(out.read_text())
    assert set(found["programs"]) == {"lua"}
    assert [way["name"] for way in found["ways"] if "clang" not in way["name"]] == [
        *("model, alone", "one random sequence"),
        *("model, best of 2", "random, best of 2"),
    ]
    assert [way["draws"] for way in found["ways"]][:2] == [1, 5]
    for wrong in (("--core", tmp_path / "no.json"), ("--program", "perl")):
        with pytest.raises(InvalidArgument):
            run_cli(*arguments, *wrong)


@pytest.mark.usefixtures("quick_runs")
def test_programs_do_what_they_did(
    trained_core: coreset.Trained, whole_corpus: Path
) -> None:
    said = run_cli(
        *("evaluate", "phase-ordering", trained_core.model, "--corpus", whole_corpus),
        *("--split", "training", "--max-instructions", SMALL, "--tries", "1"),
        *("--rounds", "1", "--program", "lua" if IS_FULL else "bzip2"),
    )
    assert "User time" in said


@pytest.mark.usefixtures("quick_runs")
def test_agents_of_several_seeds_are_compared(
    whole_corpus: Path, trained_core: coreset.Trained, tmp_path: Path
) -> None:
    arguments = (
        *("evaluate", "phase-ordering-poset-rl", "--corpus", whole_corpus),
        *("--seeds", "2", "--steps", "45", "--out", tmp_path),
        *("--vocabulary", ROOT / "tests/lit/Inputs/vocabulary.json"),
        *("--split", "training", "--program", "bzip2", "--tries", "2"),
        *("--max-instructions", "1000", "--rounds", "1"),
        *("--shipped", trained_core.model),
    )
    said = run_cli(*arguments)
    found = json.loads((tmp_path / "summary.json").read_text())
    rows, verdicts = found["rows"], found["verdicts"]
    assert list(rows) == [
        *("seed 0", "seed 1", "mean of 2 seeds", "mean of 2 seeds, by files"),
        *("shipped model", "one random sequence", "random, best of 2"),
    ]
    for column in ("size", "instructions"):
        ours = [rows[f"seed {seed}"][column] for seed in range(2)]
        means = [rows[f"mean of 2 seeds{by}"][column] for by in ("", ", by files")]
        for mean, low, high in (*ours, *means, rows["random, best of 2"][column]):
            assert low <= mean <= high
            assert 0.3 < mean < 3
            assert f"{mean:.4f}" in said
        mean_of_seeds = pytest.approx(fmean(mean for mean, *_ in ours))
        assert [mean for mean, *_ in means] == [mean_of_seeds] * 2
        assert rows["random, best of 2"][column][0] <= 1
    times = [rows[f"seed {seed}"]["time"] for seed in range(2)]
    assert rows["mean of 2 seeds"]["time"][0] == pytest.approx(fmean(times))
    assert rows["mean of 2 seeds, by files"]["time"] is None
    assert rows["random, best of 2"]["time"] is None
    assert list(verdicts) == ["size", "instructions", "time"]
    assert all(f": {verdict}" in said for verdict in verdicts.values())
    settings = json.loads((tmp_path / "seed-1/settings.json").read_text())
    assert (settings["seed"], settings["batch"], settings["epsilon"]) == (1, 512, 0.01)
    environment = settings["environment"]
    assert environment["reward"] == "poset-rl"
    assert environment["max_instructions"] == 1000
    assert environment["observation"] == "embedding,actions"
    with pytest.raises(InvalidArgument, match="add --repeated-actions"):
        run_cli(*arguments, "--engine", "rllib")
    # A second run trains and measures nothing, but makes the same table.
    (tmp_path / "seed-0/checkpoint.zip").unlink()
    (tmp_path / "measured.jsonl").unlink()
    assert run_cli(*arguments).endswith(said[said.index("Ratios") :])
    assert not (tmp_path / "measured.jsonl").exists()
    # Other settings do not fit the trainings.
    with pytest.raises(InvalidArgument, match="reward"):
        run_cli(*arguments, "--reward", "text-size:10")


def test_agents_differ_from_oz_if_all_intervals_do() -> None:
    means: poset_rl.Rows = {
        "seed 0": dict.fromkeys(poset_rl.COLUMNS, (0.98, 0.97, 0.99)),
        "mean of 2 seeds": {
            "size": (0.98, 0.97, 0.99),
            "instructions": (0.98, 0.97, 0.99),
            "time": (1.1, 1.05, 1.2),
        },
        "mean of 2 seeds, by files": {
            "size": (0.98, 0.95, 0.999),
            "instructions": (0.98, 0.95, 1.01),
            "time": None,
        },
    }
    assert poset_rl.verdicts(means) == {
        "size": "smaller than with -Oz",
        "instructions": "not clearly different from -Oz",
        "time": "larger than with -Oz",
    }
    alone: poset_rl.Rows = {
        "seed 0": {"size": (1.02, 1.01, 1.03), "instructions": None, "time": 0.9}
    }
    assert poset_rl.verdicts(alone) == {"size": "larger than with -Oz"}


def test_other_models_are_refused(tmp_path: Path) -> None:
    onnx.save(aot_models.mlp(), tmp_path / "other.onnx")
    with pytest.raises(SchemaMismatch, match="mlbridge train phase-ordering"):
        Model(tmp_path / "other.onnx")
