"""Writes an ONNX model for the inliner: yes for callees of at most SIZE blocks.

make-inliner-model.py SIZE FILE
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

size, file = int(sys.argv[1]), sys.argv[2]
graph = helper.make_graph(
    [
        helper.make_node("Greater", ["callee_basic_block_count", "size"], ["large"]),
        helper.make_node("Not", ["large"], ["inlining_decision"]),
    ],
    "inliner",
    [helper.make_tensor_value_info("callee_basic_block_count", TensorProto.INT64, [1])],
    [helper.make_tensor_value_info("inlining_decision", TensorProto.BOOL, [1])],
    [numpy_helper.from_array(np.array([size], np.int64), "size")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
model.ir_version = 9
onnx.save(model, file)
