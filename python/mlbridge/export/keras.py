# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports a ``keras.Model`` on TensorFlow with tf2onnx."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from mlbridge.errors import Unsupported
from mlbridge.export.features import FeatureSpec
from mlbridge.export.policy import (
    OPSET,
    Policy,
    Port,
    Tensors,
    named_features,
    need_features,
    observe,
    vector_port,
)
from mlbridge.export.worker.savedmodel import convert


def policy_of(model: Any, features: Sequence[FeatureSpec]) -> Policy:
    """Makes a policy from a model.

    If the model has one input, the input receives all features as a vector. Otherwise
    each input receives the feature with its name. A single output is called ``output``.
    Several outputs have the names of the output layers, or the keys of the dict that
    the model returns.

    Raises:
        InvalidArgument: there are no features.
        SchemaMismatch: the features do not fit the inputs.
        Unsupported: the model was not built, or the backend is not TensorFlow.
    """
    what = f"{type(model).__name__} '{model.name}'"
    if keras.backend.backend() != "tensorflow":
        raise Unsupported(
            f"{what} runs on {keras.backend.backend()}: set KERAS_BACKEND=tensorflow, "
            "or export the module of that backend"
        )
    inputs = getattr(model, "inputs", None)
    if not inputs:
        raise Unsupported(f"{what} was never built: call it once, with a batch")
    ports = _ports(inputs, features, what)

    def call(*tensors: Any) -> dict[str, Any]:
        given = [
            tf.cast(tensor, one.dtype)
            for tensor, one in zip(tensors, inputs, strict=True)
        ]
        return _by_name(model, model(_packed(model, given), training=False))

    def reply(tensors: Tensors) -> dict[str, NDArray[Any]]:
        observed = observe(ports, tensors)
        found = call(*(tf.constant(observed[port.name]) for port in ports))
        return {name: np.asarray(value) for name, value in found.items()}

    signature = [
        tf.TensorSpec((None, *port.shape), port.dtype, port.name) for port in ports
    ]
    return Policy(
        convert(call, signature, OPSET),
        tuple(ports),
        f"keras {keras.__version__}",
        reply,
    )


def _ports(inputs: Any, features: Sequence[FeatureSpec], what: str) -> list[Port]:
    shapes = [tuple(one.shape[1:]) for one in inputs]
    if len(inputs) == 1:
        (only,) = inputs
        if None in shapes[0]:
            need_features(features, what)
        given = features or [FeatureSpec(only.name, only.dtype, shapes[0])]
        return [vector_port("observation", given, shapes[0], only.dtype, what=what)]
    wanted = [
        FeatureSpec(one.name, one.dtype, shape)
        for one, shape in zip(inputs, shapes, strict=True)
    ]
    chosen = named_features(features, wanted, what)
    return [
        Port(w.name, (f,), w.dtype, w.shape)
        for f, w in zip(chosen, wanted, strict=True)
    ]


def _packed(model: Any, given: list[Any]) -> Any:
    """Nests the inputs in the same way as when the model was built."""
    if len(given) == 1:
        return given[0]
    return tf.nest.pack_sequence_as(getattr(model, "_inputs_struct", given), given)


def _by_name(model: Any, found: Any) -> dict[str, Any]:
    if isinstance(found, Mapping):
        return {str(name): value for name, value in found.items()}
    if not isinstance(found, (list, tuple)):
        return {"output": found}
    names = getattr(model, "output_names", [f"output_{i}" for i in range(len(found))])
    return dict(zip(names, found, strict=True))
