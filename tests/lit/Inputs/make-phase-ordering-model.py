"""Writes an ONNX model for phase ordering, which always has the same values.

make-phase-ordering-model.py FILE OUTPUT VALUE... [--KEY=METADATA | --KEY=@FILE]...

OUTPUT is `action`, an integer, or `logits` or `values`. Its input is `step`: with
--by-step, each VALUE is an action, and the model takes them one after the other.
Or it is `value`, for a model that looks ahead: a VALUE for each action, and the state
is worth that of the last action. Its input is `actions`.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

flags = [a[2:] for a in sys.argv[1:] if a.startswith("--")]
file, output, *values = [a for a in sys.argv[1:] if not a.startswith("--")]
by_step = "by-step" in flags

kind, dtype = (
    (TensorProto.INT64, np.int64)
    if output == "action"
    else (TensorProto.FLOAT, np.float32)
)
seen, width = ("actions", 2 * len(values)) if output == "value" else ("step", 1)
table = numpy_helper.from_array(np.array(values, dtype), "table")
if output == "value":
    table = numpy_helper.from_array(
        np.array([0] * len(values) + values, dtype)[:, None], "table"
    )
    nodes = [helper.make_node("MatMul", ["actions", "table"], [output])]
    extents = [1]
elif by_step:
    nodes = [
        helper.make_node("Cast", ["step"], ["index"], to=TensorProto.INT64),
        helper.make_node("Gather", ["table", "index"], [output]),
    ]
    extents = [1]
else:
    # Nothing of `step` is in the result, but it is an input all the same.
    nodes = [
        helper.make_node("Sub", ["step", "step"], ["zero"]),
        helper.make_node("Cast", ["zero"], ["nothing"], to=kind),
        helper.make_node("Add", ["table", "nothing"], [output]),
    ]
    extents = [len(values)]
graph = helper.make_graph(
    nodes,
    "policy",
    [helper.make_tensor_value_info(seen, TensorProto.FLOAT, [width])],
    [helper.make_tensor_value_info(output, kind, extents)],
    [table],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
model.ir_version = 9
metadata = dict(flag.split("=", 1) for flag in flags if "=" in flag)
for key, value in metadata.items():
    if value.startswith("@"):
        metadata[key] = Path(value[1:]).read_text()
helper.set_model_props(model, metadata)
onnx.save(model, file)
