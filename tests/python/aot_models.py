# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes one ONNX model of each kind, for the tests of generated models.

``python aot_models.py FOLDER`` writes FOLDER/NAME.onnx for the C++ tests.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64

Ports = Sequence[tuple[str, int, Sequence[int | str | None]]]
"""Inputs or outputs of a graph: names, element types and shapes."""


def mlp(batch: int | str = 1, seed: int = 1) -> onnx.ModelProto:
    """Makes an MLP that maps x float[batch,300] to logits float[batch,15]."""
    g = GraphBuilder(seed)
    hidden = "x"
    for i, (n, m) in enumerate([(300, 128), (128, 64), (64, 15)]):
        last = i == 2
        out = "logits" if last else f"h{i}"
        g.op("Gemm", [hidden, g.weight(n, m), g.weight(m)], out)
        hidden = out if last else g.op("Relu", [out], f"r{i}")
    outputs = [("logits", FLOAT, [batch, 15])]
    return g.model("mlp", [("x", FLOAT, [batch, 300])], outputs)


def lstm() -> onnx.ModelProto:
    """Makes an LSTM with the outputs probabilities float[1,5] and best int64[1].

    The inputs are tokens int64[12] and state float[1,8].
    """
    g = GraphBuilder(2)
    vocabulary, width, hidden = 50, 16, 24
    g.op("Gather", [g.weight(vocabulary, width), "tokens"], "embedded")
    g.op("Unsqueeze", ["embedded", g.constant([1])], "sequence")
    shapes = [(4 * hidden, width), (4 * hidden, hidden), (8 * hidden,)]
    weights = [g.weight(1, *shape) for shape in shapes]
    g.op("LSTM", ["sequence", *weights], ["", "last"], hidden_size=hidden)
    g.op("Squeeze", ["last", g.constant([0])], "flat")
    g.op("Concat", ["flat", "state"], "both", axis=1)
    g.op("Gemm", ["both", g.weight(hidden + 8, 5), g.weight(5)], "logits")
    g.op("Softmax", ["logits"], "probabilities", axis=1)
    g.op("ArgMax", ["logits"], "best", axis=1, keepdims=0)
    return g.model(
        "lstm",
        [("tokens", INT64, [12]), ("state", FLOAT, [1, 8])],
        [("probabilities", FLOAT, [1, 5]), ("best", INT64, [1])],
    )


def ggnn() -> onnx.ModelProto:
    """Makes a graph network: four gated rounds of message passing, then a sum of nodes.

    Maps nodes float[n,16] and adjacency float[n,n] to logits float[1,4] and states
    float[n,16].
    """
    g = GraphBuilder(3)
    state = "nodes"
    weights, update, keep = (g.weight(16, 16) for _ in range(3))
    bias = g.weight(16)
    for i in range(4):
        g.op("MatMul", [state, weights], f"sent{i}")
        g.op("MatMul", ["adjacency", f"sent{i}"], f"got{i}")
        g.op("MatMul", [f"got{i}", update], f"u{i}")
        g.op("MatMul", [state, keep], f"k{i}")
        g.op("Add", [f"u{i}", f"k{i}"], f"s{i}")
        g.op("Add", [f"s{i}", bias], f"b{i}")
        state = g.op("Tanh", [f"b{i}"], "states" if i == 3 else f"state{i}")
    g.op("ReduceSum", [state, g.constant([0])], "pooled", keepdims=1)
    g.op("Gemm", ["pooled", g.weight(16, 4), g.weight(4)], "logits")
    return g.model(
        "ggnn",
        [("nodes", FLOAT, ["n", 16]), ("adjacency", FLOAT, ["n", "n"])],
        [("logits", FLOAT, [1, 4]), ("states", FLOAT, ["n", 16])],
    )


def several() -> onnx.ModelProto:
    """Makes a model with four inputs of different types, and one output per type."""
    g = GraphBuilder(4)
    g.op("Cast", ["count"], "count_f", to=FLOAT)
    g.op("Cast", ["flags"], "flags_f", to=FLOAT)
    g.op("Cast", ["weight"], "weight_f", to=FLOAT)
    g.op("Mul", ["flags_f", "sizes"], "chosen")
    g.op("ReduceSum", ["chosen", g.constant([0])], "sum", keepdims=0)
    g.op("Mul", ["sum", "weight_f"], "weighted")
    g.op("Add", ["weighted", "count_f"], "score")
    g.op("Cast", ["score"], "score64", to=TensorProto.DOUBLE)
    g.op("Greater", ["score", g.constant(0.0, np.float32)], "decision")
    g.op("Add", ["count", g.constant(1)], "next")
    return g.model(
        "several",
        [
            ("count", INT64, []),
            ("weight", TensorProto.DOUBLE, []),
            ("sizes", FLOAT, [6]),
            ("flags", TensorProto.BOOL, [6]),
        ],
        [
            ("score", FLOAT, []),
            ("score64", TensorProto.DOUBLE, []),
            ("decision", TensorProto.BOOL, []),
            ("next", INT64, []),
        ],
    )


