# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stock mlir-opt with the plug-in in compilers/mlir, and the model of tilings."""

import json
import os
import random
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import mlbridge
import test_docs
from mlbridge.errors import InvalidArgument, Malformed, ModelError
from mlbridge.log import read_log
from mlbridge_optimizations.mlir_tiling import measure
from mlbridge_optimizations.mlir_tiling.kernels import (
    AFFINE,
    HELD_OUT_KINDS,
    HELD_OUT_SIZES,
    LINALG,
    NOINLINE,
    PATTERNS,
    Kernel,
    Pattern,
    can_be_linalg,
    training_kernels,
)
from programs import BUILD, FULL, Started, run_cli, run_program

PLUGIN = BUILD / "lib/MLBridgeMLIR.so"

pytestmark = pytest.mark.skipif(
    not PLUGIN.exists() or not shutil.which(measure.RUNNER),
    reason="the plug-in is not built: needs libmlir-22-dev and mlir-22-tools",
)

Choice = NDArray[np.int64]

PRODUCT = """
func.func @product(%A: memref<64x48xf32>, %B: memref<48x32xf32>, %C: memref<64x32xf32>)
{
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 32 {
      affine.for %k = 0 to 48 {
        %a = affine.load %A[%i, %k] : memref<64x48xf32>
        %b = affine.load %B[%k, %j] : memref<48x32xf32>
        %c = affine.load %C[%i, %j] : memref<64x32xf32>
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %c, %p : f32
        affine.store %s, %C[%i, %j] : memref<64x32xf32>
      }
    }
  }
  return
}
"""
SKEWED = """
func.func @skewed(%A: memref<66x66xf32>) {
  affine.for %i = 1 to 65 {
    affine.for %j = 1 to 65 {
      %a = affine.load %A[%i - 1, %j + 1] : memref<66x66xf32>
      affine.store %a, %A[%i, %j] : memref<66x66xf32>
    }
  }
  return
}
"""
IN_TIME = """
func.func @in_time(%A: memref<64xf32>, %B: memref<64xf32>) {
  affine.for %t = 0 to 10 {
    affine.for %i = 0 to 64 {
      %a = affine.load %A[%i] : memref<64xf32>
      affine.store %a, %B[%i] : memref<64xf32>
    }
    affine.for %i = 0 to 64 {
      %a = affine.load %B[63 - %i] : memref<64xf32>
      affine.store %a, %A[%i] : memref<64xf32>
    }
  }
  return
}
"""
TENSORS = """
func.func @tensors(%A: tensor<64x48xf32>, %B: tensor<48x32xf32>, %C: tensor<64x32xf32>)
    -> tensor<64x32xf32> {
  %r = linalg.matmul ins(%A, %B : tensor<64x48xf32>, tensor<48x32xf32>)
      outs(%C : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %r : tensor<64x32xf32>
}
"""


def tiled(text: str, spec: str, *, status: int = 0) -> tuple[str, str]:
    """Runs mlir-opt with the pass. Returns the module and mlir-opt's messages."""
    passes = f"builtin.module(func.func(mlbridge-tile{{model={spec}}}))"
    done = run_program(
        [
            measure.OPT,
            f"--load-pass-plugin={PLUGIN}",
            f"--pass-pipeline={passes}",
            "--mlir-print-op-on-diagnostic=false",
        ],
        input=text,
    )
    assert done.returncode == status, done.stderr
    return done.stdout, done.stderr


def stock(text: str) -> str:
    """Returns the text that mlir-opt prints without the plug-in."""
    return run_program([measure.OPT], input=text, check=True).stdout


def answered(text: str, reply: Any, place: Path) -> tuple[str, str, list[Any]]:
    """Runs the pass with a model.

    `reply` is the reply, or a function that makes the reply.
    """
    seen: list[dict[str, Any]] = []

    def policy(features: mlbridge.Features) -> Any:
        seen.append({name: np.array(value) for name, value in features.items()})
        return reply(seen[-1]) if callable(reply) else reply

    with mlbridge.serving(policy, f"shm:{place}"):
        return *tiled(text, f"shm:{place}?timeout=2s"), seen


