# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bytes of LLVM's interactive channel, as a compiler writes them.

A compiler writes a header once, a line of JSON that names the tensors (as at the top
of a training log), and then lines ``{"context":"NAME"}`` and requests: a line
``{"observation":N}``, the tensors' little-endian bytes one behind the other, a newline.
Behind a request it waits for the bytes of one tensor, the advice, and nothing else.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from mlbridge.errors import Malformed, SchemaMismatch
from mlbridge.log import TensorSpec, is_count, is_text, parse_tensor_spec
from mlbridge.types import Features

MAX_LINE = 1 << 20
"""Bytes of the longest line; the longest of LLVM's, a header, has some 3,000."""
MAX_OBSERVATION = 1 << 26
"""Bytes of all tensors of one request; LLVM's have up to 3,436, without embeddings."""

_OBSERVATION = b'{"observation":'
# A number that is_count() whatever its digits are.
_MAX_DIGITS = 18
_NEWLINE = ord("\n")
_CAPACITY = 1 << 16


@dataclass(frozen=True)
class Header:
    """What a compiler says that it asks, and wants to know."""

    features: tuple[TensorSpec, ...]
    """In the order of their bytes."""
    advice: TensorSpec

    @property
    def nbytes(self) -> int:
        """Bytes of the tensors of one request."""
        return sum(spec.nbytes for spec in self.features)


class Decoder:
    """Takes a compiler's bytes as they come, and puts each request into one place.

    The owner calls `receive` to read, and `advance` after each time. No request takes
    new memory: the arrays in `features` are views of one buffer.

    Attributes:
        header: what the compiler asks, when it has said so.
        features: the request at hand, by name: read-only arrays that the next
            request overwrites.
        context: what it is about: a function, or nothing.
        contexts: all of these so far, in order.
        index: its number in its context, as the compiler counts.
    """

    def __init__(
        self, peer: str, fd: int, on_header: Callable[[Header], None] = lambda _: None
    ) -> None:
        """Reads nothing yet; later from ``fd``, which does not block.

        Each header, of which every process has one, is given to ``on_header``, which
        raises when it doesn't like it.
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
        self._place = memoryview(bytearray())

    def receive(self) -> bool:
        """Reads what is there, up to a buffer full; whether there was anything.

        Raises:
            OSError: it cannot be read.
        """
        if self._end == len(self._buffer):
            self._make_room()
        try:
            count = os.readv(self._fd, [self._view[self._end :]])
        except BlockingIOError:
            return False
        self._end += count
        return count > 0

    def advance(self) -> bool:
        """Whether the bytes so far have another request, which is in `features` then.

        Raises:
            Malformed: they don't follow the format.
            SchemaMismatch: they do, but nobody can answer this.
        """
        while True:
            start = self._start
            newline = self._buffer.find(b"\n", start, self._end)
            if newline < 0:
                if self._end - start >= MAX_LINE:
                    raise self._malformed("a line of JSON", "no end of it", start)
                return False
            if self._buffer.startswith(_OBSERVATION, start):
                # All but the number is the same in every such line.
                digits = self._buffer[start + len(_OBSERVATION) : newline - 1]
                if (
                    digits.isdigit()
                    and len(digits) <= _MAX_DIGITS
                    and self._buffer[newline - 1] == ord("}")
                ):
                    return self._take_request(newline + 1, int(digits))
            index = self._take_line(newline)
            if index is not None:
                return self._take_request(newline + 1, index)

    @property
    def has_rest(self) -> bool:
        """Whether there are bytes of a request or line whose end has not come."""
        return self._start != self._end

    def _take_request(self, start: int, index: int) -> bool:
        if self.header is None:
            raise self._malformed("a header", "an observation", self._start)
        stop = start + self._size
        if stop >= self._end:
            return False
        if self._buffer[stop] != _NEWLINE:
            found = bytes(self._buffer[stop : min(stop + 20, self._end)])
            raise self._malformed(
                f"a newline behind {self._size} bytes of tensors", repr(found), stop
            )
        self._place[:] = self._view[start:stop]
        self.index = index
        self._consume(stop + 1)
        return True

    def _take_line(self, newline: int) -> int | None:
        """Acts on a line of another kind; the number of the observation it announces.

        That is still there then, since its tensors belong to it.
        """
        line = bytes(self._buffer[self._start : newline])
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise self._malformed("a line of JSON", repr(line), self._start) from None
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
                raise self._malformed(expected, repr(line), self._start)
        self._consume(newline + 1)
        return None

    def _set_header(self, line: bytes, features: list[Any], advice: Any) -> None:
        if line != self._header_line:
            header = self._parse_header(features, advice)
            self._place = memoryview(bytearray(header.nbytes))
            self._size = header.nbytes
            offset, views = 0, {}
            for spec in header.features:
                views[spec.name] = np.frombuffer(
                    self._place.toreadonly(), spec.dtype, prod(spec.shape), offset
                ).reshape(spec.shape)
                offset += spec.nbytes
            self.header, self.features = header, views
            self._header_line = line
        assert self.header is not None
        self._on_header(self.header)

    def _parse_header(self, features: list[Any], advice: Any) -> Header:
        specs = []
        for value in (*features, advice):
            spec = parse_tensor_spec(value)
            if spec is None:
                raise self._malformed(
                    "a tensor in the header", repr(value), self._start
                )
            specs.append(spec)
        header = Header(tuple(specs[:-1]), specs[-1])
        names: set[str] = set()
        for spec in header.features:
            if spec.name in names:
                raise self._malformed(
                    "features of different names", f"{spec.name!r} again", self._start
                )
            names.add(spec.name)
        if not 0 < header.nbytes <= MAX_OBSERVATION:
            expected = f"a request of 1 to {MAX_OBSERVATION} bytes"
            raise self._malformed(expected, f"{header.nbytes}", self._start)
        return header

    def _consume(self, stop: int) -> None:
        self._start = stop
        if stop == self._end:
            self._start = self._end = 0

    def _make_room(self) -> None:
        """Moves the rest to the front, of a larger buffer where it fills this one."""
        rest = self._end - self._start
        # Of what nobody has announced there is no more than a line.
        size = len(self._buffer) * (2 if rest > len(self._buffer) // 2 else 1)
        buffer = bytearray(min(size, 2 * (MAX_LINE + MAX_OBSERVATION)))
        buffer[:rest] = self._view[self._start : self._end]
        self._buffer, self._view = buffer, memoryview(buffer)
        self._start, self._end = 0, rest

    def _malformed(self, expected: str, found: str, offset: int) -> Malformed:
        where = f"context {self.context!r:.200}, " if self.contexts else ""
        return Malformed(
            f"{self._peer}: {where}byte {offset - self._start} of the message:"
            f" expected {expected}, found {found:.200}"
        )


def expect_spec(peer: str, expected: TensorSpec, found: TensorSpec | None) -> None:
    """Checks one tensor of a header.

    Raises:
        SchemaMismatch: it is missing, or has another name, type or shape.
    """
    if found != expected:
        there = f"{found} {found.name!r:.200}" if found else "none of that name"
        raise SchemaMismatch(
            f"{peer}: expected {expected} '{expected.name}', found {there}:"
            " this is no LLVM 22"
        )


def int64(name: str, *shape: int) -> TensorSpec:
    """A tensor of int64."""
    return TensorSpec(name, np.dtype("<i8"), shape)


def float32(name: str, *shape: int) -> TensorSpec:
    """A tensor of float."""
    return TensorSpec(name, np.dtype("<f4"), shape)
