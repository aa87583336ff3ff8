# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Converts between values of Gymnasium spaces and tensors of the same dtypes."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from mlbridge.errors import InvalidArgument, SchemaMismatch
from mlbridge.printable import names
from mlbridge.types import Features

_ARRAYS = (spaces.Box, spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)

LINKS = "edge_links"
"""The name of the tensor with the edges of a Graph, as indices of nodes."""

_LINK = spaces.Box(0, np.iinfo(np.int32).max, (2,), np.int64)
"""The space of one edge: the indices of its source node and target node."""


def finite(dtype: Any, shape: Sequence[int]) -> spaces.Box:
    """Returns the space of all finite tensors of a dtype and a shape."""
    kind = np.dtype(dtype)
    limits = np.finfo(kind) if kind.kind == "f" else np.iinfo(kind)
    return spaces.Box(limits.min, limits.max, tuple(shape), kind.type)


def parts_of(space: spaces.Space[Any]) -> list[tuple[str, spaces.Space[Any]]] | None:
    """Returns the named parts of a composite space, or None for a single tensor.

    A Graph has the part ``nodes``. A Graph with edges also has ``edges`` and
    ``edge_links``. Each part is a Sequence, whose first extent varies between steps.
    """
    if isinstance(space, spaces.Dict):
        return list(space.spaces.items())
    if isinstance(space, spaces.Tuple):
        return [(str(i), part) for i, part in enumerate(space.spaces)]
    if isinstance(space, spaces.Graph):
        found = {"nodes": space.node_space}
        if space.edge_space is not None:
            found |= {"edges": space.edge_space, LINKS: _LINK}
        return [(key, spaces.Sequence(row, stack=True)) for key, row in found.items()]
    if isinstance(space, (*_ARRAYS, spaces.Text)) or is_sequence(space):
        return None
    raise TypeError(
        f"{space} cannot be represented as tensors; use Box, Discrete, MultiBinary,"
        " MultiDiscrete, Text, Sequence(..., stack=True) of the first four, Graph, or"
        " Dict or Tuple of these"
    )


def is_sequence(space: spaces.Space[Any]) -> bool:
    """Returns whether a space is one tensor whose number of rows varies."""
    return (
        isinstance(space, spaces.Sequence)
        and space.stack
        and isinstance(space.feature_space, _ARRAYS)
    )


def leaves(
    space: spaces.Space[Any], name: str = ""
) -> Iterator[tuple[str, spaces.Space[Any]]]:
    """Yields the name and space of each tensor.

    The name of a nested tensor consists of its keys, joined with dots: ``a.b``.
    """
    parts = parts_of(space)
    if parts is None:
        if name.startswith("_"):
            raise ValueError(f"{name!r}: a leading underscore marks reserved names")
        yield name, space
        return
    for key, part in parts:
        yield from leaves(part, f"{name}.{key}" if name else key)


def named_parts(
    space: spaces.Space[Any], value: Any, name: str = ""
) -> Iterator[tuple[str, spaces.Space[Any], Any]]:
    """Yields each tensor's name (as in `leaves`), space and value.

    Raises SchemaMismatch if the value does not fit the space.
    """
    parts = parts_of(space)
    if parts is None:
        yield name, space, value
        return
    if isinstance(value, spaces.GraphInstance):
        value = value._asdict()
    if not isinstance(value, Mapping):
        value = {str(i): part for i, part in enumerate(value)}
    for key, part in parts:
        if key not in value:
            raise SchemaMismatch(f"action: expected {key!r}, found only {value!r}")
        yield from named_parts(part, value[key], f"{name}.{key}" if name else key)


def extents_of(space: spaces.Space[Any]) -> dict[str, str]:
    """Maps each tensor of varying size to the name of its first extent.

    The dict has the form of `Padded.extents`.
    """
    if isinstance(space, Padded):
        return space.extents
    found = [name or "observation" for name, leaf in leaves(space) if is_sequence(leaf)]
    return {name: re.sub(rf"(^|\.){LINKS}$", r"\1edges", name) for name in found}


