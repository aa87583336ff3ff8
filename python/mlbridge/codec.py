# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Messages by hand: the codec of a session, without the session.

For tests and tools. A session uses the same C++ code by itself.
"""

from collections.abc import Mapping
from typing import Any, Literal

from mlbridge import _core
from mlbridge.types import Features, element_type_name

Side = Literal["compiler", "model"]

Format = _core.Format
"""A SerDes: what `formats` lists, and `mlbridge.protobuf.messages` makes."""


def formats() -> list[Format]:
    """The formats of this build, whatever libraries they need."""
    return _core.formats()


def serialize(
    tensors: Mapping[str, Any],
    serdes: str | Format = "bitstream",
    *,
    side: Side = "compiler",
    bare: Side | None = None,
) -> bytes:
    """One message with these tensors.

    Args:
        tensors: values by name, as a policy may return them.
        serdes: a format, or the name of one of `formats`.
        side: who writes: the compiler its features, the model its advice. Only for
            messages of the user's own is this not the same.
        bare: the side that writes, for the dialect of foreign peers.

    Raises:
        SchemaMismatch: a value is no tensor, or has no place in the message.
        InvalidArgument: there is no such SerDes.
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
    """The tensors in one message, as read-only arrays and strings.

    Args:
        message: the payload of a frame, without its length.
        serdes: a format, or the name of one of `formats`.
        side: who reads: the model its features, the compiler its advice. Only for
            messages of the user's own is this not the same.
        bare: the side that reads, for the dialect of foreign peers.
        dtype: the element type that is expected, for messages that do not say
            theirs; see `element_type_name`.
        many: with ``dtype``, whether any number of elements is expected.

    Raises:
        Malformed: the bytes do not follow the format.
        ModelError: it is a reply, and says that the model failed.
        Deferred: it is a reply, and leaves the decision to the compiler.
    """
    name, more = _named(serdes)
    wanted = None if dtype is None else element_type_name(dtype)
    return _core.deserialize(
        message, name, bare or side, bare is not None, more, wanted, many
    )


def _named(serdes: str | Format) -> tuple[str, tuple[Format, ...]]:
    return (serdes, ()) if isinstance(serdes, str) else (serdes.name, (serdes,))
