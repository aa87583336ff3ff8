# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads training logs, which contain the requests and decisions of a compiler.

The runner ``record:FILE|SPEC`` and LLVM's ``-training-log`` write training logs.
``llvm/Analysis/Utils/TrainingLogger.h`` defines the format. A log has a line of JSON
that describes the tensors, and then the observations. An observation is a line of JSON,
the bytes of the tensors and, if the header has a ``score``, the reward.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mlbridge.errors import Malformed
from mlbridge.files import expect_regular_file
from mlbridge.types import Feature, Features

_DTYPES = {"float": "<f4", "double": "<f8"}
_DTYPES |= {
    f"{sign}int{8 * size}_t": f"<{sign or 'i'}{size}"
    for sign in ("", "u")
    for size in (1, 2, 4, 8)
}
# The maximum length of a line in bytes. The header is long: it lists all features.
_MAX_LINE = 1 << 24
# The maximum number of elements. NumPy cannot stack empty tensors if the product of
# their nonzero extents exceeds `_MAX_EMPTY`.
_MAX = (1 << 60) - 1
_MAX_EMPTY = 1 << 31


@dataclass(frozen=True)
class TensorSpec:
    """The description of one tensor in the header of a log."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    """The shape. A scalar has the shape [1]."""
    lengths: tuple[int, ...] | None = None
    """The lengths of the strings in bytes. None for a tensor of numbers."""
    is_list: bool = False
    """Whether the tensor is a list of strings, rather than one string."""

    @property
    def nbytes(self) -> int:
        """The size of the tensor in bytes."""
        return prod(self.shape) * self.dtype.itemsize

    def decode(self, data: bytes, offset: int = 0) -> Feature:
        """Returns the tensor at an offset, as a read-only view or as strings."""
        if self.lengths is None:
            count = prod(self.shape)
            return np.frombuffer(data, self.dtype, count, offset).reshape(self.shape)
        texts = []
        for length in self.lengths:
            texts.append(data[offset : offset + length].decode(errors="replace"))
            offset += length
        return texts if self.is_list else texts[0]

    def __str__(self) -> str:
        if self.lengths is not None:
            return "list of str" if self.is_list else "str"
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Observation:
    """One request of the compiler, with its decision."""

    context: str
    """The subject of the request, for example the name of a function. "default" if it
    is a whole module."""
    index: int
    """The number of the request in its context, counted from 0."""
    features: Features
    """Maps names to features. Arrays are read-only, with the shapes in the header."""
    advice: Feature
    """The decision, which is the last tensor in the header."""
    reward: float | None
    """The reward of the decision. None if the log has no rewards."""


@dataclass(frozen=True)
class LogArrays:
    """All n observations of a log as arrays, in the order of the log."""

    features: dict[str, NDArray[Any]]
    """Maps names to arrays of shape [n, *shape in the header]. Strings are arrays of
    Python objects, of shape [n], or [n, k] for lists of k strings."""
    advice: NDArray[Any]
    """The decisions, as an array in the same form as in `features`."""
    rewards: NDArray[np.float64] | None
    """The rewards, of shape [n]. None if the log has no rewards."""
    contexts: list[str]
    """The context of each of the n observations."""


class TrainingLog:
    """A training log. Each iteration reads the file from its start.

    Example::

        for observation in read_log("zlib.log"):
            print(observation.context, observation.advice)

    Attributes:
        path: the path of the file.
        features: the descriptions of the features, in the order of the file.
        advice: the description of the decision.
        reward: the description of the reward, or None if the log has no rewards.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        expect_regular_file(self.path)
        with self.path.open("rb") as file:
            reader = _Reader(file, self.path)
            *self.features, self.advice = reader.read_header()
            self.reward = reader.score

    def __iter__(self) -> Iterator[Observation]:
        """Yields the observations.

        Raises:
            Malformed: the file does not follow the format. The observations before the
                error are yielded first.
        """
        specs = [*self.features, self.advice]
        offsets = accumulate((spec.nbytes for spec in specs), initial=0)
        places = list(zip(specs, offsets, strict=False))
        for context, index, data, reward in self._records():
            tensors = {spec.name: spec.decode(data, offset) for spec, offset in places}
            advice = tensors.pop(self.advice.name)
            yield Observation(context, index, tensors, advice, reward)

    def offsets(self) -> Iterator[int]:
        """Yields the offset of the header's end in bytes, then of each observation's.

        The bytes before each of these offsets are a valid log.

        Raises:
            Malformed: the file does not follow the format.
        """
        with self.path.open("rb") as file:
            reader = _Reader(file, self.path)
            reader.read_header()
            yield reader.offset
            for _ in reader.records():
                yield reader.offset

    def as_arrays(self) -> LogArrays:
        """Reads the whole log into arrays.

        Raises:
            Malformed: the file does not follow the format.
        """
        records = list(self._records())
        count = len(records)
        data = np.frombuffer(b"".join(data for _, _, data, _ in records), np.uint8)
        specs = [*self.features, self.advice]
        table = data.reshape(count, sum(spec.nbytes for spec in specs))
        columns: dict[str, NDArray[Any]] = {}
        offset = 0
        for spec in specs:
            column = np.ascontiguousarray(table[:, offset : offset + spec.nbytes])
            offset += spec.nbytes
            if spec.lengths is None:
                column = column.view(spec.dtype).reshape(count, *spec.shape)
            else:
                texts = [spec.decode(text.tobytes()) for text in column]
                shape = (count, len(spec.lengths))
                column = np.array(texts, object).reshape(shape[: 1 + spec.is_list])
            columns[spec.name] = column
        return LogArrays(
            features=columns,
            advice=columns.pop(self.advice.name),
            rewards=np.array([r for *_, r in records], float) if self.reward else None,
            contexts=[context for context, *_ in records],
        )

    def _records(self) -> Iterator[tuple[str, int, bytes, float | None]]:
        with self.path.open("rb") as file:
            reader = _Reader(file, self.path)
            reader.read_header()
            yield from reader.records()

    def __repr__(self) -> str:
        names = ", ".join(spec.name for spec in self.features)
        return f"<TrainingLog {self.path}: {names} -> {self.advice.name}>"


