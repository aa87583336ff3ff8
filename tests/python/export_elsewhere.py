# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports policies of a framework that has a virtual environment of its own.

Run by its Python, with the folder for the files: each .onnx file gets an .npz file with
requests (``in:NAME``) and the framework's own answers (``out:NAME``).
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mlbridge.export import export

RANDOM = np.random.default_rng(3)
COUNT = 30

ROW = ["int64 size", "float[3] embedding", "int64[1] height"]
NAMED = ["double[2] weights", "int64[1] size"]


def draw() -> dict[str, Any]:
    return {
        "size": RANDOM.integers(-50, 50, COUNT),
        "embedding": RANDOM.normal(size=(COUNT, 3)).astype(np.float32),
        "height": RANDOM.integers(0, 9, (COUNT, 1)),
    }


def in_a_row(asked: Mapping[str, Any]) -> Any:
    return np.concatenate(
        [v.reshape(COUNT, -1).astype(np.float32) for v in asked.values()], axis=1
    )


def draw_named() -> dict[str, Any]:
    return {
        "size": RANDOM.integers(-50, 50, (COUNT, 1)),
        "weights": RANDOM.normal(size=(COUNT, 2)),
    }


def save(
    path: Path, policy: Any, asked: Mapping[str, Any], replies: Any, **how: Any
) -> None:
    export(policy, path, **how)
    found = replies if isinstance(replies, Mapping) else {"output": replies}
    arrays = {f"in:{name}": value for name, value in asked.items()}
    arrays |= {f"out:{name}": np.asarray(value) for name, value in found.items()}
    np.savez(path.with_suffix(".npz"), **arrays)


def jax(folder: Path) -> None:
    import jax.numpy as jnp
    from flax import nnx

    table = RANDOM.normal(size=(5, 4)).astype(np.float32)

    def network(row: Any) -> Any:
        return jnp.tanh(row @ table)

    asked = draw()
    save(
        folder / "function.onnx",
        network,
        asked,
        network(in_a_row(asked)),
        features=ROW,
        framework="jax",
    )

    def two(size: Any, weights: Any) -> Any:
        return {"value": weights.sum(axis=1), "logits": weights * jnp.sin(size)}

    named = draw_named()
    size = named["size"].astype(np.float32)
    save(
        folder / "named.onnx",
        two,
        named,
        two(size, named["weights"].astype(np.float32)),
        features=NAMED,
        framework="jax",
        decide="argmax:logits",
    )

    class Network(nnx.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            rngs = nnx.Rngs(0)
            self.first = nnx.Linear(5, 8, rngs=rngs)
            self.second = nnx.Linear(8, 3, rngs=rngs)

        def __call__(self, row: Any) -> Any:
            return self.second(nnx.relu(self.first(row)))

    module = Network()
    asked = draw()
    save(folder / "flax.onnx", module, asked, module(in_a_row(asked)), features=ROW)


def keras(folder: Path) -> None:
    import keras

    keras.utils.set_random_seed(1)
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((5,)),
            layers.Normalization(mean=[1, 2, 3, 4, 5], variance=[9, 4, 3, 2, 1]),
            layers.Dense(8, "tanh"),
            layers.Dropout(0.5),
            layers.Dense(3),
        ]
    )
    asked = draw()
    replies = model(in_a_row(asked), training=False)
    save(folder / "sequential.onnx", model, asked, replies, features=ROW)
    model.save(folder / "sequential.keras")

    size = keras.Input((1,), name="size", dtype="int64")
    weights = keras.Input((2,), name="weights")
    joined = layers.Concatenate()([keras.ops.cast(size, "float32") / 50, weights])
    hidden = layers.Dense(8, "relu")(joined)
    outputs = {"logits": layers.Dense(4)(hidden), "value": layers.Dense(1)(hidden)}
    functional = keras.Model({"size": size, "weights": weights}, outputs)
    named = draw_named()
    single = {**named, "weights": named["weights"].astype(np.float32)}
    save(
        folder / "functional.onnx",
        functional,
        named,
        functional(single),
        features=NAMED,
        decide="argmax:logits",
    )


FRAMEWORKS: dict[str, Callable[[Path], None]] = {"jax": jax, "keras": keras}

if __name__ == "__main__":
    FRAMEWORKS[sys.argv[1]](Path(sys.argv[2]))
