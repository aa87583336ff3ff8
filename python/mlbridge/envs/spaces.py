# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gymnasium spaces to tensors and back, without loss: dtypes and shapes are exact."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from mlbridge.errors import SchemaMismatch
from mlbridge.printable import names
from mlbridge.types import Features

_ARRAYS = (spaces.Box, spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)


def parts_of(space: spaces.Space[Any]) -> list[tuple[str, spaces.Space[Any]]] | None:
    """The parts of a composite space by name; None for one that is a tensor."""
    if isinstance(space, spaces.Dict):
        return list(space.spaces.items())
    if isinstance(space, spaces.Tuple):
        return [(str(i), part) for i, part in enumerate(space.spaces)]
    if isinstance(space, (*_ARRAYS, spaces.Text)):
        return None
    raise TypeError(
        f"{space} has no form as tensors; there are Box, Discrete, MultiBinary,"
        " MultiDiscrete, Text, and Dict and Tuple of these"
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


def _describe(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    return f"{value.dtype}{list(value.shape)}"


class ObservationReader:
    """Takes an observation of a space out of a compiler's features.

    A space that is one tensor is the feature ``observation``, or the only one there
    is; a Dict is the features of its keys (``a.b`` where it is nested), a Tuple those
    called ``0``, ``1``, ...
    """

    def __init__(self, space: spaces.Space[Any]) -> None:
        """For observations of that space; TypeError where it has no tensors."""
        self.space = space
        self._alone = parts_of(space) is None
        self._names = {name for name, _ in leaves(space, "")}
        self._read = self._reader(space, "")

    def _reader(self, space: spaces.Space[Any], name: str) -> Callable[[Features], Any]:
        parts = parts_of(space)
        if parts is None:
            return self._leaf_reader(space, name)
        prefix = f"{name}." if name else ""
        readers = [(key, self._reader(part, prefix + key)) for key, part in parts]
        if isinstance(space, spaces.Tuple):
            return lambda features: tuple(read(features) for _, read in readers)
        return lambda features: {key: read(features) for key, read in readers}

    def _leaf_reader(
        self, space: spaces.Space[Any], name: str
    ) -> Callable[[Features], Any]:
        dtype, shape = np.dtype(space.dtype), space.shape
        is_text = isinstance(space, spaces.Text)
        is_number = isinstance(space, spaces.Discrete)
        expected = "str" if is_text else f"{dtype}{list(shape or ())}"

        def read(features: Features) -> Any:
            value = features.get(name)
            if is_text and isinstance(value, str):
                return value
            # A narrower type of the compiler's is the same number.
            if (
                not is_text
                and isinstance(value, np.ndarray)
                and value.shape == shape
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
            rest = {
                name: value.copy() if isinstance(value, np.ndarray) else value
                for name, value in features.items()
                if name not in self._names
            }
            return self._read(features), rest
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
        observation = self._read({"": features[name]})
        rest = {
            other: value.copy() if isinstance(value, np.ndarray) else value
            for other, value in features.items()
            if other != name
        }
        return observation, rest


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
        self._write(self._space, "action" if self._alone else "", action, tensors)
        return tensors

    def _write(
        self,
        space: spaces.Space[Any],
        name: str,
        action: Any,
        tensors: dict[str, Any],
    ) -> None:
        parts = parts_of(space)
        if parts is not None:
            by_key: Mapping[str, Any] = (
                action
                if isinstance(action, Mapping)
                else {str(i): part for i, part in enumerate(action)}
            )
            for key, part in parts:
                if key not in by_key:
                    raise SchemaMismatch(f"action: there is no {key!r} in {action!r}")
                self._write(
                    part, f"{name}.{key}" if name else key, by_key[key], tensors
                )
        elif isinstance(space, spaces.Text):
            tensors[name] = str(action)
        else:
            try:
                tensors[name] = _converted(action, space.dtype).reshape(space.shape)
            except (TypeError, ValueError, OverflowError) as error:
                raise SchemaMismatch(
                    f"action {name!r}: expected {space}, found {action!r}"
                ) from error
