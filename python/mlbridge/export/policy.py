# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a framework's part of the export gives: `Policy`."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from mlbridge.errors import SchemaMismatch
from mlbridge.export.features import FeatureSpec

OPSET = 18
"""Of the graphs; a later one would shut out older runtimes for nothing."""

Tensors = Mapping[str, NDArray[Any]]
"""Tensors by name, each of shape [N, ...]."""


@dataclass(frozen=True)
class Normalisation:
    """An observation's ``(x - mean) / scale``, clipped to [-clip, clip].

    Computed in double precision, as NumPy does it in every framework's training.

    Attributes:
        mean: of the observation's shape.
        scale: of that shape, too.
        clip: None where there are no limits.
        dtype: of the result; RLlib keeps integers integers.
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    clip: float | None
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class Port:
    """An input of the policy's own graph, and what it is made of.

    Attributes:
        name: of the graph's input, whose shape is [N, *shape].
        features: whose values it is, one after another in this order.
        dtype: of the observation in training: features are converted to it first.
        shape: of one request.
        one_hot: whether features with categories become 0s and a 1; a policy that
            takes observations by name does that itself.
        normalise: what is done to it last.
        mask_of: a free extent: it is made of no feature, but of ones, [N, extent].
    """

    name: str
    features: tuple[FeatureSpec, ...]
    dtype: np.dtype[Any]
    shape: tuple[int | str, ...]
    one_hot: bool = False
    normalise: Normalisation | None = None
    mask_of: str = ""


@dataclass(frozen=True)
class Policy:
    """A policy as a graph that takes observations, and its framework's own answers.

    Attributes:
        graph: whose inputs are those of `ports`, each with a free first dimension
            where the policy allows it.
        ports: how each input is made of features.
        framework: and its version.
        answer: what the framework itself answers to a batch of features, by the names
            of the graph's outputs.
        decide: what a compiler is to make of the outputs (``argmax:logits``), if
            anything.
        outputs: those that are exported unless others are asked for; None for all.
        limits: of free extents, as the framework pads them. Its answers have padding at
            the end, which the graph's have not.
    """

    graph: onnx.ModelProto
    ports: tuple[Port, ...]
    framework: str
    reply: Callable[[Tensors], dict[str, NDArray[Any]]]
    decide: str | None = None
    outputs: tuple[str, ...] | None = None
    limits: Mapping[str, int] = field(default_factory=dict)

    @property
    def features(self) -> tuple[FeatureSpec, ...]:
        """All features, in the order of the ports."""
        return tuple(f for port in self.ports for f in port.features)


def vector_port(
    name: str,
    features: Sequence[FeatureSpec],
    shape: Sequence[int | str | None],
    dtype: Any = np.float32,
    *,
    normalise: Normalisation | None = None,
    what: str = "the policy",
) -> Port:
    """All features as one input; categories become 0s and a 1.

    Args:
        name: of the input.
        features: in the order of training.
        shape: of one request; None where any extent will do.
        dtype: of the observations.
        normalise: them.
        what: takes them, for the message.

    Raises:
        SchemaMismatch: they do not fit.
    """
    kind = np.dtype(dtype)
    only = features[0] if len(features) == 1 else None
    if only and (only.free or (not only.categories and _fits(only.shape, shape))):
        return Port(name, (only,), kind, only.shape, normalise=normalise)
    width = sum(feature.width for feature in features)
    wanted = int(np.prod([int(extent or width) for extent in shape]))
    if wanted != width or len(shape) > 1:
        listed = ", ".join(f"{f} ({f.width})" for f in features)
        extents = ",".join("?" if e is None else str(e) for e in shape)
        raise SchemaMismatch(
            f"{what} takes an observation of shape [{extents}], and the features make "
            f"a vector of {width}: {listed}. Name the features that it was trained "
            "with, in that order"
        )
    row = (width,) if shape else ()
    return Port(name, tuple(features), kind, row, one_hot=True, normalise=normalise)


def _fits(found: Sequence[int | str], wanted: Sequence[int | str | None]) -> bool:
    return len(found) == len(wanted) and all(
        w in (None, f) for f, w in zip(found, wanted, strict=True)
    )


def named_features(
    features: Sequence[FeatureSpec], wanted: Sequence[FeatureSpec], what: str
) -> list[FeatureSpec]:
    """For each wanted observation the feature of its name, of as many elements.

    Where there are no features at all, the wanted ones are as good.

    Raises:
        SchemaMismatch: one is missing or of another size, or one has no use.
    """
    if not features:
        return list(wanted)
    by_name = {feature.name: feature for feature in features}
    names = [one.name for one in wanted]
    missing = [name for name in names if name not in by_name]
    unused = [name for name in by_name if name not in names]
    if missing or unused:
        said = [f"there is no {', '.join(missing)}"] if missing else []
        said += [f"it has no use for {', '.join(unused)}"] if unused else []
        raise SchemaMismatch(
            f"{what} takes {', '.join(names)} by name: {'; '.join(said)}"
        )
    for one in wanted:
        found = by_name[one.name]
        is_free = bool(found.free or one.free)
        if found.shape != one.shape if is_free else found.size != one.size:
            raise SchemaMismatch(
                f"{what} takes '{one}', and the feature is '{by_name[one.name]}'"
            )
    return [_completed(by_name[one.name], one) for one in wanted]


def _completed(feature: FeatureSpec, wanted: FeatureSpec) -> FeatureSpec:
    """With what a policy knows of its observations and the compiler does not say."""
    low, high = max(feature.low, wanted.low), min(feature.high, wanted.high)
    if low > high:
        # The compiler sends what the policy never saw.
        low, high = feature.low, feature.high
    return replace(
        feature,
        categories=feature.categories or wanted.categories,
        low=low,
        high=high,
        indexes=feature.indexes or wanted.indexes,
    )


def observe(ports: Sequence[Port], features: Tensors) -> dict[str, NDArray[Any]]:
    """What the ports' tensors are for a batch of features, by NumPy alone."""
    observed = {}
    sizes = {
        extent: features[feature.name].shape[: 2 + i]
        for port in ports
        for feature in port.features
        for i, extent in enumerate(feature.shape)
        if isinstance(extent, str)
    }
    for port in ports:
        if port.mask_of:
            observed[port.name] = np.ones(sizes[port.mask_of], port.dtype)
            continue
        columns = []
        for feature in port.features:
            value = features[feature.name]
            if port.one_hot and feature.categories:
                flat = value.reshape(len(value), -1)
                columns += [
                    (flat[:, i, None] == np.array(values))
                    for i, values in enumerate(feature.categories)
                ]
            else:
                columns.append(value)
        if len(columns) > 1 or port.one_hot:
            rows = [c.reshape(len(c), -1).astype(port.dtype) for c in columns]
            value = np.concatenate(rows, axis=1)
        else:
            value = columns[0].astype(port.dtype)
        is_free = any(feature.free for feature in port.features)
        shape = value.shape if is_free else (len(value), *port.shape)
        observed[port.name] = value.reshape(shape)
    return observed


