# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stock gcc with a plug-in that asks over the C API: compilers/gcc/unroll.cpp."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

import mlbridge
from aot_models import GraphBuilder
from mlbridge.aot import compile_model
from programs import IS_FULL, run_program

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "build/release/compilers/gcc/unroll.so"
SUPPRESSIONS = [ROOT / "tests/capi" / f"{name}.supp" for name in ("gcc", "valgrind")]

pytestmark = pytest.mark.skipif(
    not PLUGIN.exists(), reason="gcc has no plug-in here: install gcc-12-plugin-dev"
)

SMALL, TIMES = 10, 4
"""Loops of fewer instructions are unrolled so often."""

SOURCE = """
void scale(float *x, int n) { for (int i = 0; i < n; ++i) x[i] *= 2; }
int sum(int *x, int n, int m) {
  int s = 0;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < m; ++j)
      if (x[i * m + j] > s) s += x[i * m + j] / 3 ^ i; else s -= j;
  return s;
}
"""


@dataclass
class Unroller:
    """The model, served by this process."""

    asked: int = 0

    def __call__(self, features: mlbridge.Features) -> np.int32:
        self.asked += 1
        assert set(features) == {"instructions", "blocks", "depth", "iterations"}
        return np.int32(TIMES if features["instructions"] < SMALL else 0)


def write_model(path: Path) -> Path:
    """The same as an .onnx file."""
    g, kind = GraphBuilder(0), TensorProto.INT32
    g.op("Less", ["instructions", g.constant([SMALL], np.int32)], "is_small")
    g.op("Cast", ["is_small"], "one", to=kind)
    g.op("Mul", ["one", g.constant([TIMES], np.int32)], "times")
    return g.save(path, [("instructions", kind, [1])], [("times", kind, [1])])


@contextmanager
def spec_of(kind: str, folder: Path) -> Iterator[str]:
    """How gcc reaches the model by one kind of runner."""
    if kind == "onnx":
        yield f"onnx:{write_model(folder / 'unroll.onnx')}"
    elif kind == "aot":
        library = folder / "libunroll.so"
        compile_model(write_model(folder / "unroll.onnx"), library)
        yield f"aot:{library}"
    else:
        if kind.startswith("grpc"):
            pytest.importorskip("mlbridge._grpc", reason="this build has no gRPC")
        spec, model = f"{kind}:{folder / 'm'}", Unroller()
        with mlbridge.serving(model, spec, on_error="raise"):
            yield spec
        assert model.asked > 0


def compile_with(
    spec: str | None,
    folder: Path,
    *,
    arguments: Sequence[str] = (),
    valgrind: Sequence[str] = (),
) -> tuple[str, str]:
    """The assembly that gcc makes with the model at a spec, and what gcc says."""
    source, target = folder / "x.c", folder / "x.s"
    source.write_text(SOURCE)
    command: list[str | Path] = ["gcc", "-O2", "-fno-tree-vectorize"]
    command += ["-S", source, "-o", target]
    environment = dict(os.environ)
    if spec is not None:
        command += [f"-fplugin={PLUGIN}", *arguments]
        environment["UNROLL_MODEL"] = spec
    if valgrind:
        # cc1, which gcc starts.
        command += ["-wrapper", "valgrind"]
        environment["VALGRIND_OPTS"] = " ".join(valgrind)
    done = run_program(command, env=environment, timeout=500)
    assert done.returncode == 0, done.stderr
    return target.read_text(), done.stderr


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compile_with(None, tmp_path_factory.mktemp("stock"))[0]


@pytest.fixture(scope="module")
def unrolled(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("pipe")
    with spec_of("pipe", folder) as spec:
        return compile_with(spec, folder)[0]


KINDS = ("pipe", "shm", "grpc+unix", "onnx", "aot")


@pytest.mark.parametrize("kind", KINDS)
def test_every_runner_decides_the_same(
    kind: str, stock: str, unrolled: str, tmp_path: Path
) -> None:
    with spec_of(kind, tmp_path) as spec:
        made, said = compile_with(spec, tmp_path)
    assert said == ""
    assert made == unrolled
    # The loop of the first function, four times and what is left over.
    assert stock.count("addss") < TIMES <= made.count("addss")


def test_the_model_may_be_named_by_an_argument(unrolled: str, tmp_path: Path) -> None:
    argument = f"-fplugin-arg-unroll-model=onnx:{write_model(tmp_path / 'unroll.onnx')}"
    made, said = compile_with("none", tmp_path, arguments=[argument])
    assert said == ""
    assert made == unrolled


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("none", ""),
        ("pipe:{}/gone?connect=50ms", "Timeout"),
        ("pipe:{}/gone", "Timeout"),  # After 5 s.
        ("onnx:{}/gone.onnx", "System"),
        ("aot:{}/gone.so", "System"),
    ],
)
def test_gcc_decides_alone(spec: str, says: str, stock: str, tmp_path: Path) -> None:
    made, said = compile_with(spec.format(tmp_path), tmp_path)
    assert made == stock
    if says:
        # One note for the two loops.
        assert said.count("gcc decides") == said.count("note: unroll: ") == 1
        assert says in said
    else:
        assert said == ""


def test_an_answer_out_of_range_is_no_decision(stock: str, tmp_path: Path) -> None:
    spec = f"pipe:{tmp_path / 'm'}"
    asked = []

    def reply(features: mlbridge.Features) -> np.int32:
        asked.append(dict(features))
        return np.int32(1000)

    with mlbridge.serving(reply, spec):
        made, said = compile_with(spec, tmp_path)
    assert made == stock
    # For the other loop, nobody is asked.
    assert len(asked) == 1
    assert "unroll: out of range: expected an unroll factor from 0 to 64" in said


def test_a_wrong_spec_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text(SOURCE)
    done = run_program(
        ["gcc", f"-fplugin={PLUGIN}", "-S", tmp_path / "x.c", "-o", tmp_path / "x.s"],
        env={**os.environ, "UNROLL_MODEL": "nonsense:x"},
    )
    assert done.returncode != 0
    assert "nonsense" in done.stderr


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind here")
@pytest.mark.parametrize("kind", KINDS)
def test_clean_under_valgrind(kind: str, unrolled: str, tmp_path: Path) -> None:
    """Nothing of ours is lost; what gcc and the runtimes lose, gcc.supp names."""
    if kind != "pipe" and not IS_FULL:
        pytest.skip("valgrind takes minutes: `make test-full` runs it")
    log = tmp_path / "valgrind.log"
    flags = ["--leak-check=full", "--errors-for-leak-kinds=definite,possible"]
    flags += ["--show-leak-kinds=definite,possible", f"--log-file={log}", "--quiet"]
    flags += [f"--suppressions={file}" for file in SUPPRESSIONS]
    with spec_of(kind, tmp_path) as spec:
        waiting = kind in ("pipe", "shm", "grpc+unix")
        options = "?timeout=300s&connect=300s" if waiting else ""
        made, _ = compile_with(spec + options, tmp_path, valgrind=flags)
    assert log.read_text() == ""
    assert made == unrolled


def test_a_log_that_cannot_be_written(tmp_path: Path, unrolled: str) -> None:
    spec = f"record:/dev/full|onnx:{write_model(tmp_path / 'unroll.onnx')}"
    assembly, stderr = compile_with(spec, tmp_path)
    assert "cc1: warning: unroll: cannot write the log '/dev/full'" in stderr
    assert stderr.count("/dev/full") == 1
    assert assembly == unrolled
