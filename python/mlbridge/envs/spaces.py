# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gymnasium spaces to tensors and back, without loss: dtypes and shapes are exact."""

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from mlbridge.errors import InvalidArgument, SchemaMismatch
from mlbridge.printable import names
from mlbridge.types import Features

_ARRAYS = (spaces.Box, spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)

LINKS = "edge_links"
"""The tensor of a Graph whose elements are numbers of its nodes."""

_LINK = spaces.Box(0, np.iinfo(np.int32).max, (2,), np.int64)
"""Of an edge: the numbers of the nodes that it goes from and to."""


def parts_of(space: spaces.Space[Any]) -> list[tuple[str, spaces.Space[Any]]] | None:
    """The parts of a composite space by name; None for one that is a tensor.

    A Graph has ``nodes`` and, where it has edges, ``edges`` and ``edge_links``: each a
    stacked Sequence, a tensor whose first extent is another one in each step.
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
        f"{space} has no form as tensors; there are Box, Discrete, MultiBinary,"
        " MultiDiscrete, Text, Sequence(..., stack=True) of the first four, Graph, and"
        " Dict and Tuple of these"
    )


def is_sequence(space: spaces.Space[Any]) -> bool:
    """Whether it is one tensor with so many rows as there happen to be."""
    return (
        isinstance(space, spaces.Sequence)
        and space.stack
        and isinstance(space.feature_space, _ARRAYS)
    )


def leaves(
    space: spaces.Space[Any], name: str = ""
) -> Iterator[tuple[str, spaces.Space[Any]]]:
    """The tensors of a space by name: those of a Dict have its keys, joined by dots."""
    parts = parts_of(space)
    if parts is None:
        if name.startswith("_"):
            raise ValueError(
                f"{name!r}: names that begin with an underscore are the protocol's own"
            )
        yield name, space
        return
    for key, part in parts:
        yield from leaves(part, f"{name}.{key}" if name else key)


def named_parts(
    space: spaces.Space[Any], value: Any, name: str = ""
) -> Iterator[tuple[str, spaces.Space[Any], Any]]:
    """The tensors of a value of a space: the name, the space and the value of each.

    Raises:
        SchemaMismatch: a part is missing.
    """
    parts = parts_of(space)
    if parts is None:
        yield name, space, value
        return
    if isinstance(value, spaces.GraphInstance):
        value = value._asdict()
    by_key: Mapping[str, Any] = (
        value
        if isinstance(value, Mapping)
        else {str(i): part for i, part in enumerate(value)}
    )
    for key, part in parts:
        if key not in by_key:
            raise SchemaMismatch(f"action: there is no {key!r} in {value!r}")
        yield from named_parts(part, by_key[key], f"{name}.{key}" if name else key)


def extents_of(space: spaces.Space[Any]) -> dict[str, str]:
    """By name of each tensor of changing size what its first extent is called.

    That is as the tensor, but for ``edge_links``: there are as many as ``edges``.
    """
    if isinstance(space, Padded):
        return space.extents
    found = [name or "observation" for name, leaf in leaves(space) if is_sequence(leaf)]
    return {
        name: f"{name.removesuffix(LINKS)}edges"
        if name.rpartition(".")[2] == LINKS
        else name
        for name in found
    }


class Padded(spaces.Dict):
    """Observations of changing size as tensors of fixed size, which learners batch.

    Such as a graph of at most 48 nodes and 512 edges::

        Padded(Graph(Box(0, 1, (3,)), Discrete(2)), {"nodes": 48, "edges": 512})

    is a Dict of ``nodes`` [48, 3], ``edges`` [512] and ``edge_links`` [512, 2], which
    end with zeros, and of ``nodes_mask`` [48] and ``edges_mask`` [512], float: 1 for a
    row that is there, 0 for padding. A model is exported for the sizes that there are:
    the compiler sends what `space` has, without padding and masks.

    Attributes:
        space: what the compiler sends: a stacked Sequence, a Graph, or a Dict or Tuple
            with such parts.
        limits: the most rows, by the name of the extent.
        extents: the name of each changing tensor's first extent. It is the tensor's
            own name, but for ``edge_links``, which has as many rows as ``edges``.
    """

    def __init__(
        self,
        space: spaces.Space[Any],
        limits: Mapping[str, int],
        extents: Mapping[str, str] | None = None,
    ) -> None:
        """Pads a space.

        Args:
            space: of the observations as they come.
            limits: for each extent. More rows in a step are a SchemaMismatch.
            extents: for tensors of as many rows as another: that one's name, by theirs.

        Raises:
            InvalidArgument: an extent has no limit, or a limit no extent.
        """
        tensors = {name or "observation": leaf for name, leaf in leaves(space)}
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
        padded = {
            name: _padded(leaf, self.limits[self.extents[name]])
            if name in self.extents
            else leaf
            for name, leaf in tensors.items()
        }
        for name in padded:
            nodes = nodes_of(name, self.extents)
            if nodes:
                shape, most = padded[name].shape, self.limits[nodes] - 1
                padded[name] = spaces.Box(0, most, shape, np.int64)
        masks = {
            mask_of(extent): spaces.Box(0, 1, (limit,), np.float32)
            for extent, limit in self.limits.items()
        }
        super().__init__({**padded, **masks})

    def pad(self, observation: Any) -> dict[str, Any]:
        """An observation of `space` as one of this.

        Raises:
            SchemaMismatch: it has too many rows, or another number than it should.
        """
        named = named_parts(self.space, observation)
        tensors = {name or "observation": value for name, _, value in named}
        return self.pad_tensors(tensors, 0)

    def pad_tensors(self, tensors: Mapping[str, Any], axis: int = 1) -> dict[str, Any]:
        """Tensors by name, padded along an axis, with the masks; see `pad`."""
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
        """The tensors by name that the compiler sent: those of `space`."""
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
    """Of a Graph's links the extent of its nodes; "" of any other tensor."""
    prefix, _, last = name.rpartition(".")
    return extents.get(f"{prefix}.nodes" if prefix else "nodes", "") * (last == LINKS)