def test_features(tmp_path: Path) -> None:
    reply = np.array([16, 0, 16, 0, 2, 1, 4])
    module, said, (seen,) = answered(PRODUCT, reply, tmp_path / "m")
    assert said == ""
    assert seen["trip_counts"].tolist() == [64, 32, 48]
    assert seen["parallel"].tolist() == [1, 1, 0]
    assert seen["strides"].tolist() == [
        *([192, 0, 4], [0, 4, 128], [128, 4, 0], [128, 4, 0])
    ]
    assert seen["accesses"].tolist() == [[4, 0, 0], [4, 1, 0], [4, 2, 0], [4, 2, 1]]
    assert seen["operations"].tolist() == [1, 1, 0, 0]
    choices = seen["choices"].tolist()
    assert choices[0] == [0, 0, 0, 0, 1, 2, 1]
    assert len({tuple(row) for row in choices}) == len(choices) > 50
    assert seen["choice_features"].shape == (len(choices), 44)
    assert np.isfinite(seen["choice_features"]).all()
    # There are two loops over tiles, three loops in a tile, and four copies of the
    # body.
    assert module.count("affine.for") == 5
    assert module.count("arith.mulf") == 4


def test_linalg_on_tensors(tmp_path: Path) -> None:
    reply = np.array([16, 0, 16, 0, 2, 1, 1])
    module, said, (seen,) = answered(TENSORS, reply, tmp_path / "m")
    assert said == ""
    assert seen["trip_counts"].tolist() == [64, 32, 48]
    assert (seen["choices"][:, -1] == 1).all()
    assert module.count("scf.for") == 2
    assert "tensor<16x16xf32>" in module


def test_nests_in_a_loop_over_time(tmp_path: Path) -> None:
    module, said, seen = answered(IN_TIME, np.array([8, 0, 1]), tmp_path / "m")
    assert said == ""
    assert [one["trip_counts"].tolist() for one in seen] == [[64], [64]]
    assert module.count("affine.for") == 5


def test_an_operation_in_a_loop_is_asked_about_once(tmp_path: Path) -> None:
    """The operation becomes affine loops, which are no further nest."""
    text = """
func.func @repeated(%A: memref<6x7xf32>, %B: memref<6x7xf32>) {
  affine.for %t = 0 to 3 {
    linalg.copy ins(%A : memref<6x7xf32>) outs(%B : memref<6x7xf32>)
  }
  return
}
"""
    module, said, seen = answered(text, np.array([0, 0, 1, 0, 1]), tmp_path / "m")
    assert said == ""
    assert [one["trip_counts"].tolist() for one in seen] == [[6, 7]]
    bounds = re.findall("affine.for .* to (\\d+)", module)
    assert bounds == ["3", "7", "6"]


