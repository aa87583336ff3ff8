"""
The C++ half of mlbridge: the codec and the server that compilers link.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy


VERSION: str = '0.1.0'

COMPILER: str = 'GNU 12.2.0'

SIMDJSON_VERSION: str = '3.0.1'

def schemes() -> dict[str, str]:
    """The model specs that this build understands: a line of help by scheme."""

def set_leak_warnings(value: bool) -> None:
    """Whether objects that are left when the interpreter ends are told of."""

def printable(text: str, most: int = 200) -> str:
    """
    Text from outside, for a message: one line of at most so many bytes of UTF-8, without what a terminal would act on. Of a longer text, the beginning and the end.
    """

class Format:
    """A SerDes by its name; for serving, asking and mlbridge.codec."""

    @property
    def name(self) -> str:
        """What a spec's option 'serdes' calls it."""

    @property
    def help(self) -> str:
        """One line about it. Raises ImportError where its library is missing."""

    def __repr__(self) -> str: ...

def formats() -> list[Format]:
    """The formats of this build."""

def server_spec(spec: str) -> tuple[str, str, bool, int, int]:
    """
    The spec of a place on this machine to serve at: name, SerDes of bare compilers, whether those are welcome, longest message in bytes, most sessions.
    """

class Listener:
    """A place where compilers come to a model, until a server takes it."""

def local_listener(name: str, *, bare_format: str, max_message: int, max_sessions: int, peer_timeout: float, formats: Sequence[Format] = ()) -> Listener:
    """
    Listens at NAME.sock and, with a SerDes for bare compilers, at NAME.in and NAME.out.
    """

class Server:
    """
    The model's end of any number of sessions. Used by one thread at a time, but for stop() and latencies().
    """

    def __init__(self, listeners: Sequence[Listener], *, on_warning: Callable[[str, Exception], object] | None) -> None:
        """
        Serves those who come to the listeners. What befell a compiler, and why, is told to on_warning.
        """

    def exchange(self, timeout: float | None = None) -> dict[str, Any] | None:
        """
        Sends the replies that are set, if any, and waits for the next request. Returns its features by name, or None when timeout seconds have passed or stop() was called. An exception with a `session` is a reply that could not be sent; `others` has the rest of its batch.
        """

    def exchange_batch(self, max_size: int, max_delay: float, timeout: float | None = None) -> list[dict[str, Any]] | None:
        """
        The same for the requests that wait at the same moment, at most one a compiler; the first of them may wait max_delay seconds for others.
        """

    def set_reply(self, value: object, index: int = 0) -> None:
        """
        The answer to the request at hand, or to the one at that index of the batch; None defers. Arrays are not copied before they are sent.
        """

    def set_message(self, tensors: dict[str, Any]) -> None:
        """
        A message of training, in place of an answer: names may begin with an underscore.
        """

    def set_error(self, message: str, index: int = 0) -> None:
        """The answer that the model failed."""

    def set_deferred(self, why: str, index: int = 0) -> None:
        """The answer that leaves the decision to the compiler."""

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
        """The session and the process behind a request of the batch."""

    @property
    def session(self) -> int:
        """Which compiler asks, counted from 1; 0 when none does."""

    @property
    def pid(self) -> int:
        """Its process; 0 for a bare compiler."""

    @property
    def advice_type(self) -> str:
        """
        The element type that its first request wants, as TensorSpec spells it; empty when it did not say.
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
    def requests(self) -> int:
        """Requests so far."""

    @property
    def batches(self) -> int:
        """In how many batches they came."""

    @property
    def refused_compilers(self) -> int:
        """Compilers that got no session."""

    @property
    def refused_requests(self) -> int:
        """
        Requests that have no form in Python, which were answered with an error.
        """

    @property
    def mistyped(self) -> int:
        """Answers of another type than their compilers' first requests want."""

    def measure_latencies(self) -> None:
        """From now on, notes how long requests take."""

    def latencies(self, quantiles: Sequence[float]) -> list[float]:
        """
        Seconds from a request's arrival until its answer is on the way: the values below which each of the quantiles (0 to 1) lies. May be called by any thread.
        """

def end_waits() -> list[int]:
    """
    The interpreter ends: a call that waits in another thread raises SystemExit there. Returns the threads that have ever waited.
    """

class Scheme:
    """A way to reach a model, of an optional part of the library."""

    @property
    def name(self) -> str: ...

    @property
    def help(self) -> str:
        """One line about it."""

class Factory:
    """Makes runners, which share the models in this process that they load."""

    def __init__(self, schemes: Sequence[Scheme] = ()) -> None: ...

class Runner:
    """A request to a model, from Python. Used by one thread at a time."""

    def __init__(self, spec: str, formats: Sequence[Format], factory: Factory) -> None: ...

    def evaluate(self, features: dict[str, Any], type: str | None = None, many: bool = False) -> Any:
        """
        Asks about the features. With a type: the only output, or the one called 'out', converted to it; many for any number of elements. Without: all outputs by name, as they came.
        """

    def log_outcome(self, name: str | None, value: object, reward: float | None) -> None:
        """What was done in the end, and how good it was."""

    def switch_context(self, name: str) -> None:
        """Names what the next requests are about."""

    def flush(self) -> None:
        """Writes what a recording runner holds."""

    def close(self) -> None:
        """Flushes, ends the session, and raises what flushing did."""

    def describe(self) -> str: ...

    @property
    def timeout(self) -> float:
        """Seconds that one evaluate may take."""

    @timeout.setter
    def timeout(self, seconds: float | None) -> None: ...

def in_process_schemes(onnxruntime: str = '') -> list[Scheme]:
    """
    The schemes of models in this process. Runners that are made with the same ones share their models. onnxruntime: its library, unless a spec or the environment names one.
    """

class Decision:
    """
    What a model's metadata want to be made of its outputs, as in the compiler's process: docs/model-metadata.md. Used by one thread at a time.
    """

    def __init__(self, model: str, metadata: dict[str, str], outputs: dict[str, str], seed: int = 0) -> None:
        """
        outputs: the element type of each, by name. Raises Malformed where the metadata say what is not known, SchemaMismatch where they do not fit the outputs.
        """

    @property
    def output(self) -> str | None:
        """The only output that is wanted; None for all of them."""

    @property
    def chooses(self) -> bool:
        """Whether the answer is an index in it, and not the output itself."""

    @property
    def refuses_non_finite(self) -> bool:
        """Whether features that are not finite are refused."""

    def choose(self, scores: numpy.ndarray) -> numpy.ndarray:
        """
        The index for each row of scores along the innermost extent, int64. Raises SchemaMismatch where there is nothing to choose from, ModelError where a score is NaN, or the greatest that is to be drawn with is infinite.
        """

def serialize(tensors: dict[str, Any], serdes: str, side: str, bare: bool = False, formats: Sequence[Format] = ()) -> bytes:
    """One message with these tensors, as the side writes it."""

def deserialize(message: bytes, serdes: str, side: str, bare: bool = False, formats: Sequence[Format] = (), type: str | None = None, many: bool = False) -> dict[str, Any]:
    """The tensors of one message, as the side reads it."""
