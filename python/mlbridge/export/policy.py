# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`Policy`, the form to which each framework's module converts a trained policy."""

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
"""The opset of the graphs. A later opset would exclude older runtimes."""
Tensors = Mapping[str, NDArray[Any]]
"""A dict from name to tensor of shape [N, ...]."""


@dataclass(frozen=True)
class Normalisation:
    """Normalises an observation: ``(x - mean) / scale``, clipped to [-clip, clip].

    The computation is in double precision, as in the frameworks.
    """

    mean: NDArray[np.float64]  # Has the shape of the observation.
    scale: NDArray[np.float64]  # Has the shape of the observation.
    clip: float | None
    dtype: np.dtype[Any]  # The dtype of the result. RLlib keeps integer dtypes.


@dataclass(frozen=True)
class Port:
    """An input of the policy's graph, [N, *shape], and the features that it contains.

    A port may have no features. Then ``mask_of`` is the name of a free extent, and the
    tensor is a mask of ones, of shape [N, extent].
    """

    name: str
    features: tuple[FeatureSpec, ...]  # Concatenated in this order.
    dtype: np.dtype[Any]  # The dtype in training. Features are converted to this dtype.
    shape: tuple[int | str, ...]  # The shape for one request.
    one_hot: bool = False  # Whether features with categories are one-hot encoded.
    normalise: Normalisation | None = None  # Applied last.
    mask_of: str = ""


@dataclass(frozen=True)
class Policy:
    """A trained policy: the graph of its network, and a function that runs the policy.

    The graph has one input per port. `limits` maps free extents to the sizes to which
    the framework pads them. The outputs of `reply` then end with padding, but the
    outputs of the graph do not.

    `batch` is the batch size if the framework fixes it. `constants` maps inputs that
    are constants of the graph to their values.
    """

    graph: onnx.ModelProto
    ports: tuple[Port, ...]
    framework: str  # The name and version of the framework.
    reply: Callable[[Tensors], dict[str, NDArray[Any]]]  # Runs the framework.
    decide: str | None = None  # The rule for a decision, such as ``argmax:logits``.
    outputs: tuple[str, ...] | None = None  # The outputs to export. None exports all.
    limits: Mapping[str, int] = field(default_factory=dict)
    batch: int | None = None
    constants: Mapping[str, float] = field(default_factory=dict)

    @property
    def features(self) -> tuple[FeatureSpec, ...]:
        """All features, in the order of the ports."""
        return tuple(f for port in self.ports for f in port.features)


def need_features(features: Sequence[FeatureSpec], what: str) -> None:
    """Raises InvalidArgument if there are no features."""
    if not features:
        raise InvalidArgument(
            f"{what}: expected its features, in the order of its input, found none: "
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
    """Makes one input from all features. Features with categories are one-hot encoded.

    `shape` is the shape for one request. None in `shape` allows any extent. `what`
    names the policy in messages.

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
            f"{what}: expected an observation of shape [{extents}], found features for "
            f"a vector of {width}: {listed}. Name the features of the training, in the "
            "same order"
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
    """Returns `features` in the order of `wanted`, matched by name.

    If `features` is empty, `wanted` is returned.

    Raises:
        SchemaMismatch: a feature is missing, is not used, or has another size.
    """
    if not features:
        return list(wanted)
    by_name = {feature.name: feature for feature in features}
    names = [one.name for one in wanted]
    missing = [name for name in names if name not in by_name]
    unused = [name for name in by_name if name not in names]
    if missing or unused:
        said = [f"missing: {', '.join(missing)}"] if missing else []
        said += [f"unused: {', '.join(unused)}"] if unused else []
        raise SchemaMismatch(
            f"{what}: expected the features {', '.join(names)}; {'; '.join(said)}"
        )
    chosen = []
    for one in wanted:
        found = by_name[one.name]
        is_free = bool(found.free or one.free)
        if found.shape != one.shape if is_free else found.size != one.size:
            raise SchemaMismatch(f"{what}: expected '{one}', found '{found}'")
        chosen.append(_completed(found, one))
    return chosen


def _completed(feature: FeatureSpec, wanted: FeatureSpec) -> FeatureSpec:
    """Adds categories and limits of the policy's observation space to a feature."""
    low, high = max(feature.low, wanted.low), min(feature.high, wanted.high)
    if low > high:
        # Keep the compiler's limits if they do not overlap with the policy's limits.
        low, high = feature.low, feature.high
    return replace(
        feature,
        categories=feature.categories or wanted.categories,
        low=low,
        high=high,
        indexes=feature.indexes or wanted.indexes,
    )


def observe(ports: Sequence[Port], features: Tensors) -> dict[str, NDArray[Any]]:
    """Computes the tensors of the ports for a batch of features, with NumPy only."""
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
    """Calls `observe`. If the space is `Padded`, also adds padding and masks."""
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
    """Returns a port for each required positional parameter of a function.

    A single parameter receives all features as a vector of float32. `shape` is the
    shape of the vector for one request. If there are several parameters, each receives
    the feature of the same name, converted to `dtype` if it is given.

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
    """Returns a port for each feature, and a port for the mask of each free extent.

    A network whose observation space is `mlbridge.envs.Padded` has these inputs.
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
