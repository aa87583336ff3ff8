# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`FeatureSpec`, the description of a feature that a compiler sends to a model."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, inf, prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mlbridge.errors import InvalidArgument, Unsupported
from mlbridge.log import TrainingLog
from mlbridge.types import element_type_name

if TYPE_CHECKING:
    from gymnasium import spaces

# Limits for random integers if a feature has no limits of its own.
_SMALL, _LARGE = 100, 1 << 20


@dataclass(frozen=True)
class FeatureSpec:
    """The description of a feature that the compiler sends.

    Attributes:
        name: the name, as in ``populateFeatures``.
        type: the element type, such as ``float``, ``int64_t`` or ``bool``. NumPy's
            names and dtypes are accepted, too.
        shape: the shape in one request. () is a scalar. A free extent is a name, as in
            ("nodes", 4). In one request, extents with the same name are equal.
        categories: the possible values of each element, if the elements are categories,
            as in a Gymnasium ``Discrete``. They are one-hot encoded if all features are
            joined to a vector.
        low: the smallest value, if known. Random requests are between `low` and `high`.
        high: the largest value, if known.
        indexes: the free extent whose rows the elements index, or "".
    """

    name: str
    type: str = "float"
    shape: tuple[int | str, ...] = ()
    categories: tuple[range, ...] = ()
    low: float = -inf
    high: float = inf
    indexes: str = ""

    def __post_init__(self) -> None:
        try:
            kind = element_type_name(self.type)
        except TypeError as error:
            raise InvalidArgument(f"feature '{self.name}': {error}") from None
        if kind == "string":
            raise Unsupported(
                f"feature '{self.name}': expected numbers, found a string; omit the "
                "feature, or let the compiler send a number"
            )
        if not self.name:
            raise InvalidArgument("a feature has no name")
        if any((isinstance(e, int) and e < 1) or e == "" for e in self.shape):
            raise InvalidArgument(
                f"feature '{self.name}': expected a shape of positive extents, or names"
                f" of free ones, found {list(self.shape)}"
            )
        if not self.low <= self.high:
            raise InvalidArgument(
                f"feature '{self.name}': expected limits to draw numbers between, "
                f"found {self.low} and {self.high}"
            )
        if self.categories and len(self.categories) != self.size:
            raise InvalidArgument(
                f"feature '{self.name}' has {self.size} elements, and categories for "
                f"{len(self.categories)}"
            )
        object.__setattr__(self, "type", kind)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements."""
        return numpy_dtype(self.type)

    @property
    def free(self) -> list[str]:
        """The names of the free extents."""
        return [extent for extent in self.shape if isinstance(extent, str)]

    @property
    def size(self) -> int:
        """The number of elements.

        Raises:
            Unsupported: an extent is free.
        """
        if self.free:
            raise Unsupported(
                f"feature '{self}' has another size in each request, so it cannot be"
                " part of a vector; use a network that receives it by its name"
            )
        return prod(int(extent) for extent in self.shape)

    @property
    def width(self) -> int:
        """The number of columns that the feature needs in a vector of all features."""
        return sum(map(len, self.categories)) if self.categories else self.size

    def draw(
        self,
        count: int,
        random: np.random.Generator,
        extents: Mapping[str, int] | None = None,
    ) -> NDArray[Any]:
        """Draws random values, of shape ``[count, *shape]``, for a check of a model.

        `extents` maps free extents to sizes.
        """
        free = extents or {}
        size = (count, *(e if isinstance(e, int) else free[e] for e in self.shape))
        if self.indexes:
            return random.integers(0, free[self.indexes], size, dtype=self.dtype)
        if self.categories:
            columns = [random.integers(r.start, r.stop, count) for r in self.categories]
            return np.stack(columns, axis=-1).reshape(size).astype(self.dtype)
        kind = self.dtype.kind
        if kind == "b":
            return random.integers(0, 2, size).astype(np.bool_)
        # Draw from the part of [low, high] near 0, because the range may be very large.
        nearest = min(max(0.0, self.low), self.high)
        low, high = max(self.low, nearest - _LARGE), min(self.high, nearest + _LARGE)
        if kind == "f":
            values = 3 * random.standard_normal(size)
            if max(-self.low, self.high) <= _LARGE or not low <= 0 <= high:
                values = random.uniform(low, high, size)
            return np.clip(values, self.low, self.high).astype(self.dtype)
        limits = np.iinfo(self.dtype)
        least, most = max(limits.min, ceil(low)), min(limits.max, floor(high))
        values = random.integers(least, most, size, dtype=self.dtype, endpoint=True)
        # Draw only small numbers for half of the requests, because the tolerance for
        # rounding hides small differences in sums of large numbers.
        some = count // 2
        near = random.integers(-_SMALL, _SMALL, (some, *size[1:]))
        values[:some] = np.clip(near + min(max(0, least), most), least, most)
        return values

    def __str__(self) -> str:
        extents = f"[{','.join(map(str, self.shape))}]" if self.shape else ""
        return f"{self.type}{extents} {self.name}"


def numpy_dtype(type_name: str) -> np.dtype[Any]:
    """Returns the NumPy dtype for the name of a type, such as ``int64_t``."""
    names = {"float": "float32", "double": "float64"}
    return np.dtype(names.get(type_name, type_name.removesuffix("_t")))


def free_extents(features: Iterable[FeatureSpec]) -> list[str]:
    """Returns the names of all free extents, without duplicates."""
    return list(dict.fromkeys(extent for f in features for extent in f.free))


FeatureSource: TypeAlias = (
    "Iterable[FeatureSpec | str] | TrainingLog | spaces.Space[Any] | None"
)
"""A description of features: a list of `FeatureSpec` or strings for `parse_feature`, a
training log, or an observation space."""


def features_of(
    source: FeatureSource, without: Collection[str] = ()
) -> tuple[FeatureSpec, ...]:
    """Returns the features that a source describes, in the order of the source.

    Args:
        source: the source. None describes no features.
        without: the names of features to omit, for example strings, or the compiler's
            own decision.

    Raises:
        InvalidArgument: a name occurs twice, or a name in `without` is unknown.
        Unsupported: a feature is a string.
    """
    if source is None:
        return ()
    if isinstance(source, TrainingLog):
        names = [spec.name for spec in source.features]
        found = list(_of_log(source, without))
    elif hasattr(source, "sample") and hasattr(source, "contains"):
        names, found = _of_space(source, without)
    else:
        listed = [parse_feature(one) if isinstance(one, str) else one for one in source]
        names = [feature.name for feature in listed]
        found = [feature for feature in listed if feature.name not in without]
    if unknown := [name for name in without if name not in names]:
        raise InvalidArgument(
            f"there is no feature '{unknown[0]}' to leave out, only {', '.join(names)}"
        )
    seen: dict[str, FeatureSpec] = {}
    for feature in found:
        if first := seen.get(feature.name):
            raise InvalidArgument(
                f"expected each feature once, found '{feature.name}' twice: '{first}' "
                f"and '{feature}'; rename one of them"
            )
        seen[feature.name] = feature
    return tuple(found)


_TEXT = re.compile(r"\s*(?P<type>\w+)\s*(\[(?P<shape>[\w\s,]*)\])?\s+(?P<name>\S+)\s*")


def parse_feature(text: str) -> FeatureSpec:
    """Parses a feature such as ``int64 callee_size``, ``float[nodes,300] embedding``.

    Raises:
        InvalidArgument: the text does not have the form ``TYPE[SHAPE] NAME``.
    """
    match = _TEXT.fullmatch(text)
    if not match:
        raise InvalidArgument(
            f"expected a feature such as 'int64 callee_size' or 'float[300] embedding',"
            f" found '{text}'"
        )
    words = [word.strip() for word in (match["shape"] or "").split(",")]
    shape = tuple(int(word) if word.isdigit() else word for word in words if word)
    return FeatureSpec(match["name"], match["type"], shape)


def _of_log(log: TrainingLog, without: Collection[str]) -> Iterator[FeatureSpec]:
    arrays = log.as_arrays().features
    for spec in log.features:
        if spec.name in without:
            continue
        if spec.lengths is not None:
            raise Unsupported(
                f"{log.path}: feature '{spec.name}': expected numbers, found a string; "
                "omit the feature (without=, --without)"
            )
        feature = FeatureSpec(spec.name, spec.dtype.name, spec.shape)
        values = arrays[spec.name]
        # Ignore NaN and infinity, because one NaN would make both limits NaN.
        values = values[np.isfinite(values)]
        if values.size and values.dtype.kind != "b":
            low, high = float(values.min()), float(values.max())
            feature = replace(feature, low=low, high=high)
        yield feature


def _of_space(
    source: Any, without: Collection[str]
) -> tuple[list[str], list[FeatureSpec]]:
    """Returns the names of all features, and the features that are not omitted."""
    from mlbridge.envs.spaces import Padded, extents_of, leaves, nodes_of

    extents = extents_of(source)
    space = source.space if isinstance(source, Padded) else source
    parts = {name or "observation": leaf for name, leaf in leaves(space)}
    found = []
    for name, leaf in parts.items():
        if name in without:
            continue
        if name not in extents:
            found.append(_of_leaf(name, leaf))
            continue
        row: Any = leaf
        of = _of_leaf(name, row.feature_space)
        low = max((r.start for r in of.categories), default=of.low)
        high = min((r.stop - 1 for r in of.categories), default=of.high)
        shape, indexes = (extents[name], *of.shape), nodes_of(name, extents)
        found.append(FeatureSpec(name, of.type, shape, (), low, high, indexes))
    return list(parts), found


def _of_leaf(name: str, space: Any) -> FeatureSpec:
    from gymnasium import spaces

    shape = tuple(space.shape or ())
    match space:
        case spaces.Text():
            raise Unsupported(
                f"feature '{name}': expected numbers, found {space}; omit the feature "
                "from the space"
            )
        case spaces.Discrete():
            start = int(space.start)
            categories: tuple[range, ...] = (range(start, start + int(space.n)),)
        case spaces.MultiDiscrete():
            pairs = zip(space.start.ravel(), space.nvec.ravel(), strict=True)
            categories = tuple(range(int(s), int(s) + int(n)) for s, n in pairs)
        case spaces.Box():
            low, high = float(np.min(space.low)), float(np.max(space.high))
            return FeatureSpec(name, str(space.dtype), shape, (), low, high)
        case _:
            return FeatureSpec(name, str(space.dtype), shape, (), 0, 1)
    return FeatureSpec(name, str(space.dtype), shape, categories)


def to_json(features: Sequence[FeatureSpec]) -> str:
    """Returns the value of the metadata ``mlbridge.features``."""
    return json.dumps(
        [{"name": f.name, "type": f.type, "shape": list(f.shape)} for f in features]
    )
