# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports policies of a framework in the framework's own virtual environment.

``python export_elsewhere.py FRAMEWORK FOLDER`` writes .onnx files. Each has an .npz
file with requests (``in:NAME``) and the framework's own replies (``out:NAME``).
"""

import functools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mlbridge.export import export

RANDOM = np.random.default_rng(3)
COUNT = 30

ROW = ["int64 size", "float[3] embedding", "int64[1] height"]
NAMED = ["double[2] weights", "int64[1] size"]


def save_row(path: Path, policy: Any, evaluate: Any, **options: Any) -> None:
    """Exports a policy whose features are one row, float32[N, 5]."""
    asked: dict[str, Any] = {
        "size": RANDOM.integers(-50, 50, COUNT),
        "embedding": RANDOM.normal(size=(COUNT, 3)).astype(np.float32),
        "height": RANDOM.integers(0, 9, (COUNT, 1)),
    }
    columns = [value.reshape(COUNT, -1) for value in asked.values()]
    export(policy, path, features=ROW, **options)
    replies = evaluate(np.concatenate(columns, axis=1, dtype=np.float32))
    save(path, asked, {"output": replies})


def save_named(path: Path, policy: Any, evaluate: Any, **options: Any) -> None:
    """Exports a policy whose features have names."""
    asked: dict[str, Any] = {
        "size": RANDOM.integers(-50, 50, (COUNT, 1)),
        "weights": RANDOM.normal(size=(COUNT, 2)),
    }
    export(policy, path, features=NAMED, decide="argmax:logits", **options)
    single = {**asked, "weights": asked["weights"].astype(np.float32)}
    save(path, asked, evaluate(single))


def save(path: Path, asked: Mapping[str, Any], replies: Mapping[str, Any]) -> None:
    arrays = {f"in:{name}": value for name, value in asked.items()}
    arrays |= {f"out:{name}": np.asarray(value) for name, value in replies.items()}
    np.savez(path.with_suffix(".npz"), **arrays)


def jax(folder: Path) -> None:
    import jax.numpy as jnp
    from flax import nnx

    table = RANDOM.normal(size=(5, 4)).astype(np.float32)

    def network(row: Any) -> Any:
        return jnp.tanh(row @ table)

    save_row(folder / "function.onnx", network, network, framework="jax")

    def two(size: Any, weights: Any) -> Any:
        return {"value": weights.sum(axis=1), "logits": weights * jnp.sin(size)}

    save_named(
        folder / "named.onnx",
        two,
        lambda named: two(named["size"].astype(np.float32), named["weights"]),
        framework="jax",
    )

    class Network(nnx.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            rngs = nnx.Rngs(0)
            self.first = nnx.Linear(5, 8, rngs=rngs)
            self.second = nnx.Linear(8, 3, rngs=rngs)

        def __call__(self, row: Any) -> Any:
            return self.second(nnx.relu(self.first(row)))

    module = Network()
    save_row(folder / "flax.onnx", module, module)


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
    evaluate = functools.partial(model, training=False)
    save_row(folder / "sequential.onnx", model, evaluate)
    model.save(folder / "sequential.keras")

    size = keras.Input((1,), name="size", dtype="int64")
    weights = keras.Input((2,), name="weights")
    joined = layers.Concatenate()([keras.ops.cast(size, "float32") / 50, weights])
    hidden = layers.Dense(8, "relu")(joined)
    outputs = {"logits": layers.Dense(4)(hidden), "value": layers.Dense(1)(hidden)}
    functional = keras.Model({"size": size, "weights": weights}, outputs)
    save_named(folder / "functional.onnx", functional, functional)


if __name__ == "__main__":
    {"jax": jax, "keras": keras}[sys.argv[1]](Path(sys.argv[2]))
