# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decisions about loops: kernels, measurements, and random decisions."""

import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlbridge.errors import Malformed, ModelError
from mlbridge_optimizations.corpus.toolchain import plugin_flags
from mlbridge_optimizations.loop_distribution import fuzz, generator, table
from mlbridge_optimizations.loop_distribution.kernels import FOLDS, LEVELS, kernels
from mlbridge_optimizations.loop_distribution.measure import loops_of, measure
from programs import BUILD, FULL, ROOT

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
    # The second statement reads what the first one overwrites. In the order of the
    # source, an array must pass the old values.
    first, second = loop["seeds"]
    rows = [(row[first], row[second]) for row in loop["distributions"]]
    assert rows == [(0, 0), (0, 1), (1, 0)]
    described = np.expm1(loop["distribution_features"])
    assert described[:, 7] == pytest.approx([0, 1, 0])
    # In the other order, a loop can be vectorized. The original one cannot.
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
    assert len(factors.ratios) == len(factors.options) == sum(loop["factors"])
    assert 0.5 < entry.again < 2


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
    done: list[str] = []

    def make() -> None:
        table.make_table(
            *(chosen, ["L1"], PLUGIN, file),
            rounds=1,
            jobs=2,
            advance=lambda entry: done.append(entry.kernel),
        )

    make()
    make()
    assert done == ["vpv", "s481"]
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
    """Random decisions about each kernel."""
    for kernel in kernels().values():
        variants = {
            str(seed): plugin_flags(PLUGIN, f"loop-seed={seed}") for seed in range(4)
        }
        measure(kernel, level, variants, rounds=1, nanoseconds=1.0, jobs=2)


def test_random_decisions() -> None:
    rounds = list(fuzz.fuzz(2000, PLUGIN, policies=8, jobs=2))
    assert [problem for one in rounds for problem in one.problems] == []
    total: Counter[str] = Counter()
    for one in rounds:
        total.update(one.counts)
    assert sum(one.decisions for one in rounds) >= 2000
    assert total["distributed"] > 100
    assert total["illegal"] > 10
    assert total["factors_set"] > 500
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
    source = generator.program(7, functions=20)
    assert source == generator.program(7, functions=20)
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
