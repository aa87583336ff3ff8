# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gRPC transport, which connects to compilers on other machines.

Users need not import this module, because every function with a spec accepts the
schemes ``grpc`` and ``grpc+unix``.
"""

import importlib
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

from mlbridge import _core
from mlbridge.errors import (
    InvalidArgument,
    PeerClosed,
    SchemaMismatch,
    Timeout,
    Unsupported,
)
from mlbridge.files import OwnFolder, spec_of
from mlbridge.printable import names
from mlbridge.types import Features

_SCHEME = re.compile(r"(?:^|\|)grpc(?:\+unix)?(?=[:?|]|$)")

_SLICE = 0.1
"""Seconds between two checks that the compiler is alive, in a wait for a message."""
_CONNECT_SLICE = 1.0
"""Seconds between two checks that the compiler is alive, while connecting."""
_TAKEN = "already has a trainer"
"""A part of the message with which a compiler refuses a second trainer."""
_POLL_INTERVAL = 0.01
"""Seconds between two checks whether a socket exists."""


def is_named_in(spec: str) -> bool:
    """Returns whether a spec uses gRPC, as `fallback|grpc:...` also does."""
    return _SCHEME.search(spec) is not None


def _module() -> ModuleType:
    try:
        # Import lazily, because few programs need the gRPC library.
        return importlib.import_module("mlbridge._grpc")
    except ImportError as error:
        raise Unsupported(f"this build of mlbridge has no gRPC: {error}") from error


def schemes() -> list[_core.Scheme]:
    """Returns the spec schemes of gRPC. Raises Unsupported if the build lacks gRPC."""
    added: list[_core.Scheme] = _module().schemes()
    return added


def listener(
    spec: str, *, peer_timeout: float, formats: Sequence[_core.Format] = ()
) -> _core.Listener:
    """Listens at ``grpc://HOST:PORT`` or ``grpc+unix:PATH``. See docs/guides/grpc.md.

    Raises InvalidArgument if the spec is invalid or the socket is in use, OSFailure if
    the port is in use or the certificate is unreadable, and Unsupported without gRPC.
    """
    opened: _core.Listener = _module().listener(
        spec, peer_timeout=peer_timeout, formats=[*_core.formats(), *formats]
    )
    return opened


def pick(spec: str, worker: int) -> str:
    """Returns the spec with the port of one worker, if the spec lists several ports.

    For example, worker 1 of ``grpc://host:50051,50060-50063`` uses port 50060, because
    workers are numbered from 0. Raises InvalidArgument if the spec has too few ports.
    """
    specs = expand(spec)
    if specs == [spec]:
        return spec
    if worker >= len(specs):
        raise InvalidArgument(
            f"spec {spec!r} has {len(specs)} ports, and worker {worker} (counted from"
            " 0) has none"
        )
    return specs[worker]


def expand(spec: str) -> list[str]:
    """Returns one spec for each port that the spec lists. See `pick`."""
    address, question_mark, options = spec.partition("?")
    head, colon, ports = address.rpartition(":")
    if not address.startswith("grpc:") or not re.fullmatch(
        r"[\d,-]*[,-][\d,-]*", ports
    ):
        return [spec]
    choice: list[int] = []
    for part in ports.split(","):
        ends = part.split("-")
        if len(ends) > 2 or not all(ends):
            raise InvalidArgument(
                f"spec {spec!r}: expected ports such as 50051,50060-50063,"
                f" found {ports!r}"
            )
        choice.extend(range(int(ends[0]), int(ends[-1]) + 1))
    return [f"{head}{colon}{port}{question_mark}{options}" for port in choice]


def with_default(spec: str, option: str) -> str:
    """Adds an option such as ``serdes=bitstream`` to a spec that lacks it."""
    _, question_mark, options = spec.partition("?")
    name = option.partition("=")[0]
    if any(one.partition("=")[0] == name for one in options.split("&")):
        return spec
    return f"{spec}{'&' if question_mark else '?'}{option}"


class TrainingChannel:
    """An ``mlbridge.envs.channel.EnvironmentChannel`` that uses gRPC.

    The compiler is the gRPC server, and the trainer connects to it.
    """

    def __init__(self, spec: str, *, formats: Sequence[_core.Format] = ()) -> None:
        """Prepares a session without connecting.

        The spec is ``grpc://HOST:PORT`` or ``grpc+unix:PATH``, with the options of a
        model spec. The spec ``grpc`` creates a private socket, which is removed after
        the handshake. With this spec, the default SerDes is the bitstream. ``formats``
        are additional SerDes, for example from `mlbridge.protobuf.messages`.
        """
        address, _, options = spec.partition("?")
        self._own = ExitStack()
        """Closing this stack removes the folder of the private socket."""
        self._socket: Path | None = None
        if address.rstrip(":/") in ("grpc", "grpc+unix"):
            folder = self._own.enter_context(OwnFolder("mlbridge-"))
            self._socket = folder.path / "env"
            spec = f"{spec_of('grpc+unix', self._socket)}?{options}".rstrip("?")
            if not formats:
                spec = with_default(spec, "serdes=bitstream")
        self.spec = spec
        self._trainer = _module().Trainer(spec, [*_core.formats(), *formats])

    def connect(self, timeout: float | None, alive: Callable[[], bool]) -> None:
        """Connects to the compiler, as ``EnvironmentChannel.connect`` describes."""
        with self._own:
            self._connect(timeout, alive)

    def _connect(self, timeout: float | None, alive: Callable[[], bool]) -> None:
        until = math.inf if timeout is None else time.monotonic() + timeout
        # Do not start a gRPC call before the private socket exists. Otherwise, a call
        # that has timed out could still reach the compiler.
        while self._socket is not None and not self._socket.exists():
            if not alive() or time.monotonic() > until:
                break
            time.sleep(_POLL_INTERVAL)
        refusal: Unsupported | None = None
        while True:
            was_alive = alive()
            left = max(0.0, until - time.monotonic())
            try:
                self._trainer.connect(min(_CONNECT_SLICE, left))
            except Timeout as error:
                if not was_alive:
                    raise PeerClosed(
                        f"the compiler at {self.spec} disconnected"
                    ) from None
                if left <= _CONNECT_SLICE:
                    raise refusal or error from None
                continue
            # A compiler with unary calls sends no greeting.
            if self._trainer.unary:
                return
            try:
                self._greet(None if timeout is None else left, alive)
            except Unsupported as error:
                # The compiler may not have noticed yet that its last trainer is gone.
                if _TAKEN not in str(error) or left <= _SLICE or not was_alive:
                    raise
                refusal = error
                time.sleep(_SLICE)
            else:
                return

    def _greet(self, timeout: float | None, alive: Callable[[], bool]) -> None:
        greeting = self.receive(timeout, alive)
        if "_ready" not in greeting:
            raise SchemaMismatch(
                f"the compiler at {self.spec} sent {names(greeting) or 'nothing'};"
                " expected an environment, which it serves with serveEnvironment"
            )

    def send(self, message: Mapping[str, Any]) -> None:
        """Sends a message, as ``EnvironmentChannel.send`` describes."""
        self._trainer.send(dict(message))

    def receive(self, timeout: float | None, alive: Callable[[], bool]) -> Features:
        """Waits for a message and returns it in new arrays."""
        left = math.inf if timeout is None else timeout
        while True:
            was_alive = alive()
            message: Features | None = self._trainer.receive(min(_SLICE, left))
            if message is not None:
                return message
            left -= _SLICE
            if not was_alive:
                raise PeerClosed(f"the compiler at {self.spec} disconnected")
            if left <= 0:
                raise Timeout(
                    f"the compiler at {self.spec} sent nothing within {timeout} s"
                )

    def close(self) -> None:
        """Ends the session."""
        self._trainer.close()
        self._own.close()
