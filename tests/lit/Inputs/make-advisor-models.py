"""Writes ONNX models that advise greedy: make-advisor-models.py FOLDER.

size     priority: the longest live range first
nan      priority: not a number
first    eviction: the first register that may be evicted
nothing  eviction: nothing
illegal  eviction: a position that does not exist
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "python"))
from onnx import TensorProto

from aot_models import INT64, GraphBuilder

folder = Path(sys.argv[1])

for name, scale in (("size", 1.0), ("nan", float("nan"))):
    g = GraphBuilder(0)
    g.op("Cast", ["li_size"], "size", to=TensorProto.FLOAT)
    g.op("Mul", ["size", g.constant([scale], "float32")], "priority")
    outputs = [("priority", TensorProto.FLOAT, [1])]
    g.save(folder / f"{name}.onnx", [("li_size", INT64, [1])], outputs)

for name, index in (("first", None), ("nothing", 32), ("illegal", 33)):
    g = GraphBuilder(0)
    g.op("ArgMax", ["mask"], "first", axis=1, keepdims=0)
    if index is None:
        g.op("Identity", ["first"], "index_to_evict")
    else:
        g.op("Mul", ["first", g.constant([0])], "zero")
        g.op("Add", ["zero", g.constant([index])], "index_to_evict")
    outputs = [("index_to_evict", INT64, [1])]
    g.save(folder / f"{name}.onnx", [("mask", INT64, [1, 33])], outputs)