def test_a_log(tmp_path: Path) -> None:
    """Each thread would open the log, so mlir-opt must use one thread."""
    text = "".join(PRODUCT.replace("@product", f"@f{number}") for number in range(3))
    log, place = tmp_path / "nests.log", f"shm:{tmp_path / 'm'}"
    with mlbridge.serving(lambda features: features["choices"][0], place):
        spec = f"record:{log}|{place}"
        measure.tile(PLUGIN, text, spec, "--mlir-disable-threading")
    assert [entry.context for entry in read_log(log)] == ["f0", "f1", "f2"]


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        # The two buffers are the same memory.
        (
            "%B = memref.cast %A : memref<8xf32> to memref<?xf32>\n"
            "affine.for %i = 0 to 8 {\n%x = affine.load %A[%i] : memref<8xf32>\n"
            "affine.store %x, %B[7 - %i] : memref<?xf32>\n}",
            "%A: memref<8xf32>",
        ),
        # The loop carries a value.
        (
            "%z = arith.constant 0.0 : f32\n"
            "%s = affine.for %i = 0 to 8 iter_args(%t = %z) -> f32 {\n"
            "%x = affine.load %A[%i] : memref<8xf32>\n%u = arith.addf %t, %x : f32\n"
            "affine.yield %u : f32\n}\naffine.store %s, %A[0] : memref<8xf32>",
            "%A: memref<8xf32>",
        ),
        # The loop never runs.
        (
            "affine.for %i = 0 to 0 {\n%x = affine.load %A[%i] : memref<8xf32>\n"
            "affine.store %x, %A[%i] : memref<8xf32>\n}",
            "%A: memref<8xf32>",
        ),
        # The operation transposes a matrix in its own buffer.
        (
            "linalg.transpose ins(%A : memref<8x8xf32>) outs(%A : memref<8x8xf32>)"
            " permutation = [1, 0]",
            "%A: memref<8x8xf32>",
        ),
        # The body of the operation calls a function.
        (
            "linalg.map ins(%A : memref<8xf32>) outs(%B : memref<8xf32>)"
            " (%x: f32, %y: f32) {\nfunc.call @f(%x) : (f32) -> ()\n"
            "linalg.yield %x : f32\n}",
            "%A: memref<8xf32>, %B: memref<8xf32>",
        ),
        # The body has so many accesses that the analysis would take long.
        (
            "affine.for %i = 0 to 8 {\n"
            + "\n".join(
                f"%x{n} = affine.load %A[%i] : memref<8xf32>" for n in range(129)
            )
            + "\n}",
            "%A: memref<8xf32>",
        ),
        # A bound depends on another loop.
        (
            "affine.for %i = 0 to 8 {\naffine.for %j = 0 to affine_map<(d) -> (d)>(%i)"
            " {\n%x = affine.load %A[%j] : memref<8xf32>\n"
            "func.call @f(%x) : (f32) -> ()\n}\n}",
            "%A: memref<8xf32>",
        ),
    ],
)
def test_nests_that_are_not_asked_about(
    body: str, arguments: str, tmp_path: Path
) -> None:
    text = (
        "func.func private @f(f32)\n"
        f"func.func @nest({arguments}) {{\n{body}\nreturn\n}}\n"
    )
    module, said, seen = answered(text, np.array([4, 0, 1]), tmp_path / "m")
    assert seen == []
    assert said == ""
    assert module == stock(text)


def test_none_changes_nothing() -> None:
    for text in (PRODUCT, SKEWED, IN_TIME, TENSORS):
        assert tiled(text, "none") == (stock(text), "")


def test_leaving_changes_nothing(tmp_path: Path) -> None:
    text = PRODUCT + SKEWED
    module, said, _ = answered(text, lambda f: f["choices"][0], tmp_path / "m")
    assert (module, said) == (stock(text), "")


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (np.array([8, 8, 8, 0, 1, 2]), "expected 7 numbers for 3 loops, found 6"),
        (np.array([-1, 8, 8, 0, 1, 2, 1]), "the tile size -1 of loop 0"),
        (np.array([1 << 40, 8, 8, 0, 1, 2, 1]), "the tile size 1099511627776"),
        (np.array([8, 8, 8, 0, 1, 1, 1]), "the order is not a permutation"),
        (np.array([8, 8, 8, 0, 1, 3, 1]), "the order is not a permutation"),
        (np.array([8, 8, 8, 0, -1, 2, 1]), "the order is not a permutation"),
        (np.array([8, 8, 8, 0, 1, 2, 0]), "the unroll factor 0"),
        (np.array([8, 8, 8, 0, 1, 2, 99]), "the unroll factor 99"),
        (np.array([8, 7, 8, 0, 1, 2, 4]), "the unroll factor 4 does not divide"),
        (np.array([0.5] * 7), "cannot represent"),
        (np.array([np.nan] * 7), "cannot represent"),
        ("tile all of them", "expected"),
        (np.zeros(0, np.int64), "expected 7 numbers"),
        ({"a": np.zeros(7, np.int64), "b": np.zeros(7, np.int64)}, "'a'"),
    ],
)
def test_replies_that_lie(reply: Any, why: str, tmp_path: Path) -> None:
    text = PRODUCT + PRODUCT.replace("@product", "@again")
    module, said, _ = answered(text, reply, tmp_path / "m")
    assert module == stock(text)
    assert said.count("warning") == 1
    assert why in said


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ([0, 0, 1, 0, 1], "a dependence forbids this order"),
        ([0, 8, 0, 1, 1], "a dependence forbids tiling of loop 1"),
        ([0, 0, 0, 1, 4], "a dependence forbids unrolling of loop 0"),
    ],
)
def test_replies_that_dependences_forbid(
    reply: list[int], why: str, tmp_path: Path
) -> None:
    module, said, (seen,) = answered(SKEWED, np.array(reply), tmp_path / "m")
    assert module == stock(SKEWED)
    assert said.count("warning") == 1
    assert why in said
    assert reply not in seen["choices"].tolist()


