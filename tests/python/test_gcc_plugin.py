# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stock gcc with the plug-in of compilers/gcc, which uses the C API."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import docs_page
import mlbridge
from aot_models import GraphBuilder
from mlbridge.aot import compile_model
from mlbridge.log import read_log
from mlbridge_optimizations.corpus.sources import SourceProgram, unpack
from mlbridge_optimizations.gcc_speed.models import Answer, served
from programs import BUILD, IS_FULL, ROOT, Started, run_program

PLUGIN = BUILD / "compilers/gcc/mlbridge.so"
SUPPRESSIONS = [ROOT / "tests/capi" / f"{name}.supp" for name in ("gcc", "valgrind")]

pytestmark = pytest.mark.skipif(
    not PLUGIN.exists(), reason="the gcc plug-in is not built: needs gcc-12-plugin-dev"
)

SMALL, TIMES = 10, 4
"""The model unrolls loops of fewer than SMALL instructions TIMES times."""

UNROLL_FEATURES = {"instructions", "blocks", "depth", "iterations", "loads", "stores"}
UNROLL_FEATURES |= {"calls", "has_trip_count", "frequency"}

SOURCE = """
static int larger(int a, int b) { for (int i = 0; i < 9; ++i) a ^= b >> i; return a; }
int once(int *x) { return larger(x[0], x[1]); }
int twice(int *x) { return larger(x[0], larger(x[1], x[2])); }
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
    assert set(features) == UNROLL_FEATURES
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


def compile_with(
    spec: str, folder: Path, *arguments: str, decision: str = "unroll", gcc: str = "gcc"
) -> tuple[str, str]:
    """Returns gcc's assembly and messages, with the model at a spec."""
    source, target = folder / "x.c", folder / "x.s"
    source.write_text(SOURCE)
    flags = ("-O2", "-fno-tree-vectorize", "-fno-early-inlining")
    command = (gcc, *flags, *arguments)
    files = ("-S", source, "-o", target)
    env = {**os.environ, f"MLBRIDGE_GCC_{decision.upper()}": spec}
    done = run_program([*command, *files], check=True, env=env, timeout=500)
    return target.read_text(), done.stderr


def unroll_with(spec: str, folder: Path, *arguments: str) -> tuple[str, str]:
    """Calls `compile_with` with the plug-in."""
    return compile_with(spec, folder, f"-fplugin={PLUGIN}", *arguments)


def decide_with(decision: str, spec: str, folder: Path) -> tuple[str, str]:
    """Calls `compile_with` with the plug-in and any decision."""
    return compile_with(spec, folder, f"-fplugin={PLUGIN}", decision=decision)


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


def test_a_symbolic_link(unrolled: str, tmp_path: Path) -> None:
    """gcc finds the second file of the plug-in beside the first, real file."""
    link = tmp_path / "mlbridge.so"
    link.symlink_to(PLUGIN)
    spec = f"onnx:{write_model(tmp_path)}"
    assert compile_with(spec, tmp_path, f"-fplugin={link}") == (unrolled, "")


def test_the_model_may_be_named_by_an_argument(unrolled: str, tmp_path: Path) -> None:
    argument = f"-fplugin-arg-mlbridge-unroll=onnx:{write_model(tmp_path)}"
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
    # gcc prints one note for both loops.
    assert (
        said.count("gcc decides")
        == said.count("note: mlbridge: unroll: ")
        == bool(says)
    )
    assert says in said
    assert says or not said


def test_an_answer_out_of_range_is_no_decision(stock: str, tmp_path: Path) -> None:
    spec = f"pipe:{tmp_path / 'm'}"
    with mlbridge.serving(lambda _: np.int32(1000), spec) as served:
        made, said = unroll_with(spec, tmp_path)
    assert made == stock
    # The plug-in does not ask about the other loop.
    assert served.statistics.requests == 1
    assert "unroll: out of range: expected a number from 0 to 64, found 1000" in said


