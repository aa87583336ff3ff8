# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decodes the messages that LLVM writes to an interactive channel.

First the compiler writes a header: a line of JSON that describes the tensors, as in a
training log. Then it writes requests. A request is a line ``{"observation":N}``, the
little-endian bytes of all tensors, and a newline. A line ``{"context":"NAME"}`` sets
the context of later requests. After each request, the compiler reads the advice.
"""

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from mlbridge.errors import Malformed, SchemaMismatch
from mlbridge.log import TensorSpec, is_count, is_text, parse_tensor_spec
from mlbridge.types import Features

MAX_LINE = 1 << 20
"""The maximum size of a line in bytes. LLVM's headers have about 3,000 bytes."""
MAX_OBSERVATION = 1 << 26
"""The maximum size of a request's tensors in bytes. LLVM's requests are smaller."""

# The limit of 18 digits guarantees that is_count() accepts the number.
_OBSERVATION = re.compile(rb'\{"observation":([0-9]{1,18})\}\n')
_NEWLINE = ord("\n")
_CAPACITY = 1 << 16


@dataclass(frozen=True)
class Header:
    """The header of an advisor, which describes its features and its advice."""

    features: tuple[TensorSpec, ...]
    """The features, in the order of their bytes in a request."""
    advice: TensorSpec

    @property
    def nbytes(self) -> int:
        """The size of the tensors of one request in bytes."""
        return sum(spec.nbytes for spec in self.features)


