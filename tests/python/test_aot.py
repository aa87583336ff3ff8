# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge compile``: the code replies like ONNX Runtime, or is refused."""

import importlib.util
import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto
from typer.testing import CliRunner

import aot_models
from aot_models import FLOAT, INT64, GraphBuilder
from conftest import MODULES, assert_close, assert_replies_alike, libraries_in
from mlbridge import Features, ModelRunner, Unsupported, inprocess, serving
from mlbridge.aot import compile_model, default_name
from mlbridge.aot.check import check
from mlbridge.aot.extents import generalise, points
from mlbridge.cli import app
from mlbridge.errors import InvalidArgument, Malformed, ModelError, SchemaMismatch
from mlbridge.runtimes import tvm
from programs import ROOT, reply_of, run_cli, run_program, shell_script

TOLERANCE = 1e-5

# One model of each kind gives the same replies in every runtime. TensorFlow's models
# (tests/tensorflow) and PyTorch's packages (test_runtimes.py) are not made from .onnx
# files, so they are compared with their frameworks.

IN_PROCESS = ("onnx", "aot", "aot?cpu=baseline", "tvm")
SERVED = ("pipe", "shm", "shm?serdes=json", "grpc+unix")
PAIRS = [
    (backend, kind)
    for backend in IN_PROCESS + SERVED
    for kind in aot_models.MODELS
    # TVM cannot import an LSTM from ONNX, as test_runtimes.py checks.
    if (backend, kind) != ("tvm", "lstm")
]


class Reference:
    """A policy that runs an .onnx file in ONNX Runtime, without this library."""

    def __init__(self, path: Path) -> None:
        self._session = onnxruntime.InferenceSession(path)
        self.names = [output.name for output in self._session.get_outputs()]

    def __call__(self, features: Features) -> dict[str, Any]:
        found = self._session.run(self.names, features)
        return dict(zip(self.names, map(np.asarray, found), strict=True))


def in_process(backend: str, model: Path) -> str:
    """Returns the spec that runs a model in this process."""
    scheme, question_mark, options = backend.partition("?")
    if scheme == "tvm":
        module = MODULES / "MLBridge-tvm.so"
        if not (importlib.util.find_spec("tvm") and module.exists()):
            pytest.skip("Apache TVM is not installed: `make test-full` does that")
        library = model.with_suffix(".tvm.so")
        if not library.exists():
            tvm.compile_model(model, library)
        return f"tvm:{library}?runtime={tvm.runtime()}"
    if scheme == "onnx" and not any(s.name == "onnx" for s in inprocess.schemes()):
        pytest.skip("this build has no scheme onnx:")
    file = model if scheme == "onnx" else model.with_name(f"lib{model.stem}.so")
    return f"{scheme}:{file}{question_mark}{options}"


