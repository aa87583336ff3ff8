"""Writes ONNX models that decide about loops: make-loop-models.py FOLDER.

vector      distribution: the legal distribution with the most vectorizable loops
pieces      distribution: each seed in its own loop, in the order of the source
outside     distribution: an index that does not exist
node, partition
            agents of a dialogue: the first seed, and a new loop if it is legal
first-loop  agent: always the current loop
widest      factors: the last legal factors
illegal     factors: the last factors, legal or not
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "python"))
from aot_models import FLOAT, INT64, GraphBuilder

INT32 = 6
folder = Path(sys.argv[1])

g = GraphBuilder(0)
g.op("Gather", ["distribution_features", g.constant([1])], "column", axis=1)
g.op("ArgMax", ["column"], "index", axis=0, keepdims=0)
outputs = [("index", INT64, [1])]
g.save(folder / "vector.onnx", [("distribution_features", FLOAT, ["c", 11])], outputs)

g = GraphBuilder(0)
g.op("Shape", ["nodes"], "shape")
g.op("Gather", ["shape", g.constant(0)], "count", axis=0)
g.op("Range", [g.constant(0), "count", g.constant(1)], "partition")
g.save(
    folder / "pieces.onnx",
    [("nodes", FLOAT, ["n", 25])],
    [("partition", INT64, ["n"])],
)

for name, of, index in (("outside", "loop", 99), ("first-loop", "loop", 0)):
    g = GraphBuilder(0)
    g.op("ArgMax", [of], "first", axis=0, keepdims=1)
    g.op("Mul", ["first", g.constant([0])], "zero")
    g.op("Add", ["zero", g.constant([index])], "choice")
    g.save(folder / f"{name}.onnx", [(of, FLOAT, [14])], [("choice", INT64, [1])])

g = GraphBuilder(0)
g.op("ArgMax", ["action_mask"], "choice", axis=0, keepdims=1)
inputs = [("action_mask", FLOAT, ["s"])]
g.save(folder / "node.onnx", inputs, [("choice", INT64, [1])])

g = GraphBuilder(0)
g.op("Gather", ["action_mask", g.constant([1])], "new", axis=0)
g.op("Cast", ["new"], "choice", to=INT64)
inputs = [("action_mask", FLOAT, [2])]
g.save(folder / "partition.onnx", inputs, [("choice", INT64, [1])])

for name in ("widest", "illegal"):
    g = GraphBuilder(0)
    g.op("Shape", ["action_mask"], "shape")
    g.op("Gather", ["shape", g.constant(0)], "count", axis=0)
    g.op("Range", [g.constant(0), "count", g.constant(1)], "numbers")
    g.op("Cast", ["numbers"], "weights", to=FLOAT)
    if name == "widest":
        g.op("Mul", ["weights", "action_mask"], "scores")
    g.op(
        "ArgMax",
        ["scores" if name == "widest" else "weights"],
        "choice",
        axis=0,
        keepdims=1,
    )
    inputs = [("action_mask", FLOAT, ["c"])]
    g.save(folder / f"{name}.onnx", inputs, [("choice", INT64, [1])])
