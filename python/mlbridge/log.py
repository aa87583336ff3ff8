# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training logs: what a compiler asked and decided, as LLVM writes it down.

The runner ``record:FILE|SPEC`` and LLVM's own ``-training-log`` make them. The format
(``llvm/Analysis/Utils/TrainingLogger.h``) is a header line of JSON that names the
tensors, then for each observation a line of JSON, the tensors' bytes and, where the
header has a ``score``, the outcome.
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
# A line that announces a tensor or a context; a header lists all features.
_MAX_LINE = 1 << 24
# The product of all extents, as NumPy has it; and of those that are not 0 in a tensor
# without elements, any number of which are one array.
_MAX = (1 << 60) - 1
_MAX_EMPTY = 1 << 31


@dataclass(frozen=True)
class TensorSpec:
    """What the header says of one tensor."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    """LLVM writes a scalar as [1]."""
    lengths: tuple[int, ...] | None = None
    """Of text, the bytes of each string."""
    is_list: bool = False
    """Whether it is a list of strings rather than one."""

    @property
    def nbytes(self) -> int:
        """Bytes of one such tensor."""
        return prod(self.shape) * self.dtype.itemsize

    def decode(self, data: bytes, offset: int = 0) -> Feature:
        """The tensor at an offset: a read-only view, or text."""
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
    """One request of the compiler, and what was decided."""

    context: str
    """What it was about: a function, or "default" for a module."""
    index: int
    """Its number in its context, from 0."""
    features: Features
    """The features by name, of the header's shapes; read-only."""
    advice: Feature
    """The decision: the last tensor that the header names."""
    reward: float | None
    """How good it was, in logs that say so."""


@dataclass(frozen=True)
class LogArrays:
    """A whole log, ready for training: n observations, in the log's order."""

    features: dict[str, NDArray[Any]]
    """By name, each of shape [n, *shape in the header]; text is [n] or [n, k], of
    str, since NumPy's own text has no zeros at its end."""
    advice: NDArray[Any]
    """The decisions, as the features."""
    rewards: NDArray[np.float64] | None
    """[n], in logs that have rewards."""
    contexts: list[str]
    """n names of contexts."""


class TrainingLog:
    """A log file. Iterating reads it from its start, one observation at a time.

    Such as::

        for observation in read_log("zlib.log"):
            print(observation.context, observation.advice)

    Attributes:
        path: the file.
        features: the specs of the features, in the file's order.
        advice: the spec of the decision.
        reward: the spec of the reward, or None where the log has none.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        expect_regular_file(self.path)
        with self.path.open("rb") as file:
            reader = _Reader(file, self.path)
            *self.features, self.advice = reader.read_header()
            self.reward = reader.score

    def __iter__(self) -> Iterator[Observation]:
        """The observations.

        Raises:
            Malformed: at the first byte that does not follow the format, after all
                observations in front of it.
        """
        specs = [*self.features, self.advice]
        offsets = accumulate((spec.nbytes for spec in specs), initial=0)
        places = list(zip(specs, offsets, strict=False))
        for context, index, data, reward in self._records():
            tensors = {spec.name: spec.decode(data, offset) for spec, offset in places}
            advice = tensors.pop(self.advice.name)
            yield Observation(context, index, tensors, advice, reward)

    def as_arrays(self) -> LogArrays:
        """The whole log.

        Raises:
            Malformed: a part of the file does not follow the format.
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
        Malformed: it has no valid header.
        InvalidArgument: it is no regular file.
        OSError: it cannot be read.
    """
    return TrainingLog(path)


def parse_tensor_spec(value: Any) -> TensorSpec | None:
    """A tensor as a header describes it; None where it describes none."""
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
    """Whether a string of JSON has characters only, so that it can be printed."""
    try:
        value.encode()
    except UnicodeEncodeError:
        # JSON's escapes can stand for one half of a pair.
        return False
    return True


def is_count(value: Any) -> bool:
    """Whether something out of JSON is a number that a compiler can have counted to."""
    return type(value) is int and 0 <= value < 1 << 63


def _are_sizes(values: list[Any]) -> bool:
    return all(type(value) is int and 0 <= value < 1 << 48 for value in values)


class _Reader:
    """Reads a file piece by piece, and knows where it is."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file = file
        self._path = path
        self._offset = 0
        self._record_size = 0
        self.score: TensorSpec | None = None

    def malformed(self, what: str, offset: int) -> Malformed:
        return Malformed(f"{self._path}: byte {offset}: {what}")

    def _bytes(self, size: int, what: str) -> bytes:
        """So many bytes, and the newline behind them."""
        left = os.fstat(self._file.fileno()).st_size - self._offset
        # What a header claims is not worth an allocation before it is checked.
        if left < size + 1:
            raise self.malformed(
                f"{what} takes {size + 1} bytes, and {left} are left", self._offset
            )
        data = self._file.read(size + 1)
        if len(data) <= size:
            raise self.malformed(
                f"{what} takes {size + 1} bytes, and {len(data)} are left", self._offset
            )
        if data[-1:] != b"\n":
            raise self.malformed(
                f"expected a newline behind {what}", self._offset + size
            )
        self._offset += size + 1
        return data

    def _line(self, what: str) -> dict[str, Any] | None:
        """The next line, an object; None at the end of the file."""
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
            raise self.malformed("the file is empty", 0)
        features = header.get("features")
        if not isinstance(features, list) or not features:
            raise self.malformed("the header names no features", 0)
        specs = [self._spec(feature) for feature in features]
        if len({spec.name for spec in specs}) < len(specs):
            raise self.malformed("the header names a feature twice", 0)
        advice = header.get("advice")
        if advice is not None and self._spec(advice) != specs[-1]:
            raise self.malformed("the advice is not the last tensor of the header", 0)
        if "score" in header:
            self.score = self._spec(header["score"])
            if prod(self.score.shape) != 1:
                raise self.malformed(f"a score is one number, not {self.score}", 0)
        self._record_size = sum(spec.nbytes for spec in specs)
        return specs

    def _spec(self, value: Any) -> TensorSpec:
        """A tensor of the header, which is as long as it says."""
        spec = parse_tensor_spec(value)
        if spec is None:
            raise self.malformed(f"no tensor is described by {value!r:.200}", 0)
        # LLVM has no such types; the runner `record:` says so beside them.
        match value:
            case {"semantics": "bool", "type": "uint8_t"}:
                return replace(spec, dtype=np.dtype(np.bool_))
            case {"semantics": "string", "type": "uint8_t"}:
                return replace(spec, lengths=(spec.nbytes,))
            case {"semantics": "strings", "type": "uint8_t", "lengths": list(lengths)}:
                if not _are_sizes(lengths) or sum(lengths) != spec.nbytes:
                    raise self.malformed(
                        f"{spec.name!r:.200} is longer than its strings", 0
                    )
                return replace(spec, lengths=tuple(lengths), is_list=True)
        return spec

    def records(self) -> Iterator[tuple[str, int, bytes, float | None]]:
        """Context, number, bytes of all tensors, and reward."""
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
