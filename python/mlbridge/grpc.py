# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gRPC: models and trainers that reach compilers on other machines.

Specs with the schemes ``grpc`` and ``grpc+unix`` are understood by all that takes a
spec; nothing of this module has to be called for that.
"""

import importlib
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
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
_CONNECT_SLICE = 1.0
"""Seconds after which a wait looks whether the compiler is alive; a connection to
another machine takes longer than a message."""
_LOOK = 0.01
"""Seconds after which it is looked for a socket again."""


def is_named_in(spec: str) -> bool:
    """Whether a spec, or one that it decorates, is for gRPC."""
    return _SCHEME.search(spec) is not None


def _module() -> ModuleType:
    try:
        # Its library is not loaded before it is needed.
        return importlib.import_module("mlbridge._grpc")
    except ImportError as error:
        raise Unsupported(f"this build of mlbridge has no gRPC: {error}") from error


def schemes() -> list[_core.Scheme]:
    """The schemes of model specs that gRPC adds.

    Raises:
        Unsupported: this build has no gRPC, or its library is missing.
    """
    added: list[_core.Scheme] = _module().schemes()
    return added


def listener(
    spec: str, *, peer_timeout: float, formats: Sequence[_core.Format] = ()
) -> _core.Listener:
    """Listens at ``grpc://HOST:PORT`` or ``grpc+unix:PATH``; see docs/grpc.md.

    Raises:
        InvalidArgument: the spec has a mistake, or the socket's name is taken.
        OSFailure: the port is taken, or a certificate cannot be read.
        Unsupported: this build has no gRPC.
    """
    opened: _core.Listener = _module().listener(
        spec, peer_timeout=peer_timeout, formats=[*_core.formats(), *formats]
    )
    return opened


def pick(spec: str, worker: int) -> str:
    """The spec of one of several compilers: that of a worker, counted from 0.

    Ports may be a list and ranges: worker 1 of ``grpc://host:50051,50060-50063``
    connects to ``grpc://host:50060``.

    Raises:
        InvalidArgument: there are fewer ports than that.
    """
    place, question_mark, options = spec.partition("?")
    head, colon, ports = place.rpartition(":")
    if not place.startswith("grpc:") or not re.fullmatch(r"[\d,-]*[,-][\d,-]*", ports):
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
    """A conversation with a compiler that serves an environment through gRPC.

    The compiler is the server: it listens at the spec that it is told, and this end
    connects to it. See ``mlbridge.envs.channel.EnvironmentChannel``.
    """

    def __init__(self, spec: str) -> None:
        """Nothing is connected yet.

        Args:
            spec: ``grpc://HOST:PORT`` or ``grpc+unix:PATH``, as the compiler takes it,
                with the options of a model spec. Without an address (``grpc``), a
                socket of its own, whose name is gone as soon as the two have met, and
                the bitstream unless ``serdes`` says otherwise.
        """
        place, _, options = spec.partition("?")
        self._folder: OwnFolder | None = None
        if place.rstrip(":/") in ("grpc", "grpc+unix"):
            self._folder = OwnFolder("mlbridge-")
            # What a compiler speaks unless it is told may depend on what it links;
            # this one is told, and every one has the bitstream.
            if "serdes=" not in options:
                options += f"{'&' if options else ''}serdes=bitstream"
            spec = f"{spec_of('grpc+unix', self._folder.path / 'env')}?{options}"
        self._spec = spec
        self._trainer = _module().Trainer(spec, _core.formats())

    @property
    def spec(self) -> str:
        """What the compiler is to be told."""
        return self._spec

    def connect(self, timeout: float | None, alive: Callable[[], bool]) -> None:
        """Meets the compiler, and takes its greeting.

        Raises:
            Timeout: it did not listen in time.
            PeerClosed: it ended before.
            SchemaMismatch: it is there, but serves no environment.
        """
        try:
            self._connect(timeout, alive)
        finally:
            self._forget_name()

    def _connect(self, timeout: float | None, alive: Callable[[], bool]) -> None:
        until = math.inf if timeout is None else time.monotonic() + timeout
        self._await_socket(until, alive)
        while True:
            was_alive = alive()
            left = max(0.0, until - time.monotonic())
            try:
                self._trainer.connect(min(_CONNECT_SLICE, left))
                break
            except Timeout:
                if not was_alive:
                    raise PeerClosed(f"the compiler at {self._spec} has left") from None
                if left <= _CONNECT_SLICE:
                    raise
        # Who answers calls one by one has nothing to say yet.
        if self._trainer.unary:
            return
        greeting = self.receive(timeout, alive)
        if "_ready" not in greeting:
            raise SchemaMismatch(
                f"the compiler at {self._spec} said {names(greeting) or 'nothing'};"
                " expected an environment, which it serves with serveEnvironment"
            )

    def _await_socket(self, until: float, alive: Callable[[], bool]) -> None:
        """Waits until there is a socket, if it is one of this channel's own.

        A call that is made just when the compiler begins to listen is not to be given
        up in the same moment: the compiler may have taken it.
        """
        while self._folder is not None and not (self._folder.path / "env").exists():
            if not alive() or time.monotonic() > until:
                return
            time.sleep(_LOOK)

    def send(self, message: Mapping[str, Any]) -> None:
        """Sends a command and its action."""
        self._trainer.send(dict(message))

    def receive(self, timeout: float | None, alive: Callable[[], bool]) -> Features:
        """Waits for what the compiler has to say to the last message.

        Returns:
            All tensors by name, reserved ones included; each call makes new arrays.

        Raises:
            Timeout: it has not said it in time.
            PeerClosed: it ended, or closed the conversation.
        """
        left = float("inf") if timeout is None else timeout
        while True:
            was_alive = alive()
            message: Features | None = self._trainer.receive(min(_SLICE, left))
            if message is not None:
                return message
            left -= _SLICE
            if not was_alive:
                raise PeerClosed(f"the compiler at {self._spec} has left")
            if left <= 0:
                raise Timeout(
                    f"the compiler at {self._spec} said nothing within {timeout} s"
                )

    def close(self) -> None:
        """Ends the conversation."""
        self._trainer.close()
        self._forget_name()

    def _forget_name(self) -> None:
        if self._folder is not None:
            self._folder.close()
            self._folder = None
