# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decisions about loops: kernels, measurements, and random decisions."""

import json
import math
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("elftools", reason="needs scripts/make-venv train")

from mlbridge.errors import InvalidArgument, Malformed, ModelError
from mlbridge_optimizations.corpus.toolchain import plugin_flags
from mlbridge_optimizations.loop_distribution import fuzz, random_programs, table
from mlbridge_optimizations.loop_distribution.kernels import (
    FOLDS,
    HEAVY,
    LEVELS,
    kernels,
)
from mlbridge_optimizations.loop_distribution.measure import loops_of, measure
from programs import BUILD, FULL, IS_FULL, ROOT, run_cli

PLUGIN = BUILD / "lib/MLBridgeLLVM.so"
pytestmark = pytest.mark.skipif(
    not PLUGIN.exists(), reason="needs scripts/build release"
)


def test_the_suites_are_complete() -> None:
    assert Counter(one.suite for one in kernels().values()) == {
        "tsvc": 151,
        "polybench": 30,
    }
    assert {one.family for one in kernels().values()} == {x for f in FOLDS for x in f}
    assert sorted({one.fold for one in kernels().values()}) == list(range(len(FOLDS)))
    for one in kernels().values():
        assert one.exercises, one.name
        assert (one.work == "") == (one.suite == "tsvc"), one.name


def test_a_distribution_is_measured() -> None:
    kernel = kernels()["s212"]
    (loop,) = loops_of(kernel, "L1", PLUGIN)
    # The second statement reads values that the first statement overwrites. In the
    # source's order, an array must store the old values.
    first, second = loop["seeds"]
    rows = [(row[first], row[second]) for row in loop["distributions"]]
    assert rows == [(0, 0), (0, 1), (1, 0)]
    described = np.expm1(loop["distribution_features"])
    assert described[:, 7] == pytest.approx([0, 1, 0])
    # In the other order, a loop can be vectorized. The original loop cannot.
    assert described[0, 1] == 0
    assert described[2, 1] >= 1
    entry = table.measure_kernel(kernel, "L1", PLUGIN, rounds=5, jobs=2)
    assert entry.error == ""
    assert entry.declined == []
    distribution, factors = entry.loops
    assert distribution.decision == "distribution"
    assert distribution.ratios[0] == 1.0
    assert 0 < distribution.ratios[2] < 0.9
    assert factors.options[0] == 0
    assert len(factors.ratios) == len(factors.options) == sum(loop["action_mask"])
    assert 0.5 < entry.again < 2


def test_heavy_kernels_divide() -> None:
    slow = re.compile(r"sqrtf?\(|/=|/(?!/| 2\b)")
    found = {k.name for k in kernels().values() if slow.search(k.text)}
    assert found == HEAVY


def test_cycles_and_times_correlate() -> None:
    def entry(decision: str, ratios: list[float]) -> table.Entry:
        name, column = table.CYCLES[decision]
        rows = np.zeros((5, 11))
        rows[:, column] = np.log1p([3, 6, 99, 12, 24])
        features, options = {name: rows.tolist()}, [0, 1, 3, 4]
        loop = table.Choices(decision, 0, features, options, ratios, [])
        return table.Entry("s212", "L1", loops=[loop])

    equal = entry("distribution", [1.0, 2.0, 4.0, 8.0])
    opposite = entry("factors", [1.0, 0.5, 0.25, 0.125])
    entries = [equal, opposite]
    for decision, expected in (("distribution", 1.0), ("factors", -1.0)):
        found, choices = table.correlation(entries, decision)
        assert found == pytest.approx(expected)
        assert choices == 3
    found, choices = table.correlation([equal], "factors")
    assert math.isnan(found)
    assert choices == 0


def test_a_wrong_variant_is_found() -> None:
    kernel = kernels()["vpv"]
    text = kernel.text.replace("+= b[i]", "+= b[i] + WRONG")
    wrong = replace(kernel, text=f"#ifndef WRONG\n#define WRONG 0\n#endif\n{text}")
    variants = {"stock": [], "other": ["-DWRONG=1"]}
    with pytest.raises(ModelError, match=r"vpv, L1: .* computes another result"):
        measure(wrong, "L1", variants, rounds=1)