class Decoder:
    """Decodes the bytes from a compiler while they are received.

    The owner calls `receive` to read bytes, and then `advance` to decode a request.

    Attributes:
        header: the header, or None before it is received.
        features: the features of the current request, by name. The arrays are
            read-only, and the next request overwrites them.
        context: the context of the request: the name of a function, or "".
        contexts: all contexts so far, in their order.
        index: the number of the request in its context, as sent by the compiler.
    """

    def __init__(
        self, peer: str, fd: int, on_header: Callable[[Header], None] = lambda _: None
    ) -> None:
        """Prepares to decode bytes from ``fd``, a non-blocking descriptor.

        ``on_header`` is called with each header, and may raise to reject the header.
        """
        self.header: Header | None = None
        self.features: Features = {}
        self.context = ""
        self.contexts: list[str] = []
        self.index = 0
        self._peer = peer
        self._fd = fd
        self._on_header = on_header
        self._buffer = bytearray(_CAPACITY)
        self._view = memoryview(self._buffer)
        self._start = self._end = 0
        self._header_line = b""
        self._size = 0
        self._tensors = memoryview(bytearray())

    def receive(self) -> bool:
        """Reads available bytes into the buffer. Returns whether there were any."""
        if self._end == len(self._buffer):
            self._make_room()
        try:
            count = os.readv(self._fd, [self._view[self._end :]])
        except BlockingIOError:
            return False
        self._end += count
        return count > 0

    def advance(self) -> bool:
        """Decodes the next request to `features`. Returns false if it is incomplete.

        Raises Malformed if the bytes do not follow the format.
        """
        while True:
            # Match the most frequent line with a regex, which is faster than JSON.
            usual = _OBSERVATION.match(self._buffer, self._start, self._end)
            if usual:
                return self._take_request(usual.end(), int(usual[1]))
            newline = self._buffer.find(b"\n", self._start, self._end)
            if newline < 0:
                if self._end - self._start >= MAX_LINE:
                    raise self._malformed("a line of JSON", "no end of it")
                return False
            index = self._take_line(newline)
            if index is not None:
                return self._take_request(newline + 1, index)

    @property
    def has_rest(self) -> bool:
        """Whether the buffer contains an incomplete request or line."""
        return self._start != self._end

    def _take_request(self, start: int, index: int) -> bool:
        if self.header is None:
            raise self._malformed("a header", "an observation")
        stop = start + self._size
        if stop >= self._end:
            return False
        if self._buffer[stop] != _NEWLINE:
            found = bytes(self._buffer[stop : min(stop + 20, self._end)])
            expected = f"a newline after {self._size} bytes of tensors"
            raise self._malformed(expected, repr(found), stop)
        self._tensors[:] = self._view[start:stop]
        self.index = index
        self._consume(stop + 1)
        return True

    def _take_line(self, newline: int) -> int | None:
        """Decodes a line. Returns the number if it is an observation, or else None.

        The line of an observation is not consumed, because its tensors must follow.
        """
        line = bytes(self._buffer[self._start : newline])
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise self._malformed("a line of JSON", repr(line)) from None
        match value:
            case {"context": str(name)} if is_text(name):
                self.context = name
                self.contexts.append(name)
            case {"observation": index} if is_count(index):
                return int(index)
            case {"features": list(features), "advice": advice}:
                self._set_header(line, features, advice)
            case _:
                expected = "a header, a context or an observation"
                raise self._malformed(expected, repr(line))
        self._consume(newline + 1)
        return None

    def _set_header(self, line: bytes, features: list[Any], advice: Any) -> None:
        if line != self._header_line:
            header = self._parse_header(features, advice)
            self._tensors = memoryview(bytearray(header.nbytes))
            self._size = header.nbytes
            offset, views = 0, {}
            for spec in header.features:
                views[spec.name] = np.frombuffer(
                    self._tensors.toreadonly(), spec.dtype, prod(spec.shape), offset
                ).reshape(spec.shape)
                offset += spec.nbytes
            self.header, self.features = header, views
            self._header_line = line
        assert self.header is not None
        self._on_header(self.header)

    def _parse_header(self, features: list[Any], advice: Any) -> Header:
        specs: dict[str, TensorSpec] = {}
        for value in features:
            spec = self._parse_spec(value)
            if specs.setdefault(spec.name, spec) is not spec:
                expected = "features of different names"
                raise self._malformed(expected, f"{spec.name!r} again")
        header = Header(tuple(specs.values()), self._parse_spec(advice))
        if not 0 < header.nbytes <= MAX_OBSERVATION:
            expected = f"a request of 1 to {MAX_OBSERVATION} bytes"
            raise self._malformed(expected, f"{header.nbytes}")
        return header

    def _parse_spec(self, value: Any) -> TensorSpec:
        if spec := parse_tensor_spec(value):
            return spec
        raise self._malformed("a tensor in the header", repr(value))

    def _consume(self, stop: int) -> None:
        self._start = stop
        if stop == self._end:
            self._start = self._end = 0

    def _make_room(self) -> None:
        """Moves the unread bytes to the front of a new buffer, which may be larger."""
        rest = self._end - self._start
        # The buffer needs to hold at most one line and one request.
        size = len(self._buffer) * (2 if rest > len(self._buffer) // 2 else 1)
        buffer = bytearray(min(size, 2 * (MAX_LINE + MAX_OBSERVATION)))
        buffer[:rest] = self._view[self._start : self._end]
        self._buffer, self._view = buffer, memoryview(buffer)
        self._start, self._end = 0, rest

    def _malformed(self, expected: str, found: str, stop: int = 0) -> Malformed:
        """Returns an error about the byte at the buffer offset ``stop``."""
        where = f"context {self.context!r:.200}, " if self.contexts else ""
        return Malformed(
            f"{self._peer}: {where}byte {max(0, stop - self._start)} of the message:"
            f" expected {expected}, found {found:.200}"
        )


def expect_spec(peer: str, expected: TensorSpec, found: TensorSpec | None) -> None:
    """Raises SchemaMismatch if a tensor of a header is not the expected tensor."""
    if found != expected:
        other = f"{found} {found.name!r:.200}" if found else "none of that name"
        raise SchemaMismatch(
            f"{peer}: expected {expected} '{expected.name}', found {other}:"
            " this is not LLVM 22"
        )


def int64(name: str, *shape: int) -> TensorSpec:
    """Returns the description of an int64 tensor."""
    return TensorSpec(name, np.dtype("<i8"), shape)


def float32(name: str, *shape: int) -> TensorSpec:
    """Returns the description of a float tensor."""
    return TensorSpec(name, np.dtype("<f4"), shape)
