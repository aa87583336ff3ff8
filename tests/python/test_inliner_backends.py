# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One inlining model makes the same object files with every runner.

Compiles a sample of bzip2, zlib and Lua. `make test-full` compiles all of their files,
and SQLite. scripts/test-tensorflow runs the same network as a SavedModel. Also checks
that 32 compilers that share one model get their own decisions.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import cycle, islice
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
from programs import BUILD, IS_FULL, ROOT, needs_grpc

MODEL = ROOT / "models" / "inlining-imitation"
WORKLOADS = ROOT / "build" / "workloads"
PLUGIN = find_llvm_plugin() or ROOT / "none"

pytestmark = pytest.mark.skipif(
    not (shutil.which(CLANG) and PLUGIN.exists()),
    reason=f"{CLANG} is not installed, or the LLVM plug-in is not built",
)

CLOSE = 1e-5
"""A logit this close to 0 may have another sign if sums have another order."""


class CountingPolicy:
    """The demo's policy for several compilers. Counts decisions and close decisions."""

    def __init__(self) -> None:
        self.network = Policy(InliningNetwork.load(MODEL / "inliner.pt"))
        self.decisions = 0
        self.close = 0
        self.largest_batch = 0

    def __call__(self, requests: Sequence[Mapping[str, Any]]) -> list[int]:
        rows = [np.concatenate(self.network._gather(q)) for q in requests]
        logits = self.network.logit(np.stack(rows))
        self.decisions += len(requests)
        self.close += int(np.count_nonzero(np.abs(logits) < CLOSE))
        self.largest_batch = max(self.largest_batch, len(requests))
        return [int(logit > 0) for logit in logits]


@dataclass(frozen=True)
class Unit:
    program: SourceProgram
    source: Path

    def compile(self, into: Path, spec: str) -> tuple[bytes, int]:
        """Returns the object file and the number of decisions.

        The model must make all decisions.
        """
        into.mkdir(exist_ok=True)
        target = into / f"{self.program.name}-{self.source.stem}.o"
        flags = ("-Oz", "-w", *self.program.flags, *model_flags(PLUGIN, spec))
        statistics = mllvm(["-mlbridge-print-statistics"])
        _, stderr = run([CLANG, *flags, *statistics, "-c", self.source, "-o", target])
        lines = re.findall(r"\basked=(\d+) .* deferred=0 failed=0 ", stderr.decode())
        return target.read_bytes(), sum(map(int, lines))


def fetch_sqlite3() -> SourceProgram:
    """Makes SQLite as one file from Debian's source package."""
    command = [ROOT / "scripts/fetch-sqlite3", WORKLOADS]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=600)
    source = WORKLOADS / "sqlite3-amalgamation" / "sqlite3.c"
    return SourceProgram("sqlite3", "", (source,), ())


SAMPLE = {"bzip2": 2, "zlib": 2, "lua": 2}
"""The number of files to compile of each program, except in the full run."""


@dataclass(frozen=True)
class Compiled:
    """The objects that one model made of all files."""

    objects: dict[Unit, bytes]
    decisions: int
    close: int = 0
    """The number of decisions whose logits are within `CLOSE` of 0."""


def compile_all(units: Iterable[Unit], into: Path, spec: str) -> Compiled:
    units = list(units)
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda unit: unit.compile(into, spec), units))
    objects = {unit: contents for unit, (contents, _) in zip(units, made, strict=True)}
    return Compiled(objects, sum(decisions for _, decisions in made))


def compile_served(scheme: str, units: Iterable[Unit], into: Path) -> Compiled:
    """Compiles the files with the policy in this process."""
    policy = CountingPolicy()
    spec = spec_of(scheme, into / "model")
    with serving(lambda features: policy([features])[0], spec, on_error="raise"):
        made = compile_all(units, into / "objects", spec)
    assert made.decisions == policy.decisions
    return replace(made, close=policy.close)


