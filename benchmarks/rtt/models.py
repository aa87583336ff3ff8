# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models that run in the compiler's own process: one file a length and runtime.

They are the sweep's two policies, and a network of the size that compilers use. A file
is made once, and kept under a name that says what it was made from.
"""

import hashlib
import importlib.metadata
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from mlbridge import aot

from .workload import Workload

# The widths of the network's layers; in tables, 300->128->64->15.
MLP = (300, 128, 64, 15)

OPSET, IR_VERSION = 17, 9  # Those that every runtime of the last years reads.


@dataclass(frozen=True)
class InProcessModel:
    """A model to be."""

    name: str  # ``echo`` or ``fc``, as the policies of the sweep, or ``mlp``.
    length: int  # How many float32s it takes.

    def onnx(self, work: Workload) -> bytes:
        """The model as an .onnx file."""
        return bytes(_GRAPHS[self.name](self.length, work).SerializeToString())

    def weights(self, work: Workload) -> list[NDArray[np.float32]]:
        """Of each layer a matrix and, but for the only layer of ``fc``, a bias."""
        if self.name == "mlp":
            return _mlp_weights()
        return [_column(self.length, work)] if self.name == "fc" else []

    def check(self, work: Workload, reply: NDArray[np.float32]) -> None:
        """Holds an answer against the right one."""
        if self.name == "mlp":
            work.compare("mlp", self.length, reply, *_mlp_reply(work))
        else:
            alone = Workload((self.length,), work.features, work.weights)
            alone.check(self.name, reply)


def _model(
    nodes: Sequence[Any],
    constants: Sequence[NDArray[Any]],
    extents: tuple[list[int], list[int]],
) -> onnx.ModelProto:
    given, made = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in zip("xy", extents, strict=True)
    )
    named = [numpy_helper.from_array(c, f"c{i}") for i, c in enumerate(constants)]
    graph = helper.make_graph(nodes, "bench", [given], [made], named)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = IR_VERSION
    return model


def _echo(length: int, work: Workload) -> onnx.ModelProto:
    last = np.array([length - 1], np.int64)
    return _model(
        [helper.make_node("Gather", ["x", "c0"], ["y"])], [last], ([length], [1])
    )


def _column(length: int, work: Workload) -> NDArray[np.float32]:
    return work.weights[:length].reshape(length, 1)


def _fc(length: int, work: Workload) -> onnx.ModelProto:
    node = helper.make_node("MatMul", ["x", "c0"], ["y"])
    return _model([node], [_column(length, work)], ([1, length], [1, 1]))


def _mlp_weights() -> list[NDArray[np.float32]]:
    """A matrix and a bias for each layer, the same in every run."""
    random = np.random.default_rng(300)
    return [
        (random.standard_normal(shape) / np.sqrt(n)).astype(np.float32)
        for n, m in pairwise(MLP)
        for shape in ((n, m), (m,))
    ]


def _mlp(length: int, work: Workload) -> onnx.ModelProto:
    nodes = []
    below = "x"
    layers = len(MLP) - 1
    for i in range(layers):
        last = i == layers - 1
        sums = "y" if last else f"s{i}"
        constants = [f"c{2 * i}", f"c{2 * i + 1}"]
        nodes.append(helper.make_node("Gemm", [below, *constants], [sums]))
        if not last:
            below = f"r{i}"
            nodes.append(helper.make_node("Relu", [sums], [below]))
    return _model(nodes, _mlp_weights(), ([1, length], [1, MLP[-1]]))


_GRAPHS: dict[str, Callable[[int, Workload], onnx.ModelProto]] = {
    "echo": _echo,
    "fc": _fc,
    "mlp": _mlp,
}


def _mlp_reply(work: Workload) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The logits, and how far off sums of float32 may be."""
    weights = _mlp_weights()
    x = work.features[: MLP[0]].astype(np.float64)
    for i in range(0, len(weights), 2):
        x = x @ weights[i] + weights[i + 1]
        if i + 2 < len(weights):
            x = np.maximum(x, 0)
    return x, np.full(len(x), 1e-4)


@cache
def _generator() -> bytes:
    """What else decides what `mlbridge compile` makes: itself, and its generator."""
    digest = hashlib.sha256(importlib.metadata.version("emx-onnx-cgen").encode())
    for path in sorted(Path(aot.__file__).parent.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            digest.update(path.read_bytes())
    return digest.digest()


def _compile(source: Path, target: Path) -> None:
    """In a process of the pool; the name is there when the file is complete."""
    partial = target.with_name(f"{target.stem}.partial.so")
    aot.compile_model(source, partial, name="bench")
    partial.rename(target)


@dataclass(frozen=True)
class ModelCache:
    """A folder of models."""

    folder: Path
    work: Workload

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    def onnx(self, model: InProcessModel) -> Path:
        """The model's .onnx file."""
        text = model.onnx(self.work)
        name = f"{model.name}-{model.length}-{hashlib.sha256(text).hexdigest()[:16]}"
        path = self.folder / f"{name}.onnx"
        if not path.exists():
            partial = path.with_suffix(".partial")
            partial.write_bytes(text)
            partial.rename(path)
        return path

    def _library(self, model: InProcessModel) -> tuple[Path, Path]:
        source = self.onnx(model)
        key = hashlib.sha256(source.name.encode() + _generator()).hexdigest()[:16]
        return source, self.folder / f"{model.name}-{model.length}-{key}.so"

    def compiled(self, model: InProcessModel) -> Path:
        """The model's library; `compile_all` has made it."""
        return self._library(model)[1]

    def saved_model(self, model: InProcessModel) -> Path:
        """The model's folder for TensorFlow; `savedmodel.make` has made it."""
        return self.onnx(model).with_suffix(".tf")

    def write_weights(self, model: InProcessModel, path: Path) -> Path:
        """Writes what `savedmodel` makes the same model of."""
        np.savez(path, *model.weights(self.work))
        return path

    def compile_all(
        self,
        models: Sequence[InProcessModel],
        *,
        jobs: int,
        on_start: Callable[[int], Callable[[], None]],
    ) -> None:
        """Compiles those that are not there yet; ``on_start`` is told how many."""
        pairs = [self._library(model) for model in models]
        missing = [pair for pair in pairs if not pair[1].exists()]
        if not missing:
            return
        on_done = on_start(len(missing))
        with ProcessPoolExecutor(jobs) as pool:
            for done in [pool.submit(_compile, *pair) for pair in missing]:
                done.result()
                on_done()