def _raising(features: Any) -> Any:
    raise RuntimeError("out of memory")


def _sleeping(features: Any) -> Any:
    time.sleep(4)
    return features["choices"][-1]


@pytest.mark.parametrize(
    ("policy", "why"), [(_raising, "out of memory"), (_sleeping, "Timeout")]
)
def test_models_that_fail(policy: Any, why: str, tmp_path: Path) -> None:
    text = PRODUCT + SKEWED
    module, said, _ = answered(text, policy, tmp_path / "m")
    assert module == stock(text)
    assert said.count("warning") == 1
    assert why in said


@pytest.mark.parametrize("spec", ["shm:{}/m?connect=50ms", "onnx:{}/m.onnx"])
def test_models_that_are_not_there(spec: str, tmp_path: Path) -> None:
    text = PRODUCT + SKEWED
    module, said = tiled(text, spec.format(tmp_path))
    assert module == stock(text)
    assert said.count("warning") == 1


def test_models_that_die(tmp_path: Path) -> None:
    text = PRODUCT + SKEWED
    place = f"shm:{tmp_path / 'm'}"
    server = (
        "import mlbridge, os\n"
        f"with mlbridge.serving(lambda f: os._exit(3), {place!r}):\n"
        "    print('ready', flush=True)\n    input()\n"
    )
    with Started(server, stdin=subprocess.PIPE) as started:
        assert started.stdout.readline() == "ready\n"
        module, said = tiled(text, place)
    assert module == stock(text)
    assert said.count("warning") == 1


def test_a_mistake_in_the_spec() -> None:
    _, said = tiled(PRODUCT, "nonsense:x", status=1)
    assert "error: mlbridge-tile" in said
    assert "nonsense" in said


def always(row: Choice) -> measure.Answer:
    """Returns a model that always gives one reply."""
    return lambda features: row


def small(pattern: Pattern, draw: random.Random) -> Kernel:
    """Returns a kernel that runs in microseconds."""
    names = sorted({loop for order in pattern.orders for loop in order})
    most = 24 if len(names) < 4 else 8
    sizes = tuple((name, draw.randint(2, most)) for name in names)
    form = draw.choice([AFFINE, LINALG]) if can_be_linalg(pattern) else AFFINE
    element = draw.choice(["f32", "f64"])
    return Kernel(pattern, sizes, form, element, draw.choice(pattern.orders))


def random_choice(kernel: Kernel, choices: Choice, draw: random.Random) -> Choice:
    """Returns a choice that is often legal: a row of `choices` with random tiles."""
    row = np.array(choices[draw.randrange(len(choices))])
    loops = len(kernel.loops)
    for loop, trips in enumerate(Kernel.trips_of(kernel.name)):
        row[loop] = draw.choice([0, row[loop], draw.randint(0, trips + 2)])
    if draw.random() < 0.2:
        row[loops : 2 * loops] = draw.sample(range(loops), loops)
    row[-1] = draw.choice([1, 1, 2, 3, 4, 8, 16])
    return row