class Padded(spaces.Dict):
    """Pads observations of varying size to a fixed size, so that they can be batched.

    For example, this is the space of graphs with at most 48 nodes and 512 edges::

        Padded(Graph(Box(0, 1, (3,)), Discrete(2)), {"nodes": 48, "edges": 512})

    The space is a Dict of ``nodes`` [48, 3], ``edges`` [512] and ``edge_links``
    [512, 2], with zeros after the last row. The float tensors ``nodes_mask`` [48] and
    ``edges_mask`` [512] are 1 for each row of the observation and 0 for padding. An
    exported model needs neither padding nor masks, and accepts any size.

    Attributes:
        space: the space of the compiler's observations: a stacked Sequence, a Graph, or
            a Dict or Tuple that contains them.
        limits: maps each extent to its maximum size.
        extents: maps each tensor of varying size to the name of its first extent. By
            default, an extent has the tensor's name, but the extent of ``edge_links``
            is ``edges``.
    """

    def __init__(
        self,
        space: spaces.Space[Any],
        limits: Mapping[str, int],
        extents: Mapping[str, str] | None = None,
    ) -> None:
        """Pads a space. Raises InvalidArgument if an extent has no limit.

        Args:
            space: the space of the compiler's observations.
            limits: the maximum size of each extent. More rows raise SchemaMismatch.
            extents: maps a tensor A to another tensor B with the same number of rows.
                Both tensors use the limit and the mask of B.
        """
        padded = {name or "observation": leaf for name, leaf in leaves(space)}
        found = extents_of(space)
        self.space = space
        self.extents = found | dict(extents or {})
        self.limits = dict(limits)
        wanted = set(self.extents.values())
        if set(self.extents) != set(found) or wanted != set(limits):
            raise InvalidArgument(
                f"expected a limit for each of {', '.join(sorted(wanted)) or 'none'},"
                f" found {dict(limits)}; tensors of changing size are"
                f" {', '.join(found) or 'none'}"
            )
        for name, leaf in padded.items():
            if name in self.extents:
                padded[name] = leaf = _padded(leaf, self.limits[self.extents[name]])
            if nodes := nodes_of(name, self.extents):
                most = self.limits[nodes] - 1
                padded[name] = spaces.Box(0, most, leaf.shape, np.int64)
        for extent, limit in self.limits.items():
            padded[mask_of(extent)] = spaces.Box(0, 1, (limit,), np.float32)
        super().__init__(padded)

    def pad(self, observation: Any) -> dict[str, Any]:
        """Converts an observation of `space` to an observation of this space.

        Raises SchemaMismatch if a tensor exceeds its limit, or if two tensors with the
        same extent have different sizes.
        """
        named = named_parts(self.space, observation)
        tensors = {name or "observation": value for name, _, value in named}
        return self.pad_tensors(tensors, 0)

    def pad_tensors(self, tensors: Mapping[str, Any], axis: int = 1) -> dict[str, Any]:
        """Pads tensors along an axis, and adds a mask per extent. See `pad`."""
        found = dict(tensors)
        sizes: dict[str, int] = {}
        for name, extent in self.extents.items():
            value, limit = tensors[name], self.limits[extent]
            rows = value.shape[axis]
            if rows > limit or sizes.setdefault(extent, rows) != rows:
                expected = f"at most {limit}" if rows > limit else str(sizes[extent])
                raise SchemaMismatch(
                    f"{name!r}: expected {expected} rows ('{extent}'), found {rows}"
                )
            shape = (*value.shape[:axis], limit, *value.shape[axis + 1 :])
            found[name] = np.zeros(shape, value.dtype)
            found[name][(slice(None),) * axis + (slice(rows),)] = value
            mask = np.zeros(shape[: axis + 1], np.float32)
            mask[..., :rows] = 1
            found[mask_of(extent)] = mask
        return found

    def unpad(self, observation: Mapping[str, Any]) -> dict[str, Any]:
        """Removes padding and masks. Returns the tensors that the compiler sent."""
        sizes = {
            extent: int(observation[mask_of(extent)].sum()) for extent in self.limits
        }
        return {
            name: observation[name][: sizes[self.extents[name]]]
            if name in self.extents
            else observation[name]
            for name in self.spaces
            if name not in map(mask_of, self.limits)
        }


def nodes_of(name: str, extents: Mapping[str, str]) -> str:
    """Returns the name of the extent that counts the nodes of a Graph.

    ``name`` is the Graph's tensor ``edge_links``. Returns "" for any other tensor.
    """
    prefix, _, last = name.rpartition(".")
    return extents.get(f"{prefix}.nodes" if prefix else "nodes", "") * (last == LINKS)


def mask_of(extent: str) -> str:
    """Returns the name of the mask for an extent in `Padded`."""
    return f"{extent}_mask"


def _padded(space: Any, limit: int) -> spaces.Box:
    """Returns the space of ``limit`` rows of a Sequence, including rows of zeros."""
    row = space.feature_space
    dtype, shape = np.dtype(row.dtype), (limit, *(row.shape or ()))
    match row:
        case spaces.Box():
            low, high = np.minimum(row.low, 0), np.maximum(row.high, 0)
        case spaces.MultiBinary():
            low, high = 0, 1
        case _:
            size = row.n if isinstance(row, spaces.Discrete) else row.nvec
            low, high = np.minimum(row.start, 0), np.maximum(row.start + size - 1, 0)
    both = [np.broadcast_to(limit, shape).astype(dtype) for limit in (low, high)]
    return spaces.Box(both[0], both[1], shape, row.dtype)


