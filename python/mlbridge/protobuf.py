# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Uses your own Protobuf messages for features and advice.

The generic messages (``serdes=protobuf``) do not need this module. For your own
messages, pass the classes that protoc generates from the ``.proto`` to `messages`::

    from features_pb2 import Decision, Features
    from mlbridge import protobuf, serve

    messages = protobuf.messages(Features, Decision)
    serve(policy, "pipe:/tmp/advisor", formats=[messages])

The compiler's spec is then
``pipe:/tmp/advisor?serdes=protobuf:my.Features/my.Decision``. Each field is a feature
with the field's name, and a repeated number is an array. The name of a nested message's
field is a path. For example, ``graph.nodes[].weight`` is an array of the weights of all
nodes. docs/reference/wire-format.md describes these names. The C++ library decodes the
messages, and does not create objects of these classes.
"""

import importlib
from os import PathLike
from pathlib import Path
from typing import Any

from mlbridge._core import Format
from mlbridge.errors import Unsupported


def messages(request: Any, reply: Any) -> Format:
    """Returns the SerDes for two generated message classes.

    Raises:
        Unsupported: a message contains itself or is in more than 16 messages, a field
            is a list of bytes or a group, or this build has no Protobuf.
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
    """Returns the SerDes for two messages. Python's protobuf package is not needed.

    ``descriptors`` is the output of ``protoc --include_imports --descriptor_set_out``,
    or the path of a file that contains the output. Raises the errors of `messages`, and
    InvalidArgument for an unknown message.
    """
    if not isinstance(descriptors, bytes):
        descriptors = Path(descriptors).read_bytes()
    try:
        # Import lazily, because few programs need the Protobuf library.
        module = importlib.import_module("mlbridge._format_protobuf")
    except ImportError as error:
        raise Unsupported(f"this build of mlbridge has no Protobuf: {error}") from error
    made: Format = module.messages(descriptors, request, reply)
    return made


def _collect(file: Any, files: dict[str, Any]) -> None:
    """Adds a .proto file to `files`, after the files that it imports."""
    if file.name not in files:
        for imported in file.dependencies:
            _collect(imported, files)
        files[file.name] = file