@pytest.fixture(scope="module")
def programs() -> dict[str, SourceProgram]:
    return fetch(WORKLOADS)


@pytest.fixture(scope="module")
def units(programs: dict[str, SourceProgram]) -> list[Unit]:
    if IS_FULL:
        programs = {**programs, "sqlite3": fetch_sqlite3()}
    return [
        Unit(program, source)
        for name, program in programs.items()
        for source in program.sources[: None if IS_FULL else SAMPLE[name]]
    ]


@pytest.fixture(scope="module")
def reference(units: list[Unit], tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    found = compile_served("pipe", units, tmp_path_factory.mktemp("pipe"))
    assert found.decisions > 25 * len(units)
    return found


def compare(name: str, reference: Compiled, made: Compiled) -> None:
    """Fails if files differ more than close decisions can explain."""
    different = [
        f"{unit.program.name}/{unit.source.name}"
        for unit, expected in reference.objects.items()
        if made.objects[unit] != expected
    ]
    print(
        f"{name}: {len(made.objects)} object files by {made.decisions} decisions, "
        f"{len(different)} of them different; over the pipe {reference.decisions} "
        f"decisions, {reference.close} within {CLOSE} of the threshold"
    )
    if reference.close == 0:
        assert different == []
        assert made.decisions == reference.decisions
    assert len(different) <= reference.close


@pytest.mark.parametrize("scheme", ["shm", pytest.param("grpc+unix", marks=needs_grpc)])
def test_in_another_process(scheme: str, reference: Compiled, tmp_path: Path) -> None:
    made = compile_served(scheme, reference.objects, tmp_path)
    compare(scheme, reference, made)


needs_tensorflow = pytest.mark.skipif(
    "MLBRIDGE_TEST_TENSORFLOW" not in os.environ,
    reason="scripts/test-tensorflow installs TensorFlow and runs this test",
)


@needs_tensorflow
def test_by_tensorflow(
    reference: Compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs the network as a SavedModel, which MLBridge-tf.so runs in the compiler."""
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
    made = compile_all(reference.objects, tmp_path / "objects", spec_of("tf", saved))
    compare("tf", reference, made)


@needs_tensorflow
def test_by_code_of_tensorflow(reference: Compiled, tmp_path: Path) -> None:
    """Runs the same SavedModel as machine code from TensorFlow's compiler."""
    folder = ROOT / "build/tensorflow/tests/tensorflow"
    spec = spec_of("aot", folder / "libtf-aot-inliner-library.so")
    compare("tf aot", reference, compile_all(reference.objects, tmp_path, spec))


@pytest.fixture(scope="module", params=["onnx", "aot", "builtin"])
def in_process(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """Returns a spec that runs the inlining model inside the compiler.

    The model runs with ONNX Runtime, as machine code, or built into the plug-in.
    """
    if request.param == "builtin":
        return "builtin:imitation"
    file = MODEL / "inliner.onnx"
    if request.param == "onnx":
        runtime = inprocess.onnxruntime()
        if runtime is None:
            pytest.skip("ONNX Runtime is not installed")
        return f"{spec_of('onnx', file)}?runtime={quote(str(runtime))}"
    library = tmp_path_factory.mktemp("aot") / "libinliner.so"
    aot.compile_model(file, library)
    return spec_of("aot", library)


def test_in_the_compiler(in_process: str, reference: Compiled, tmp_path: Path) -> None:
    made = compile_all(reference.objects, tmp_path, in_process)
    compare(in_process, reference, made)


def test_by_eight_threads_of_one_process(
    in_process: str, units: list[Unit], tmp_path: Path
) -> None:
    """Each thread has its own modules. All threads share one model."""
    tool = BUILD / "tests/lit/bin/compile-in-threads"
    if not tool.exists():
        pytest.skip("compile-in-threads is not built")
    bitcode: list[Path] = []
    for unit in units:
        if unit.program.name == TEST or (IS_FULL and unit.program.name == "lua"):
            bitcode.append(tmp_path / f"{unit.source.stem}.bc")
            level = ("-Oz", "-w", "-Xclang", "-disable-llvm-passes", "-emit-llvm")
            files = ("-c", unit.source, "-o", bitcode[-1])
            run([CLANG, *level, *unit.program.flags, *files])
    options = (f"-mlbridge-inliner={in_process}", "-mlbridge-on-error=fatal")
    said, _ = run([tool, PLUGIN, "8", *bitcode, "--", *options])
    assert said.decode() == (
        f"8 threads compiled {len(bitcode)} files, "
        "0 of them differently from one thread\n"
    )


COMPILERS = 32


def test_32_compilers_on_one_model_and_on_32(
    programs: dict[str, SourceProgram], tmp_path: Path
) -> None:
    def alone(unit: Unit) -> tuple[bytes, int]:
        at = tmp_path / unit.source.stem
        policy = Policy(InliningNetwork.load(MODEL / "inliner.pt"))
        with serving(policy, f"pipe:{at}", on_error="raise") as served:
            made = unit.compile(tmp_path / "alone", spec_of("pipe", at))
        assert made[1] == served.statistics.requests
        return made

    candidates = [
        Unit(program, source)
        for program in (programs["lua"], programs["zlib"])
        for source in program.sources
    ][: COMPILERS + 8]
    with ThreadPoolExecutor(2) as pool:
        results = zip(candidates, pool.map(alone, candidates), strict=True)
        # Files without calls make no request.
        chosen = {unit: made for unit, made in results if made[1]}
    expected = dict(islice(chosen.items(), COMPILERS))
    assert len(expected) == COMPILERS
    at = tmp_path / "model"
    policy = CountingPolicy()

    def together(unit: Unit, scheme: str) -> bytes:
        return unit.compile(tmp_path / "together", spec_of(scheme, at))[0]

    options: Any = {"on_error": "raise", "max_batch": COMPILERS}
    with (
        serving(batched(policy), f"pipe:{at}", **options) as served,
        # Run all at the same time, regardless of the number of cores.
        ThreadPoolExecutor(COMPILERS) as pool,
    ):
        objects = pool.map(together, expected, cycle(("pipe", "shm")))
        made = dict(zip(expected, objects, strict=True))
    assert (served.statistics.sessions, served.statistics.errors) == (COMPILERS, 0)
    assert policy.decisions == served.statistics.requests > 1000
    print(f"up to {policy.largest_batch} requests at once")
    alone_and_sum = Compiled(
        {unit: contents for unit, (contents, _) in expected.items()},
        sum(decisions for _, decisions in expected.values()),
        policy.close,
    )
    compare("32 compilers", alone_and_sum, Compiled(made, policy.decisions))


def test_a_killed_compiler_leaves_the_others_alone(
    programs: dict[str, SourceProgram], tmp_path: Path
) -> None:
    lua = programs["lua"]
    at = tmp_path / "model"
    source = max(lua.sources, key=lambda path: path.stat().st_size)
    flags = (*lua.flags, *model_flags(PLUGIN, spec_of("pipe", at)))
    targets = [tmp_path / f"{i}.o" for i in range(6)]
    with serving(batched(CountingPolicy()), f"pipe:{at}", max_batch=8) as served:
        compilers = [
            subprocess.Popen([CLANG, "-Oz", "-w", *flags, "-c", source, "-o", target])
            for target in targets
        ]
        victims, survivors = compilers[:3], compilers[3:]
        while served.statistics.sessions < 3:
            assert any(v.poll() is None for v in victims)
        for victim in victims:
            victim.kill()
        assert [survivor.wait(120) for survivor in survivors] == [0, 0, 0]
        for victim in victims:
            victim.wait(10)
    assert len({target.read_bytes() for target in targets[3:]}) == 1