def test_a_table_continues(tmp_path: Path) -> None:
    file = tmp_path / "table.jsonl"
    chosen = [kernels()["vpv"], kernels()["s481"]]
    progress: list[tuple[int, int]] = []

    def make() -> list[str]:
        added = table.make_table(
            *(chosen, ["L1"], PLUGIN, file),
            rounds=1,
            jobs=2,
            show=lambda done, of: progress.append((done, of)),
        )
        return [entry.kernel for entry in added]

    assert make() == ["vpv", "s481"]
    assert make() == []
    assert progress == [(1, 2), (2, 2)]
    first, second = table.read_table(file)
    assert [loop.decision for loop in first.loops] == ["factors"]
    assert second.loops == []
    assert second.declined == ["the loop has several exits, or one before its end"]
    file.write_text(file.read_text() + "{}\n")
    with pytest.raises(Malformed, match=r"table.jsonl, line 3"):
        list(table.read_table(file))


@FULL
@pytest.mark.parametrize("level", LEVELS)
def test_all_kernels_are_right(level: str) -> None:
    """Makes random decisions about each kernel."""
    for kernel in kernels().values():
        variants = {
            str(seed): plugin_flags(PLUGIN, f"loop-seed={seed}") for seed in range(4)
        }
        measure(kernel, level, variants, rounds=1, nanoseconds=1.0, jobs=2)


def test_random_decisions() -> None:
    count = 2000 if IS_FULL else 600
    rounds = list(fuzz.fuzz(count, PLUGIN, policies=8, jobs=2))
    assert [problem for one in rounds for problem in one.problems] == []
    total: Counter[str] = Counter()
    for one in rounds:
        total.update(one.counts)
    assert sum(one.decisions for one in rounds) >= count
    assert total["distributed"] > count / 20
    assert total["illegal"] > count / 200
    assert total["factors_set"] > count / 4
    # The same seed makes the same decisions.
    again = fuzz.one_round(rounds[0].seed, 8, PLUGIN, fuzz.targets())
    assert again == rounds[0]


def test_a_program_that_depends_on_optimisation_is_found() -> None:
    text = "#include <stdio.h>\n"
    text += 'int main(void) {\n#ifdef __OPTIMIZE__\n  puts("fast");\n#endif\n'
    text += "  static volatile int a[999], b[999];\n"
    text += "  for (int i = 0; i < 999; ++i) a[i] = b[i];\n  return 0;\n}\n"
    found = fuzz.one_round(0, 2, PLUGIN, fuzz.targets(), text)
    assert [p.rpartition(": ")[2] for p in found.problems] == [
        "other output than at -O0"
    ] * 2


def test_generated_programs_are_defined() -> None:
    source = random_programs.program(7, functions=20)
    assert source == random_programs.program(7, functions=20)
    assert len(re.findall(r"static \w+ f\d+\(", source)) == 20


