# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch: an ``nn.Module``."""

import copy
import inspect
import logging
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

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


def policy_of(module: nn.Module, features: Sequence[FeatureSpec]) -> Policy:
    """A module as a policy.

    One whose ``forward`` has one parameter takes all features in a row, as floats; one
    with several takes the features that are called as these are, as they are. It
    returns a tensor, or a dict of them by name; a module in training mode is exported
    as it is in ``eval()``.

    Raises:
        InvalidArgument: there are no features, or the module returns something else.
        SchemaMismatch: they do not fit the parameters.
    """
    what = type(module).__name__
    if not features:
        raise InvalidArgument(
            f"{what}: say which features it takes, in the order of its input: "
            'features=["int64 callee_size", ...] (--feature)'
        )
    names = parameters_of(module.forward)
    if len(names) == 1:
        ports = [vector_port(names[0], features, _input_shape(module), what=what)]
    else:
        ports = named_ports(names, features, what)
    # The original stays in its mode.
    evaluated = copy.deepcopy(module).eval()
    return traced(evaluated, ports, f"torch {torch.__version__}")


def _input_shape(module: nn.Module) -> tuple[int | None, ...]:
    """What the module, or else its first layer, says that it takes."""
    own = getattr(module, "in_features", None)
    if isinstance(own, int):
        return (own,)
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            return (layer.in_features,)
        if isinstance(layer, (nn.Conv1d, nn.Conv2d, nn.Embedding, nn.LSTM, nn.GRU)):
            break
    return (None,)


def traced(
    module: nn.Module,
    ports: Sequence[Port],
    framework: str,
    *,
    prepare: Callable[[Tensors], Tensors] | None = None,
    limits: Mapping[str, int] | None = None,
) -> Policy:
    """A module that takes the ports' tensors in their order, as a policy.

    Args:
        module: in its eval mode.
        ports: of its parameters.
        framework: and its version.
        prepare: from features to the ports' tensors by name, as the framework does it;
            `observe` by default.
        limits: see `Policy`.
    """
    module.requires_grad_(requires_grad=False)
    random = np.random.default_rng(0)
    make = prepare or (lambda features: observe(ports, features))

    def run(features: Tensors) -> dict[str, Tensor]:
        observed = make(features)
        with torch.no_grad():
            found = module(*(torch.from_numpy(observed[port.name]) for port in ports))
        return _outputs(found)

    features = [feature for port in ports for feature in port.features]
    free = dict.fromkeys(extent for feature in features for extent in feature.free)
    # Each another one, which is no other dimension either.
    sizes = {extent: 5 + 2 * i for i, extent in enumerate(free)}

    def draw(count: int) -> dict[str, NDArray[Any]]:
        return {f.name: f.draw(count, random, sizes) for f in features}

    names = list(run(draw(3)))
    # A network takes free extents as they are, and its framework pads them.
    example = observe(ports, draw(3)) if free else make(draw(3))
    graph = _convert(module, ports, example, names)
    return Policy(
        graph,
        tuple(ports),
        framework,
        lambda features: {k: v.numpy() for k, v in run(features).items()},
        limits=limits or {},
    )


def _outputs(found: Any) -> dict[str, Tensor]:
    if isinstance(found, Tensor):
        return {"output": found}
    if isinstance(found, Mapping) and all(
        isinstance(v, Tensor) for v in found.values()
    ):
        return {str(name): value for name, value in found.items()}
    raise InvalidArgument(
        f"expected the module to return a tensor, or a dict of tensors by name, found "
        f"{type(found).__name__}: wrap it in a module that does"
    )


def _convert(
    module: nn.Module,
    ports: Sequence[Port],
    example: Tensors,
    outputs: list[str],
) -> onnx.ModelProto:
    """The module's graph, with a free first dimension."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    # It says that torchvision is not there, and that two dimensions are one.
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                module,
                tuple(torch.from_numpy(example[port.name]) for port in ports),
                dynamo=True,
                verbose=False,
                opset_version=OPSET,
                input_names=[port.name for port in ports],
                output_names=outputs,
                dynamic_shapes=_dynamic(module, ports),
            )
    finally:
        logger.setLevel(level)
    assert program is not None
    return program.model_proto


def _dynamic(module: nn.Module, ports: Sequence[Port]) -> tuple[Any, ...]:
    """The free dimensions of each argument, nested as ``forward`` takes them."""
    extents = dict.fromkeys(e for p in ports for e in p.shape if isinstance(e, str))
    dims = {e: torch.export.Dim(re.sub(r"\W", "_", e)) for e in extents}
    batch = torch.export.Dim("N")
    each = tuple(
        {0: batch, **{1 + i: dims[e] for i, e in enumerate(port.shape) if e in dims}}
        for port in ports
    )
    is_variadic = any(
        p.kind is inspect.Parameter.VAR_POSITIONAL
        for p in inspect.signature(module.forward).parameters.values()
    )
    return (each,) if is_variadic else each
