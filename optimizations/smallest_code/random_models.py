# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes models that decide at random.

A model has no inputs. The sequence of its decisions depends only on its seed.
"""

from collections.abc import Sequence
from pathlib import Path

import onnx
from onnx import NodeProto, TensorProto, helper

_OPSET, _IR = 17, 9  # Versions that all supported versions of ONNX Runtime read.


def write_inliner(path: Path, chance: float, seed: int) -> None:
    """Writes a model that inlines a call with the probability ``chance``."""
    none = helper.make_tensor("none", TensorProto.FLOAT, [1], [0.0])
    nodes = [
        _random("drawn", 1, chance - 1, chance, seed),
        helper.make_node("Constant", [], ["zero"], value=none),
        helper.make_node("Greater", ["drawn", "zero"], ["inlines"]),
        helper.make_node("Cast", ["inlines"], ["decision"], to=TensorProto.INT64),
    ]
    _write(path, nodes, "decision", TensorProto.INT64, 1)


def write_order(path: Path, actions: int, seed: int) -> None:
    """Writes a model that chooses one of so many actions, each equally likely.

    The values of two actions differ so much that a search, which draws actions with the
    softmax of their values, almost always draws the action with the highest value.
    """
    nodes = [_random("values", actions, 0.0, 1e6, seed)]
    _write(path, nodes, "values", TensorProto.FLOAT, actions)


def _random(name: str, size: int, low: float, high: float, seed: int) -> NodeProto:
    """Draws numbers between ``low`` and ``high``."""
    node = helper.make_node("RandomUniform", [], [name], shape=[size])
    limits = {"low": low, "high": high, "seed": float(seed)}
    node.attribute.extend(helper.make_attribute(*one) for one in limits.items())
    return node


def _write(
    path: Path, nodes: Sequence[NodeProto], output: str, kind: int, size: int
) -> None:
    outputs = [helper.make_tensor_value_info(output, kind, [size])]
    graph = helper.make_graph(nodes, "random", [], outputs)
    versions = [helper.make_opsetid("", _OPSET)]
    onnx.save(helper.make_model(graph, opset_imports=versions, ir_version=_IR), path)