@pytest.mark.parametrize(("backend", "kind"), PAIRS)
def test_answers_are_those_of_onnx_runtime(
    backend: str,
    kind: str,
    aot_folder: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLBRIDGE_MODULES", str(MODULES))
    model = aot_folder / f"{kind}.onnx"
    reference = Reference(model)
    server: AbstractContextManager[Any] = nullcontext()
    if backend in SERVED:
        scheme, question_mark, options = backend.partition("?")
        if scheme.startswith("grpc"):
            pytest.importorskip("mlbridge._grpc", reason="this build has no gRPC")
        server = serving(reference, f"{scheme}:{name}")
        spec = f"{scheme}:{name}{question_mark}{options}"
    else:
        spec = in_process(backend, model)
    with server, ModelRunner(spec) as runner:
        for features in aot_models.requests(kind):
            found = runner.evaluate(features)
            expected = reference(features)
            assert found.keys() == expected.keys()
            for output in expected:
                assert_close(np.asarray(found[output]), expected[output])


def test_a_library_is_loaded_once_for_all_runners(aot_folder: Path) -> None:
    library = (aot_folder / "libmlp.so").resolve()
    specs = [f"aot:{library}", f"fallback|aot:{library}", f"aot:{library}"]
    assert_replies_alike(specs, next(aot_models.requests("mlp")))
    assert libraries_in(library.parent).count(str(library)) == 1


@pytest.mark.parametrize("name", ["from", "to"])
def test_an_index_beyond_the_table_is_no_access(aot_folder: Path, name: str) -> None:
    with ModelRunner(f"aot:{aot_folder}/libedges.so") as runner:
        features = next(aot_models.requests("edges"))
        runner.evaluate(features)
        for wrong in (1, -2, 1 << 40):
            asked = features | {name: np.full_like(features[name], wrong)}
            with pytest.raises(ModelError, match="beyond the table's end"):
                runner.evaluate(asked)


def test_an_index_of_a_feature_extractor(tmp_path: Path) -> None:
    text = """<ir_version: 9, opset_import: ["": 17, "ai.onnx.ml": 3]>
        g (float[1, 9] x, int64[2] i) => (float[1, 2] y) {
            y = ai.onnx.ml.ArrayFeatureExtractor(x, i)
        }"""
    made = onnx.parser.parse_model(text)
    x = np.arange(9, dtype=np.float32).reshape(1, 9)
    with compiled(made, tmp_path) as (runner, _):
        assert runner.evaluate({"x": x, "i": np.array([8, 0])})["y"].sum() == 8
        for wrong in (9, -10, 100000, 1 << 40):
            with pytest.raises(ModelError, match="beyond the table's end"):
                runner.evaluate({"x": x, "i": np.array([0, wrong])})


def test_operators_that_nobody_has_looked_at_are_refused(tmp_path: Path) -> None:
    g = GraphBuilder(12)
    g.op("MaxUnpool", ["x", "i"], "y", kernel_shape=[2], strides=[2])
    made = graph_of(g, [1, 1, 4], [1, 1, 8], ("i", INT64, [1, 1, 4]))
    with pytest.raises(Unsupported, match="MaxUnpool may index by"):
        compile_here(made, tmp_path)
    g = GraphBuilder(13)
    g.op("CumSum", ["x", "axis"], "y")
    made = graph_of(g, [3, 2], [3, 2], ("axis", INT64, [1]))
    with pytest.raises(Unsupported, match="CumSum uses 'axis' as a size"):
        compile_here(made, tmp_path)


def test_the_library_shows_its_descriptor_and_nothing_else(aot_folder: Path) -> None:
    symbols = nm("--dynamic", aot_folder / "libggnn.so").splitlines()
    shown = ["mlbridge_aot_model", "mlbridge_aot_model_ggnn"]
    assert [line.split()[-1] for line in symbols] == shown


def test_archives_and_c(tmp_path: Path) -> None:
    onnx.save(aot_models.several(), tmp_path / "m.onnx")
    made, header = tmp_path / "libpolicy.a", tmp_path / "policy.h"
    compile_model(tmp_path / "m.onnx", made, header=header)
    symbols = re.findall(r"[A-Z] (\w+)$", nm("--extern-only", made), re.M)
    assert symbols == ["mlbridge_aot_model_policy"]
    declared = "extern const MLBridgeAOTModel mlbridge_aot_model_policy;"
    assert declared in header.read_text()
    # The C file needs no header of this library, and any compiler compiles it.
    compile_model(tmp_path / "m.onnx", tmp_path / "policy.c", name="other")
    for compiler in ("gcc", "clang-22"):
        command = [compiler, "-w", "-c", "policy.c", "-o", "other.o"]
        run_program(command, cwd=tmp_path, check=True)


VARIANTS = ("x86-64-v4", "x86-64-v3", "baseline")


def test_a_model_of_many_operators(tmp_path: Path) -> None:
    """Each operator becomes its own function, once for each kind of CPU."""
    g, count = GraphBuilder(1), 70
    names = ["x", *(f"z{i}" for i in range(count - 1)), "y"]
    for i, (a, b) in enumerate(itertools.pairwise(names)):
        g.op(("Sin", "Abs", "Exp", "Neg")[i % 4], [a], b)
    onnx.save(graph_of(g, ["n", 3], ["n", 3]), tmp_path / "m.onnx")
    compile_model(tmp_path / "m.onnx", tmp_path / "m.c")
    code = (tmp_path / "m.c").read_text()
    assert code.count("#define EMX_NODE_FN MLB_TARGET") == len(VARIANTS)
    assert code.count("EMX_NODE_FN void") == count * len(VARIANTS)


def test_a_model_that_differs_is_not_made(aot_folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.onnx"
    onnx.save(aot_models.mlp(seed=2), other)
    pattern = r"logits\[0, \d+\]: expected -?[\d.]+ \(ONNX Runtime.s result\)"
    with pytest.raises(ModelError, match=pattern):
        check(aot_folder / "libmlp.so", other, {}, TOLERANCE)


def test_large_integers_that_cancel_out(tmp_path: Path) -> None:
    """Rounding in sums of large numbers exceeds the tolerance, but is accepted."""
    g = GraphBuilder(1)
    g.op("Cast", ["x"], "layer0", to=FLOAT)
    for i, (rows, columns) in enumerate([(8, 64), (64, 64), (64, 4)]):
        g.op("MatMul", [f"layer{i}", g.weight(rows, columns)], f"sum{i}")
        g.op("Relu", [f"sum{i}"], f"layer{i + 1}")
    made = g.model(
        "g", [("x", TensorProto.INT64, ["n", 8])], [("sum2", FLOAT, ["n", 4])]
    )
    compile_here(made, tmp_path)


def test_a_model_that_crashes_is_not_made(tmp_path: Path) -> None:
    status = "int status = MLBRIDGE_AOT_OK;"
    change_code(aot_models.several(), tmp_path, {status: "int status = *(int *)8;"})
    with pytest.raises(ModelError, match="ended by SIGSEGV"):
        check(tmp_path / "m.so", tmp_path / "m.onnx", {}, TOLERANCE)


def nm(*arguments: str | Path) -> str:
    return run_program(["nm", "--defined-only", *arguments], check=True).stdout


def change_code(
    made: onnx.ModelProto, folder: Path, changes: dict[str, str], *options: str
) -> None:
    """Compiles m.onnx to m.c, and then m.c with `changes` to m.so."""
    onnx.save(made, folder / "m.onnx")
    compile_model(folder / "m.onnx", folder / "m.c")
    text = (folder / "m.c").read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    exported = "const void *const mlbridge_aot_model = &mlbridge_aot_model_m;\n"
    (folder / "m.c").write_text(text + exported)
    command = ["gcc", "-w", "-shared", "-fPIC", *options]
    run_program([*command, "m.c", "-om.so", "-lm"], cwd=folder, check=True)


Shape = Sequence[int | str | None]


def graph_of(g: GraphBuilder, x: Shape, y: Shape, *more: Any) -> onnx.ModelProto:
    """A model with the float input x and output y. `more` are further inputs."""
    return g.model("g", [("x", FLOAT, x), *more], [("y", FLOAT, y)])


def unary(operator: str, shape: Shape, kind: int = FLOAT) -> onnx.ModelProto:
    """A model of one operator, whose input x and output y have the same shape."""
    g = GraphBuilder(1)
    g.op(operator, ["x"], "y")
    return g.model("g", [("x", kind, shape)], [("y", kind, shape)])


def compile_here(made: onnx.ModelProto, tmp_path: Path, **options: Any) -> Path:
    onnx.save(made, tmp_path / "m.onnx")
    compile_model(tmp_path / "m.onnx", tmp_path / "m.so", **options)
    return tmp_path / "m.so"


@contextmanager
def compiled(
    made: onnx.ModelProto, tmp_path: Path
) -> Iterator[tuple[ModelRunner, Any]]:
    """A runner of a model's machine code, and ONNX Runtime's replies."""
    with ModelRunner(f"aot:{compile_here(made, tmp_path)}") as runner:
        yield runner, Reference(tmp_path / "m.onnx")


def test_an_extent_that_is_computed(tmp_path: Path) -> None:
    g = GraphBuilder(1)
    g.op("Concat", ["x", "x"], "z", axis=0)
    g.op("ReduceMean", ["z"], "m", axes=[0], keepdims=1)
    g.op("Sub", ["z", "m"], "y")
    with compiled(graph_of(g, ["n", 3], ["m", 3]), tmp_path) as (runner, _):
        for n in (4, 9, 2):
            x = np.arange(3 * n, dtype=np.float32).reshape(n, 3)
            found = runner.evaluate({"x": x})["y"]
            np.testing.assert_allclose(found, np.concatenate([x, x]) - x.mean(0))


@pytest.mark.parametrize("kind", [FLOAT, TensorProto.INT64, TensorProto.DOUBLE])
def test_a_scaler_of_scikit_learn(tmp_path: Path, kind: int) -> None:
    numbers = {"offset": [1.0, 2e9, 3.0], "scale": [0.5, 2.0, -1.0]}
    g = GraphBuilder(1)
    g.op("Scaler", ["x"], "y", domain="ai.onnx.ml", **numbers)
    made = g.model("g", [("x", kind, ["n", 3])], [("y", FLOAT, ["n", 3])])
    with compiled(made, tmp_path) as (runner, reference):
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
        x = np.arange(15, dtype=dtype).reshape(5, 3)
        found = runner.evaluate({"x": x})["y"]
        np.testing.assert_allclose(found, reference({"x": x})["y"])
        expected = (x - numbers["offset"]) * numbers["scale"]
        np.testing.assert_allclose(found, expected)


def test_exponentials_to_the_ends_of_what_there_is(tmp_path: Path) -> None:
    g = GraphBuilder(1)
    g.op("Concat", [g.op("Exp", ["x"], "e"), g.op("Tanh", ["x"], "t")], "y", axis=0)
    made = compile_here(graph_of(g, ["n"], [None]), tmp_path)
    ends = [0, 1e-30, 1, 88.7, 88.8, 1e30, np.inf, np.nan]
    x = np.array([*ends, *np.negative(ends), *np.linspace(-87, 88, 999)], np.float32)
    with np.errstate(over="ignore"):
        expected = np.concatenate([np.exp(x), np.tanh(x)])
    for cpu in ("", "?cpu=baseline"):
        found = reply_of(f"aot:{made}{cpu}", {"x": x})["y"]
        np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=1e-37)


def not_finite() -> onnx.ModelProto:
    """x float[1,8] -> y float[1,61], with operators that must preserve NaN."""
    g = GraphBuilder(8)
    slopes = g.constant(np.arange(8) - 4, np.float32)
    parts = [
        g.op("Relu", ["x"], "relu"),
        g.op("PRelu", ["x", slopes], "prelu"),
        g.op("HardSigmoid", ["x"], "sigmoid"),
        g.op("Max", ["x", slopes], "max"),
        g.op("Min", [slopes, "x"], "min"),
        g.op("Clip", ["x", *(g.constant(c, np.float32) for c in (-1, 1))], "clip"),
        g.op("Mul", ["x", g.constant([0.0], np.float32)], "zero"),
        g.op("ReduceMax", ["x"], "largest", axes=[1], keepdims=1),
        g.op("ReduceMin", ["x"], "smallest", axes=[1], keepdims=1),
    ]
    g.op("TopK", ["x", g.constant([3])], ["best", "i"])
    g.op("Concat", [*parts, "best"], "y", axis=1)
    return graph_of(g, [1, 8], [1, 61])


def test_nan_and_infinities_are_what_they_are(tmp_path: Path) -> None:
    made = compile_here(not_finite(), tmp_path)
    reference = Reference(tmp_path / "m.onnx")
    plain = np.array([[1, -2, 3, 0.5, -0.25, 7, -8, 2]], np.float32)
    for cpu in ("", "?cpu=x86-64-v3", "?cpu=baseline"):
        with ModelRunner(f"aot:{made}{cpu}") as runner:
            for value, i in itertools.product((np.inf, -np.inf, 1.5, np.nan), range(8)):
                x = plain.copy()
                x[0, i] = value
                found = np.asarray(runner.evaluate({"x": x})["y"])
                if not np.isnan(value):
                    np.testing.assert_array_equal(found, reference({"x": x})["y"])
                    continue
                # In the first seven outputs, of eight floats each, NaN stays at its
                # index. NaN is also the maximum, the minimum, and the first of the best
                # three.
                expected = [*np.tile(np.isnan(x[0]), 7), *[True] * 3, False, False]
                np.testing.assert_array_equal(np.isnan(found[0]), expected)


def test_code_that_makes_a_number_of_nan_is_not_made(tmp_path: Path) -> None:
    defines = {f"#define {name} mlb_{name}\n": "" for name in ("fmaxf", "fminf")}
    change_code(not_finite(), tmp_path, defines, "-O1")
    with pytest.raises(ModelError, match=r"input of nan, .* but only \d+ of the"):
        check(tmp_path / "m.so", tmp_path / "m.onnx", {}, TOLERANCE)


def picked(start: int) -> onnx.ModelProto:
    """x float[n] -> y float[1]: the element at `start`."""
    g = GraphBuilder(9)
    g.op("Slice", ["x", g.constant([start]), g.constant([start + 1])], "one")
    g.op("Reshape", ["one", g.constant([1])], "same")
    g.op("Neg", ["same"], "y")
    return graph_of(g, ["n"], [1])


def best_three() -> onnx.ModelProto:
    """x float[n] -> y float[3]: the three largest elements."""
    g = GraphBuilder(9)
    g.op("TopK", ["x", g.constant([3])], ["y", "i"])
    return graph_of(g, ["n"], [3])


@pytest.mark.parametrize(
    ("made", "least"), [(picked(5), 6), (picked(100), 101), (best_three(), 3)]
)
def test_sizes_that_have_no_answer_are_refused(
    tmp_path: Path, made: onnx.ModelProto, least: int
) -> None:
    with compiled(made, tmp_path) as (runner, reference):
        for n in (least, least + 1, 2500):
            asked = {"x": np.arange(n, dtype=np.float32)}
            found = runner.evaluate(asked)["y"]
            np.testing.assert_array_equal(found, reference(asked)["y"])
        for n in (1, least - 1):
            with pytest.raises(SchemaMismatch, match=f"n >= {least}"):
                runner.evaluate({"x": np.zeros(n, np.float32)})


def test_positions_of_which_there_are_so_many(tmp_path: Path) -> None:
    g = GraphBuilder(10)
    g.op("Shape", ["x"], "shape")
    g.op("Gather", ["shape", g.constant([0])], "n")
    ends = [g.constant([0]), "n", g.constant([0])]
    g.op("Slice", [g.weight(3000, 4), *ends], "positions")
    g.op("Add", ["x", "positions"], "y")
    made = graph_of(g, ["n", 4], ["n", 4])
    with compiled(made, tmp_path) as (runner, reference):
        for n in (1, 2003):
            asked = {"x": np.ones((n, 4), np.float32)}
            found = runner.evaluate(asked)["y"]
            np.testing.assert_array_equal(found, reference(asked)["y"])
        with pytest.raises(SchemaMismatch, match=r"n <= \d+"):
            runner.evaluate({"x": np.ones((3500, 4), np.float32)})


def test_code_that_decides_by_size_is_not_made(tmp_path: Path) -> None:
    g = GraphBuilder(11)
    g.op("Slice", ["x", g.constant([0]), g.constant([5000])], "some")
    g.op("Neg", ["some"], "y")
    with pytest.raises(ModelError, match=r"y: expected float32\[\d+\], found .*5000"):
        compile_here(graph_of(g, ["n"], ["m"]), tmp_path)


def test_an_extent_that_is_pinned(tmp_path: Path) -> None:
    made = compile_here(unary("Relu", [None, 3]), tmp_path, pin={"x:0": 2})
    assert reply_of(f"aot:{made}", {"x": np.ones((2, 3), np.float32)})["y"].sum() == 6
    with pytest.raises(InvalidArgument, match=r"no free extent 'batch'; .*: x:0"):
        compile_model(tmp_path / "m.onnx", made, pin={"batch": 2})


def test_what_cannot_be_compiled_is_named(tmp_path: Path) -> None:
    strings = unary("Identity", [2], TensorProto.STRING)
    with pytest.raises(Unsupported, match=r"tensor of numbers for 'x', .* STRING"):
        compile_here(strings, tmp_path)
    g = GraphBuilder(1)
    g.op("Cast", [g.op("NonZero", ["x"], "i")], "y", to=FLOAT)
    with pytest.raises((Unsupported, ModelError)):
        compile_here(graph_of(g, ["n"], [1, None]), tmp_path)
    assert not (tmp_path / "m.so").exists()
    unnamed = unary("Identity", [2])
    for value in (unnamed.graph.input[0], unnamed.graph.output[0]):
        value.type.tensor_type.elem_type = 99
    with pytest.raises(Unsupported, match="for 'x', found elements of type 99"):
        compile_here(unnamed, tmp_path)
    with pytest.raises(Unsupported, match="'x': expected a rank of at most 8, found 9"):
        compile_here(unary("Relu", [1] * 9), tmp_path)
    copied = unary("Relu", [3])
    copied.graph.output.append(copied.graph.input[0])
    with pytest.raises(Unsupported, match="the output 'x' is an input"):
        compile_here(copied, tmp_path)
    (tmp_path / "m.onnx").write_bytes(b"no model")
    with pytest.raises(Malformed, match="is not an ONNX model"):
        compile_model(tmp_path / "m.onnx", tmp_path / "m.so")
    with pytest.raises(FileNotFoundError):
        compile_model(tmp_path / "nothing.onnx", tmp_path / "m.so")


def test_a_file_is_there_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx.save(aot_models.several(), tmp_path / "m.onnx")
    output, header = tmp_path / "policy.c", tmp_path / "policy.h"
    compile_model(tmp_path / "m.onnx", output, header=header)
    texts = {path: path.read_bytes() for path in (output, header)}
    old = {path: path.open("rb") for path in texts}

    def copy(source: Path, target: Path) -> None:
        # The old files remain until the new files are complete.
        assert {path: path.read_bytes() for path in texts} == texts
        target.write_bytes(source.read_bytes()[:100])
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr("shutil.copy", copy)
        with pytest.raises(OSError, match="no space"):
            compile_model(tmp_path / "m.onnx", output, header=header)
    assert {path: path.read_bytes() for path in texts} == texts
    assert len(list(tmp_path.iterdir())) == 3
    compile_model(tmp_path / "m.onnx", output, name="other", header=header)
    assert b"mlbridge_aot_model_other" in output.read_bytes()
    for path, file in old.items():
        with file:
            assert file.read() == texts[path]


def test_a_sequence_of_any_length(tmp_path: Path) -> None:
    made = aot_models.lstm()
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    with compiled(made, tmp_path) as (runner, reference):
        for n in (1, 40):
            asked = {"tokens": np.arange(n), "state": np.ones((1, 8), np.float32)}
            found = runner.evaluate(asked)["probabilities"]
            expected = reference(asked)["probabilities"]
            np.testing.assert_allclose(found, expected, atol=TOLERANCE)


def test_memory_of_a_free_size_on_the_stack_is_refused(tmp_path: Path) -> None:
    g = GraphBuilder(7)
    weights = [g.weight(1, 64, 8), g.weight(1, 64, 16)]
    g.op("LSTM", ["x", *weights], ["", "y"], hidden_size=16)
    with pytest.raises(Unsupported, match="stack memory whose size depends on"):
        compile_here(graph_of(g, [3, "n", 8], [1, "n", 16]), tmp_path)


def test_primes_of_free_extents_are_far_apart() -> None:
    """Each free extent has its own prime, far from the primes of other extents."""
    names = [f"n{i}" for i in range(8)]
    first, second = points(names, {2011}, 2003)
    assert list(first) == list(second) == names
    for name, value in first.items():
        assert 2003 <= value < second[name] < 4001
        assert 2011 not in (value, second[name])
    ends = [0, *second.values()]
    for before, value in zip(ends, first.values(), strict=False):
        assert value > before + 64


def test_numbers_that_follow_from_free_extents() -> None:
    at = ({"n": 2003, "m": 2011}, {"n": 2017, "m": 2027})

    def text(n: int, m: int) -> str:
        products = f"a[{n}][7]; {m * n} b{n} 0x1.8p+{3}f {16 * n * n}"
        return f"{products} {n + 1} {n}.0f {n}LL 2003"

    first, second = (text(**extents).replace(f"b{extents['n']}", "b") for extents in at)
    assert generalise((first, second), at) == (
        "a[n][7]; (n * m) b 0x1.8p+3f (16 * n * n) (n+1) (float)n n 2003"
    )
    with pytest.raises(Unsupported, match="more than a product and a constant"):
        generalise(("1001", "1008"), at)


def test_the_command_line(tmp_path: Path) -> None:
    onnx.save(aot_models.several(), tmp_path / "m.onnx")
    output = tmp_path / "libpolicy.so"
    said = " ".join(run_cli("compile", tmp_path / "m.onnx", "-o", output).split())
    assert re.search(r"emx-onnx-cgen [\d.]+: .*KiB in .* agrees with ", said)
    assert re.search(r" agrees with .*baseline: \d+ evaluations", said)
    assert "score" in reply_of(f"aot:{output}", next(aot_models.requests("several")))
    assert default_name(output) == "policy"
    assert default_name(Path("my-policy.v2.o")) == "my_policy_v2"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "policy.dll"], "ends in .so, .o, .a, .c"),
        (["-o", "2fast.so"], "expected a C identifier"),
        (["-o", "m.so", "--cc", "no-such-cc"], "no C compiler no-such-cc"),
        (["-o", "m.so", "--cc", "cc 'x"], "no C compiler cc 'x"),
        (["-o", "m.so", "--pin", "batch"], "--pin batch: expected EXTENT=SIZE"),
        (["-o", "m.so", "--pin", "N=0"], "--pin N=0: expected EXTENT=SIZE"),
    ],
)
def test_wrong_use(tmp_path: Path, arguments: list[str], message: str) -> None:
    onnx.save(aot_models.several(), tmp_path / "m.onnx")
    result = CliRunner().invoke(app, ["compile", str(tmp_path / "m.onnx"), *arguments])
    assert result.exit_code != 0
    assert message in " ".join(f"{result.output} {result.exception}".split())


