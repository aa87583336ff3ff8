# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The paper's loop: a model that receives requests and sets replies."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from os import PathLike, fspath
from typing import Any, Literal, Self, overload

from mlbridge import _core, grpc
from mlbridge.errors import Timeout
from mlbridge.listeners import MAX_MESSAGE, PEER_TIMEOUT, local_listener, open_server
from mlbridge.types import Features


class BaseCompilerInterface(ABC):
    """The model's end of sessions with compilers, over any transport.

    The paper's loop::

        with PipeCompilerInterface("/tmp/advisor") as interface:
            features = interface.evaluate()
            while True:
                interface.populate_buffer(decide(features))
                features = interface.evaluate()

    The same loop, shorter::

        for features in interface:
            interface.populate_buffer(decide(features))
    """

    @overload
    def evaluate(self, mode: None = None) -> Features: ...

    @overload
    def evaluate(self, mode: Literal["exit"]) -> None: ...

    @abstractmethod
    def evaluate(self, mode: Literal["exit"] | None = None) -> Features | None:
        """Sends the stored reply, and without ``mode="exit"`` waits for a request."""

    @abstractmethod
    def populate_buffer(self, advice: Any) -> None:
        """Stores the reply to the current request."""

    @abstractmethod
    def close(self) -> None:
        """Ends all sessions and cleans up."""

    def __iter__(self) -> Iterator[Features]:
        """Yields the requests until the caller leaves the loop."""
        while True:
            yield self.evaluate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PipeCompilerInterface(BaseCompilerInterface):
    """Serves compilers that connect to a name in the file system, over pipes.

    Compilers with this library may also use shared memory, ``shm:NAME``.

    Any number of compilers may connect, also at the same time. Each has its own
    session, and one that dies, stalls or sends invalid bytes ends only its own, which
    the logger ``mlbridge`` reports as a warning. Used by one thread at a time.
    """

    def __init__(
        self,
        name: str | PathLike[str],
        serdes: str = "bitstream",
        *,
        timeout: float | None = None,
        bare: bool = True,
        max_message: int = MAX_MESSAGE,
        peer_timeout: float = PEER_TIMEOUT,
        formats: Sequence[_core.Format] = (),
    ) -> None:
        """Listens at NAME.sock and, for bare compilers, at NAME.in and NAME.out.

        Args:
            name: a path; the compiler's spec is ``pipe:NAME``. Only compilers of this
                user can connect. Files of a dead server are replaced.
            serdes: the SerDes of bare compilers, ``"bitstream"`` or ``"json"``. Bare
                compilers are those of the reference implementation; compilers with this
                library choose their SerDes in the handshake.
            timeout: seconds that `evaluate` waits for a request; None has no limit.
            bare: serve bare compilers.
            max_message: the maximum size of a compiler's message in bytes.
            peer_timeout: seconds that a compiler may take to accept a reply.
            formats: more formats than this build has, such as those of
                `mlbridge.protobuf.messages`.

        Raises:
            InvalidArgument: the SerDes is unknown, or the name is empty.
            OSFailure: a live server uses the name, or it is not writable.
        """
        self.timeout = timeout
        listener = local_listener(
            fspath(name),
            bare_format=serdes if bare else "",
            max_message=max_message,
            peer_timeout=peer_timeout,
            formats=formats,
        )
        self._server = open_server([listener])

    @overload
    def evaluate(self, mode: None = None) -> Features: ...

    @overload
    def evaluate(self, mode: Literal["exit"]) -> None: ...

    def evaluate(self, mode: Literal["exit"] | None = None) -> Features | None:
        """Sends the stored reply and returns the next request's features.

        A request without a stored reply gets an error. Ctrl-C interrupts the wait
        within 0.1 s.

        Args:
            mode: ``"exit"`` sends the reply and returns None without waiting.

        Returns:
            The features by name. Arrays are read-only views of the receive buffer; they
            show this request until the next `evaluate`. ``x.copy()`` keeps one. A view
            keeps its memory valid even after the session ends.

        Raises:
            Timeout: no request within `timeout`.
            SchemaMismatch, Unsupported, InvalidArgument, OSFailure: the reply does not
                fit the session's format, exceeds ``max_message`` or needs too much
                memory. The exception's ``session`` and ``pid`` name the compiler, which
                gets an error of code ``Model`` instead and may ask again. If it cannot
                be told, as a bare one with the bitstream, its session ends
                (``session_ended``). Other sessions continue at the next call.
            OSFailure, with a ``session`` of 0: the server itself failed.
        """
        if mode == "exit":
            self._server.send()
            return None
        features = self._server.exchange(self.timeout)
        if features is None:
            raise Timeout(
                f"no compiler asked the model at {self.name} within {self.timeout} s"
            )
        return features

    def populate_buffer(self, advice: Any) -> None:
        """Stores the reply to the current request, which `evaluate` sends.

        Args:
            advice: a bool, int, float or str, a list of one of these, a NumPy array or
                scalar, or what NumPy converts to an array (a CPU ``torch.Tensor``); a
                dict of several such outputs by name; or None, which leaves the decision
                to the compiler (and ends the session of a bare one with the bitstream).
                An array must not change before it is sent.

                If the compiler wants a type (`advice_type`), the value is converted.
                The conversion must not change it, except by rounding double to float.
                Otherwise an int is sent as int64 and a float as double (to bare
                compilers as int32 and float), and an array with its dtype.

        Raises:
            SchemaMismatch: the value cannot be sent or converted; a TypeError.
            InvalidArgument: no request waits for a reply.
        """
        self._server.set_reply(advice)

    def populate_error(self, message: str) -> None:
        """Stores the reply that the model failed; ends a bare compiler's session."""
        self._server.set_error(message)

    def close(self) -> None:
        """Ends all sessions and removes the server's files."""
        self._server.close()

    @property
    def name(self) -> str:
        """The address at which compilers connect."""
        return self._server.name

    @property
    def session(self) -> int:
        """The current request's session, counted from 1; 0 without a request."""
        return self._server.session

    @property
    def pid(self) -> int:
        """The process ID of the compiler that asks; 0 for a bare one."""
        return self._server.pid

    @property
    def advice_type(self) -> str:
        """The element type that the compiler wants; empty if unknown."""
        return self._server.advice_type

    def __repr__(self) -> str:
        state = "closed" if self._server.closed else f"{self._server.open} open"
        return f"<{type(self).__name__} {self.name} ({state})>"