def check_policies(kernel: Kernel, count: int, draw: random.Random) -> int:
    """Compares results of random policies. Returns how many changed the kernel."""
    choices = measure.features_of(PLUGIN, kernel)["choices"]
    functions = kernel.function("v0")
    plain = measure.tile(PLUGIN, kernel.function("v1"), "none")
    changed = 0
    for number in range(1, count + 1):
        row = random_choice(kernel, choices, draw)
        text = kernel.function(f"v{number}")
        # An illegal choice leaves the kernel as it is.
        new = measure.tile_with(PLUGIN, text, always(row), may_fail=True)
        changed += new.replace(f"@v{number}(", "@v1(") != plain
        functions += new
    found = measure.measure(kernel, functions, count + 1, rounds=1, calls=1)
    assert not found.differences.any(), kernel.name
    return changed


def test_results_of_random_policies() -> None:
    draw = random.Random(1)
    names = ["matmul-nt", "conv-nchw", "cube", "transpose-3d"]
    kernels = [small(PATTERNS[name], draw) for name in names]
    assert sum(check_policies(kernel, 6, draw) for kernel in kernels) > 5


@FULL
def test_results_of_a_thousand_random_policies() -> None:
    draw = random.Random(2)
    changed = 0
    for _ in range(3):
        for pattern in PATTERNS.values():
            changed += check_policies(small(pattern, draw), 16, draw)
    assert changed > 300


def test_results_on_tensors() -> None:
    """The results are equal after bufferization, too."""
    kernel = Kernel(PATTERNS["matmul-nn"], (("i", 13), ("j", 21), ("k", 17)))
    names = {"A": "13x17xf32", "B": "17x21xf32", "O": "13x21xf32"}
    made = "".join(
        f"%t{one} = bufferization.to_tensor %{one} restrict writable"
        f" : memref<{shape}> to tensor<{shape}>\n"
        for one, shape in names.items()
    )
    arguments = ", ".join(f"%{one}: memref<{shape}>" for one, shape in names.items())
    body = (
        f"{made}%r = linalg.matmul ins(%tA, %tB : tensor<13x17xf32>,"
        " tensor<17x21xf32>) outs(%tO : tensor<13x21xf32>) -> tensor<13x21xf32>\n"
        "bufferization.materialize_in_destination %r in restrict writable %O"
        " : (tensor<13x21xf32>, memref<13x21xf32>) -> ()\nreturn\n"
    )
    functions = kernel.function("v0")
    for number, row in enumerate(([5, 4, 3, 0, 2, 1, 1], [0, 8, 0, 1, 2, 0, 1]), 1):
        text = f"func.func @v{number}({arguments}) {NOINLINE} {{\n{body}}}\n"
        new = measure.tile_with(PLUGIN, text, always(np.array(row)))
        assert new.count("scf.for") == np.count_nonzero(row[:3])
        lowered = measure.run(
            [
                *(measure.OPT, "--one-shot-bufferize", "--convert-linalg-to-loops"),
                *("--expand-strided-metadata", "--mlir-print-local-scope"),
            ],
            new,
        )
        functions += lowered[lowered.index("{") + 1 : lowered.rindex("}")]
    found = measure.measure(kernel, functions, 3, rounds=1, calls=1)
    assert not found.differences.any()


def test_models_that_fail_are_not_measured(tmp_path: Path) -> None:
    """Otherwise, the times of the source kernel would count as the model's times."""
    with pytest.raises(ModelError, match=r"gone\.onnx"):
        measure.tile(PLUGIN, PRODUCT, f"onnx:{tmp_path}/gone.onnx")
    with pytest.raises(ModelError, match="not a permutation"):
        measure.tile_with(PLUGIN, PRODUCT, always(np.zeros(7, np.int64)))


ENTRY = {
    "kernel": "row-sum-i300xj400-ij-affine-f32",
    "kind": "reduction",
    "choices": [[0, 0, 0, 1, 1], [8, 8, 0, 1, 1]],
    "features": [[1.0] * 44] * 2,
    "ratios": [1.0, 0.5],
}
"""An entry of a file of measurements."""


