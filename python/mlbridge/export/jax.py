# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX: a function of arrays, or a module of Flax, by jax2onnx."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax2onnx import to_onnx
from numpy.typing import NDArray

from mlbridge.errors import InvalidArgument
from mlbridge.export.features import FeatureSpec
from mlbridge.export.policy import (
    OPSET,
    Policy,
    Port,
    Tensors,
    named_ports,
    observe,
    parameters_of,
    vector_port,
)


def policy_of(function: Callable[..., Any], features: Sequence[FeatureSpec]) -> Policy:
    """A function as a policy, with its weights in it.

    One with one parameter takes all features in a row, [N, width], as floats; one with
    several takes the features that are called as these are, [N, *shape] each, as floats
    too. It returns an array, or a dict of them by name.

    Raises:
        InvalidArgument: there are no features, or it returns something else.
        SchemaMismatch: they do not fit the parameters.
    """
    what = getattr(function, "__name__", type(function).__name__)
    if not features:
        raise InvalidArgument(
            f"{what}: say which features it takes, in the order of its input: "
            'features=["int64 callee_size", ...] (--feature)'
        )
    names = parameters_of(function)
    if len(names) == 1:
        ports = [vector_port(names[0], features, (None,), what=what)]
    else:
        ports = named_ports(names, features, what, dtype=np.float32)

    def run(tensors: Tensors) -> dict[str, NDArray[Any]]:
        observed = observe(ports, tensors)
        found = function(*(observed[port.name] for port in ports))
        return {name: np.asarray(value) for name, value in _by_name(found).items()}

    random = np.random.default_rng(0)
    outputs = list(run({f.name: f.draw(2, random) for f in features}))
    return Policy(
        _convert(function, ports, outputs),
        tuple(ports),
        f"jax {jax.__version__}",
        run,
    )


def _by_name(found: Any) -> Mapping[str, Any]:
    if isinstance(found, Mapping):
        # In JAX's own order, which the graph's outputs have.
        return {str(name): found[name] for name in sorted(found)}
    if not hasattr(found, "shape"):
        raise InvalidArgument(
            f"expected the function to return an array, or a dict of arrays by name, "
            f"found {type(found).__name__}"
        )
    return {"output": found}


def _convert(
    function: Callable[..., Any], ports: Sequence[Port], outputs: Sequence[str]
) -> Any:
    def by_position(*arrays: Any) -> Any:
        return tuple(_by_name(function(*arrays)).values())

    return to_onnx(
        by_position,
        [("N", *port.shape) for port in ports],
        opset=OPSET,
        input_names=[port.name for port in ports],
        output_names=list(outputs),
    )
