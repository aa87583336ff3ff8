# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The exceptions of the bridge: one for each error code of the C++ library.

Each is an `Error` and also the built-in exception of the same meaning, so that
``except TimeoutError`` works too.
"""

from typing import ClassVar


class Error(Exception):
    """Any failure of the bridge; the message names the peer and what was expected."""

    code: ClassVar[str] = "Error"

    session: int = 0
    """The session whose reply could not be sent; 0 for other errors."""
    pid: int = 0
    """The process ID of that session's compiler; 0 for a bare session."""
    session_ended: bool = False
    """True if that session ended because its compiler could not receive the error."""
    others: "tuple[Error, ...]" = ()
    """One error for each further reply of the same batch that could not be sent."""

    def __init_subclass__(cls, code: str | None = None) -> None:
        cls.code = code or cls.code


class Timeout(Error, TimeoutError, code="Timeout"):
    """The peer did not connect or answer before the deadline."""


class PeerClosed(Error, ConnectionError, code="PeerClosed"):
    """The peer's process ended, or it closed the channel."""


class CompilerFailed(PeerClosed):
    """A compiler run by this process failed; the message is the compiler's own."""

    returncode: int = 0
    """The compiler's exit status, or minus the number of the signal that ended it."""
    stderr: str = ""
    """Everything the compiler wrote to stderr."""


class Malformed(Error, ValueError, code="Malformed"):
    """Bytes that do not follow the format: truncated, oversized or inconsistent."""


class SchemaMismatch(Error, TypeError, code="SchemaMismatch"):
    """A well-formed tensor whose name, type or shape differs from the expected one."""


class ModelError(Error, RuntimeError, code="Model"):
    """The model itself failed; the message is the model's own."""


class Unsupported(Error, NotImplementedError, code="Unsupported"):
    """This library, or this build of it, lacks the requested function."""


class OSFailure(Error, OSError, code="System"):
    """A system call failed; the message ends with the system's reason."""


class InvalidArgument(Error, ValueError, code="InvalidArgument"):
    """The caller passed an invalid argument: a model spec, an option or a shape."""


class Deferred(Error, code="Deferred"):
    """Not a failure: the model leaves the decision to the compiler.

    A policy raises `Deferred` or returns None to defer. A model runner raises it when
    its model defers.
    """


# Excludes CompilerFailed, a subclass of PeerClosed, and classes of other modules.
_BY_CODE = {kind.code: kind for kind in Error.__subclasses__()}
_LONGEST_CODE = 64
"""Characters of an unknown code that a message shows; a peer's may be longer."""


def error_for(code: str, message: str) -> Error:
    """Returns the exception for an error code of the C++ library or of a peer.

    An unknown code becomes a plain `Error` whose message ends with the code.
    """
    if kind := _BY_CODE.get(code):
        return kind(message)
    return Error(f"{message} (error code {code[:_LONGEST_CODE]!r}, which is unknown)")
