# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The in-process models: one file per length and runtime.

They are the sweep's two policies, and a network of the size that compilers use. Files
are cached under names that include a hash of their sources.
"""

import hashlib
import importlib.metadata
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from mlbridge import aot
from mlbridge.files import replacing

from .workload import Workload

MLP = (300, 128, 64, 15)  # The widths of the network's layers.
OPSET, IR_VERSION = 17, 9  # Old enough for all current runtimes.


@dataclass(frozen=True)
class InProcessModel:
    """The description of a model."""

    name: str  # ``echo`` or ``fc``, the policies of the sweep, or ``mlp``.
    length: int  # The number of float32 inputs.

    def onnx(self, work: Workload) -> bytes:
        """Returns the content of the .onnx file."""
        return bytes(_GRAPHS[self.name](self.length, work).SerializeToString())

    def weights(self, work: Workload) -> list[NDArray[np.float32]]:
        """Returns a matrix and, except for ``fc``, a bias per layer."""
        if self.name == "mlp":
            return _mlp_weights()
        return [_column(self.length, work)] if self.name == "fc" else []

    def check(self, work: Workload, reply: NDArray[np.float32]) -> None:
        """Compares a reply with the right one."""
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
    """Returns a matrix and a bias for each layer, the same in every run."""
    random = np.random.default_rng(300)
    return [
        (random.standard_normal(shape) / np.sqrt(n)).astype(np.float32)
        for n, m in pairwise(MLP)
        for shape in ((n, m), (m,))
    ]


def _mlp(length: int, work: Workload) -> onnx.ModelProto:
    nodes = []
    for i in range(len(MLP) - 1):
        constants = [f"c{2 * i}", f"c{2 * i + 1}"]
        below = f"r{i - 1}" if i else "x"
        nodes.append(helper.make_node("Gemm", [below, *constants], [f"s{i}"]))
        nodes.append(helper.make_node("Relu", [f"s{i}"], [f"r{i}"]))
    # The last layer's sums are the output.
    nodes.pop()
    nodes[-1].output[0] = "y"
    return _model(nodes, _mlp_weights(), ([1, length], [1, MLP[-1]]))


_GRAPHS: dict[str, Callable[[int, Workload], onnx.ModelProto]] = {
    "echo": _echo,
    "fc": _fc,
    "mlp": _mlp,
}


def _mlp_reply(work: Workload) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the logits, and the tolerance of sums of float32."""
    weights = _mlp_weights()
    x = work.features[: MLP[0]].astype(np.float64)
    for i in range(0, len(weights), 2):
        x = x @ weights[i] + weights[i + 1]
        if i + 2 < len(weights):
            x = np.maximum(x, 0)
    return x, np.full(len(x), 1e-4)


@cache
def _generator() -> bytes:
    """Returns a hash of the code of `mlbridge compile` and its generator's version."""
    digest = hashlib.sha256(importlib.metadata.version("emx-onnx-cgen").encode())
    for path in sorted(Path(aot.__file__).parent.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            digest.update(path.read_bytes())
    return digest.digest()


@dataclass(frozen=True)
class ModelCache:
    """A folder of models."""

    folder: Path
    work: Workload

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    def onnx(self, model: InProcessModel) -> Path:
        """Returns the model's .onnx file, which is written if necessary."""
        text = model.onnx(self.work)
        name = f"{model.name}-{model.length}-{hashlib.sha256(text).hexdigest()[:16]}"
        path = self.folder / f"{name}.onnx"
        if not path.exists():
            with replacing(path) as new:
                new.write_bytes(text)
        return path

    def _library(self, model: InProcessModel) -> tuple[Path, Path]:
        source = self.onnx(model)
        key = hashlib.sha256(source.name.encode() + _generator()).hexdigest()[:16]
        return source, self.folder / f"{model.name}-{model.length}-{key}.so"

    def compiled(self, model: InProcessModel) -> Path:
        """Returns the path of the model's library, made by `compile_all`."""
        return self._library(model)[1]

    def saved_model(self, model: InProcessModel) -> Path:
        """Returns the model's folder for TensorFlow, made by `savedmodel.make`."""
        return self.onnx(model).with_suffix(".tf")

    def write_weights(self, model: InProcessModel, path: Path) -> Path:
        """Writes the weights for `savedmodel`."""
        np.savez(path, *model.weights(self.work))
        return path

    def compile_all(
        self,
        models: Sequence[InProcessModel],
        *,
        jobs: int,
        on_start: Callable[[int], Callable[[], None]],
    ) -> None:
        """Compiles models that are not cached; calls ``on_start`` with their count."""
        pairs = [self._library(model) for model in models]
        missing = [pair for pair in pairs if not pair[1].exists()]
        if not missing:
            return
        on_done = on_start(len(missing))
        compile_one = partial(aot.compile_model, name="bench")
        with ProcessPoolExecutor(jobs) as pool:
            for done in [pool.submit(compile_one, *pair) for pair in missing]:
                done.result()
                on_done()
