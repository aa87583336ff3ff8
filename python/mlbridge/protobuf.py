# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Protobuf messages of your own as features and advice.

The generic messages, ``serdes=protobuf``, need nothing of this. For your own, tell
both sides which they are; here with the classes that protoc, or ``mlbridge_add_proto``
in CMake, has made of your ``.proto``::

    from features_pb2 import Decision, Features
    from mlbridge import protobuf, serve

    messages = protobuf.messages(Features, Decision)
    serve(policy, "pipe:/tmp/advisor", formats=[messages])

The compiler's spec is then
``pipe:/tmp/advisor?serdes=protobuf:my.Features/my.Decision``. The policy gets each
field by its name, a repeated number as an array that no list was made for. The messages
are read by the same C++ code as on the compiler's side, from their descriptors; objects
of these classes are never made.
"""

import importlib
from os import PathLike
from pathlib import Path
from typing import Any

from mlbridge._core import Format
from mlbridge.errors import Unsupported


def messages(request: Any, reply: Any) -> Format:
    """The format of two generated message classes.

    Args:
        request: what the compiler sends: its fields are the features.
        reply: what the model answers: its fields are the advice.

    Raises:
        Unsupported: a field is a message, a map or in a oneof; or this build has no
            Protobuf.
        InvalidArgument: their ``.proto`` is of a form that is newer than the Protobuf
            library of this build.
    """
    descriptor_pb2 = importlib.import_module("google.protobuf.descriptor_pb2")
    files: dict[str, Any] = {}
    for message in (request, reply):
        _collect(message.DESCRIPTOR.file, files)
    described = descriptor_pb2.FileDescriptorSet()
    for file in files.values():
        file.CopyToProto(described.file.add())
    return _format(
        described.SerializeToString(),
        request.DESCRIPTOR.full_name,
        reply.DESCRIPTOR.full_name,
    )


def messages_from(
    descriptors: bytes | str | PathLike[str], request: str, reply: str
) -> Format:
    """The format of two messages, without Python's protobuf package.

    Args:
        descriptors: what ``protoc --include_imports --descriptor_set_out`` writes, or
            the path of such a file.
        request: the full name of the message that the compiler sends.
        reply: the full name of the message that the model answers.

    Raises:
        Unsupported, InvalidArgument: as `messages`; also where there is no such
            message.
    """
    if not isinstance(descriptors, bytes):
        descriptors = Path(descriptors).read_bytes()
    return _format(descriptors, request, reply)


def _collect(file: Any, files: dict[str, Any]) -> None:
    """Adds a file, and before it what it imports."""
    if file.name not in files:
        for imported in file.dependencies:
            _collect(imported, files)
        files[file.name] = file


def _format(descriptors: bytes, request: str, reply: str) -> Format:
    try:
        # Its library is not loaded before it is needed.
        module = importlib.import_module("mlbridge._format_protobuf")
    except ImportError as error:
        raise Unsupported(f"this build of mlbridge has no Protobuf: {error}") from error
    made: Format = module.messages(descriptors, request, reply)
    return made