def edges() -> onnx.ModelProto:
    """Makes a model with the inputs nodes float[n,4], from int64[e] and to int64[e,1].

    Edge i leads from node `from[i]` to node `to[i]`. Each row of the output heard
    float[n,4] is the sum of the nodes from which an edge leads to the row's node.
    """
    g = GraphBuilder(6)
    g.op("Gather", ["nodes", "from"], "sent", axis=0)
    g.op("Mul", ["nodes", g.constant(0.0, np.float32)], "nothing")
    g.op("ScatterND", ["nothing", "to", "sent"], "heard", reduction="add")
    return g.model(
        "edges",
        [("nodes", FLOAT, ["n", 4]), ("from", INT64, ["e"]), ("to", INT64, ["e", 1])],
        [("heard", FLOAT, ["n", 4])],
    )


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "mlp": mlp,
    "batch": lambda: mlp("batch", seed=5),
    "lstm": lstm,
    "ggnn": ggnn,
    "several": several,
    "edges": edges,
}
"""Maps each model's name to the function that makes the model."""


def graph_inputs(n: int, random: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Returns a random graph of n nodes with about three neighbours each."""
    adjacency = (random.random((n, n)) < 3 / n).astype(np.float32)
    adjacency /= np.maximum(1, adjacency.sum(1, keepdims=True))
    return {
        "nodes": random.normal(size=(n, 16)).astype(np.float32),
        "adjacency": adjacency,
    }


def requests(name: str) -> Iterator[dict[str, NDArray[Any]]]:
    """Yields random requests for a model, of several sizes if extents are free."""
    random = np.random.default_rng(9)

    def floats(*shape: int) -> NDArray[Any]:
        return random.normal(size=shape).astype(np.float32)

    draw: dict[str, Callable[[int], dict[str, NDArray[Any]]]] = {
        "mlp": lambda _: {"x": floats(1, 300)},
        "batch": lambda n: {"x": floats(n, 300)},
        "lstm": lambda _: {"tokens": random.integers(0, 50, 12), "state": floats(1, 8)},
        "ggnn": lambda n: graph_inputs(n, random),
        "several": lambda _: {
            "count": np.array(random.integers(-9, 9)),
            "weight": np.array(random.normal()),
            "sizes": floats(6),
            "flags": random.integers(0, 2, 6).astype(bool),
        },
        "edges": lambda n: {
            "nodes": floats(n, 4),
            "from": random.integers(-n, n, 2 * n),
            "to": random.integers(0, n, (2 * n, 1)),
        },
    }
    return map(draw[name], (1, 2, 7, 16, 61))


class GraphBuilder:
    """Collects the nodes and constants of a graph."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def weight(self, *shape: int) -> str:
        scale = np.sqrt(shape[-2] if len(shape) > 1 else 10)
        return self._add((self._random.normal(size=shape) / scale).astype(np.float32))

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        return self._add(np.array(value, dtype))

    def _add(self, value: NDArray[Any]) -> str:
        name = f"w{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(value, name))
        return name

    def op(
        self, kind: str, inputs: Sequence[str], outputs: str | Sequence[str], **kw: Any
    ) -> str:
        names = [outputs] if isinstance(outputs, str) else list(outputs)
        self._nodes.append(helper.make_node(kind, inputs, names, **kw))
        return names[0]

    def model(self, name: str, inputs: Ports, outputs: Ports) -> onnx.ModelProto:
        values, results = (
            [helper.make_tensor_value_info(*v) for v in p] for p in (inputs, outputs)
        )
        graph = helper.make_graph(self._nodes, name, values, results, self._constants)
        domains = sorted({"", *(node.domain for node in self._nodes)})
        opsets = [helper.make_opsetid(name, 3 if name else 17) for name in domains]
        model = helper.make_model(graph, opset_imports=opsets)
        model.ir_version = 9
        helper.set_model_props(model, {"mlbridge.source": f"tests: {name}"})
        onnx.checker.check_model(model)
        return model

    def save(self, path: Path, inputs: Ports, outputs: Ports, **metadata: str) -> Path:
        model = self.model(path.stem, inputs, outputs)
        for key, value in metadata.items():
            model.metadata_props.add(key=key, value=value)
        onnx.save(model, path)
        return path


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in MODELS.items():
        onnx.save(make(), folder / f"{name}.onnx")
