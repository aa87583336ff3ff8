# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Encodes and decodes single messages, for tests and tools.

A session uses the same C++ code.
"""

from collections.abc import Mapping
from typing import Any, Literal

from mlbridge import _core
from mlbridge.types import Features, element_type_name

Side = Literal["compiler", "model"]

Format = _core.Format
"""A SerDes, from `formats` or `mlbridge.protobuf.messages`."""


def formats() -> list[Format]:
    """The formats of this build, including those whose libraries are missing."""
    return _core.formats()


def serialize(
    tensors: Mapping[str, Any],
    serdes: str | Format = "bitstream",
    *,
    side: Side = "compiler",
    bare: Side | None = None,
) -> bytes:
    """Encodes tensors as one message.

    Args:
        tensors: values by name, as a policy may return them.
        serdes: a format, or the name of one of `formats`.
        side: the side that writes: the compiler its features, the model its advice.
            The two differ only in the user's own Protobuf messages.
        bare: the side that writes, in the dialect of bare pipes.

    Raises:
        SchemaMismatch: a value is no tensor, or does not fit the message.
        InvalidArgument: the SerDes is unknown.
    """
    name, more = _named(serdes)
    return _core.serialize(dict(tensors), name, bare or side, bare is not None, more)


def deserialize(
    message: bytes,
    serdes: str | Format = "bitstream",
    *,
    side: Side = "model",
    bare: Side | None = None,
    dtype: Any = None,
    many: bool = False,
) -> Features:
    """Decodes one message to read-only arrays and strings by name.

    Args:
        message: the payload of a frame, without its length.
        serdes: a format, or the name of one of `formats`.
        side: the side that reads: the model its features, the compiler its advice.
            The two differ only in the user's own Protobuf messages.
        bare: the side that reads, in the dialect of bare pipes.
        dtype: the expected element type, for messages that do not contain theirs; see
            `element_type_name`.
        many: with ``dtype``, expect any number of elements.

    Raises:
        Malformed: the bytes do not follow the format.
        ModelError: the message is a reply that the model failed.
        Deferred: the message is a reply that leaves the decision to the compiler.
    """
    name, more = _named(serdes)
    wanted = None if dtype is None else element_type_name(dtype)
    return _core.deserialize(
        message, name, bare or side, bare is not None, more, wanted, many
    )


def _named(serdes: str | Format) -> tuple[str, tuple[Format, ...]]:
    return (serdes, ()) if isinstance(serdes, str) else (serdes.name, (serdes,))
