# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One model, in another process or in the compiler: the same object files.

Some of bzip2, zlib and Lua; `make test-full` compiles all of these and SQLite, too,
and scripts/test-tensorflow asks the same network as a SavedModel. At last, 32 compilers
at once ask one model: nobody gets the decisions of anybody else.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

pytest.importorskip("torch", reason="the demo's packages are not installed")

from mlbridge import aot, batched, inprocess, serving
from mlbridge.doctor import find_llvm_plugin
from mlbridge.files import spec_of
from mlbridge_optimizations.corpus.sources import SourceProgram
from mlbridge_optimizations.corpus.toolchain import CLANG, mllvm, run
from mlbridge_optimizations.inlining.corpus import TEST, fetch
from mlbridge_optimizations.inlining.network import InliningNetwork
from mlbridge_optimizations.inlining.policy import Policy
from mlbridge_optimizations.inlining.toolchain import model_flags
from programs import IS_FULL

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "inlining-imitation"
WORKLOADS = ROOT / "build" / "workloads"

CLOSE = 1e-5
"""Sums in another order: so close to 0, a decision may be another one."""


class CountingPolicy:
    """The demo's policy, which counts its decisions and the close ones."""

    def __init__(self) -> None:
        self._policy = Policy(InliningNetwork.load(MODEL / "inliner.pt"))
        self.decisions = 0
        self.close = 0
        self.largest_batch = 0

    def __call__(self, features: Mapping[str, Any]) -> int:
        return self.together([features])[0]

    def together(self, requests: Sequence[Mapping[str, Any]]) -> list[int]:
        """The decisions of several compilers."""
        rows = [np.concatenate(self._policy._gather(q)) for q in requests]
        logits = self._policy.logit(np.stack(rows))
        self.decisions += len(requests)
        self.close += int(np.count_nonzero(np.abs(logits) < CLOSE))
        self.largest_batch = max(self.largest_batch, len(requests))
        return [int(logit > 0) for logit in logits]


@dataclass(frozen=True)
class Made:
    """An object file, and what the plug-in said while it was made."""

    contents: bytes
    decisions: int
    """By the model: had another decided, the compile would have failed."""


@dataclass(frozen=True)
class Unit:
    """A file to be compiled, and as what."""

    program: SourceProgram
    source: Path

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.program.name}/{self.source.name}"

    def compile(self, into: Path, plugin: Path, spec: str) -> Made:
        """Its object file, inlined by the model at the spec."""
        into.mkdir(exist_ok=True)
        target = into / f"{self.program.name}-{self.source.stem}.o"
        flags = ("-Oz", "-w", *self.program.flags, *model_flags(plugin, spec))
        told = mllvm(["-mlbridge-print-statistics"])
        _, stderr = run([CLANG, *flags, *told, "-c", self.source, "-o", target])
        lines = re.findall(r"\basked=(\d+) .* deferred=0 failed=0 ", stderr.decode())
        return Made(target.read_bytes(), sum(map(int, lines)))


def fetch_sqlite3() -> SourceProgram:
    """SQLite as one file, made of Debian's source package."""
    script = ROOT / "scripts" / "fetch-sqlite3"
    subprocess.run(
        [script, WORKLOADS], check=True, stdout=subprocess.DEVNULL, timeout=600
    )
    source = WORKLOADS / "sqlite3-amalgamation" / "sqlite3.c"
    return SourceProgram("sqlite3", "", (source,), ())


SAMPLE = {"bzip2": 4, "zlib": 4, "lua": 4}
"""Of the files of each, so many where time counts."""


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
    spec = spec_of(scheme, folder / "model")
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
    """MLBridgeLLVM.so, for the tests that need it and clang."""
    found = find_llvm_plugin()
    if not shutil.which(CLANG) or found is None:
        pytest.skip(f"no {CLANG} here, or the LLVM plug-in is not built")
    return found


