"""
The C++ half of mlbridge: the codec and the server that compilers link.
"""

from collections.abc import Callable
from typing import Any


VERSION: str = '0.1.0'

COMPILER: str = 'GNU 12.2.0'

SIMDJSON_VERSION: str = '3.0.1'

def schemes() -> dict[str, str]:
    """The model specs that this build understands: a line of help by scheme."""

def server_spec(spec: str) -> tuple[str, str, bool, int]:
    """
    The spec of a place to serve at: name, SerDes of bare compilers, whether those are welcome, longest message in bytes.
    """

class Server:
    """
    The model's end of any number of sessions. Used by one thread at a time, but for stop().
    """

    def __init__(self, name: str, *, bare: bool, bare_format: str, max_message: int, peer_timeout: float, on_warning: Callable[[str, Exception], object] | None) -> None:
        """
        Listens at NAME.sock and, with bare, at NAME.in and NAME.out. What befell a compiler, and why, is told to on_warning.
        """

    def exchange(self, timeout: float | None = None) -> dict[str, Any] | None:
        """
        Sends the reply that is set, if any, and waits for the next question. Returns its features by name, or None when timeout seconds have passed or stop() was called. Of what it raises, only a reply that cannot be sent has a session.
        """

    def set_reply(self, value: object) -> None:
        """
        The answer to the question at hand; None defers. Arrays are not copied before they are sent.
        """

    def set_error(self, message: str) -> None:
        """The answer that the model failed."""

    def set_deferred(self, why: str) -> None:
        """The answer that leaves the decision to the compiler."""

    def send(self) -> None:
        """Sends the reply that is set, without waiting for a question."""

    def stop(self) -> None:
        """Makes exchange() return None soon. May be called by any thread."""

    def close(self) -> None:
        """Ends all sessions and removes the server's files."""

    @property
    def closed(self) -> bool: ...

    @property
    def name(self) -> str: ...

    @property
    def session(self) -> int:
        """Which compiler asks, counted from 1; 0 when none does."""

    @property
    def pid(self) -> int:
        """Its process; 0 for a bare compiler."""

    @property
    def advice_type(self) -> str:
        """
        The element type that its first question wants, as TensorSpec spells it; empty when it did not say.
        """

    @property
    def bare(self) -> bool:
        """Whether it is a foreign compiler on bare pipes."""

    @property
    def sessions(self) -> int:
        """Compilers met so far."""

    @property
    def open(self) -> int:
        """Compilers that are here now."""

    @property
    def questions(self) -> int:
        """Questions so far."""

class Runner:
    """A question to a model, from Python. Used by one thread at a time."""

    def __init__(self, spec: str) -> None: ...

    def evaluate(self, features: dict[str, Any], type: str | None = None, many: bool = False) -> Any:
        """
        Asks about the features. With a type: the only output, or the one called 'out', converted to it; many for any number of elements. Without: all outputs by name, as they came.
        """

    def log_outcome(self, name: str | None, value: object, reward: float | None) -> None:
        """What was done in the end, and how good it was."""

    def switch_context(self, name: str) -> None:
        """Names what the next questions are about."""

    def close(self) -> None:
        """Ends the session; flushes logs."""

    def describe(self) -> str: ...

    @property
    def timeout(self) -> float:
        """Seconds that one evaluate may take."""

    @timeout.setter
    def timeout(self, seconds: float | None) -> None: ...

def serialize(tensors: dict[str, Any], serdes: str, bare: str | None = None) -> bytes:
    """One message with these tensors."""

def deserialize(message: bytes, serdes: str, bare: str | None = None, type: str | None = None, many: bool = False) -> dict[str, Any]:
    """The tensors of one message."""
