# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The in-process models, one file per length and runtime.

The models are the sweep's two policies, and a network of a size that compilers use.
Files are cached, and their names contain a hash of their sources.
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
import onnx.numpy_helper
import onnx.parser
from numpy.typing import NDArray

from mlbridge import aot
from mlbridge.files import replacing

from .workload import Workload

MLP = (300, 128, 64, 15)  # The widths of the network's layers.

# Graphs in ONNX's text syntax. All current runtimes support these versions. The
# constants c0, c1, ... are added as initializers.
_VERSIONS = '<ir_version: 9, opset_import: ["" : 17]>'
_GRAPHS = {
    "echo": "bench (float[{0}] x) => (float[1] y) {{ y = Gather(x, c0) }}",
    "fc": "bench (float[1,{0}] x) => (float[1,1] y) {{ y = MatMul(x, c0) }}",
    "mlp": """bench (float[1,{0}] x) => (float[1,15] y) {{
        s0 = Gemm(x, c0, c1)
        r0 = Relu(s0)
        s1 = Gemm(r0, c2, c3)
        r1 = Relu(s1)
        y = Gemm(r1, c4, c5)
    }}""",
}


@dataclass(frozen=True)
class InProcessModel:
    """The description of a model."""

    name: str  # ``echo`` or ``fc``, the policies of the sweep, or ``mlp``.
    length: int  # The number of float32 inputs.

    def onnx(self, work: Workload) -> bytes:
        """Returns the content of the .onnx file."""
        text = _GRAPHS[self.name].format(self.length)
        model = onnx.parser.parse_model(f"{_VERSIONS} {text}")
        constants: list[NDArray[Any]] = [*self.weights(work)]
        if self.name == "echo":
            constants = [np.array([self.length - 1])]
        for i, constant in enumerate(constants):
            tensor = onnx.numpy_helper.from_array(constant, f"c{i}")
            model.graph.initializer.append(tensor)
        return bytes(model.SerializeToString())

    def weights(self, work: Workload) -> list[NDArray[np.float32]]:
        """Returns the matrix and, except for ``fc``, the bias of each layer."""
        if self.name == "mlp":
            return _mlp_weights()
        column = work.weights[: self.length].reshape(self.length, 1)
        return [column] if self.name == "fc" else []

    def check(self, work: Workload, reply: NDArray[np.float32]) -> None:
        """Checks that a reply is right."""
        if self.name != "mlp":
            alone = Workload((self.length,), work.features, work.weights)
            alone.check(self.name, reply)
            return
        x = work.features[: self.length].astype(np.float64)
        weights = _mlp_weights()
        for matrix, bias in zip(weights[::2], weights[1::2], strict=True):
            x = x @ matrix + bias
            is_last = len(x) == MLP[-1]
            x = x if is_last else np.maximum(x, 0)
        # The tolerance accounts for rounding in sums of float32.
        work.compare("mlp", self.length, reply, x, np.full(len(x), 1e-4))


def _mlp_weights() -> list[NDArray[np.float32]]:
    """Returns a matrix and a bias for each layer. They are the same in every run."""
    random = np.random.default_rng(300)
    return [
        (random.standard_normal(shape) / np.sqrt(n)).astype(np.float32)
        for n, m in pairwise(MLP)
        for shape in ((n, m), (m,))
    ]


@cache
def _generator() -> bytes:
    """Returns a hash of the code of `mlbridge compile` and the generator's version."""
    digest = hashlib.sha256(importlib.metadata.version("emx-onnx-cgen").encode())
    for path in sorted(Path(aot.__file__).parent.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            digest.update(path.read_bytes())
    return digest.digest()


@dataclass(frozen=True)
class ModelCache:
    """A folder of cached models."""

    folder: Path
    work: Workload

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    def onnx(self, model: InProcessModel) -> Path:
        """Returns the model's .onnx file. Writes the file if it is missing."""
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
        """Returns the path of the model's library, which `compile_all` creates."""
        return self._library(model)[1]

    def compile_all(
        self,
        models: Sequence[InProcessModel],
        *,
        jobs: int,
        on_start: Callable[[int], Callable[[], None]],
    ) -> None:
        """Compiles missing models. First passes their number to ``on_start``."""
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
