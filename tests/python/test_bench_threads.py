# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`mlbridge bench threads` and `overhead`, but for times, which no test depends on."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from bench_build import build_or_skip, measured, refused, run_bench
from mlbridge import ModelError, OSFailure
from mlbridge_benchmarks.common.imitation import Model, Source
from mlbridge_benchmarks.overhead import overhead
from mlbridge_benchmarks.threads import threads
from mlbridge_benchmarks.threads.threads import Cell, Round
from mlbridge_optimizations.corpus.sources import source_program
from mlbridge_optimizations.corpus.toolchain import CLANG
from programs import FULL
from stock_llvm import children

PROGRAM = Path(__file__).resolve().parents[1] / "lit" / "Inputs" / "program.c"


@pytest.fixture
def build() -> Path:
    found = build_or_skip()
    for needed in ("threads-client", "compile-client", "run-client"):
        if not (found / needed).exists():
            pytest.skip(f"this build has no {needed}")
    if not (found.parent / "lib" / "MLBridgeLLVM.so").exists():
        pytest.skip("this build has no plug-in")
    if not shutil.which(CLANG):
        pytest.skip(f"no {CLANG} here")
    pytest.importorskip("emx_onnx_cgen")
    return found


def bench(build: Path, folder: Path, *arguments: object, **more: Any) -> Any:
    plugin = build.parent / "lib" / "MLBridgeLLVM.so"
    return measured(folder, *arguments, "--build", build, "--plugin", plugin, **more)


@pytest.fixture
def sources(tmp_path: Path) -> list[str]:
    """Two modules of different names, that the model has something to decide in."""
    for name in ("a", "b"):
        shutil.copy(PROGRAM, tmp_path / f"{name}.c")
    return [str(tmp_path / "a.c"), str(tmp_path / "b.c")]


@FULL
def test_threads_and_processes(build: Path, tmp_path: Path, sources: list[str]) -> None:
    _, rows = bench(
        build,
        tmp_path,
        *("threads", "--threads", "1,2", "--rounds", "1", "--seconds", "0.1"),
        *(word for path in sources for word in ("--source", path)),
        plot="plot.png",
    )
    assert [(row["what"], row["runner"], row["count"]) for row in rows] == [
        (what, runner, count)
        for what, runners in (
            ("decisions", ("onnx", "aot")),
            ("compile", ("onnx", "aot", "llvm")),
        )
        for runner in runners
        for count in (1, 2)
    ]
    for row in rows:
        for side in ("threads", "processes"):
            assert row[side]["cpu_us"] > 0
            if row["what"] == "decisions":
                assert row[side]["decisions_per_second"] > 0
                assert row[side]["memory_mib"] > 0
            else:
                assert row[side]["seconds"] > 0
    # One copy of ONNX Runtime's heap and of the model, instead of two.
    two = next(r for r in rows if (r["runner"], r["count"]) == ("onnx", 2))
    assert two["threads"]["memory_mib"] < two["processes"]["memory_mib"]


def test_a_model_that_fails_ends_the_run(build: Path, tmp_path: Path) -> None:
    before = children()
    plugin = build.parent / "lib" / "MLBridgeLLVM.so"
    modules = threads.emit_bitcode([Source("a", PROGRAM)], tmp_path)
    missing = Model("aot", "aot:/nowhere/lib.so")
    for side in threads.SIDES:
        with pytest.raises(ModelError, match="compile-client ended with status 1"):
            threads.compile_modules(build, plugin, missing, modules, 2, side, tmp_path)
    with pytest.raises(ModelError, match="clang ended with status 1"):
        overhead.compile_once(
            build,
            overhead.Variant("+ aot", ("-fpass-plugin=/nowhere",), (), asks=True),
            Source("a", PROGRAM),
            tmp_path / "a.o",
        )
    assert children() == before


def test_a_model_decides_what_is_compiled(build: Path, tmp_path: Path) -> None:
    """The plug-in is asked by compile-client, as by clang."""
    plugin = build.parent / "lib" / "MLBridgeLLVM.so"
    modules = threads.emit_bitcode([Source("a", PROGRAM)], tmp_path)
    digests = {}
    for spec in ("", f"record:{tmp_path}/log|none"):
        threads.compile_modules(
            build, plugin, Model("x", spec), modules, 1, "threads", tmp_path
        )
        digests[spec] = threads.digest(tmp_path)
    assert len(set(digests.values())) == 1
    assert (tmp_path / "log").stat().st_size > 0


def test_what_burdens_clang(build: Path, tmp_path: Path, sources: list[str]) -> None:
    output, rows = bench(
        build, tmp_path, "overhead", "--rounds", "2", "--source", sources[0]
    )
    assert [(row["source"], row["clang"]) for row in rows] == [
        (source, clang)
        for source in ("start-up", "a.c")
        for clang in ("stock", "plug-in", "+ onnx", "+ aot")
    ]
    for row in rows:
        assert (row["asked"] > 0) == row["clang"].startswith("+")
        assert min(row["ms"], row["cpu_ms"]) > 0
        # A clang has more than this; run-client, less.
        assert row["rss_mib"] > 20
        assert row["rounds"] == 2
    stock, plugin, onnx, aot = (row["disk_mib"] for row in rows[:4])
    assert stock == 0 < plugin < aot < onnx
    assert "stock clang" in output


@pytest.mark.parametrize(
    ("command", "client"), [("threads", "threads-client"), ("overhead", "run-client")]
)
def test_a_missing_build_says_how_to_get_it(
    command: str, client: str, tmp_path: Path
) -> None:
    with pytest.raises(OSFailure, match=f"no {client} in .*make build"):
        run_bench(command, "--build", tmp_path)


@pytest.mark.parametrize("counts", ["", "0", "1,x"])
def test_counts_that_are_none(counts: str) -> None:
    assert "expected N,N,..." in refused("threads", "--threads", counts)


def test_medians() -> None:
    """From made-up times, since these can be foretold."""
    cell = Cell([Round(100, 1, 2, 5), Round(300, 1, 3, 6), Round(200, 1, 8, 9)])
    assert cell.rate == 200
    assert cell.cpu == pytest.approx(0.02)
    assert cell.memory_mib == 6
    cells = {("aot", 2, side): cell for side in threads.SIDES}
    assert cell.cores == 3
    assert not threads.is_busy({("aot", 1, "threads"): cell})
    idle = Cell([Round(100, 1, 0.1)])
    assert threads.is_busy({("aot", 1, "threads"): cell, ("aot", 1, "processes"): idle})
    (row,) = threads.rows("decisions", cells)
    assert row["threads"] == row["processes"]
    assert row["threads"]["cpu_us"] == pytest.approx(20_000)
    assert overhead.added([1, 5, 3], [1, 1, 1]) == 2


def test_programs_are_found_in_their_trees(tmp_path: Path) -> None:
    for name, size in (("bzip2", 3), ("blocksort", 9), ("spewG", 1)):
        path = tmp_path / "bzip2" / f"{name}.c"
        path.parent.mkdir(exist_ok=True)
        path.write_text("x" * size)
    (tmp_path / "zlib").mkdir()
    (tmp_path / "zlib" / "inflate.c").touch()
    for name in ("bzip2", "zlib"):
        changelog = tmp_path / name / "debian" / "changelog"
        changelog.parent.mkdir()
        changelog.write_text(f"{name} (1.0.8-5) unstable")
    found = source_program("bzip2", tmp_path).largest_first
    assert [path.stem for path in found] == ["blocksort", "bzip2"]
    assert source_program("zlib", tmp_path).flags[-1] == f"-I{tmp_path}/zlib"
