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


def serialize(
    tensors: Mapping[str, Any], serdes: str = "bitstream", *, bare: Side | None = None
) -> bytes:
    """One message with these tensors.

    Args:
        tensors: values by name, as a policy may return them.
        serdes: ``"bitstream"`` or ``"json"``.
        bare: the side that writes, for the dialect of foreign peers.

    Raises:
        SchemaMismatch: a value is no tensor.
        InvalidArgument: there is no such SerDes.
    """
    return _core.serialize(dict(tensors), serdes, bare)


def deserialize(
    message: bytes,
    serdes: str = "bitstream",
    *,
    bare: Side | None = None,
    dtype: Any = None,
    many: bool = False,
) -> Features:
    """The tensors in one message, as read-only arrays and strings.

    Args:
        message: the payload of a frame, without its length.
        serdes: ``"bitstream"`` or ``"json"``.
        bare: the side that reads, for the dialect of foreign peers.
        dtype: the element type that is expected, for messages that do not say
            theirs; see `element_type_name`.
        many: with ``dtype``, whether any number of elements is expected.

    Raises:
        Malformed: the bytes do not follow the format.
        ModelError: it is a reply, and says that the model failed.
        Deferred: it is a reply, and leaves the decision to the compiler.
    """
    name = None if dtype is None else element_type_name(dtype)
    return _core.deserialize(message, serdes, bare, name, many)
