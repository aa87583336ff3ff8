# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The result of a framework's part of the export: `Policy`."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from mlbridge.errors import InvalidArgument, SchemaMismatch
from mlbridge.export.features import FeatureSpec, free_extents

OPSET = 18
"""The opset of the graphs; a later one would exclude older runtimes needlessly."""
Tensors = Mapping[str, NDArray[Any]]
"""Tensors by name, each of shape [N, ...]."""


@dataclass(frozen=True)
class Normalisation:
    """An observation's ``(x - mean) / scale``, clipped to [-clip, clip].

    Computed in double precision, as NumPy does in every framework's training.
    """

    mean: NDArray[np.float64]  # Of the observation's shape.
    scale: NDArray[np.float64]  # Of the observation's shape.
    clip: float | None
    dtype: np.dtype[Any]  # Of the result; RLlib keeps integers as integers.


@dataclass(frozen=True)
class Port:
    """An input of the policy's own graph, [N, *shape], and the features that fill it.

    With ``one_hot``, features with categories are one-hot encoded; a policy that takes
    observations by name does that itself. A port with ``mask_of``, a free extent, has
    no features but is all ones, [N, extent].
    """

    name: str
    features: tuple[FeatureSpec, ...]  # Concatenated in this order.
    dtype: np.dtype[
        Any
    ]  # Of the observation in training; features are converted to it.
    shape: tuple[int | str, ...]  # Of one request.
    one_hot: bool = False
    normalise: Normalisation | None = None  # Applied last.
    mask_of: str = ""


@dataclass(frozen=True)
class Policy:
    """A policy as a graph that takes observations, and its framework's own replies.

    The graph's inputs are those of `ports`, with a free first dimension if the policy
    allows one. `limits` are the sizes to which the framework pads free extents: its
    outputs end with padding, the graph's do not.
    """

    graph: onnx.ModelProto
    ports: tuple[Port, ...]
    framework: str  # With its version.
    reply: Callable[[Tensors], dict[str, NDArray[Any]]]  # The framework's outputs.
    decide: str | None = None  # The rule for runners, such as ``argmax:logits``.
    outputs: tuple[str, ...] | None = None  # Exported by default; None for all.
    limits: Mapping[str, int] = field(default_factory=dict)

    @property
    def features(self) -> tuple[FeatureSpec, ...]:
        """All features, in the order of the ports."""
        return tuple(f for port in self.ports for f in port.features)


def need_features(features: Sequence[FeatureSpec], what: str) -> None:
    """Raises InvalidArgument if there are no features, but the policy needs them."""
    if not features:
        raise InvalidArgument(
            f"{what}: say which features it takes, in the order of its input: "
            'features=["int64 callee_size", ...] (--feature)'
        )


def vector_port(
    name: str,
    features: Sequence[FeatureSpec],
    shape: Sequence[int | str | None],
    dtype: Any = np.float32,
    *,
    normalise: Normalisation | None = None,
    what: str = "the policy",
) -> Port:
    """Makes one input of all features; features with categories are one-hot encoded.

    In `shape`, that of one request, None stands for any extent; `what` names the policy
    in messages.

    Raises:
        SchemaMismatch: the features do not fit the shape.
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
    """Returns the feature of each wanted observation, matched by name and size.

    Without any features, returns the wanted ones.

    Raises:
        SchemaMismatch: a feature is missing, unused, or of another size.
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
    chosen = []
    for one in wanted:
        found = by_name[one.name]
        is_free = bool(found.free or one.free)
        if found.shape != one.shape if is_free else found.size != one.size:
            raise SchemaMismatch(f"{what} takes '{one}', and the feature is '{found}'")
        chosen.append(_completed(found, one))
    return chosen


def _completed(feature: FeatureSpec, wanted: FeatureSpec) -> FeatureSpec:
    """Adds what the policy knows of its observation to the compiler's feature."""
    low, high = max(feature.low, wanted.low), min(feature.high, wanted.high)
    if low > high:
        # The compiler's values lie outside of the policy's range.
        low, high = feature.low, feature.high
    return replace(
        feature,
        categories=feature.categories or wanted.categories,
        low=low,
        high=high,
        indexes=feature.indexes or wanted.indexes,
    )


def observe(ports: Sequence[Port], features: Tensors) -> dict[str, NDArray[Any]]:
    """Computes the ports' tensors for a batch of features, by NumPy alone."""
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
    """Does the same as `observe`, with padding and masks if the space is `Padded`."""
    from mlbridge.envs.spaces import Padded

    found = observe(ports, features)
    if not isinstance(space, Padded):
        return found
    return space.pad_tensors({name: found[name] for name in found if name in features})


def parameter_ports(
    function: Any,
    features: Sequence[FeatureSpec],
    what: str,
    shape: Sequence[int | None] = (None,),
    dtype: Any = None,
) -> list[Port]:
    """Returns the ports of a function's required parameters.

    A single parameter takes all features as a vector of float32, of this `shape` for
    one request. Several parameters take the features of their names, converted to
    `dtype` if given.

    Raises:
        InvalidArgument: there are no features.
        SchemaMismatch: the features do not fit the parameters.
    """
    need_features(features, what)
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.kind in kinds and p.default is inspect.Parameter.empty
    ]
    if len(names) == 1:
        return [vector_port(names[0], features, shape, what=what)]
    by_name = {feature.name: feature for feature in features}
    wanted = [by_name.get(name, FeatureSpec(name)) for name in names]
    chosen = named_features(features, wanted, what)
    return [Port(f.name, (f,), np.dtype(dtype or f.dtype), f.shape) for f in chosen]


def padded_ports(features: Sequence[FeatureSpec]) -> list[Port]:
    """Returns a port for each feature, and one for the mask of each free extent.

    The framework pads the features to those of a `mlbridge.envs.Padded` space.
    """
    from mlbridge.envs.spaces import mask_of

    single = np.dtype(np.float32)
    return [
        *(Port(f.name, (f,), f.dtype, f.shape) for f in features),
        *(
            Port(mask_of(extent), (), single, (extent,), mask_of=extent)
            for extent in free_extents(features)
        ),
    ]
