# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports a PyTorch ``nn.Module``."""

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
from mlbridge.export.explained import running
from mlbridge.export.features import FeatureSpec, free_extents
from mlbridge.export.policy import (
    OPSET,
    Policy,
    Port,
    Tensors,
    observe,
    parameter_ports,
)


def policy_of(module: nn.Module, features: Sequence[FeatureSpec]) -> Policy:
    """Makes a policy from a module in ``eval()`` mode.

    If ``forward`` has one parameter, this parameter receives all features as a vector
    of floats. Otherwise each parameter receives the feature with its name, in the
    feature's type. ``forward`` must return a tensor or a dict of tensors.

    Raises:
        InvalidArgument: there are no features, or the module returns another type,
            fails, or cannot be traced.
        SchemaMismatch: the features do not fit the parameters.
    """
    shape = _input_shape(module)
    ports = parameter_ports(module.forward, features, type(module).__name__, shape)
    # Copy the module, because eval() would change the mode of the caller's module.
    evaluated = copy.deepcopy(module).eval()
    return traced(evaluated, ports, f"torch {torch.__version__}")


def _input_shape(module: nn.Module) -> tuple[int | None, ...]:
    """Returns the input's shape, as the module or its first layer declares it."""
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
    """Makes a policy from a module in eval mode, which has one argument per port.

    `prepare` computes the arguments from features, as the framework does. The default
    is `observe`. `Policy` explains `limits`.
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
    free = free_extents(features)
    # Choose distinct sizes, so that the exporter does not unify two free dimensions.
    sizes = {extent: 5 + 2 * i for i, extent in enumerate(free)}

    def draw(count: int) -> dict[str, NDArray[Any]]:
        return {f.name: f.draw(count, random, sizes) for f in features}

    with running(module, ports):
        names = list(run(draw(3)))
        # Trace the network without padding, although its framework pads free extents.
        example = observe(ports, draw(3)) if free else make(draw(3))
        graph = _convert(module, ports, example, names)
    return Policy(
        graph,
        tuple(ports),
        framework,
        lambda features: {k: v.numpy() for k, v in run(features).items()},
        limits=limits or {},
    )


def best_of_each(logits: Tensor, parts: list[int]) -> Tensor:
    """Returns a MultiDiscrete action, [N, parts]: the argmax of each part."""
    each = [part.argmax(dim=1) for part in torch.split(logits, parts, 1)]
    return torch.stack(each, dim=1)


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
    module: nn.Module, ports: Sequence[Port], example: Tensors, outputs: list[str]
) -> onnx.ModelProto:
    """Returns the module's graph, with a free first dimension."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    # Hide warnings about torchvision and equal dimensions, which users cannot fix.
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
    """Returns the free dimensions of each argument, nested like the arguments."""
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
