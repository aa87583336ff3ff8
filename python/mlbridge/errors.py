# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The exceptions of the bridge, one for each error code of the C++ library.

Each exception also derives from a built-in exception. For example, ``except
TimeoutError`` catches `Timeout`.
"""

from typing import ClassVar


class Error(Exception):
    """The base class of all exceptions of the bridge."""

    code: ClassVar[str] = "Error"

    session: int = 0
    """The number of the session whose reply could not be sent. 0 for other errors."""
    pid: int = 0
    """The process ID of the compiler in `session`. 0 if it is unknown (bare mode)."""
    session_ended: bool = False
    """Whether `session` has ended because its compiler could not receive the error."""
    others: "tuple[Error, ...]" = ()
    """The errors of other replies in the batch that could not be sent either."""

    def __init_subclass__(cls, code: str | None = None) -> None:
        cls.code = code or cls.code


class Timeout(Error, TimeoutError, code="Timeout"):
    """The peer did not connect or answer before the deadline."""


class PeerClosed(Error, ConnectionError, code="PeerClosed"):
    """The peer's process ended, or the peer closed the channel."""


class CompilerFailed(PeerClosed):
    """A compiler failed that this process started. The message is from the compiler."""

    returncode: int = 0
    """The compiler's exit status. After a signal, it is minus the signal's number."""
    stderr: str = ""
    """The compiler's output on stderr."""


class Malformed(Error, ValueError, code="Malformed"):
    """Bytes do not follow the format: they are truncated, oversized or inconsistent."""


class SchemaMismatch(Error, TypeError, code="SchemaMismatch"):
    """A tensor is well-formed, but has an unexpected name, type or shape."""


class ModelError(Error, RuntimeError, code="Model"):
    """The model failed. The message is from the model."""


class Unsupported(Error, NotImplementedError, code="Unsupported"):
    """This library or this build lacks the requested function."""


class OSFailure(Error, OSError, code="System"):
    """A system call failed. The message ends with the system's reason."""


class InvalidArgument(Error, ValueError, code="InvalidArgument"):
    """The caller passed an invalid argument: a model spec, an option or a shape."""


class Deferred(Error, code="Deferred"):
    """The model leaves the decision to the compiler. This is not a failure.

    A policy raises `Deferred`, or returns None, to leave the decision to the compiler.
    A model runner raises `Deferred` if its model leaves the decision to the compiler.
    """


# CompilerFailed is not included, because it derives from PeerClosed.
_BY_CODE = {kind.code: kind for kind in Error.__subclasses__()}
_LONGEST_CODE = 64
"""The number of characters after which an unknown code is truncated in a message."""


def error_for(code: str, message: str) -> Error:
    """Returns the exception for an error code of the C++ library or of a peer.

    For an unknown code, it is a plain `Error` whose message ends with the code.
    """
    if kind := _BY_CODE.get(code):
        return kind(message)
    return Error(f"{message} (error code {code[:_LONGEST_CODE]!r}, which is unknown)")