@FULL
def test_many_random_decisions(tmp_path: Path) -> None:
    out = tmp_path / "rounds.jsonl"
    command = [sys.executable, "-m", fuzz.__name__, "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    made = sum(one["counts"]["partitions"] + one["counts"]["factors"] for one in rows)
    assert made >= 100_000


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the times of a few generated kernels."""
    file = tmp_path_factory.mktemp("loops") / "times.jsonl"
    options = ["--count", "8", "--seed", "9", "--rounds", "2", "--plugin", str(PLUGIN)]
    said = run_cli("search", "loop-distribution-times", "--out", file, *options)
    assert "has 8 more kernels" in said, said
    assert re.search(r"factors: \d+ choices, correlation -?[01]\.\d\d", said), said
    return file


def test_mistakes_are_explained(measured: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.onnx"
    missing = ["--times", tmp_path / "none.jsonl", "--out", out]
    with pytest.raises(InvalidArgument, match="no such file; write it with"):
        run_cli("train", "loop-distribution-costs", "factors", *missing)
    with pytest.raises(InvalidArgument, match="DECISION: expected distribution or"):
        run_cli(
            "train",
            "loop-distribution-costs",
            "factor",
            "--times",
            measured,
            "--out",
            out,
        )
    broken = tmp_path / "broken.so"
    broken.write_text("")
    given = ["--count", "1", "--plugin", broken]
    said = run_cli(
        "search", "loop-distribution-times", "--out", tmp_path / "times.jsonl", *given
    )
    assert "Not measured: g0\nThe first error: " in said
    with pytest.raises(InvalidArgument, match=r"--level: .* found 'L3'"):
        run_cli(
            "search",
            "loop-distribution-times",
            "--out",
            tmp_path / "times.jsonl",
            "--level",
            "L3",
        )
    with pytest.raises(InvalidArgument, match=r"--kernel: .* found 'g1'"):
        run_cli(
            "evaluate",
            "loop-distribution-kernels",
            "--times",
            measured,
            "--kernel",
            "s212",
            "--kernel",
            "g1",
        )


def test_a_network_learns_from_times(measured: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs scripts/make-venv train")
    from mlbridge_optimizations.loop_distribution import networks

    entries = list(table.read_table(measured))
    assert [entry.error for entry in entries] == [""] * 8
    features = entries[0].loops[0].features
    for name, columns in {
        "nodes": networks.NODE_COLUMNS,
        "distribution_features": networks.DISTRIBUTION_COLUMNS,
        "factor_features": networks.FACTOR_COLUMNS,
    }.items():
        assert {len(row) for row in features[name]} == {columns}
    assert len(features["loop"]) == networks.LOOP_COLUMNS
    small = ["--epochs", "2", "--members", "1", "--width", "4", "--margin", "0"]
    for decision in ("distribution", "factors"):
        file = tmp_path / f"{decision}.onnx"
        given = ["--times", str(measured), "--out", str(file), *small]
        said = run_cli("train", "loop-distribution-costs", decision, *given)
        assert "was trained on" in said, said
        kernel = kernels()["s241"]
        spec = f"loop-{decision}=onnx:{file}"
        flags = plugin_flags(PLUGIN, spec, "on-error=fatal")
        found = measure(kernel, "L1", {"stock": [], "model": flags}, rounds=1)
        assert found.nanoseconds.shape == (1, 2)


def test_models_are_evaluated_on_other_families(measured: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs scripts/make-venv train")
    from mlbridge_optimizations.loop_distribution import evaluate
    from mlbridge_optimizations.loop_distribution.learning import fold_models
    from mlbridge_optimizations.loop_distribution.settings import COSTS

    entries = list(table.read_table(measured))
    options = replace(COSTS, epochs=1, members=1, hidden=4)
    kernel = kernels()["s212"]
    models = fold_models(entries, kernel.fold, options, tmp_path / "fold-1")
    factors = evaluate.best_factors(entries)
    entry = table.measure_kernel(kernel, "L1", PLUGIN, rounds=3, jobs=2)
    rows = evaluate.rows_of(PLUGIN, models, entry, factors)
    assert list(rows)[:3] == ["stock", "again", "llvm"]
    run = [evaluate.compare(kernel, "L1", rows, rounds=5, jobs=2)]
    assert run[0].error == ""
    assert run[0].ratios["again"].same
    # In another order, s212 can be vectorized.
    assert evaluate.summarise(run, "best distribution").changed == 1
    assert evaluate.summarise(run, "again") == evaluate.Summary(1, (1, 1), 0, 0, ())
    wrong = replace(kernel, text="KERNEL(s212) { return missing; }\n")
    assert "missing" in evaluate.compare(wrong, "L1", rows).error

    # The command finds the models of this fold, and evaluates only this kernel.
    given = ["--times", measured, "--models", tmp_path, "--plugin", PLUGIN]
    small = ["--kernel", "s212", "--level", "L1", "--repeat", "1", "--rounds", "2"]
    said = run_cli("evaluate", "loop-distribution-kernels", *given, *small)
    shown = re.findall(r"^│ ([a-z ]+?) +│ +[\d.]+ │", said, re.MULTILINE)
    assert shown == [name for name in list(rows)[1:] if not name.startswith("best")]
    assert [folder.name for folder in tmp_path.iterdir()] == ["fold-1"]


def test_agents_distribute_measured_loops(measured: Path) -> None:
    pytest.importorskip("ray", reason="needs scripts/make-venv train")
    from mlbridge_optimizations.loop_distribution.environment import (
        LoopEnv,
        observation_spaces,
    )

    entries = list(table.read_table(measured))
    with pytest.raises(InvalidArgument, match="found none"):
        LoopEnv([])
    env, spaces = LoopEnv(entries, seed=1), observation_spaces()
    draw = np.random.default_rng(0)
    ratios = []
    for _ in range(50):
        seen, _ = env.reset()
        done = False
        while not done:
            ((agent, observation),) = seen.items()
            assert spaces[agent].contains(observation)
            legal = observation["action_mask"].nonzero()[0]
            seen, rewards, ended, _, infos = env.step({agent: draw.choice(legal)})
            done = ended["__all__"]
        assert set(rewards) == {"node", "partition"}
        ratios.append(infos["node"]["ratio"])
    # Legal actions lead to legal distributions, all of which have been measured.
    known = {r for e in entries for one in e.loops for r in one.ratios}
    assert set(ratios) <= known
    assert len(set(ratios)) > 3