def read_log(path: str | os.PathLike[str]) -> TrainingLog:
    """Opens a training log.

    Raises:
        Malformed: the header is invalid.
        InvalidArgument: the path is not a regular file.
        OSError: the file cannot be read.
    """
    return TrainingLog(path)


def parse_tensor_spec(value: Any) -> TensorSpec | None:
    """Parses the description of a tensor, or returns None if it is invalid."""
    match value:
        case {"name": str(name), "type": str(kind), "shape": list(shape)} if (
            name
            and is_text(name)
            and kind in _DTYPES
            and len(shape) <= 32
            and _are_sizes(shape)
            and prod(filter(None, shape)) <= (_MAX if all(shape) else _MAX_EMPTY)
        ):
            return TensorSpec(name, np.dtype(_DTYPES[kind]), tuple(shape))
    return None


def is_text(value: str) -> bool:
    """Returns whether a string from JSON can be encoded as UTF-8.

    JSON's escapes allow half of a surrogate pair, which cannot be encoded.
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_count(value: Any) -> bool:
    """Returns whether a value from JSON is an integer from 0 to 2**63 - 1."""
    return type(value) is int and 0 <= value < 1 << 63


def _are_sizes(values: list[Any]) -> bool:
    return all(type(value) is int and 0 <= value < 1 << 48 for value in values)


class _Reader:
    """Reads a log in pieces. Error messages contain the offset in the file."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file = file
        self._path = path
        self._offset = 0
        self._record_size = 0
        self.score: TensorSpec | None = None

    @property
    def offset(self) -> int:
        """The number of bytes that have been read."""
        return self._offset

    def malformed(self, what: str, offset: int = 0) -> Malformed:
        return Malformed(f"{self._path}: byte {offset}: {what}")

    def _bytes(self, size: int, what: str) -> bytes:
        """Reads `size` bytes and the newline that follows them."""
        left = os.fstat(self._file.fileno()).st_size - self._offset
        data = b""
        # Check the size before allocating memory, because a header may state any size.
        if left > size:
            data = self._file.read(size + 1)
            left = len(data)
        if left <= size:
            raise self.malformed(
                f"expected {size + 1} bytes for {what}, found {left}", self._offset
            )
        if data[-1:] != b"\n":
            raise self.malformed(
                f"expected a newline after {what}", self._offset + size
            )
        self._offset += size + 1
        return data

    def _line(self, what: str) -> dict[str, Any] | None:
        """Reads a line with a JSON object. Returns None at the end of the file."""
        start = self._offset
        line = self._file.readline(_MAX_LINE)
        if not line:
            return None
        self._offset += len(line)
        if not line.endswith(b"\n"):
            raise self.malformed(f"{what} ends without a newline", start)
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise self.malformed(f"expected {what}, a line of JSON", start) from None
        if not isinstance(value, dict):
            raise self.malformed(f"expected {what}, an object", start)
        return value

    def read_header(self) -> list[TensorSpec]:
        header = self._line("the header")
        if header is None:
            raise self.malformed("the file is empty: no request was recorded")
        features = header.get("features")
        if not isinstance(features, list) or not features:
            raise self.malformed("the header names no features")
        specs = [self._spec(feature) for feature in features]
        if len({spec.name for spec in specs}) < len(specs):
            raise self.malformed("the header names a feature twice")
        advice = header.get("advice")
        if advice is not None and self._spec(advice) != specs[-1]:
            raise self.malformed("the advice is not the last tensor of the header")
        if "score" in header:
            self.score = self._spec(header["score"])
            if prod(self.score.shape) != 1:
                raise self.malformed(f"a score is one number, not {self.score}")
        self._record_size = sum(spec.nbytes for spec in specs)
        return specs

    def _spec(self, value: Any) -> TensorSpec:
        """Parses the description of a tensor in the header, and checks its size."""
        spec = parse_tensor_spec(value)
        if spec is None:
            raise self.malformed(f"an invalid tensor is described by {value!r:.200}")
        # LLVM's format lacks bool and string, so `record:` writes "semantics" for them.
        match value:
            case {"semantics": "bool", "type": "uint8_t"}:
                return replace(spec, dtype=np.dtype(np.bool_))
            case {"semantics": "string", "type": "uint8_t"}:
                return replace(spec, lengths=(spec.nbytes,))
            case {"semantics": "strings", "type": "uint8_t", "lengths": list(lengths)}:
                if not _are_sizes(lengths) or sum(lengths) != spec.nbytes:
                    raise self.malformed(f"{spec.name!r:.200} exceeds its strings")
                return replace(spec, lengths=tuple(lengths), is_list=True)
        return spec

    def records(self) -> Iterator[tuple[str, int, bytes, float | None]]:
        """Yields the context, index, tensor bytes and reward of each observation."""
        context = ""
        start = self._offset
        while (line := self._line("an observation or a context")) is not None:
            match line:
                case {"context": str(name)} if is_text(name):
                    context = name
                case {"observation": index} if is_count(index):
                    what = f"observation {index} of {context!r:.200}"
                    data = self._bytes(self._record_size, what)
                    yield context, index, data[:-1], self._outcome(what, index)
                case _:
                    raise self.malformed(
                        f"expected an observation or a context, found {line!r:.200}",
                        start,
                    )
            start = self._offset

    def _outcome(self, observation: str, index: int) -> float | None:
        if self.score is None:
            return None
        start = self._offset
        what = f"the outcome of {observation}"
        line = self._line(what)
        if line is None:
            raise self.malformed(f"{what} is missing", start)
        if line.get("outcome") != index:
            raise self.malformed(f"expected {what}, found {line!r:.200}", start)
        data = self._bytes(self.score.nbytes, what)
        return float(np.frombuffer(data, self.score.dtype, 1)[0])
