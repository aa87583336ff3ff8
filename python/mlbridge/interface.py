# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The interfaces of the paper, with which a model answers compilers in a loop."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from os import PathLike, fspath
from typing import Any, Literal, Self, overload

from mlbridge import _core, grpc
from mlbridge.errors import Timeout
from mlbridge.listeners import MAX_MESSAGE, PEER_TIMEOUT, local_listener, open_server
from mlbridge.types import Features


class BaseCompilerInterface(ABC):
    """The model's side of sessions with compilers.

    This is the loop of the paper::

        with PipeCompilerInterface("/tmp/advisor") as interface:
            features = interface.evaluate()
            while True:
                interface.populate_buffer(decide(features))
                features = interface.evaluate()

    This loop does the same::

        for features in interface:
            interface.populate_buffer(decide(features))
    """

    @overload
    def evaluate(self, mode: None = None) -> Features: ...

    @overload
    def evaluate(self, mode: Literal["exit"]) -> None: ...

    @abstractmethod
    def evaluate(self, mode: Literal["exit"] | None = None) -> Features | None:
        """Sends the stored reply, and waits for a request unless mode is "exit"."""

    @abstractmethod
    def populate_buffer(self, advice: Any) -> None:
        """Stores the reply to the current request."""

    @abstractmethod
    def close(self) -> None:
        """Ends all sessions and frees their resources."""

    def __iter__(self) -> Iterator[Features]:
        """Yields the requests until the caller leaves the loop."""
        while True:
            yield self.evaluate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PipeCompilerInterface(BaseCompilerInterface):
    """Serves compilers that connect to a path with ``pipe:`` or ``shm:``.

    Any number of compilers may connect, also at the same time. Each compiler has its
    own session. If a compiler dies, stalls or sends invalid bytes, only its session
    ends, and the logger ``mlbridge`` logs a warning. One thread at a time may use an
    interface.
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
        """Listens at NAME.sock and, for bare mode, at NAME.in and NAME.out.

        Args:
            name: the path. The compiler's spec is ``pipe:NAME``. Only compilers of this
                user can connect. Files that a dead server left are replaced.
            serdes: the SerDes in bare mode, ``"bitstream"`` or ``"json"``. In bare
                mode, a compiler connects without a handshake, for example with the
                paper's original library. Other compilers choose their SerDes in the
                handshake.
            timeout: seconds that `evaluate` waits for a request. None sets no limit.
            bare: whether to serve compilers in bare mode.
            max_message: the maximum size of a compiler's message in bytes.
            peer_timeout: seconds within which a compiler must read its reply.
            formats: additional SerDes, for example from `mlbridge.protobuf.messages`.

        Raises:
            InvalidArgument: the SerDes is unknown, or the name is empty.
            OSFailure: another server uses the path, or the path is not writable.
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
        """Sends the stored reply, and returns the features of the next request.

        If no reply is stored, the compiler receives an error. Ctrl-C interrupts the
        wait within 0.1 s.

        Args:
            mode: ``"exit"`` sends the reply and returns None without waiting.

        Returns:
            The features by name. Arrays are read-only views of the receive buffer,
            whose contents change at the next `evaluate`. To keep an array, copy it. A
            view never points to freed memory, even after the session ends.

        Raises:
            Timeout: no request came within `timeout`.
            SchemaMismatch, Unsupported, InvalidArgument, OSFailure: the reply could not
                be sent, for example because it exceeds ``max_message``. The exception's
                ``session`` and ``pid`` name the compiler, which receives an error of
                code ``Model`` instead. In bare mode with the bitstream SerDes, a
                compiler cannot receive errors, so its session ends
                (``session_ended``). To continue with other sessions, call `evaluate`
                again.
            OSFailure, with a ``session`` of 0: the server failed.
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
        """Stores the reply to the current request. The next `evaluate` sends the reply.

        Args:
            advice: a bool, int, float or str, a list of them, or anything that NumPy
                can convert to an array. A dict maps names to several of these. None
                leaves the decision to the compiler, but ends the session of a bare
                compiler that uses the bitstream SerDes. Do not change an array before
                it is sent.

                The value is converted to `advice_type` if the compiler has sent a type.
                Only a conversion from double to float may change the value. Without a
                type, an int is sent as int64, a float as double, and an array with its
                dtype. Bare compilers receive int32 and float.

        Raises:
            SchemaMismatch: the value cannot be sent or converted.
            InvalidArgument: no request waits for a reply.
        """
        self._server.set_reply(advice)

    def populate_error(self, message: str) -> None:
        """Stores an error as the reply. In bare mode, an error ends the session."""
        self._server.set_error(message)

    def close(self) -> None:
        """Ends all sessions and removes the server's files."""
        self._server.close()

    @property
    def name(self) -> str:
        """The address to which compilers connect."""
        return self._server.name

    @property
    def session(self) -> int:
        """The number of the current request's session, counted from 1.

        It is 0 if there is no current request.
        """
        return self._server.session

    @property
    def pid(self) -> int:
        """The process ID of the current request's compiler.

        The ID is 0 if it is unknown, for example for a compiler in bare mode.
        """
        return self._server.pid

    @property
    def advice_type(self) -> str:
        """The element type that the compiler expects in the reply, or ""."""
        return self._server.advice_type

    def __repr__(self) -> str:
        state = "closed" if self._server.closed else f"{self._server.open} open"
        return f"<{type(self).__name__} {self.name} ({state})>"


class SharedMemoryCompilerInterface(PipeCompilerInterface):
    """Serves compilers that connect to a path with ``shm:`` or ``pipe:``.

    Unlike `PipeCompilerInterface`, this class does not support bare mode. With
    ``shm:``, features are views of memory shared with the compiler.
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
        """Listens at NAME.sock. `PipeCompilerInterface` describes the arguments."""
        super().__init__(
            name,
            timeout=timeout,
            bare=False,
            max_message=max_message,
            peer_timeout=peer_timeout,
            formats=formats,
        )


class GRPCCompilerInterface(PipeCompilerInterface):
    """Serves compilers that connect with gRPC. See `PipeCompilerInterface`."""

    def __init__(
        self,
        spec: str,
        *,
        timeout: float | None = None,
        peer_timeout: float = PEER_TIMEOUT,
        formats: Sequence[_core.Format] = (),
    ) -> None:
        """Listens at ``grpc://HOST:PORT`` or ``grpc+unix:PATH``.

        docs/guides/grpc.md describes options for certificates and limits. Without a
        HOST, only compilers on this machine can connect. With port 0, a free port is
        chosen, and `name` contains this port. See `PipeCompilerInterface` for the other
        arguments.

        Raises:
            InvalidArgument: the spec is invalid.
            OSFailure: another server uses the address.
            Unsupported: this build has no gRPC.
        """
        self.timeout = timeout
        listener = grpc.listener(spec, peer_timeout=peer_timeout, formats=formats)
        self._server = open_server([listener])