@pytest.fixture(scope="module")
def units() -> list[Unit]:
    programs = fetch(WORKLOADS)
    if IS_FULL:
        programs["sqlite3"] = fetch_sqlite3()
    return [
        Unit(program, source)
        for name, program in programs.items()
        for source in program.sources[: None if IS_FULL else SAMPLE[name]]
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
    assert found.decisions > 25 * len(units)
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
    spec = spec_of("tf", saved)
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
    spec = spec_of("aot", folder / "libtf-aot-inliner-library.so")
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
        return f"{spec_of('onnx', file)}?runtime={quote(str(runtime))}"
    return spec_of("aot", request.getfixturevalue("library"))


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
    compare(scheme, reference, compile_all(units, tmp_path / "objects", plugin, spec))


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
        if unit.program.name == TEST or (IS_FULL and unit.program.name == "lua"):
            bitcode.append(tmp_path / f"{unit.source.stem}.bc")
            level = ("-Oz", "-w", "-Xclang", "-disable-llvm-passes", "-emit-llvm")
            files = ("-c", unit.source, "-o", bitcode[-1])
            run([CLANG, *level, *unit.program.flags, *files])
    spec = in_process_spec(scheme, request)
    options = (f"-mlbridge-inliner={spec}", "-mlbridge-on-error=fatal")
    said, _ = run([tool, plugin, "8", *bitcode, "--", *options])
    assert said.decode() == (
        f"8 threads compiled {len(bitcode)} files, "
        "0 of them differently from one thread\n"
    )


# Many compilers at once.

COMPILERS = 32


@pytest.fixture(scope="module")
def programs() -> dict[str, SourceProgram]:
    return fetch(WORKLOADS)


def test_32_compilers_on_one_model_and_on_32(
    programs: dict[str, SourceProgram], plugin: Path, tmp_path: Path
) -> None:
    def alone(unit: Unit) -> tuple[bytes, int]:
        at = tmp_path / unit.source.stem
        policy = Policy(InliningNetwork.load(MODEL / "inliner.pt"))
        with serving(policy, f"pipe:{at}", on_error="raise") as served:
            made = unit.compile(tmp_path / "alone", plugin, spec_of("pipe", at))
        assert made.decisions == served.statistics.requests
        return made.contents, made.decisions

    candidates = [
        Unit(program, source)
        for program in (programs["lua"], programs["zlib"])
        for source in program.sources
    ][: COMPILERS + 8]
    with ThreadPoolExecutor(2) as pool:
        results = zip(candidates, pool.map(alone, candidates), strict=True)
        # A file without calls asks nobody.
        expected = [(u, made, n) for u, (made, n) in results if n][:COMPILERS]
    assert len(expected) == COMPILERS
    at = tmp_path / "model"
    policy = CountingPolicy()
    schemes = ("pipe", "shm")

    def together(index: int) -> bytes:
        unit, *_ = expected[index]
        spec = spec_of(schemes[index % 2], at)
        return unit.compile(tmp_path / "together", plugin, spec).contents

    with (
        serving(
            batched(policy.together),
            f"pipe:{at}",
            on_error="raise",
            max_batch=COMPILERS,
        ) as served,
        # All of them at the same time, however few cores there are.
        ThreadPoolExecutor(COMPILERS) as pool,
    ):
        objects = list(pool.map(together, range(COMPILERS)))
    assert (served.statistics.sessions, served.statistics.errors) == (COMPILERS, 0)
    assert policy.decisions == served.statistics.requests
    different = [
        unit.source.name
        for made, (unit, wanted, _) in zip(objects, expected, strict=True)
        if made != wanted
    ]
    print(
        f"{policy.decisions} decisions of {COMPILERS} compilers, up to "
        f"{policy.largest_batch} at once, {policy.close} too close to call, "
        f"{len(different)} objects different"
    )
    if policy.close == 0:
        assert different == []
        assert policy.decisions == sum(requests for *_, requests in expected)
    assert len(different) <= policy.close
    assert policy.decisions > 1000


def test_a_killed_compiler_leaves_the_others_alone(
    programs: dict[str, SourceProgram], plugin: Path, tmp_path: Path
) -> None:
    lua = programs["lua"]
    at = tmp_path / "model"
    policy = CountingPolicy()
    source = max(lua.sources, key=lambda path: path.stat().st_size)
    command: list[str | Path] = [
        *(CLANG, "-Oz", "-w", *lua.flags),
        *model_flags(plugin, spec_of("pipe", at)),
        *("-c", source, "-o"),
    ]
    with serving(batched(policy.together), f"pipe:{at}", max_batch=8) as served:
        victims = [
            subprocess.Popen([*command, tmp_path / f"victim{i}.o"]) for i in range(3)
        ]
        survivors = [
            subprocess.Popen([*command, tmp_path / f"survivor{i}.o"]) for i in range(3)
        ]
        while served.statistics.sessions < 3:
            assert any(v.poll() is None for v in victims)
        for victim in victims:
            victim.kill()
        assert [survivor.wait(120) for survivor in survivors] == [0, 0, 0]
        for victim in victims:
            victim.wait(10)
    objects = [(tmp_path / f"survivor{i}.o").read_bytes() for i in range(3)]
    assert objects[0] == objects[1] == objects[2]