@pytest.mark.parametrize(
    "damage",
    [
        {"ratios": [1.0, 0.0]},
        {"ratios": [1.0, float("nan")]},
        {"ratios": [1.0]},
        {"ratios": ["fast", "slow"]},
        {"features": [[1.0] * 43] * 2},
        {"features": [[1.0] * 44, [1.0] * 43]},
        {"features": [[float("inf")] * 44] * 2},
        {"choices": []},
    ],
)
def test_damaged_measurements(damage: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "times.jsonl"
    lines = [json.dumps(ENTRY), json.dumps({**ENTRY, **damage})]
    file.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(Malformed, match=r"times\.jsonl, line 2: "):
        run_cli("train", "mlir-tiling", "--times", file, "--out", tmp_path / "m.onnx")
    file.write_bytes(b"\xff\n")
    with pytest.raises(Malformed, match=r"times\.jsonl, line 1: "):
        run_cli("train", "mlir-tiling", "--times", file, "--out", tmp_path / "m.onnx")


def test_an_evaluation_without_held_out_kernels(tmp_path: Path) -> None:
    file = tmp_path / "times.jsonl"
    file.write_text(json.dumps(ENTRY), encoding="utf-8")
    with pytest.raises(InvalidArgument, match="expected measured held-out kernels"):
        run_cli("evaluate", "mlir-tiling", "none", "--times", file)


def test_the_split() -> None:
    training = training_kernels(256)
    held_out = [*HELD_OUT_SIZES, *HELD_OUT_KINDS]
    names = {kernel.name for kernel in held_out}
    assert len(names) == len(held_out) == 49
    trained = {(kernel.pattern.name, kernel.sizes) for kernel in training}
    assert not trained & {(kernel.pattern.name, kernel.sizes) for kernel in held_out}
    kinds = {kernel.pattern.kind for kernel in training}
    assert not kinds & {kernel.pattern.kind for kernel in HELD_OUT_KINDS}
    assert {kernel.pattern.kind for kernel in HELD_OUT_SIZES} == kinds


def test_a_model_that_learns(tmp_path: Path) -> None:
    """Measures, trains and decides in mlir-opt."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from mlbridge_optimizations.mlir_tiling.evaluate import compare, fixed_choices
    from mlbridge_optimizations.mlir_tiling.learning import train
    from mlbridge_optimizations.mlir_tiling.table import make_table, read_table
    from mlbridge_optimizations.training import costs
    from mlbridge_optimizations.training.settings import CostSettings

    kernel = Kernel(PATTERNS["column-sum"], (("i", 300), ("j", 400)), order="ji")
    file, model = tmp_path / "times.jsonl", tmp_path / "tiling.onnx"
    (failed,) = make_table([kernel], tmp_path / "gone.so", file, rounds=3)
    assert "gone.so" in failed.error
    (entry,) = make_table([kernel], PLUGIN, file, rounds=3)
    assert entry.error == ""
    assert not make_table([kernel], PLUGIN, file, rounds=3)
    assert [*read_table(file)] == [failed, entry]
    with pytest.raises(InvalidArgument, match="no such file"):
        next(read_table(Path(os.devnull)))
    options = CostSettings(epochs=100, members=1, batch=1, temperature=0.1, margin=0.03)
    chooser = train([entry], options)
    with torch.no_grad():
        number = int(chooser.index(torch.from_numpy(entry.rows)))
    assert entry.ratios[number] < 1.2 * min(entry.ratios)
    costs.write(chooser, model)
    fixed = fixed_choices([entry])
    result = compare(kernel, entry, fixed, PLUGIN, f"onnx:{model}", 3)
    assert result.differences == 0
    assert result.model > 1.5


def test_readme(tmp_path: Path) -> None:
    test_docs.test_code("compilers/mlir/README.md", tmp_path)