def test_a_wrong_spec_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="nonsense"):
        unroll_with("nonsense:x", tmp_path)
    # If an argument is misspelt, gcc must fail instead of compiling without the model.
    for argument in ("model=none", "unroll"):
        with pytest.raises(AssertionError, match="expected an argument inline=SPEC"):
            unroll_with("none", tmp_path, f"-fplugin-arg-mlbridge-{argument}")
    # gcc would cut off the end of this spec.
    with pytest.raises(
        AssertionError, match="set the environment variable MLBRIDGE_GCC_UNROLL"
    ):
        unroll_with("none", tmp_path, "-fplugin-arg-mlbridge-unroll=none?timeout=5s")


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind not installed")
@pytest.mark.parametrize("kind", KINDS)
def test_clean_under_valgrind(
    kind: str, unrolled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This library leaks nothing. gcc.supp lists the leaks of gcc and the runtimes."""
    if not IS_FULL:
        pytest.skip("valgrind takes minutes: `make test-full` runs it")
    log = tmp_path / "valgrind.log"
    flags = ["--leak-check=full", "--errors-for-leak-kinds=definite,possible"]
    flags += ["--show-leak-kinds=definite,possible", f"--log-file={log}", "--quiet"]
    flags += [f"--suppressions={file}" for file in SUPPRESSIONS]
    monkeypatch.setenv("VALGRIND_OPTS", " ".join(flags))
    with spec_of(kind, tmp_path) as spec:
        waiting = kind in ("pipe", "shm", "grpc+unix")
        options = "?timeout=300s&connect=300s" if waiting else ""
        # gcc starts cc1 through the wrapper.
        made, _ = unroll_with(spec + options, tmp_path, "-wrapper", "valgrind")
    assert log.read_text() == ""
    assert made == unrolled


def test_a_log_that_cannot_be_written(tmp_path: Path, unrolled: str) -> None:
    assembly, stderr = unroll_with(
        f"record:/dev/full|onnx:{write_model(tmp_path)}", tmp_path
    )
    assert "cc1: warning: mlbridge: unroll: cannot write the log '/dev/full'" in stderr
    assert stderr.count("/dev/full") == 1
    assert assembly == unrolled


ALL = ("inline", "unroll", "flags", "gates")
SAMPLE = {"bzip2": "huffman.c", "lua": "lzio.c", "zlib": "trees.c"}


def objects(program: SourceProgram, source: Path, folder: Path) -> set[bytes]:
    """Returns the different objects that gcc makes if the model always defers."""
    models = {"": (), "all": ALL, **{one: (one,) for one in ALL}}
    found = set()
    for name, decisions in models.items():
        target = folder / f"{source.stem}-{name}.o"
        plugin = [f"-fplugin={PLUGIN}"] if decisions else []
        # Without a log, the plug-in sends no requests to a model that always defers.
        specs = {one: f"record:{folder / one}.log|none" for one in decisions}
        plugin += [f"-fplugin-arg-mlbridge-{one}={specs[one]}" for one in specs]
        command: list[str | Path] = ["gcc", "-O2", "-w", *program.flags, *plugin, "-c"]
        command += [source, "-o", target]
        done = run_program(command, check=True, timeout=500)
        assert done.stderr == ""
        found.add(target.read_bytes())
    return found


@pytest.mark.parametrize("name", SAMPLE)
def test_default_answers_change_nothing(name: str, tmp_path: Path) -> None:
    """Tests each decision alone and all together. `make test-full` tests all files."""
    program = unpack([name], ROOT / "build/workloads")[name]
    sources = [s for s in program.sources if IS_FULL or s.name == SAMPLE[name]]
    assert sources
    for source in sources:
        assert len(objects(program, source, tmp_path)) == 1, source


def reply(answer: Any, _: mlbridge.Features) -> Any:
    return answer


CHOICES = {"inline": (0, 1), "unroll": (3,), "flags": range(1, 7), "gates": (0,)}


@pytest.mark.parametrize("decision", ALL)
def test_a_model_changes_the_code(decision: str, stock: str, tmp_path: Path) -> None:
    made = set()
    for choice in CHOICES[decision]:
        always = partial(reply, np.int32(choice))
        with mlbridge.serving(always, f"shm:{tmp_path}/m") as served:
            assembly, said = decide_with(decision, f"shm:{tmp_path}/m", tmp_path)
        assert said == ""
        assert served.statistics.requests > 1
        made.add(assembly)
    assert made - {stock}


def test_a_model_of_inlining(stock: str, tmp_path: Path) -> None:
    with mlbridge.serving(lambda _: np.int64(1), f"shm:{tmp_path}/m"):
        inlined, _ = decide_with("inline", f"shm:{tmp_path}/m", tmp_path)
    with mlbridge.serving(lambda _: np.int64(0), f"shm:{tmp_path}/m"):
        kept, _ = decide_with("inline", f"shm:{tmp_path}/m", tmp_path)
    calls = [text.count("larger") for text in (inlined, stock, kept)]
    assert calls[0] == 0
    assert calls[0] <= calls[1] < calls[2]


MAIN = """#include <stdio.h>
int sum(int *x, int n, int m);
int main(void) {
  int x[12] = {7, 3, 9, -1, 4};
  printf("%d\\n", sum(x, 3, 4));
}
"""


@pytest.mark.parametrize("lto", ["-flto", "-flto=auto", "-flto -fwhole-program"])
def test_link_time_optimisation(lto: str, tmp_path: Path) -> None:
    """gcc decides about inlining at link time. The model decides the rest."""
    (tmp_path / "x.c").write_text(SOURCE)
    (tmp_path / "main.c").write_text(MAIN)
    command = ["gcc", "-O2", *lto.split(), "x.c", "main.c", "-o", "program"]
    run_program(command, cwd=tmp_path, check=True)
    expected = run_program([tmp_path / "program"], check=True).stdout
    spec = f"shm:{tmp_path}/m"
    plugin = [f"-fplugin={PLUGIN}"]
    plugin += [f"-fplugin-arg-mlbridge-{one}={spec}" for one in ("inline", "unroll")]
    with mlbridge.serving(lambda _: np.int32(1), spec) as served:
        said = run_program([*command, *plugin], cwd=tmp_path, check=True).stderr
    assert said == ""
    assert served.statistics.requests > 0
    assert run_program([tmp_path / "program"], check=True).stdout == expected


EXCEPTIONS = """#include <cstdio>
#include <stdexcept>
struct Odd { virtual int of(int a) { if (a % 7 == 0) throw a; return 2 * a; } };
struct Even : Odd {
  int of(int a) override { try { return Odd::of(a) + 1; } catch (int b) { return b; } }
};
static int sum(Odd &odd, int n) {
  int s = 0;
  for (int i = 0; i < n; ++i)
    try { s += odd.of(i); } catch (int b) { s -= b; }
  return s;
}
int main() { Odd o; Even e; std::printf("%d %d\\n", sum(o, 50), sum(e, 50)); }
"""


def test_exceptions_debug_info_and_two_plugins(tmp_path: Path) -> None:
    """-g must not change features. With -fcompare-debug, a change makes gcc fail."""
    (tmp_path / "x.cpp").write_text(EXCEPTIONS)
    other = tmp_path / "other.so"
    for name in ("mlbridge.so", "mlbridge-decisions.so"):
        shutil.copy(PLUGIN.with_name(name), tmp_path / name)
    shutil.copy(PLUGIN, other)
    spec = f"shm:{tmp_path}/m"
    command = ["g++", "-O2", "-Werror", "-fcompare-debug", "x.cpp", "-o", "program"]
    command += [f"-fplugin={PLUGIN}", f"-fplugin-arg-mlbridge-inline={spec}"]
    command += [f"-fplugin={other}", f"-fplugin-arg-other-unroll={spec}"]

    def reply_of(features: mlbridge.Features) -> np.int32:
        return np.int32(sum(int(value) for value in features.values()) % 3)

    with mlbridge.serving(reply_of, spec) as served:
        said = run_program(command, cwd=tmp_path, check=True).stderr
    assert said == ""
    assert served.statistics.requests > 2
    printed = run_program([tmp_path / "program"], check=True).stdout
    assert printed == "1862 2296\n"


def runs_with(
    answer: Answer,
    decisions: Sequence[str],
    source: str,
    options: Sequence[str],
    folder: Path,
) -> str:
    """Compiles a program with a model's answers, and returns what it prints."""
    file = folder / ("x.cpp" if "std::" in source else "x.c")
    file.write_text(source)
    command: list[str | Path] = ["g++" if file.suffix == ".cpp" else "gcc", *options]
    with served() as server:
        server.answer = answer
        command += [file, "-o", folder / "program", *server.flags(PLUGIN, decisions)]
        assert run_program(command, check=True).stderr == ""
        assert sum(server.counts.values()) > 0
    return run_program([folder / "program"], check=True).stdout


def runs(source: str, options: Sequence[str], folder: Path, **choices: int) -> str:
    """Calls `runs_with` with a model that always gives the same replies."""

    def answer(decision: str, _: mlbridge.Features) -> int:
        return choices[decision]

    return runs_with(answer, [*choices], source, options, folder)


UNCHECKED = """#include <stdio.h>
#include <stdlib.h>
__attribute__((no_sanitize("address"))) static int peek(volatile char *p) {
  int s = 0;
  for (int i = 0; i < 70; ++i) s += p[i] > 999;
  return s;
}
static int more(int a) { for (int i = 0; i < 9; ++i) a ^= i * a; return a; }
__attribute__((noinline)) int outer(char *p) { return peek(p) + peek(p + 1) + more(0); }
int main(void) { char *p = malloc(16); printf("%d\\n", outer(p)); free(p); }
"""


def test_functions_that_are_not_sanitized(tmp_path: Path) -> None:
    """If inlined into a sanitized function, peek() would be sanitized, too."""
    options = ("-O2", "-fsanitize=address", "-fno-early-inlining")
    assert runs(UNCHECKED, options, tmp_path, inline=1) == "0\n"


DEEP = """#include <stdio.h>
#include <string.h>
static int report(int n, const char *text) {
  char line[60000];
  int s = 0;
  memset(line, n, sizeof line);
  snprintf(line, sizeof line, "%s %d", text, n);
  for (int i = 0; i < 60000; i += 7) s += line[i];
  return s;
}
static int mix(int a) { for (int i = 0; i < 9; ++i) a ^= i * a; return a; }
__attribute__((noinline, noclone)) int visit(int n, int bad) {
  int r = 0;
  if (n == bad) r = report(n, "bad") + report(n + 1, "worse");
  return n == 0 ? r : (visit(n - 1, bad) ^ mix(n)) + r;
}
int main(int count, char **words) { printf("%d\\n", visit(2000 * count, -1)); }
"""


def test_large_frames_in_a_deep_recursion(tmp_path: Path) -> None:
    """If report() were inlined, the recursion would overflow the stack."""
    options = ("-O2", "-fno-early-inlining")
    expected = runs(DEEP, options, tmp_path, unroll=1)
    assert runs(DEEP, options, tmp_path, inline=1) == expected


def test_flattened_functions(tmp_path: Path) -> None:
    """The attribute takes precedence over a model that inlines nothing."""
    file, target = tmp_path / "x.c", tmp_path / "x.s"
    file.write_text(
        "static int f(int a) { for (int i = 0; i < 9; ++i) a ^= i * a; return a; }\n"
        "static int g(int a) { return f(a) + f(a + 1); }\n"
        "__attribute__((flatten)) int flat(int a) { return g(a) + g(a + 2); }\n"
        "static int h(int a) { for (int i = 0; i < 9; ++i) a += i ^ a; return a; }\n"
        "int plain(int a) { return h(a) + h(a + 2); }\n"
    )
    command: list[str | Path] = ["gcc", "-O2", "-fno-early-inlining", "-S", file]
    with served() as server:
        server.answer = lambda decision, features: 0
        command += ["-o", target, *server.flags(PLUGIN, ["inline"])]
        assert run_program(command, check=True).stderr == ""
        assert server.counts["inline"] == 2
    assert re.findall(r"call\t(\w+)", target.read_text()) == ["h", "h"]


INLINED = """#include <stdio.h>
#define INLINE __attribute__((always_inline, gnu_inline))
static inline INLINE int one(int a) { return a * 3 + 1; }
static inline INLINE int two(int a) { return one(a) + one(a - 1); }
extern inline INLINE int none(int a) { return a - 2; }
int main(void) { printf("%d\\n", two(5) + none(3)); }
"""


@pytest.mark.parametrize("level", ["-O0", "-Og", "-O2"])
def test_functions_that_gcc_must_inline(level: str, tmp_path: Path) -> None:
    """No model may skip the pass that inlines them."""
    assert runs(INLINED, (level,), tmp_path, gates=0, flags=0) == "30\n"


RECURSIVE = """#include <stdio.h>
__attribute__((noinline)) int next(int a) { return a ^ 5; }
__attribute__((noinline)) int sum(int n, int s) {
  return n == 0 ? s : sum(n - 1, s + next(n));
}
int main(void) { printf("%d\\n", sum(10, 0)); }
"""


@pytest.mark.parametrize("kept", [["tailr"], ["ccp", "tailc"]])
def test_passes_that_need_dominators(kept: list[str], tmp_path: Path) -> None:
    """The passes that turn recursion into loops do not compute dominators."""
    text = (ROOT / "compilers/gcc/Gates.cpp").read_text()
    found = re.search(r"OptionalPasses\[\] = {(.*?)}", text, re.DOTALL)
    assert found
    names = re.findall(r'"(.+?)"', found[1])

    def answer(_: str, features: mlbridge.Features) -> int:
        return int(names[int(features["pass"])] in kept)

    assert runs_with(answer, ["gates"], RECURSIVE, ["-O2"], tmp_path) == "63\n"


POLYMORPHIC = """#include <cstdio>
struct Base {
  virtual int of(int a) { return a + 1; }
  virtual ~Base() { std::puts("end"); }
};
struct Derived final : Base {
  int of(int a) override { for (int i = 0; i < 5; ++i) a ^= i + 3; return a; }
};
static int sum(Base &base, int n) {
  int s = 0;
  for (int i = 0; i < n; ++i)
    if (i > 3) s += base.of(i); else s ^= i;
  return s;
}
int main(int count, char **) {
  Derived one;
  Base *other = new Derived;
  int s = 0;
  for (int i = 1; i < 9; ++i) s += sum(one, i) + sum(*other, i + count);
  delete other;
  std::printf("%d\\n", s);
}
"""


def test_internal_checks_of_gcc(tmp_path: Path) -> None:
    """With -fchecking, gcc compares its summaries of functions with the functions."""
    options = ("-O2", "-fchecking=2")
    assert runs(POLYMORPHIC, options, tmp_path, inline=1) == "end\n161\nend\n"


@pytest.mark.skipif(shutil.which("ccache") is None, reason="ccache is not installed")
def test_ccache_and_another_model(
    stock: str, unrolled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ccache does not know the model's file, unless CCACHE_EXTRAFILES names it."""
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "cache"))
    model = write_model(tmp_path)
    monkeypatch.setenv("CCACHE_EXTRAFILES", str(model))
    plugin = (f"-fplugin={PLUGIN}", f"-fplugin-arg-mlbridge-unroll=onnx:{model}")

    def object_of() -> bytes:
        target = tmp_path / "x.o"
        command = ["ccache", "gcc", "-O2", "-fno-tree-vectorize", *plugin, "-c"]
        run_program([*command, tmp_path / "x.c", "-o", target], check=True)
        return target.read_bytes()

    (tmp_path / "x.c").write_text(SOURCE)
    first = object_of()
    assert object_of() == first
    g, kind = GraphBuilder(0), TensorProto.INT32
    g.op("Mul", ["instructions", g.constant([0], np.int32)], "times")
    g.save(model, [("instructions", kind, [1])], [("times", kind, [1])])
    assert object_of() != first


