# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes graphs as SavedModels. TensorFlow's Python runs this file as a program.

    savedmodel_writer.py GRAPH.npz FOLDER [GRAPH.npz FOLDER]...

`savedmodel` writes the graphs from .onnx models. This program supports the operators of
small policies. The weights become constants.
"""

import json
import sys
from collections.abc import Callable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

Attributes = Mapping[str, Any]

ELEMENTWISE: Mapping[str, Callable[..., Any]] = {
    "Abs": tf.abs,
    "Add": tf.add,
    "And": tf.logical_and,
    "Equal": tf.equal,
    "Exp": tf.exp,
    "Greater": tf.greater,
    "GreaterOrEqual": tf.greater_equal,
    "Identity": tf.identity,
    "Less": tf.less,
    "LessOrEqual": tf.less_equal,
    "Log": tf.math.log,
    "Mul": tf.multiply,
    "Neg": tf.negative,
    "Not": tf.logical_not,
    "Or": tf.logical_or,
    "Relu": tf.nn.relu,
    "Sigmoid": tf.sigmoid,
    "Sign": tf.sign,
    "Sqrt": tf.sqrt,
    "Sub": tf.subtract,
    "Tanh": tf.tanh,
    "Where": tf.where,
}
REDUCTIONS = {
    "ReduceMax": tf.reduce_max,
    "ReduceMean": tf.reduce_mean,
    "ReduceMin": tf.reduce_min,
    "ReduceSum": tf.reduce_sum,
}


def matmul(a: Any, b: Any) -> Any:
    """Returns the product, where `b` may be a vector."""
    return tf.linalg.matvec(a, b) if len(b.shape) == 1 else tf.matmul(a, b)


def gemm(about: Attributes, a: Any, b: Any, c: Any = None) -> Any:
    """Returns alpha a b + beta c."""
    product = tf.matmul(
        a,
        b,
        transpose_a=bool(about.get("transA", 0)),
        transpose_b=bool(about.get("transB", 0)),
    )
    if (alpha := about.get("alpha", 1.0)) != 1:
        product = alpha * product
    if c is None:
        return product
    beta = about.get("beta", 1.0)
    return product + (c if beta == 1 else beta * c)


def slices(x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    """Returns a part of a tensor. The limits are constants."""
    count = len(starts)
    axes = range(count) if axes is None else axes
    steps = [1] * count if steps is None else steps
    taken = [slice(None)] * len(x.shape)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        taken[int(axis)] = slice(int(start), int(end), int(step))
    return x[tuple(taken)]


def reduction(operator: str, about: Attributes, x: Any, axes: Any = None) -> Any:
    """Returns the reduction over the axes, by default over all axes."""
    axes = about.get("axes") if axes is None else axes
    axes = None if axes is None or len(axes) == 0 else [int(axis) for axis in axes]
    return REDUCTIONS[operator](x, axis=axes, keepdims=bool(about.get("keepdims", 1)))


def argmax(about: Attributes, x: Any) -> Any:
    """Returns the indices of the greatest elements along an axis."""
    axis = about.get("axis", 0)
    found = tf.argmax(x, axis=axis, output_type=tf.int64)
    return tf.expand_dims(found, axis) if about.get("keepdims", 1) else found


def split(about: Attributes, x: Any, sizes: Any) -> list[Any]:
    """Returns the parts of a tensor. The sizes are constants."""
    return list(tf.split(x, [int(n) for n in sizes], axis=about.get("axis", 0)))


def clip(x: Any, low: Any = None, high: Any = None) -> Any:
    """Returns the elements, limited to a range."""
    x = x if low is None else tf.maximum(x, low)
    return x if high is None else tf.minimum(x, high)


def unsqueeze(x: Any, axes: Any) -> Any:
    """Returns a tensor with additional extents of 1."""
    for axis in sorted(int(axis) for axis in axes):
        x = tf.expand_dims(x, axis)
    return x


def results(operator: str, about: Attributes, inputs: list[Any]) -> list[Any]:
    """Returns the outputs of a node."""
    if operator in ELEMENTWISE:
        return [ELEMENTWISE[operator](*inputs)]
    if operator in REDUCTIONS:
        return [reduction(operator, about, *inputs)]
    others: Mapping[str, Callable[[], Any]] = {
        "ArgMax": lambda: argmax(about, *inputs),
        "Cast": lambda: tf.cast(inputs[0], about["to"]),
        "Clip": lambda: clip(*inputs),
        "Concat": lambda: tf.concat(inputs, about["axis"]),
        "Div": lambda: tf.raw_ops.Div(x=inputs[0], y=inputs[1]),
        "Gather": lambda: tf.gather(*inputs, axis=about.get("axis", 0)),
        "Gemm": lambda: gemm(about, *inputs),
        "MatMul": lambda: matmul(*inputs),
        "Max": lambda: reduce(tf.maximum, inputs),
        "Min": lambda: reduce(tf.minimum, inputs),
        "Reshape": lambda: tf.reshape(*inputs),
        "Slice": lambda: slices(*inputs),
        "Softmax": lambda: tf.nn.softmax(inputs[0], axis=about.get("axis", -1)),
        "Split": lambda: split(about, *inputs),
        "Unsqueeze": lambda: unsqueeze(*inputs),
    }
    if operator not in others:
        raise SystemExit(f"the operator {operator} is not supported")
    found = others[operator]()
    return found if operator == "Split" else [found]


def write(source: Path, folder: Path) -> None:
    """Writes the graph in `source` as a SavedModel."""
    with np.load(source) as arrays:
        graph = json.loads(str(arrays["graph"]))
        constants = {name: arrays[key] for name, key in graph["constants"].items()}

    def serve(**features: Any) -> dict[str, Any]:
        values: dict[str, Any] = {"": None, **constants, **features}
        for node in graph["nodes"]:
            inputs = [values[name] for name in node["inputs"]]
            found = results(node["operator"], node["attributes"], inputs)
            values.update(zip(node["outputs"], found, strict=True))
        return {name: tf.identity(values[name]) for name in graph["outputs"]}

    specs = {
        one["name"]: tf.TensorSpec(one["shape"], one["type"], one["name"])
        for one in graph["inputs"]
    }
    signature = tf.function(serve).get_concrete_function(**specs)
    partial = folder.with_suffix(".partial")
    tf.saved_model.save(tf.Module(), str(partial), {"serving_default": signature})
    partial.rename(folder)


if __name__ == "__main__":
    paths = [Path(word) for word in sys.argv[1:]]
    for source, folder in zip(paths[::2], paths[1::2], strict=True):
        try:
            write(source, folder)
        except SystemExit as failure:
            raise SystemExit(f"{source}: {failure}") from None