def observe_padded(
    space: Any, ports: Sequence[Port], features: Tensors
) -> dict[str, NDArray[Any]]:
    """As `observe`; with padding and masks where the space is `Padded`."""
    from mlbridge.envs.spaces import Padded

    found = observe(ports, features)
    if not isinstance(space, Padded):
        return found
    return space.pad_tensors({name: found[name] for name in found if name in features})


def named_ports(
    names: Sequence[str],
    features: Sequence[FeatureSpec],
    what: str,
    dtype: Any = None,
) -> list[Port]:
    """The parameters of a function, each with the feature of its name as it is.

    Args:
        names: of the parameters.
        features: as many, in any order.
        what: takes them, for the message.
        dtype: that all of them are converted to; by default none is.

    Raises:
        SchemaMismatch: they are not of the same names.
    """
    by_name = {feature.name: feature for feature in features}
    wanted = [by_name.get(name, FeatureSpec(name)) for name in names]
    chosen = named_features(features, wanted, what)
    return [Port(f.name, (f,), np.dtype(dtype or f.dtype), f.shape) for f in chosen]


def padded_ports(features: Sequence[FeatureSpec]) -> list[Port]:
    """Features by name as they are, and the mask of each free extent.

    The framework pads the features to those of a `mlbridge.envs.Padded` space.
    """
    from mlbridge.envs.spaces import mask_of

    free = dict.fromkeys(extent for feature in features for extent in feature.free)
    return [
        *(Port(f.name, (f,), f.dtype, f.shape) for f in features),
        *(
            Port(mask_of(extent), (), np.dtype(np.float32), (extent,), mask_of=extent)
            for extent in free
        ),
    ]


def parameters_of(function: Any) -> list[str]:
    """The names of the parameters that must be given."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.kind in kinds and p.default is inspect.Parameter.empty
    ]
