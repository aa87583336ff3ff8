"""The C++ half of mlbridge: the library that compilers link."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy


VERSION: str = '0.1.0'

COMPILER: str = 'GNU 12.2.0'

SIMDJSON_VERSION: str = '3.0.1'

def schemes() -> dict[str, str]:
    """The schemes of model specs in this build, with one line of help each."""

def set_leak_warnings(value: bool) -> None:
    """Turns reports of leaked objects at interpreter shutdown on or off."""

def printable(text: str, most: int = 200) -> str:
    """
    Escapes an external text for a message: one line without control characters, of at most `most` bytes of UTF-8. A longer text keeps its beginning and end.
    """

class Format:
    """A SerDes, for servers, runners and mlbridge.codec."""

    @property
    def name(self) -> str:
        """The format's name in the option 'serdes' of a spec."""

    @property
    def help(self) -> str:
        """One line of help; raises ImportError if its library is missing."""

    def __repr__(self) -> str: ...

def formats() -> list[Format]:
    """The formats of this build."""

def server_spec(spec: str) -> tuple[str, str, bool, int, int]:
    """
    Parses a spec of an address on this machine. Returns the name, the SerDes of bare compilers, whether they are accepted, the maximum message size in bytes and the maximum number of sessions.
    """

class Listener:
    """Accepts compilers at one address. Belongs to one Server."""

def local_listener(name: str, *, bare_format: str, max_message: int, max_sessions: int, peer_timeout: float, formats: Sequence[Format] = ()) -> Listener:
    """Listens at NAME.sock and, with a bare_format, at NAME.in and NAME.out."""

class Server:
    """Serves compilers. One thread at a time, except stop() and latencies()."""

    def __init__(self, listeners: Sequence[Listener], *, on_warning: Callable[[str, Exception], object] | None) -> None:
        """Takes over the listeners; failures and refusals go to on_warning."""

    def exchange(self, timeout: float | None = None) -> dict[str, Any] | None:
        """
        Sends the replies that are set and waits for the next request. Returns its features by name, or None after timeout seconds or after stop(). Raises an exception with a `session` if a reply could not be sent; its `others` are the batch's other such exceptions.
        """

    def exchange_batch(self, max_size: int, max_delay: float, timeout: float | None = None) -> list[dict[str, Any]] | None:
        """
        Like exchange(), but returns all requests that wait at the same moment, at most one per compiler. The first of them may wait max_delay seconds for others.
        """

    def set_reply(self, value: object, index: int = 0) -> None:
        """
        Sets the reply to the request at this index of the batch. None defers. An array is not copied before it is sent.
        """

    def set_message(self, tensors: dict[str, Any]) -> None:
        """Sets a training message, whose names may be reserved ones."""

    def set_error(self, message: str, index: int = 0) -> None:
        """Sets the reply that the model failed."""

    def set_deferred(self, why: str, index: int = 0) -> None:
        """Sets the reply that leaves the decision to the compiler."""

    def send(self) -> None:
        """Sends the replies that are set, without waiting for a request."""

    def stop(self) -> None:
        """Makes exchange() return None soon. May be called by any thread."""

    def close(self) -> None:
        """Ends all sessions and removes the server's files."""

    @property
    def closed(self) -> bool: ...

    @property
    def name(self) -> str: ...

    def client(self, index: int) -> tuple[int, int]:
        """The session and the process ID of a request of the batch."""

    @property
    def session(self) -> int:
        """The request's session, counted from 1; 0 without a request."""

    @property
    def pid(self) -> int:
        """The compiler's process ID; 0 for a bare compiler."""

    @property
    def advice_type(self) -> str:
        """The TensorSpec type that the session wanted first; empty if unknown."""

    @property
    def bare(self) -> bool:
        """True if the compiler uses bare pipes."""

    @property
    def sessions(self) -> int:
        """Sessions so far."""

    @property
    def open(self) -> int:
        """Sessions that are open."""

    @property
    def requests(self) -> int:
        """Requests so far."""

    @property
    def batches(self) -> int:
        """Batches of requests so far."""

    @property
    def refused_compilers(self) -> int:
        """Compilers that got no session."""

    @property
    def refused_requests(self) -> int:
        """Requests refused because Python cannot represent them."""

    @property
    def mistyped(self) -> int:
        """Replies whose type differs from the session's advice_type."""

    def measure_latencies(self) -> None:
        """Starts to measure how long requests take."""

    def latencies(self, quantiles: Sequence[float]) -> list[float]:
        """
        The quantiles (0 to 1) of the seconds from the arrival of a request until its reply is sent. May be called by any thread.
        """

def end_waits() -> list[int]:
    """
    Makes waiting calls of all other threads raise SystemExit, for the shutdown of the interpreter. Returns the threads that ever waited.
    """

class Scheme:
    """A scheme of model specs from an optional part of the library."""

    @property
    def name(self) -> str: ...

    @property
    def help(self) -> str:
        """One line of help."""

class Factory:
    """Makes runners, which share the in-process models that they load."""

    def __init__(self, schemes: Sequence[Scheme] = ()) -> None: ...

class Runner:
    """Asks a model for advice. Used by one thread at a time."""

    def __init__(self, spec: str, formats: Sequence[Format], factory: Factory) -> None: ...

    def evaluate(self, features: dict[str, Any], type: str | None = None, many: bool = False) -> Any:
        """
        Returns the advice for these features. With a type: the only output, or the one called 'out', converted to one element of that type, or to any number with many. Without a type: all outputs by name.
        """

    def log_outcome(self, name: str | None, value: object, reward: float | None) -> None:
        """Logs the decision that was finally made, and its reward."""

    def switch_context(self, name: str) -> None:
        """Names the context of the next requests."""

    def flush(self) -> None:
        """Writes the buffered records of a recording runner."""

    def close(self) -> None:
        """Flushes and ends the session. Raises the errors of flushing."""

    def describe(self) -> str: ...

    @property
    def timeout(self) -> float:
        """The time limit of one evaluate in seconds."""

    @timeout.setter
    def timeout(self, seconds: float | None) -> None: ...

def in_process_schemes(onnxruntime: str = '') -> list[Scheme]:
    """
    The schemes of in-process models. Runners made with the same schemes share their models. onnxruntime: the library to load, unless a spec or the environment names one.
    """

class Decision:
    """
    Turns a model's outputs into advice as its metadata say; see docs/reference/model-metadata.md. Used by one thread at a time.
    """

    def __init__(self, model: str, metadata: dict[str, str], outputs: dict[str, str], seed: int = 0) -> None:
        """
        outputs: the element type of each output by name. Raises Malformed for unknown metadata, SchemaMismatch if they do not fit the outputs.
        """

    @property
    def output(self) -> str | None:
        """The only output that is used; None for all of them."""

    @property
    def chooses(self) -> bool:
        """True if the advice is an index into the output."""

    @property
    def refuses_non_finite(self) -> bool:
        """True if NaN and infinite features are refused."""

    def choose(self, scores: numpy.ndarray) -> numpy.ndarray:
        """
        The int64 index chosen for each row of scores along the innermost extent. Raises SchemaMismatch for an empty row; ModelError if a score is NaN, or if the greatest is infinite and the index is drawn.
        """

def serialize(tensors: dict[str, Any], serdes: str, side: str, bare: bool = False, formats: Sequence[Format] = ()) -> bytes:
    """Encodes these tensors as one message of the side that writes it."""

def deserialize(message: bytes, serdes: str, side: str, bare: bool = False, formats: Sequence[Format] = (), type: str | None = None, many: bool = False) -> dict[str, Any]:
    """Decodes the tensors of one message for the side that reads it."""
