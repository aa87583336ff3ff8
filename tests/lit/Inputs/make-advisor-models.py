"""Writes ONNX models that allocate registers: make-advisor-models.py FOLDER.

size     priority: the longest live range first
nan      priority: not a number
first    eviction: the first register that may be evicted
nothing  eviction: nothing
illegal  eviction: a position that does not exist
leave    allocator: the heaviest first; leaves ranges without a register to greedy
spill    allocator: the heaviest first; spills ranges without a register
split    allocator: the lightest first; evicts, splits, and spills
short    allocator: lacks one priority
logits   allocator: the same as spill, but as logits
transposed  allocator: the same as logits, but float[4,n]
nothing-else  allocator: no advice about live ranges
additions     allocator: the priority is the weight plus the sum of all vectors
node, task, colour, split-at
         agents of a dialogue: the first legal choice, but task always splits
outside  agents of a dialogue: a choice that does not exist
vectors  agent colour of a dialogue: like colour, but leaves ranges without vectors
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "python"))
from aot_models import FLOAT, INT64, GraphBuilder

folder = Path(sys.argv[1])

for name, scale in (("size", 1.0), ("nan", float("nan"))):
    g = GraphBuilder(0)
    g.op("Cast", ["li_size"], "size", to=FLOAT)
    g.op("Mul", ["size", g.constant([scale], "float32")], "priority")
    outputs = [("priority", FLOAT, [1])]
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

for name in ("leave", "spill", "split", "short"):
    g = GraphBuilder(0)
    sign = g.constant([-1.0 if name == "split" else 1.0], "float32")
    g.op("Clip", ["spill_weights", "", g.constant(1e30, "float32")], "finite")
    g.op("Mul", ["finite", sign], "priority")
    begin = g.constant([1 if name == "short" else 0])
    g.op("Slice", ["finite", begin, g.constant([1 << 40])], "value")
    outputs = [("priority", FLOAT, ["n"]), ("value", FLOAT, ["k"])]
    g.op("Mul", ["finite", g.constant([0.0], "float32")], "zero")
    for wish in ("spill", "split"):
        if name in (wish, "split"):
            g.op("Add", ["zero", g.constant([1.0], "float32")], wish)
            outputs.append((wish, FLOAT, ["n"]))
    g.save(folder / f"{name}.onnx", [("spill_weights", FLOAT, ["n"])], outputs)

for name, extents in (("logits", ["n", 4]), ("transposed", [4, "n"])):
    g = GraphBuilder(0)
    none = g.constant(0.0, "float32")
    g.op("Unsqueeze", ["spill_weights", g.constant([-1])], "column")
    g.op("Clip", ["column", none, none], "zero")
    g.op("Add", ["zero", g.constant([[0.0, -1.0, 1.0, 2.0]], "float32")], "rows")
    order = [extents.index("n"), extents.index(4)]
    g.op("Transpose", ["rows"], "logits", perm=order)
    outputs = [("logits", FLOAT, extents)]
    g.save(folder / f"{name}.onnx", [("spill_weights", FLOAT, ["n"])], outputs)
g.op("Identity", ["zero"], "other")
outputs = [("other", FLOAT, ["n", 1])]
g.save(folder / "nothing-else.onnx", [("spill_weights", FLOAT, ["n"])], outputs)

g = GraphBuilder(0)
g.op("ReduceSum", ["instructions", g.constant([0, 1])], "sum", keepdims=0)
g.op("Clip", ["spill_weights", "", g.constant(1e30, "float32")], "finite")
g.op("Add", ["finite", "sum"], "priority")
inputs = [("spill_weights", FLOAT, ["n"]), ("instructions", FLOAT, ["k", 1])]
g.save(folder / "additions.onnx", inputs, [("priority", FLOAT, ["n"])])

for name, choices in (("node", 8), ("task", 2), ("colour", 34), ("split-at", 16)):
    g = GraphBuilder(0)
    last = {"select_last_index": 1} if name == "task" else {}
    g.op("ArgMax", ["action_mask"], "choice", axis=0, keepdims=1, **last)
    outputs = [("choice", INT64, [1])]
    g.save(folder / f"{name}.onnx", [("action_mask", FLOAT, [choices])], outputs)

g = GraphBuilder(0)
g.op("ArgMax", ["action_mask"], "first", axis=0, keepdims=1)
g.op("ReduceSum", ["instructions", g.constant([0, 1])], "sum", keepdims=0)
g.op("Sign", ["sum"], "sign")
g.op("Cast", ["sign"], "adds", to=INT64)
g.op("Sub", [g.constant([33]), "first"], "rest")
g.op("Mul", ["adds", "rest"], "less")
g.op("Sub", [g.constant([33]), "less"], "choice")
inputs = [("action_mask", FLOAT, [34]), ("instructions", FLOAT, ["k", 1])]
g.save(folder / "vectors.onnx", inputs, [("choice", INT64, [1])])

g = GraphBuilder(0)
g.op("ArgMax", ["action_mask"], "first", axis=0, keepdims=1)
g.op("Mul", ["first", g.constant([0])], "zero")
g.op("Add", ["zero", g.constant([99])], "choice")
inputs = [("action_mask", FLOAT, ["choices"])]
g.save(folder / "outside.onnx", inputs, [("choice", INT64, [1])])