def test_a_trace(tmp_path: Path) -> None:
    log = tmp_path / "calls.log"
    with mlbridge.serving(lambda _: np.int32(0), f"shm:{tmp_path}/m"):
        decide_with("inline", f"record:{log}|shm:{tmp_path}/m", tmp_path)
    entries = list(read_log(log))
    sites = sorted(entry.context for entry in entries)
    assert sites == ["once->larger", "twice->larger", "twice->larger"]
    assert {np.asarray(entry.advice).item() for entry in entries} == {0}


LIES = {
    "negative": np.int32(-7),
    "large": np.int32(99),
    "shape": np.array([1, 1], np.int32),
    "type": "inline it",
    "fraction": np.float32(0.5),
}


def lie(kind: str, _: mlbridge.Features) -> Any:
    if kind == "raises":
        raise ValueError("no idea")
    if kind == "slow":
        time.sleep(2)
    return LIES.get(kind, np.int32(1))


@pytest.mark.parametrize("decision", ALL)
@pytest.mark.parametrize("kind", ["slow", "raises", *LIES])
def test_a_model_that_fails(
    decision: str, kind: str, stock: str, tmp_path: Path
) -> None:
    with mlbridge.serving(partial(lie, kind), f"shm:{tmp_path}/m"):
        spec = f"shm:{tmp_path}/m?timeout=500ms"
        made, said = decide_with(decision, spec, tmp_path)
    assert made == stock
    assert said.count("note:") == said.count("gcc decides") == 1