# Errors of lib/TF/AOT/compile.py. tests/tensorflow compiles models with TensorFlow.


def compile_by(saved_model_cli: str, folder: Path, *options: str) -> str:
    """Runs compile.py with a shell script as TensorFlow's tool. Returns the errors."""
    python = folder / "python"
    python.symlink_to(sys.executable)
    shell_script(folder / "saved_model_cli", saved_model_cli)
    script = ROOT / "lib/TF/AOT/compile.py"
    arguments: list[str | Path] = ["model", folder, "policy", *options]
    done = run_program([python, script, *arguments])
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("echo first >&2; echo last >&2; exit 3", "model: last\n"),
        ("exit 3", "model: saved_model_cli ended with status 3\n"),
        ("kill -9 $$", "model: saved_model_cli ended with status -9\n"),
    ],
)
def test_a_tool_that_fails(tmp_path: Path, tool: str, said: str) -> None:
    assert compile_by(tool, tmp_path) == said


def test_a_cpu_that_nothing_could_check_for(tmp_path: Path) -> None:
    said = compile_by(f"touch {tmp_path}/called", tmp_path, "--cpu=znver9")
    assert said.startswith("model: CPU: expected one of x86-64-v3, haswell, ")
    assert said.endswith(", found 'znver9'\n")
    assert not (tmp_path / "called").exists()
