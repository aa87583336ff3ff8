"""Writes an ONNX model for phase ordering that always has the same values.

make-phase-ordering-model.py FILE OUTPUT VALUE... [--KEY=METADATA | --KEY=@FILE]...

OUTPUT is `action` (an integer), `logits` or `values`, and the input is `step`. With
--by-step, each VALUE is an action, and the model returns one VALUE in each step. For a
look-ahead model, OUTPUT is `value` and the input is `actions`. Each VALUE then belongs
to an action, and the score of a state is the VALUE of its last action.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "python"))
from aot_models import FLOAT, INT64, GraphBuilder

flags = [a[2:] for a in sys.argv[1:] if a.startswith("--")]
file, output, *values = [a for a in sys.argv[1:] if not a.startswith("--")]
kind, dtype = (INT64, np.int64) if output == "action" else (FLOAT, np.float32)
seen, width, extents = "step", 1, [1]
g = GraphBuilder(0)
if output == "value":
    seen, width = "actions", 2 * len(values)
    column = np.array([0] * len(values) + values, dtype)[:, None]
    g.op("MatMul", ["actions", g.constant(column, dtype)], output)
elif "by-step" in flags:
    g.op("Cast", ["step"], "index", to=INT64)
    g.op("Gather", [g.constant(values, dtype), "index"], output)
else:
    # Make `step` an input that does not change the output.
    g.op("Sub", ["step", "step"], "zero")
    g.op("Cast", ["zero"], "nothing", to=kind)
    g.op("Add", [g.constant(values, dtype), "nothing"], output)
    extents = [len(values)]
metadata = dict(flag.split("=", 1) for flag in flags if "=" in flag)
for key, value in metadata.items():
    if value.startswith("@"):
        metadata[key] = Path(value[1:]).read_text()
inputs, outputs = [(seen, FLOAT, [width])], [(output, kind, extents)]
g.save(Path(file), inputs, outputs, **metadata)
