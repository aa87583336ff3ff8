# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gRPC connects models and trainers to compilers on other machines.

Everything that takes a spec understands the schemes ``grpc`` and ``grpc+unix`` without
a call of this module.
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
"""Seconds after which a wait checks that the compiler is alive."""
_CONNECT_SLICE = 1.0
"""The same while connecting, which takes longer than a message."""
_POLL_INTERVAL = 0.01
"""Seconds between two checks for a socket."""


def is_named_in(spec: str) -> bool:
    """True if a spec, or one that it decorates, uses gRPC."""
    return _SCHEME.search(spec) is not None


def _module() -> ModuleType:
    try:
        # Load its library only when it is needed.
        return importlib.import_module("mlbridge._grpc")
    except ImportError as error:
        raise Unsupported(f"this build of mlbridge has no gRPC: {error}") from error


def schemes() -> list[_core.Scheme]:
    """The schemes of model specs that gRPC adds; raises Unsupported without gRPC."""
    added: list[_core.Scheme] = _module().schemes()
    return added


def listener(
    spec: str, *, peer_timeout: float, formats: Sequence[_core.Format] = ()
) -> _core.Listener:
    """Listens at ``grpc://HOST:PORT`` or ``grpc+unix:PATH``; see docs/guides/grpc.md.

    Raises InvalidArgument for an invalid spec or a socket in use, OSFailure for a port
    in use or an unreadable certificate, and Unsupported without gRPC.
    """
    opened: _core.Listener = _module().listener(
        spec, peer_timeout=peer_timeout, formats=[*_core.formats(), *formats]
    )
    return opened


def pick(spec: str, worker: int) -> str:
    """Picks a worker's port from a spec with several; workers count from 0.

    Worker 1 of ``grpc://host:50051,50060-50063`` connects to ``grpc://host:50060``.
    Raises InvalidArgument if the spec has too few ports.
    """
    address, question_mark, options = spec.partition("?")
    head, colon, ports = address.rpartition(":")
    if not address.startswith("grpc:") or not re.fullmatch(
        r"[\d,-]*[,-][\d,-]*", ports
    ):
        return spec
    choice: list[int] = []
    for part in ports.split(","):
        ends = part.split("-")
        if len(ends) > 2 or not all(ends):
            raise InvalidArgument(
                f"spec {spec!r}: expected ports such as 50051,50060-50063,"
                f" found {ports!r}"
            )
        choice.extend(range(int(ends[0]), int(ends[-1]) + 1))
    if worker >= len(choice):
        raise InvalidArgument(
            f"spec {spec!r} has {len(choice)} ports, and worker {worker} (counted from"
            " 0) has none"
        )
    return f"{head}{colon}{choice[worker]}{question_mark}{options}"


class TrainingChannel:
    """An ``mlbridge.envs.channel.EnvironmentChannel`` over gRPC.

    The compiler is the server: it listens at the spec, and this end connects to it.
    """

    def __init__(self, spec: str) -> None:
        """Prepares a session; does not connect yet.

        The spec is ``grpc://HOST:PORT`` or ``grpc+unix:PATH`` with the options of a
        model spec, as the compiler takes it. ``grpc`` alone makes a private socket,
        whose name is removed after the handshake, and uses the bitstream unless
        ``serdes`` names another format.
        """
        address, _, options = spec.partition("?")
        self._own = ExitStack()
        """Removes the private socket's folder."""
        self._socket: Path | None = None
        if address.rstrip(":/") in ("grpc", "grpc+unix"):
            folder = self._own.enter_context(OwnFolder("mlbridge-"))
            self._socket = folder.path / "env"
            # A compiler's default may depend on the libraries it links; every compiler
            # has the bitstream.
            if "serdes=" not in options:
                options += f"{'&' if options else ''}serdes=bitstream"
            spec = f"{spec_of('grpc+unix', self._socket)}?{options}"
        self.spec = spec
        self._trainer = _module().Trainer(spec, _core.formats())

    def connect(self, timeout: float | None, alive: Callable[[], bool]) -> None:
        """Connects to the compiler. See ``EnvironmentChannel``."""
        with self._own:
            self._connect(timeout, alive)

    def _connect(self, timeout: float | None, alive: Callable[[], bool]) -> None:
        until = math.inf if timeout is None else time.monotonic() + timeout
        # Wait for the private socket first: a call that is abandoned just when the
        # compiler begins to listen might reach it.
        while self._socket is not None and not self._socket.exists():
            if not alive() or time.monotonic() > until:
                break
            time.sleep(_POLL_INTERVAL)
        while True:
            was_alive = alive()
            left = max(0.0, until - time.monotonic())
            try:
                self._trainer.connect(min(_CONNECT_SLICE, left))
                break
            except Timeout:
                if not was_alive:
                    raise PeerClosed(
                        f"the compiler at {self.spec} disconnected"
                    ) from None
                if left <= _CONNECT_SLICE:
                    raise
        # A compiler with unary calls sends no greeting.
        if self._trainer.unary:
            return
        greeting = self.receive(timeout, alive)
        if "_ready" not in greeting:
            raise SchemaMismatch(
                f"the compiler at {self.spec} sent {names(greeting) or 'nothing'};"
                " expected an environment, which it serves with serveEnvironment"
            )

    def send(self, message: Mapping[str, Any]) -> None:
        """Sends a message. See ``EnvironmentChannel``."""
        self._trainer.send(dict(message))

    def receive(self, timeout: float | None, alive: Callable[[], bool]) -> Features:
        """Waits for a message, in new arrays. See ``EnvironmentChannel``."""
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
