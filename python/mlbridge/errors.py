# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What can go wrong: one exception for each error code of the C++ library.

Every one is an `Error` with the name of its code, and also the built-in
exception that means the same, so that ``except TimeoutError`` works too.
"""

from typing import ClassVar


class Error(Exception):
    """Any failure of the bridge; its text names the peer and what was expected."""

    code: ClassVar[str] = "Error"

    session: int = 0
    """Where an answer could not be sent: the session that it was for. Else 0."""
    pid: int = 0
    """The process of that session's compiler; 0 for a bare one."""
    session_ended: bool = False
    """Whether that session is over: its compiler could not be told of the failure."""
    others: "tuple[Error, ...]" = ()
    """Of a batch, the further answers that could not be sent, one error each."""


class Timeout(Error, TimeoutError):
    """The peer did not answer, or was not there, before the deadline."""

    code = "Timeout"


class PeerClosed(Error, ConnectionError):
    """The peer's process ended, or it closed the channel."""

    code = "PeerClosed"


class CompilerFailed(PeerClosed):
    """A compiler that this process ran has ended with an error; the text is its own."""

    returncode: int = 0
    """Its exit status; of one that a signal ended, minus the signal's number."""
    stderr: str = ""
    """All that it wrote to stderr."""


class Malformed(Error, ValueError):
    """Bytes that do not follow the format: truncated, oversized, lying."""

    code = "Malformed"


class SchemaMismatch(Error, TypeError):
    """Well-formed, but not what was asked for: a name, a type or a shape differs."""

    code = "SchemaMismatch"


class ModelError(Error, RuntimeError):
    """The model itself failed; the text is its own."""

    code = "Model"


class Unsupported(Error, NotImplementedError):
    """A feature of this library or of this build that is not there."""

    code = "Unsupported"


class OSFailure(Error, OSError):
    """The operating system said no; the text ends with its reason."""

    code = "System"


class InvalidArgument(Error, ValueError):
    """A wrong argument from the caller: a model spec, an option, a shape."""

    code = "InvalidArgument"


class Deferred(Error):
    """Not a failure: the model leaves the decision to the compiler.

    A policy raises it, or returns None, to defer; a model runner raises it where
    its model has deferred.
    """

    code = "Deferred"


# Not those that other modules add, nor CompilerFailed, which is a PeerClosed.
_BY_CODE = {kind.code: kind for kind in Error.__subclasses__()}

_LONGEST_CODE = 64
"""How much of an unknown code a text shows: a peer may send any."""


def error_for(code: str, message: str) -> Error:
    """The exception for an error of the C++ library, or of a peer with its own codes.

    A code that this release does not know is a plain `Error`, whose text ends with it.
    """
    kind = _BY_CODE.get(code)
    if kind is not None:
        return kind(message)
    return Error(f"{message} (error code {code[:_LONGEST_CODE]!r}, which is unknown)")
