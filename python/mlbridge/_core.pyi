"""The bindings of the C++ library that compilers link."""

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
    Returns an external text as one line of at most `most` bytes of UTF-8, with control characters escaped. A longer text keeps its beginning and end.
    """

class Format:
    """A SerDes, for servers, runners and mlbridge.codec."""

    @property
    def name(self) -> str:
        """The format's name in the option 'serdes' of a spec."""

    @property
    def help(self) -> str:
        """
        One line of help. Raises ImportError if the format's library is missing.
        """

    def __repr__(self) -> str: ...

def formats() -> list[Format]:
    """The formats of this build."""

def server_spec(spec: str) -> tuple[str, str, bool, int, int]:
    """
    Parses a spec of an address on this machine. Returns the name, the SerDes in bare mode, whether compilers in bare mode are accepted, the maximum message size in bytes and the maximum number of sessions.
    """

class Listener:
    """Accepts compilers at one address. Belongs to one Server."""

def local_listener(name: str, *, bare_format: str, max_message: int, max_sessions: int, peer_timeout: float, formats: Sequence[Format] = ()) -> Listener:
    """Listens at NAME.sock and, with a bare_format, at NAME.in and NAME.out."""

class Server:
    """
    Serves compilers. Only one thread at a time may use a server, but any thread may call stop() and latencies().
    """

    def __init__(self, listeners: Sequence[Listener], *, on_warning: Callable[[str, Exception], object] | None) -> None:
        """
        Takes over the listeners. Failures and refusals are passed to on_warning.
        """

    def exchange(self, timeout: float | None = None) -> dict[str, Any] | None:
        """
        Sends the replies that are set and waits for the next request. Returns the request's features by name, or None after timeout seconds or after stop(). If a reply could not be sent, raises an exception with the attribute `session`. The attribute `others` contains the exceptions for the batch's other unsent replies.
        """

    def exchange_batch(self, max_size: int, max_delay: float, timeout: float | None = None) -> list[dict[str, Any]] | None:
        """
        Does the same as exchange(), but returns all requests that are waiting, at most one per compiler. The first request waits at most max_delay seconds for further requests.
        """

    def set_reply(self, value: object, index: int = 0) -> None:
        """
        Sets the reply to the request at this index of the batch. None leaves the decision to the compiler. An array is not copied before it is sent.
        """

    def set_message(self, tensors: dict[str, Any]) -> None:
        """Sets a training message, which may contain reserved names."""

    def set_error(self, message: str, index: int = 0) -> None:
        """Sets a reply that reports a failure of the model."""

    def set_deferred(self, why: str, index: int = 0) -> None:
        """Sets a reply that leaves the decision to the compiler."""

    def send(self) -> None:
        """Sends the replies that are set, without waiting for a request."""

    def stop(self) -> None:
        """Makes exchange() return None soon. Any thread may call this function."""

    def close(self) -> None:
        """Ends all sessions and removes the server's files."""

    @property
    def closed(self) -> bool: ...

    @property
    def name(self) -> str: ...

    def client(self, index: int) -> tuple[int, int]:
        """The session and the process ID of one request of the batch."""

    @property
    def session(self) -> int:
        """
        The number of the request's session, from 1, or 0 if there is no request.
        """

    @property
    def pid(self) -> int:
        """
        The compiler's process ID, or 0 if it is unknown, as for a compiler that connects without the handshake (bare mode).
        """

    @property
    def advice_type(self) -> str:
        """The type of advice that the session's first request expects, or ''."""

    @property
    def bare(self) -> bool:
        """True if the compiler uses bare mode."""

    @property
    def sessions(self) -> int:
        """The number of sessions since the server started."""

    @property
    def open(self) -> int:
        """The number of open sessions."""

    @property
    def requests(self) -> int:
        """The number of requests since the server started."""

    @property
    def batches(self) -> int:
        """The number of batches of requests since the server started."""

    @property
    def refused_compilers(self) -> int:
        """The number of compilers that got no session."""

    @property
    def refused_requests(self) -> int:
        """
        The number of requests that were refused because Python cannot represent them.
        """

    @property
    def mistyped(self) -> int:
        """
        The number of replies whose type differs from the session's advice_type.
        """

    def measure_latencies(self) -> None:
        """Starts to measure how long requests take."""

    def latencies(self, quantiles: Sequence[float]) -> list[float]:
        """
        Returns quantiles (0 to 1) of the time from the arrival of a request until its reply is sent, in seconds. Any thread may call this function.
        """

def end_waits() -> list[int]:
    """
    Makes waiting calls of all other threads raise SystemExit, for the shutdown of the interpreter. Returns the IDs of all threads that have waited.
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
        Returns the advice for these features. Without a type, returns all outputs by name. With a type, returns the only output, or the output called 'out', as one element of this type. If many is true, returns any number of elements.
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
    Returns the schemes of in-process models. Runners made with the same schemes share their models. onnxruntime is the library to load, unless a spec or the environment names a library.
    """

class Decision:
    """
    Turns a model's outputs into advice, as the model's metadata specify (docs/reference/model-metadata.md). Used by one thread at a time.
    """

    def __init__(self, model: str, metadata: dict[str, str], outputs: dict[str, str], seed: int = 0) -> None:
        """
        outputs maps each output's name to its element type. Raises Malformed if the metadata have unknown values, and SchemaMismatch if the metadata do not fit the outputs.
        """

    @property
    def output(self) -> str | None:
        """The only output that is used. None if all outputs are used."""

    @property
    def chooses(self) -> bool:
        """True if the advice is an index into the output."""

    @property
    def refuses_non_finite(self) -> bool:
        """True if NaN and infinite features are refused."""

    def choose(self, scores: numpy.ndarray) -> numpy.ndarray:
        """
        Returns the chosen int64 index for each row of scores along the innermost extent. Raises SchemaMismatch for an empty row. Raises ModelError if a score is NaN, or if the greatest score is infinite and the rule is `sample`.
        """

def serialize(tensors: dict[str, Any], serdes: str, side: str, bare: bool = False, formats: Sequence[Format] = ()) -> bytes:
    """Encodes tensors as one message that the given side writes."""

def deserialize(message: bytes, serdes: str, side: str, bare: bool = False, formats: Sequence[Format] = (), type: str | None = None, many: bool = False) -> dict[str, Any]:
    """Decodes the tensors of one message that the given side reads."""
