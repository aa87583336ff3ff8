# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stock gcc with compilers/gcc/unroll.cpp, a plug-in that uses the C API."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

import mlbridge
from aot_models import GraphBuilder
from mlbridge.aot import compile_model
from programs import BUILD, IS_FULL, ROOT, run_program

PLUGIN = BUILD / "compilers/gcc/unroll.so"
SUPPRESSIONS = [ROOT / "tests/capi" / f"{name}.supp" for name in ("gcc", "valgrind")]

pytestmark = pytest.mark.skipif(
    not PLUGIN.exists(), reason="the gcc plug-in is not built: needs gcc-12-plugin-dev"
)

SMALL, TIMES = 10, 4
"""The model unrolls loops of fewer than SMALL instructions TIMES times."""

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


def unroll(features: mlbridge.Features) -> np.int32:
    assert set(features) == {"instructions", "blocks", "depth", "iterations"}
    return np.int32(TIMES if features["instructions"] < SMALL else 0)


def write_model(folder: Path) -> Path:
    g, kind = GraphBuilder(0), TensorProto.INT32
    g.op("Less", ["instructions", g.constant([SMALL], np.int32)], "is_small")
    g.op("Cast", ["is_small"], "one", to=kind)
    g.op("Mul", ["one", g.constant([TIMES], np.int32)], "times")
    path = folder / "unroll.onnx"
    return g.save(path, [("instructions", kind, [1])], [("times", kind, [1])])


@contextmanager
def spec_of(kind: str, folder: Path) -> Iterator[str]:
    """The spec by which gcc reaches the model, for each kind of runner."""
    if kind == "onnx":
        yield f"onnx:{write_model(folder)}"
    elif kind == "aot":
        library = folder / "libunroll.so"
        compile_model(write_model(folder), library)
        yield f"aot:{library}"
    else:
        if kind.startswith("grpc"):
            pytest.importorskip("mlbridge._grpc", reason="this build has no gRPC")
        spec = f"{kind}:{folder / 'm'}"
        with mlbridge.serving(unroll, spec, on_error="raise") as served:
            yield spec
        assert served.statistics.requests > 0


def compile_with(spec: str, folder: Path, *arguments: str) -> tuple[str, str]:
    """The assembly that gcc makes with the model at a spec, and gcc's messages."""
    source, target = folder / "x.c", folder / "x.s"
    source.write_text(SOURCE)
    command = ("gcc", "-O2", "-fno-tree-vectorize", *arguments)
    files, env = ("-S", source, "-o", target), {**os.environ, "UNROLL_MODEL": spec}
    done = run_program([*command, *files], check=True, env=env, timeout=500)
    return target.read_text(), done.stderr


def unroll_with(spec: str, folder: Path, *arguments: str) -> tuple[str, str]:
    """The same with the plug-in."""
    return compile_with(spec, folder, f"-fplugin={PLUGIN}", *arguments)


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compile_with("", tmp_path_factory.mktemp("stock"))[0]


@pytest.fixture(scope="module")
def unrolled(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("pipe")
    with spec_of("pipe", folder) as spec:
        return unroll_with(spec, folder)[0]


KINDS = ("pipe", "shm", "grpc+unix", "onnx", "aot")


@pytest.mark.parametrize("kind", KINDS)
def test_every_runner_decides_the_same(
    kind: str, stock: str, unrolled: str, tmp_path: Path
) -> None:
    with spec_of(kind, tmp_path) as spec:
        assert unroll_with(spec, tmp_path) == (unrolled, "")
    # The loop of scale() is unrolled TIMES times and has an epilogue.
    assert stock.count("addss") < TIMES <= unrolled.count("addss")


def test_the_model_may_be_named_by_an_argument(unrolled: str, tmp_path: Path) -> None:
    argument = f"-fplugin-arg-unroll-model=onnx:{write_model(tmp_path)}"
    assert unroll_with("none", tmp_path, argument) == (unrolled, "")


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
    made, said = unroll_with(spec.format(tmp_path), tmp_path)
    assert made == stock
    # One note for the two loops.
    assert said.count("gcc decides") == said.count("note: unroll: ") == bool(says)
    assert says in said
    assert says or not said


def test_an_answer_out_of_range_is_no_decision(stock: str, tmp_path: Path) -> None:
    spec = f"pipe:{tmp_path / 'm'}"
    with mlbridge.serving(lambda _: np.int32(1000), spec) as served:
        made, said = unroll_with(spec, tmp_path)
    assert made == stock
    # The plug-in does not ask about the other loop.
    assert served.statistics.requests == 1
    assert "unroll: out of range: expected an unroll factor from 0 to 64" in said


def test_a_wrong_spec_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="nonsense"):
        unroll_with("nonsense:x", tmp_path)
    # A misspelt argument must not compile without the model.
    for argument in ("modell=none", "model"):
        with pytest.raises(AssertionError, match="expected the argument model=SPEC"):
            unroll_with("none", tmp_path, f"-fplugin-arg-unroll-{argument}")


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind not installed")
@pytest.mark.parametrize("kind", KINDS)
def test_clean_under_valgrind(
    kind: str, unrolled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our code leaks nothing; gcc.supp lists the leaks of gcc and the runtimes."""
    if kind != "pipe" and not IS_FULL:
        pytest.skip("valgrind takes minutes: `make test-full` runs it")
    log = tmp_path / "valgrind.log"
    flags = ["--leak-check=full", "--errors-for-leak-kinds=definite,possible"]
    flags += ["--show-leak-kinds=definite,possible", f"--log-file={log}", "--quiet"]
    flags += [f"--suppressions={file}" for file in SUPPRESSIONS]
    monkeypatch.setenv("VALGRIND_OPTS", " ".join(flags))
    with spec_of(kind, tmp_path) as spec:
        waiting = kind in ("pipe", "shm", "grpc+unix")
        options = "?timeout=300s&connect=300s" if waiting else ""
        # gcc starts cc1 by the wrapper.
        made, _ = unroll_with(spec + options, tmp_path, "-wrapper", "valgrind")
    assert log.read_text() == ""
    assert made == unrolled


def test_a_log_that_cannot_be_written(tmp_path: Path, unrolled: str) -> None:
    assembly, stderr = unroll_with(
        f"record:/dev/full|onnx:{write_model(tmp_path)}", tmp_path
    )
    assert "cc1: warning: unroll: cannot write the log '/dev/full'" in stderr
    assert stderr.count("/dev/full") == 1
    assert assembly == unrolled
