# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The user's own Protobuf messages as features and advice.

The generic messages, ``serdes=protobuf``, do not need this module. For your own, tell
both sides the messages. The model's side takes the classes that protoc, or
``mlbridge_add_proto`` in CMake, makes of the ``.proto``::

    from features_pb2 import Decision, Features
    from mlbridge import protobuf, serve

    messages = protobuf.messages(Features, Decision)
    serve(policy, "pipe:/tmp/advisor", formats=[messages])

The compiler's spec is then
``pipe:/tmp/advisor?serdes=protobuf:my.Features/my.Decision``. The policy gets each
field by its name, and a repeated number as an array. The compiler's C++ code decodes
the messages by their descriptors; no objects of these classes are made.
"""

import importlib
from os import PathLike
from pathlib import Path
from typing import Any

from mlbridge._core import Format
from mlbridge.errors import Unsupported


def messages(request: Any, reply: Any) -> Format:
    """The format of two generated message classes, with features and advice as fields.

    Raises:
        Unsupported: a field is a message, a map or in a oneof; or this build has no
            Protobuf.
        InvalidArgument: the ``.proto`` is too new for this build's Protobuf library.
    """
    descriptor_pb2 = importlib.import_module("google.protobuf.descriptor_pb2")
    files: dict[str, Any] = {}
    for message in (request, reply):
        _collect(message.DESCRIPTOR.file, files)
    described = descriptor_pb2.FileDescriptorSet()
    for file in files.values():
        file.CopyToProto(described.file.add())
    names = request.DESCRIPTOR.full_name, reply.DESCRIPTOR.full_name
    return messages_from(described.SerializeToString(), *names)


def messages_from(
    descriptors: bytes | str | PathLike[str], request: str, reply: str
) -> Format:
    """The format of two messages by full name, without Python's protobuf package.

    ``descriptors`` is the output of ``protoc --include_imports --descriptor_set_out``,
    or the path of a file with it. Raises the errors of `messages`, and InvalidArgument
    for an unknown message.
    """
    if not isinstance(descriptors, bytes):
        descriptors = Path(descriptors).read_bytes()
    try:
        # Load its library only when it is needed.
        module = importlib.import_module("mlbridge._format_protobuf")
    except ImportError as error:
        raise Unsupported(f"this build of mlbridge has no Protobuf: {error}") from error
    made: Format = module.messages(descriptors, request, reply)
    return made


def _collect(file: Any, files: dict[str, Any]) -> None:
    """Adds a file after the files that it imports."""
    if file.name not in files:
        for imported in file.dependencies:
            _collect(imported, files)
        files[file.name] = file
