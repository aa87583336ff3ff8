# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports policies of a framework in the framework's own virtual environment.

``python export_elsewhere.py FRAMEWORK FOLDER`` writes .onnx files. Each .onnx file has
an .npz file with requests (``in:NAME``) and the framework's own replies (``out:NAME``).
"""

import functools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mlbridge.export import export
from mlbridge.export.clang import ALWAYS

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


LATER = {
    "is_callee_avail_external",
    "is_caller_avail_external",
    "switch_default_dest_penalty",
}
"""Features of LLVM 22 that LLVM lacked when MLGO's inliners were trained."""
FEATURES = sorted(ALWAYS - LATER | {"inlining_default"})
"""The features of MLGO's inliner inlining-Oz-v1.1."""
OUTPUT_SPEC = """[{"logging_name": "inlining_decision", "tensor_spec":
{"name": "StatefulPartitionedCall", "port": 0, "type": "int64_t", "shape": [1]}}]"""


def savedmodel(folder: Path) -> None:
    """Writes SavedModels with the form of MLGO's inliners, and replies.

    They have a time step as inputs, normalise features as MLGO does, and reply with one
    decision. The batch size is 1. As in models of TF-Agents, another function returns a
    type of a package that a reader of the model may lack.
    """
    import tensorflow as tf
    from tensorflow.core.protobuf import saved_model_pb2, struct_pb2

    class Distribution(tf.experimental.ExtensionType):  # type: ignore[misc]
        __name__ = "tests.Distribution"
        logits: tf.Tensor

    def hide_type(path: Path) -> None:
        """Changes a model so that TensorFlow alone cannot load the model's objects."""
        model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
        functions = model.meta_graphs[0].object_graph_def.concrete_functions
        for function in functions.values():
            if function.output_signature.HasField("type_spec_value"):
                kind = struct_pb2.TypeSpecProto.UNKNOWN
                function.output_signature.type_spec_value.type_spec_class = kind
        path.write_bytes(model.SerializeToString())
        try:
            tf.saved_model.load(str(path.parent))
        except ValueError as error:
            assert "Distribution" in str(error)
        else:
            raise AssertionError("expected an unknown type")

    def save_inliner(name: str, features: list[str]) -> None:
        module = tf.Module()
        limits = [0.0, 0.0, 1.0, 1.0, 5.0, 10.0, 50.0]
        module.first = tf.Variable(
            RANDOM.normal(size=(4 * len(features), 16)).astype(np.float32)
        )
        module.second = tf.Variable(RANDOM.normal(size=(16, 2)).astype(np.float32))

        module.distribution = tf.function(
            Distribution, input_signature=[tf.TensorSpec((1,), tf.float32)]
        )

        def normalise(feature: Any) -> Any:
            row = tf.expand_dims(feature, -1)
            found = tf.raw_ops.Bucketize(input=row, boundaries=limits)
            x = tf.cast(found, tf.float32) / len(limits)
            y = (tf.cast(row, tf.float32) - np.mean(limits)) / (np.std(limits) + 1e-8)
            return tf.concat([x, x * x, tf.sqrt(x), y], axis=-1)

        def action(**given: Any) -> Any:
            columns = [normalise(given[name]) for name in features]
            hidden = tf.nn.relu(tf.concat(columns, axis=-1) @ module.first)
            logits = hidden @ module.second
            # A policy may depend on the reward of the last step.
            logits += tf.expand_dims(given["reward"], -1) * [[9.0, -9.0]]
            return {"inlining_decision": tf.argmax(logits, axis=-1)}

        types = dict.fromkeys(features, tf.int64)
        types |= {"step_type": tf.int32, "reward": tf.float32, "discount": tf.float32}
        specs = {key: tf.TensorSpec((1,), kind, key) for key, kind in types.items()}
        decide = tf.function(action).get_concrete_function(**specs)
        state = tf.function(lambda: {"state": tf.constant(0)}).get_concrete_function()
        signatures = {"action": decide, "get_initial_state": state}
        tf.saved_model.save(module, str(folder / name), signatures=signatures)
        hide_type(folder / name / "saved_model.pb")
        (folder / name / "output_spec.json").write_text(OUTPUT_SPEC)
        asked = {key: RANDOM.integers(-9, 60, (COUNT, 1)) for key in features}
        zero = {key: tf.zeros((1,), kind) for key, kind in types.items()}
        replies = [
            decide(**{**zero, **{k: tf.constant(v[i]) for k, v in asked.items()}})
            for i in range(COUNT)
        ]
        decisions = [reply["inlining_decision"].numpy() for reply in replies]
        save(folder / f"{name}.npz", asked, {"inlining_decision": decisions})

    save_inliner("released", FEATURES)
    save_inliner("other", ["callee_users", "register_pressure"])


if __name__ == "__main__":
    {"jax": jax, "keras": keras, "savedmodel": savedmodel}[sys.argv[1]](
        Path(sys.argv[2])
    )