def test_a_model_that_dies(stock: str, tmp_path: Path) -> None:
    program = f"""import os, mlbridge
mlbridge.serve(lambda features: os._exit(1), "shm:{tmp_path}/m")"""
    with Started(program):
        spec = f"shm:{tmp_path}/m?connect=20s"
        made, said = decide_with("gates", spec, tmp_path)
    assert made == stock
    assert said.count("note:") == said.count("gcc decides") == 1
    assert "PeerClosed" in said


def test_another_version_of_gcc(stock: str, tmp_path: Path) -> None:
    """With a plug-in for another gcc, gcc prints one warning and decides itself."""
    for name in ("mlbridge.so", "mlbridge-decisions.so"):
        library = (PLUGIN.parent / name).read_bytes()
        assert b"20220819\0" in library or name != "mlbridge.so"
        (tmp_path / name).write_bytes(library.replace(b"20220819\0", b"20220820\0"))
    plugin = f"-fplugin={tmp_path / 'mlbridge.so'}"
    made, said = compile_with("nonsense:x", tmp_path, plugin, "-Werror")
    assert made == stock
    assert said.count("warning:") == said.count("gcc decides") == 1
    assert "of 20220820, found gcc" in said


@pytest.mark.skipif(shutil.which("gcc-11") is None, reason="gcc-11 is not installed")
def test_gcc_11_decides_alone(tmp_path: Path) -> None:
    alone, _ = compile_with("none", tmp_path, gcc="gcc-11")
    plugin = f"-fplugin={PLUGIN}"
    made, said = compile_with("nonsense:x", tmp_path, plugin, "-Werror", gcc="gcc-11")
    assert made == alone
    assert said.count("warning:") == said.count("gcc decides") == 1


def test_the_page(tmp_path: Path) -> None:
    """Runs the README's commands, which build the plug-in for the installed gcc."""
    for entry in ROOT.iterdir():
        if entry.name not in (".git", "build", "x.c"):
            (tmp_path / entry.name).symlink_to(entry)
    (tmp_path / "build").mkdir()
    (tmp_path / "build/release").symlink_to(BUILD)
    page = ROOT / "compilers/gcc/README.md"
    environment = {**os.environ, "PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}"}
    with subprocess.Popen(
        [sys.executable, docs_page.__file__, str(page)],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            assert process.wait(240) == 0
        finally:  # The page starts a server in the background.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert (tmp_path / "build/gcc-plugin/mlbridge-decisions.so").exists()
