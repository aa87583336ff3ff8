# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One model, in another process or in the compiler: the same object files.

All of bzip2 and zlib and some of Lua; `make test-full` compiles all of Lua and SQLite,
too, and scripts/test-tensorflow asks the same network as a SavedModel.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the demo's packages are not installed")

from inliner_builds import (
    CLOSE,
    MODEL,
    ROOT,
    WORKLOADS,
    CountingPolicy,
    Made,
    Unit,
    fetch_sqlite3,
    plugin_or_skip,
)
from mlbridge import aot, inprocess, serving
from mlbridge_optimizations.corpus.toolchain import CLANG, run
from mlbridge_optimizations.inlining.corpus import TEST, fetch
from mlbridge_optimizations.inlining.toolchain import in_spec
from stock_llvm import full_tests

LUA_FILES = 8
"""Of 33, where time counts."""


@dataclass(frozen=True)
class Reference:
    """What a model in another process, asked over a pipe, makes of all files."""

    made: dict[Unit, Made]
    close: int
    """How many decisions were too close to call."""

    @property
    def decisions(self) -> int:
        """How many there were."""
        return sum(made.decisions for made in self.made.values())


@contextmanager
def served(scheme: str, folder: Path) -> Iterator[tuple[str, CountingPolicy]]:
    """The policy in this process, and how compilers reach it."""
    policy = CountingPolicy()
    spec = f"{scheme}:{in_spec(folder / 'model')}"
    with serving(policy, spec, on_error="raise"):
        yield spec, policy


def compile_all(
    units: Sequence[Unit], into: Path, plugin: Path, spec: str
) -> dict[Unit, Made]:
    """Two compilers at a time."""
    with ThreadPoolExecutor(2) as pool:
        made = pool.map(lambda unit: unit.compile(into, plugin, spec), units)
        return dict(zip(units, made, strict=True))


@pytest.fixture(scope="module")
def plugin() -> Path:
    return plugin_or_skip()


@pytest.fixture(scope="module")
def units() -> list[Unit]:
    programs = fetch(WORKLOADS)
    if full_tests():
        programs["sqlite3"] = fetch_sqlite3()
    return [
        Unit(program, source)
        for name, program in programs.items()
        for source in (
            program.sources[:LUA_FILES]
            if name == "lua" and not full_tests()
            else program.sources
        )
    ]


@pytest.fixture(scope="module")
def reference(
    units: list[Unit], plugin: Path, tmp_path_factory: pytest.TempPathFactory
) -> Reference:
    folder = tmp_path_factory.mktemp("pipe")
    with served("pipe", folder) as (spec, policy):
        made = compile_all(units, folder, plugin, spec)
    found = Reference(made, policy.close)
    assert found.decisions == policy.decisions
    assert found.decisions > 1000
    return found


def compare(name: str, reference: Reference, made: dict[Unit, Made]) -> None:
    """Fails unless the files are the same, but for decisions too close to call."""
    different = [
        unit.name
        for unit, expected in reference.made.items()
        if made[unit].contents != expected.contents
    ]
    decisions = sum(one.decisions for one in made.values())
    print(
        f"{name}: {len(made)} object files by {decisions} decisions, "
        f"{len(different)} of them different; over the pipe {reference.decisions} "
        f"decisions, {reference.close} within {CLOSE} of the threshold"
    )
    if reference.close == 0:
        assert different == []
        assert decisions == reference.decisions
    assert len(different) <= reference.close


@pytest.mark.parametrize("scheme", ["shm", "grpc+unix"])
def test_in_another_process(
    scheme: str, units: list[Unit], reference: Reference, plugin: Path, tmp_path: Path
) -> None:
    if scheme.startswith("grpc"):
        pytest.importorskip("mlbridge._grpc", reason="this build has no gRPC")
    with served(scheme, tmp_path) as (spec, policy):
        made = compile_all(units, tmp_path / "objects", plugin, spec)
    assert sum(one.decisions for one in made.values()) == policy.decisions
    compare(scheme, reference, made)


