# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the SavedModels for the tests of TensorFlow, and the expected replies.

make_models.py FOLDER BATCH: BATCH is the first extent of all inputs, which must be
fixed for AOT compilation. 0 leaves the extent free.
"""

import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

WEIGHTS = np.array([[1], [-2], [3], [-4]], np.float32)
WIDTHS = (300, 128, 64, 15)
REQUESTS = 30


def save(folder: Path, module: tf.Module, **signatures: Any) -> None:
    functions = {key: one.get_concrete_function() for key, one in signatures.items()}
    tf.saved_model.save(module, str(folder), signatures=functions)


def function(*specs: tuple[str, Any, list[int | None]]) -> Callable[..., Any]:
    """Returns a decorator for a function of tensors with names, types and shapes."""
    signature = [tf.TensorSpec(shape, dtype, name) for name, dtype, shape in specs]
    decorate: Callable[..., Any] = tf.function(input_signature=signature)
    return decorate


def linear(folder: Path, batch: int | None, factor: float = 1) -> None:
    """Writes a model of the product of x, WEIGHTS and the factor."""
    module = tf.Module()
    module.weights = tf.Variable(WEIGHTS * np.float32(factor))

    @function(("x", tf.float32, [batch, 4]))
    def serve(x: Any) -> Any:
        return {"y": x @ module.weights}

    save(folder, module, serving_default=serve)


def two(folder: Path, batch: int | None) -> None:
    """Writes a model with two inputs, two outputs, and a second signature."""
    module = tf.Module()

    @function(("a", tf.int64, [batch, 1]), ("b", tf.float32, [batch, 2]))
    def serve(a: Any, b: Any) -> Any:
        size = tf.cast(a[:, 0], tf.float32)
        columns = [size + b[:, 0], size - b[:, 1], b[:, 0] * b[:, 1]]
        return {"logits": tf.stack(columns, axis=1), "twice": 2 * a}

    @function(("a", tf.int64, [batch, 1]))
    def other(a: Any) -> Any:
        return {"negative": -a}

    save(folder, module, serving_default=serve, other=other)


def network(folder: Path, batch: int | None) -> None:
    """Writes an MLP, requests float[n, 300], and the MLP's replies float[n, 15]."""
    random = np.random.default_rng(3)

    def variable(*shape: int) -> Any:
        values = random.normal(size=shape) / (shape[0] ** 0.5 if shape[1:] else 1)
        return tf.Variable(values.astype(np.float32))

    layers = [(variable(n, m), variable(m)) for n, m in pairwise(WIDTHS)]
    module = tf.Module()
    # A SavedModel contains the variables that its module lists.
    module.weights = [weight for layer in layers for weight in layer]

    def run(x: Any) -> Any:
        for weight, bias in layers[:-1]:
            x = tf.nn.relu(x @ weight + bias)
        weight, bias = layers[-1]
        return x @ weight + bias

    @function(("x", tf.float32, [batch, WIDTHS[0]]))
    def serve(x: Any) -> Any:
        return {"logits": run(x)}

    save(folder, module, serving_default=serve)
    requests = random.normal(size=(REQUESTS, WIDTHS[0])).astype(np.float32)
    requests.tofile(folder / "requests")
    np.asarray(run(tf.constant(requests))).tofile(folder / "answers")


def loop(folder: Path) -> None:
    """Writes a model that adds 1 to x, n times."""
    module = tf.Module()

    @function(("x", tf.float32, []), ("n", tf.int64, []))
    def serve(x: Any, n: Any) -> Any:
        _, total = tf.while_loop(
            lambda i, total: i < n,
            lambda i, total: (i + 1, total + 1),
            [tf.constant(0, tf.int64), x],
        )
        return {"out": total}

    save(folder, module, serving_default=serve)


def text(folder: Path) -> None:
    """Writes a model with a string input, which no feature can have."""
    module = tf.Module()

    @function(("name", tf.string, [None]))
    def serve(name: Any) -> Any:
        return {"length": tf.strings.length(name)}

    save(folder, module, serving_default=serve)


if __name__ == "__main__":
    folder, batch = Path(sys.argv[1]), int(sys.argv[2]) or None
    linear(folder / "linear", batch)
    linear(folder / "other", batch, factor=10)
    two(folder / "two", batch)
    network(folder / "network", batch)
    if batch is None:
        text(folder / "text")
        loop(folder / "loop")
