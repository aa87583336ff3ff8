# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The paper's loop: a model that receives requests and fills in answers."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from os import PathLike, fspath
from typing import Any, Literal, Self, overload

from mlbridge import _core, grpc
from mlbridge.errors import Timeout
from mlbridge.listeners import MAX_MESSAGE, PEER_TIMEOUT, local_listener, open_server
from mlbridge.types import Features


class BaseCompilerInterface(ABC):
    """The model's end of a conversation with compilers, over any transport.

    The paper's loop::

        with PipeCompilerInterface("/tmp/advisor") as interface:
            features = interface.evaluate()
            while True:
                interface.populate_buffer(decide(features))
                features = interface.evaluate()

    The same, shorter::

        for features in interface:
            interface.populate_buffer(decide(features))
    """

    @overload
    def evaluate(self, mode: None = None) -> Features: ...

    @overload
    def evaluate(self, mode: Literal["exit"]) -> None: ...

    @abstractmethod
    def evaluate(self, mode: Literal["exit"] | None = None) -> Features | None:
        """Sends the answer that was stored, and waits for the next request.

        Args:
            mode: ``"exit"`` sends the answer, waits for nothing and returns None.
        """

    @abstractmethod
    def populate_buffer(self, advice: Any) -> None:
        """Stores the answer to the request at hand."""

    @abstractmethod
    def close(self) -> None:
        """Ends all conversations, and leaves nothing behind."""

    def __iter__(self) -> Iterator[Features]:
        """The requests, one after another, until the caller leaves the loop."""
        while True:
            yield self.evaluate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PipeCompilerInterface(BaseCompilerInterface):
    """Meets compilers at a name in the file system, through pipes.

    Compilers with this library may as well choose shared memory, ``shm:NAME``.

    Any number of compilers may come, one after another or at once; each has its own
    session, and one that dies, stalls or sends nonsense ends its own only (which is
    logged as a warning of the logger ``mlbridge``). Used by one thread at a time.
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
            name: a path; the compiler's spec is ``pipe:NAME``. Only this user's
                compilers get in. What a dead server left there is taken over.
            serdes: what foreign compilers speak, ``"bitstream"`` or ``"json"``:
                those of the reference implementation, which know bare pipes only.
                Compilers with this library choose theirs when they meet the model,
                whatever is said here.
            timeout: seconds that `evaluate` waits for a request; None is for ever.
            bare: whether foreign compilers are served at all.
            max_message: a compiler that announces a longer message, in bytes, is
                refused.
            peer_timeout: seconds that a compiler may take to accept an answer.
            formats: what compilers may speak beside the formats of this build:
                messages of your own, by `mlbridge.protobuf.messages`.

        Raises:
            InvalidArgument: there is no such SerDes, or the name is empty.
            OSFailure: the name is taken by a live server, or not writable.
        """
        self.timeout = timeout
        listener = local_listener(
            fspath(name),
            serdes if bare else None,
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
        """Sends the answer that was stored, and returns the next request's features.

        A request that got no answer before is answered with an error. Ctrl-C is
        noticed within 0.1 s while waiting for a request.

        Args:
            mode: ``"exit"`` sends the answer, waits for nothing and returns None.

        Returns:
            The features by name. Arrays are read-only views of the receive buffer:
            they show this request until the next `evaluate`, and copying one keeps
            it (``x.copy()``). Their memory stays valid for as long as they live,
            whatever happens to the session.

        Raises:
            Timeout: nobody asked in time.
            SchemaMismatch, Unsupported, InvalidArgument, OSFailure: the answer cannot
                be sent in this session's format, is longer than ``max_message``, or
                there is no memory for it. Its compiler, whose session the exception's
                ``session`` and ``pid`` name, has got an error of code ``Model``
                instead, and may ask again; or, where it cannot be told, as a bare one
                that speaks the bitstream, that session is over (``session_ended``).
                The next call serves all that are open.
            OSFailure, with a ``session`` of 0: this end is broken.
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
        """Stores the answer to the request at hand, for `evaluate` to send.

        Args:
            advice: a bool, int, float or str, a list of one of those, a NumPy array
                or scalar, or what NumPy makes an array of (a CPU ``torch.Tensor``);
                a dict of several such outputs by name; None leaves the decision to
                the compiler (but ends the session of a bare one that speaks the
                bitstream). An array must not change before it is sent.

                Where the compiler said what it wants (`advice_type`), the value is
                converted if that keeps it; rounding from double to float is the one
                exception. Else an int is sent as int64 and a float as double, to
                bare compilers as int32 and float; an array has its own dtype.

        Raises:
            SchemaMismatch: the value cannot be sent or converted; it is a TypeError.
            InvalidArgument: there is no request at hand.
        """
        self._server.set_reply(advice)

    def populate_error(self, message: str) -> None:
        """Stores the answer that the model failed, in its own words.

        A bare compiler cannot be told; its session ends.
        """
        self._server.set_error(message)

    def close(self) -> None:
        """Ends all sessions, and removes the files at the name."""
        self._server.close()

    @property
    def name(self) -> str:
        """Where compilers find this model."""
        return self._server.name

    @property
    def session(self) -> int:
        """Which compiler asks, counted from 1; 0 when there is no request."""
        return self._server.session

    @property
    def pid(self) -> int:
        """The process of the compiler that asks; 0 for a bare one."""
        return self._server.pid

    @property
    def advice_type(self) -> str:
        """The element type that the compiler wants, or empty if it did not say."""
        return self._server.advice_type

    def __repr__(self) -> str:
        state = "closed" if self._server.closed else f"{self._server.open} open"
        return f"<{type(self).__name__} {self.name} ({state})>"


class SharedMemoryCompilerInterface(PipeCompilerInterface):
    """Meets compilers at a name in the file system, through shared memory.

    The features are views of the memory that the compiler writes to. Otherwise this is
    `PipeCompilerInterface` without its pipes for foreign compilers: our own come either
    way, ``shm:NAME`` or ``pipe:NAME``.
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
    """Meets compilers of this machine and others through gRPC.

    Otherwise this is `PipeCompilerInterface`, without foreign compilers on pipes.
    """

    def __init__(
        self,
        spec: str,
        *,
        timeout: float | None = None,
        peer_timeout: float = PEER_TIMEOUT,
        formats: Sequence[_core.Format] = (),
    ) -> None:
        """Listens at an address.

        Args:
            spec: ``grpc://HOST:PORT`` or ``grpc+unix:PATH``, with certificates and
                limits as docs/grpc.md says. Without a HOST, only compilers of this
                machine get in; `name` tells which port 0 became.
            timeout: seconds that `evaluate` waits for a request; None is for ever.
            peer_timeout: seconds that a compiler may take to accept an answer.
            formats: as for `PipeCompilerInterface`.

        Raises:
            InvalidArgument: the spec has a mistake.
            OSFailure: the address is taken.
            Unsupported: this build has no gRPC.
        """
        self.timeout = timeout
        listener = grpc.listener(spec, peer_timeout=peer_timeout, formats=formats)
        self._server = open_server([listener])