@pytest.mark.skipif(
    "MLBRIDGE_TEST_TENSORFLOW" not in os.environ,
    reason="TensorFlow is not installed: scripts/test-tensorflow does that and runs it",
)
def test_by_tensorflow(
    units: list[Unit],
    reference: Reference,
    plugin: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The network as a SavedModel, which MLBridge-tf.so runs in the compiler."""
    python = ROOT / "build/venvs/keras/bin/python"
    script = ROOT / "tests/tensorflow/make_inliner.py"
    weights, saved = tmp_path / "weights.npz", tmp_path / "saved"
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    run([sys.executable, script, "weights", weights])
    run([python, script, "model", weights, saved])
    (runtime,) = (ROOT / "build/venvs/keras").glob(
        "lib/python3*/site-packages/tensorflow/libtensorflow_cc.so.2"
    )
    monkeypatch.setenv("MLBRIDGE_TENSORFLOW", str(runtime))
    monkeypatch.setenv("MLBRIDGE_MODULES", str(ROOT / "build/tensorflow/lib"))
    spec = f"tf:{in_spec(saved)}"
    compare("tf", reference, compile_all(units, tmp_path / "objects", plugin, spec))


@pytest.mark.skipif(
    "MLBRIDGE_TEST_TENSORFLOW" not in os.environ,
    reason="TensorFlow is not installed: scripts/test-tensorflow does that and runs it",
)
def test_by_code_of_tensorflow(
    units: list[Unit], reference: Reference, plugin: Path, tmp_path: Path
) -> None:
    """The same SavedModel, which TensorFlow's compiler has made machine code of."""
    folder = ROOT / "build/tensorflow/tests/tensorflow"
    spec = f"aot:{in_spec(folder / 'libtf-aot-inliner-library.so')}"
    compare("tf aot", reference, compile_all(units, tmp_path, plugin, spec))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model as machine code."""
    made = tmp_path_factory.mktemp("aot") / "libinliner.so"
    aot.compile_model(MODEL / "inliner.onnx", made)
    return made


def in_process_spec(scheme: str, request: pytest.FixtureRequest) -> str:
    """The same model, in the compiler."""
    file = MODEL / "inliner.onnx"
    if scheme == "builtin":
        return "builtin:imitation"
    if scheme == "onnx":
        runtime = inprocess.onnxruntime()
        if runtime is None:
            pytest.skip("no ONNX Runtime here")
        return f"onnx:{in_spec(file)}?runtime={in_spec(runtime)}"
    return f"aot:{in_spec(request.getfixturevalue('library'))}"


@pytest.mark.parametrize("scheme", ["onnx", "aot", "builtin"])
def test_in_the_compiler(
    scheme: str,
    units: list[Unit],
    reference: Reference,
    plugin: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    spec = in_process_spec(scheme, request)
    made = compile_all(units, tmp_path / "objects", plugin, spec)
    compare(scheme, reference, made)


@pytest.mark.parametrize("scheme", ["onnx", "aot", "builtin"])
def test_by_eight_threads_of_one_process(
    scheme: str,
    units: list[Unit],
    plugin: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """Each thread has modules of its own, all have one model."""
    tool = ROOT / "build/release/tests/lit/bin/compile-in-threads"
    if not tool.exists():
        pytest.skip("compile-in-threads is not built")
    bitcode: list[Path] = []
    for unit in units:
        if unit.program.name == TEST or (full_tests() and unit.program.name == "lua"):
            bitcode.append(tmp_path / f"{unit.source.stem}.bc")
            level = ("-Oz", "-w", "-Xclang", "-disable-llvm-passes", "-emit-llvm")
            files = ("-c", unit.source, "-o", bitcode[-1])
            run([CLANG, *level, *unit.program.flags, *files])
    spec = in_process_spec(scheme, request)
    options = (f"-mlbridge-inliner={spec}", "-mlbridge-on-error=fatal")
    said, _ = run([tool, plugin, "8", *bitcode, "--", *options])
    assert said.decode() == (
        f"8 threads compiled {len(bitcode)} files, 0 of them otherwise than one thread "
        "alone\n"
    )