class ObservationReader:
    """Converts the features of a compiler to an observation of a space.

    For a space of one tensor, the reader uses the feature ``observation``, or the only
    feature. For a Dict, it uses the features that the keys name, for example ``a.b`` in
    a nested Dict. For a Tuple, it uses ``0``, ``1``, ..., and for a Graph the names in
    `parts_of`.
    """

    def __init__(self, space: spaces.Space[Any]) -> None:
        """Prepares to read. Raises TypeError if tensors cannot represent the space."""
        self.space = space
        self._pad = space.pad if isinstance(space, Padded) else lambda found: found
        sent = space.space if isinstance(space, Padded) else space
        self._alone = parts_of(sent) is None
        self._names = {name for name, _ in leaves(sent, "")}
        self._read = self._reader(sent, "")

    def _reader(self, space: spaces.Space[Any], name: str) -> Callable[[Features], Any]:
        parts = parts_of(space)
        if parts is None:
            return self._leaf_reader(space, name)
        prefix = f"{name}." if name else ""
        readers = [(key, self._reader(part, prefix + key)) for key, part in parts]
        if isinstance(space, spaces.Tuple):
            return lambda features: tuple(read(features) for _, read in readers)
        if isinstance(space, spaces.Graph):
            none = dict.fromkeys(spaces.GraphInstance._fields)
            return lambda features: spaces.GraphInstance(
                **{**none, **{key: read(features) for key, read in readers}}
            )
        return lambda features: {key: read(features) for key, read in readers}

    def _leaf_reader(
        self, space: spaces.Space[Any], name: str
    ) -> Callable[[Features], Any]:
        is_text = isinstance(space, spaces.Text)
        is_number = isinstance(space, spaces.Discrete)
        free: tuple[int | str, ...] = ("?",) if is_sequence(space) else ()
        row: Any = space.feature_space if isinstance(space, spaces.Sequence) else space
        dtype, shape = np.dtype(row.dtype), row.shape or ()
        extents = ", ".join(map(str, (*free, *shape)))
        expected = "str" if is_text else f"{dtype}[{extents}]"
        ndim, skipped = len(free) + len(shape), len(free)

        def read(features: Features) -> Any:
            value = features.get(name)
            if is_text and isinstance(value, str):
                return value
            # Accept a narrower type, because its conversion loses nothing.
            if (
                not is_text
                and isinstance(value, np.ndarray)
                and value.ndim == ndim
                and value.shape[skipped:] == shape
                and (value.dtype == dtype or np.can_cast(value.dtype, dtype, "safe"))
            ):
                # Copy the array: it is a view that the next message overwrites.
                own = value.astype(dtype)
                return own[()] if is_number else own
            found = f"no such feature, only {names(features) or 'an empty message'}"
            if isinstance(value, np.ndarray):
                found = f"{value.dtype}{list(value.shape)}"
            elif value is not None:
                found = type(value).__name__
            raise SchemaMismatch(
                f"{name or 'observation'!r}: the observation space has"
                f" {expected}, found {found}"
            )

        return read

    def __call__(self, features: Features) -> tuple[Any, dict[str, Any]]:
        """Returns the observation, and copies of all other features."""
        used, source = self._names, features
        if self._alone:
            name = next(iter(features)) if len(features) == 1 else "observation"
            if name not in features:
                raise SchemaMismatch(
                    "the observation space has one tensor, and the compiler sent"
                    f" {names(features) or 'none'}; expected 'observation' among them,"
                    " or a Dict space"
                )
            used, source = {name}, {"": features[name]}
        others = {
            name: value.copy() if isinstance(value, np.ndarray) else value
            for name, value in features.items()
            if name not in used
        }
        return self._pad(self._read(source)), others


def _converted(action: Any, dtype: np.dtype[Any] | None) -> NDArray[Any]:
    """Converts an action to an array of a dtype. Only floats may be rounded.

    Raises TypeError, ValueError or OverflowError if the dtype cannot hold the action.
    """
    found = np.asarray(action)
    if found.dtype == dtype:
        return found
    if found.dtype.kind == "c":
        raise TypeError("complex numbers cannot be represented as a tensor")
    with np.errstate(all="ignore"):
        converted = found.astype(dtype)
    if converted.dtype.kind != "f":
        is_kept = np.array_equal(converted, found)
    else:
        is_kept = bool((np.isinf(converted) == np.isinf(found.astype(float))).all())
    if not is_kept:
        raise ValueError(f"{action!r:.200} cannot be represented as {dtype}")
    return converted


class ActionWriter:
    """Converts actions to tensors: one called ``action``, or one per key of a Dict."""

    def __init__(self, space: spaces.Space[Any]) -> None:
        """Prepares to write. Raises TypeError if tensors cannot represent the space."""
        list(leaves(space))
        self._space = space
        self._alone = parts_of(space) is None

    def __call__(self, action: Any) -> dict[str, Any]:
        """Returns an action as a dict from name to tensor.

        Raises SchemaMismatch if a tensor does not fit its space.
        """
        tensors: dict[str, Any] = {}
        start = "action" if self._alone else ""
        for name, space, value in named_parts(self._space, action, start):
            if isinstance(space, spaces.Text):
                tensors[name] = str(value)
                continue
            is_free = is_sequence(space)
            row: Any = space.feature_space if is_free else space  # type: ignore[attr-defined]
            shape = ((-1,) if is_free else ()) + tuple(row.shape or ())
            try:
                tensors[name] = _converted(value, row.dtype).reshape(shape)
            except (TypeError, ValueError, OverflowError) as error:
                raise SchemaMismatch(
                    f"action {name!r}: expected {space}, found {value!r}"
                ) from error
        return tensors