def mask_of(extent: str) -> str:
    """What `Padded` calls the mask of an extent."""
    return f"{extent}_mask"


def _padded(space: Any, limit: int) -> spaces.Box:
    """So many rows of a Sequence, zeros among them."""
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


def _describe(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    return f"{value.dtype}{list(value.shape)}"


class ObservationReader:
    """Takes an observation of a space out of a compiler's features.

    A space that is one tensor is the feature ``observation``, or the only one there
    is; a Dict is the features of its keys (``a.b`` where it is nested), a Tuple those
    called ``0``, ``1``, ..., a Graph ``nodes``, ``edges`` and ``edge_links``. A Padded
    space has the features of the space that it pads.
    """

    def __init__(self, space: spaces.Space[Any]) -> None:
        """For observations of that space; TypeError where it has no tensors."""
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
            # A narrower type of the compiler's is the same number.
            if (
                not is_text
                and isinstance(value, np.ndarray)
                and value.ndim == ndim
                and value.shape[skipped:] == shape
                and (value.dtype == dtype or np.can_cast(value.dtype, dtype, "safe"))
            ):
                # A copy: the array shows the next observation soon.
                own = value.astype(dtype)
                return own[()] if is_number else own
            found = (
                _describe(value)
                if value is not None
                else f"no such feature, only {names(features) or 'none at all'}"
            )
            raise SchemaMismatch(
                f"{name or 'observation'!r}: the observation space has"
                f" {expected}, found {found}"
            )

        return read

    def __call__(self, features: Features) -> tuple[Any, dict[str, Any]]:
        """The observation, and copies of the features that are no part of it."""
        if not self._alone:
            return self._pad(self._read(features)), _others(features, self._names)
        if "observation" in features:
            name = "observation"
        elif len(features) == 1:
            name = next(iter(features))
        else:
            raise SchemaMismatch(
                "the observation space has one tensor, and the compiler sent"
                f" {names(features) or 'none'}; expected 'observation' among them,"
                " or a Dict space"
            )
        observation = self._pad(self._read({"": features[name]}))
        return observation, _others(features, {name})


def _others(features: Features, read: Container[str]) -> dict[str, Any]:
    """Copies of the features that have not been read."""
    return {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in features.items()
        if name not in read
    }


def _converted(action: Any, dtype: np.dtype[Any] | None) -> NDArray[Any]:
    """The action as an array of a dtype, rounded where that has fewer digits.

    Raises:
        TypeError, ValueError, OverflowError: it has no form there, or another value.
    """
    found = np.asarray(action)
    if found.dtype == dtype:
        return found
    if found.dtype.kind == "c":
        raise TypeError("complex numbers have no form as a tensor")
    with np.errstate(all="ignore"):
        converted = found.astype(dtype)
    if converted.dtype.kind != "f":
        is_kept = np.array_equal(converted, found)
    else:
        is_kept = bool((np.isinf(converted) == np.isinf(found.astype(float))).all())
    if not is_kept:
        raise ValueError(f"{action!r:.200} has no form as {dtype}")
    return converted


class ActionWriter:
    """Turns an action of a space into tensors: ``action``, or those of a Dict."""

    def __init__(self, space: spaces.Space[Any]) -> None:
        """For actions of that space; TypeError where it has no tensors."""
        list(leaves(space, ""))
        self._space = space
        self._alone = parts_of(space) is None

    def __call__(self, action: Any) -> dict[str, Any]:
        """The tensors by name.

        Raises:
            SchemaMismatch: the action is not of the space's form.
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
