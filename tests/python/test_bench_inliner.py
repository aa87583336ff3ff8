# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`mlbridge bench inliner`, but for times, which no test depends on."""

import shutil
from pathlib import Path

import pytest

from bench_build import build_or_skip, measured
from mlbridge import ModelError
from mlbridge.doctor import find_llvm_plugin
from mlbridge_benchmarks.inliner.command import RULE, Compile, measure, run
from mlbridge_optimizations.corpus.toolchain import CLANG
from programs import IS_FULL

PROGRAM = Path(__file__).resolve().parents[1] / "lit/Inputs/program.c"


@pytest.fixture
def what() -> Compile:
    build = build_or_skip()
    plugin = find_llvm_plugin()
    if plugin is None or not shutil.which(CLANG):
        pytest.skip("no plug-in or no clang here")
    return Compile(PROGRAM, (), plugin, build)


def test_the_rule_decides_and_asking_does_not(what: Compile) -> None:
    steps: list[int] = []
    (row,) = measure(
        what,
        {"builtin": "builtin:imitation"},
        runs=1,
        count=False,
        advance=lambda: steps.append(1),
    )
    assert row.decisions == run(what, RULE).decisions > 0
    assert len(steps) == 4
    assert row.share is None
    assert min(row.cpu_ms, row.cpu_ms_rule, row.cpu_ms_stock) > 0
    assert run(what, None).decisions == 0


def test_a_model_that_defers_is_none(what: Compile) -> None:
    with pytest.raises(ModelError, match="not all decisions"):
        measure(what, {"onnx": "none"}, runs=1, count=False, advance=lambda: None)
    with pytest.raises(ModelError, match=r"no-such\.onnx"):
        run(what, "onnx:no-such.onnx")


def test_the_table_and_the_rows(what: Compile, tmp_path: Path) -> None:
    # Counting takes half a minute.
    count = IS_FULL and shutil.which("valgrind") is not None
    _, (row,) = measured(
        tmp_path,
        *("inliner", what.source, "--runs", "1", "--scheme", "builtin"),
        *("--build", what.modules, "--count" if count else "--no-count"),
    )
    assert (row["scheme"], row["source"]) == ("builtin", "program.c")
    if count:
        # A rule that is asked nothing does little else in both.
        assert row["instructions_before_first"] < 1_000_000
        assert 1_000 < row["instructions_per_decision"] < 100_000
        assert row["instructions_rule"] > 10_000_000
        assert 0 < row["share"] < 1
