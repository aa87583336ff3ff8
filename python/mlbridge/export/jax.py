# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports a JAX function or a Flax module with jax2onnx."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax2onnx import to_onnx
from numpy.typing import NDArray

from mlbridge.errors import InvalidArgument
from mlbridge.export.features import FeatureSpec
from mlbridge.export.policy import OPSET, Policy, Tensors, observe, parameter_ports


def policy_of(function: Callable[..., Any], features: Sequence[FeatureSpec]) -> Policy:
    """Makes a policy from a function. The weights become constants of the graph.

    If the function has one parameter, this parameter receives all features as a vector
    of shape [N, width]. Otherwise each parameter receives the feature with its name, of
    shape [N, *shape]. All features are converted to float32. The function must return
    an array or a dict of arrays.

    Raises:
        InvalidArgument: there are no features, or the function returns another type.
        SchemaMismatch: the features do not fit the parameters.
    """
    what = getattr(function, "__name__", type(function).__name__)
    ports = parameter_ports(function, features, what, dtype=np.float32)

    def run(tensors: Tensors) -> dict[str, NDArray[Any]]:
        observed = observe(ports, tensors)
        found = function(*(observed[port.name] for port in ports))
        return {name: np.asarray(value) for name, value in _by_name(found).items()}

    def by_position(*arrays: Any) -> Any:
        return tuple(_by_name(function(*arrays)).values())

    random = np.random.default_rng(0)
    graph = to_onnx(
        by_position,
        [("N", *port.shape) for port in ports],
        opset=OPSET,
        input_names=[port.name for port in ports],
        output_names=list(run({f.name: f.draw(2, random) for f in features})),
    )
    return Policy(graph, tuple(ports), f"jax {jax.__version__}", run)


def _by_name(found: Any) -> Mapping[str, Any]:
    if isinstance(found, Mapping):
        # Sort the keys, because JAX sorts the outputs of the graph, too.
        return {str(name): found[name] for name in sorted(found)}
    if not hasattr(found, "shape"):
        raise InvalidArgument(
            f"expected the function to return an array, or a dict of arrays by name, "
            f"found {type(found).__name__}"
        )
    return {"output": found}
