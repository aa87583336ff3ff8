# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Encodes and decodes single messages, for tests and tools.

The functions call the C++ code that sessions use.
"""

from collections.abc import Mapping
from typing import Any, Literal

from mlbridge import _core
from mlbridge.types import Features, element_type_name

Side = Literal["compiler", "model"]

Format = _core.Format
"""A SerDes, as returned by `formats` and by `mlbridge.protobuf.messages`."""


def formats() -> list[Format]:
    """Returns all SerDes of this build, even if a SerDes' library is not installed."""
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
        tensors: maps names to values of any type that a policy may return.
        serdes: a SerDes, or the name of a SerDes in `formats`.
        side: the sender: "compiler" for features, "model" for advice. Only user-defined
            Protobuf messages depend on the sender.
        bare: the sender, if the pipe has no handshake. Replaces `side`.

    Raises:
        SchemaMismatch: a value is not a tensor, or does not fit the message.
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
    """Decodes one message to a dict of read-only arrays and strings.

    Args:
        message: the payload of a frame, without the length that precedes it.
        serdes: a SerDes, or the name of a SerDes in `formats`.
        side: the receiver: "model" for features, "compiler" for advice. Only
            user-defined Protobuf messages depend on the receiver.
        bare: the receiver, if the pipe has no handshake. Replaces `side`.
        dtype: the expected element type, if the message does not contain the type.
            See `element_type_name`.
        many: expect any number of elements of ``dtype``, not just one.

    Raises:
        Malformed: the bytes do not follow the format.
        ModelError: the message reports that the model failed.
        Deferred: the message leaves the decision to the compiler.
    """
    name, more = _named(serdes)
    wanted = None if dtype is None else element_type_name(dtype)
    return _core.deserialize(
        message, name, bare or side, bare is not None, more, wanted, many
    )


def _named(serdes: str | Format) -> tuple[str, tuple[Format, ...]]:
    return (serdes, ()) if isinstance(serdes, str) else (serdes.name, (serdes,))
