"""Writes an ONNX model that inlines callees of at most SIZE blocks.

make-inliner-model.py SIZE FILE
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "python"))
from onnx import TensorProto

from aot_models import INT64, GraphBuilder

g = GraphBuilder(0)
g.op("Greater", ["callee_basic_block_count", g.constant([int(sys.argv[1])])], "large")
g.op("Not", ["large"], "inlining_decision")
outputs = [("inlining_decision", TensorProto.BOOL, [1])]
g.save(Path(sys.argv[2]), [("callee_basic_block_count", INT64, [1])], outputs)