class SharedMemoryCompilerInterface(PipeCompilerInterface):
    """Serves compilers that connect to a name in the file system, over shared memory.

    Like `PipeCompilerInterface` without bare compilers. The features are views of
    memory that the compiler writes to. Compilers with this library may use
    ``shm:NAME`` or ``pipe:NAME``.
    """

    def __init__(
        self,
        name: str | PathLike[str],
        *,
        timeout: float | None = None,
        max_message: int = MAX_MESSAGE,
        peer_timeout: float = PEER_TIMEOUT,
        formats: Sequence[_core.Format] = (),
    ) -> None:
        """Listens at NAME.sock; see `PipeCompilerInterface`."""
        super().__init__(
            name,
            timeout=timeout,
            bare=False,
            max_message=max_message,
            peer_timeout=peer_timeout,
            formats=formats,
        )


class GRPCCompilerInterface(PipeCompilerInterface):
    """A `PipeCompilerInterface` over gRPC, without bare compilers."""

    def __init__(
        self,
        spec: str,
        *,
        timeout: float | None = None,
        peer_timeout: float = PEER_TIMEOUT,
        formats: Sequence[_core.Format] = (),
    ) -> None:
        """Listens at ``grpc://HOST:PORT`` or ``grpc+unix:PATH``.

        The spec may have the certificates and limits of docs/guides/grpc.md. Without a
        HOST, only compilers of this machine can connect. With port 0, `name` contains
        the port that was chosen. Other arguments are those of `PipeCompilerInterface`.

        Raises:
            InvalidArgument: the spec is invalid.
            OSFailure: another server uses the address.
            Unsupported: this build has no gRPC.
        """
        self.timeout = timeout
        listener = grpc.listener(spec, peer_timeout=peer_timeout, formats=formats)
        self._server = open_server([listener])
