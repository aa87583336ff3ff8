# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a trainer and a compiler talk: one small interface, one class a transport."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from mlbridge import _core, grpc
from mlbridge.errors import InvalidArgument, PeerClosed, SchemaMismatch, Timeout
from mlbridge.files import OwnFolder, spec_of
from mlbridge.listeners import local_listener
from mlbridge.printable import names
from mlbridge.types import Features

Alive = Callable[[], bool]
"""Whether the compiler's process still runs."""

_SLICE = 0.1
"""Seconds after which a wait looks whether the compiler is alive."""


class EnvironmentChannel(Protocol):
    """A conversation with one compiler, which is still to be started.

    Used by one thread at a time. After an exception of `connect`, `send` or `receive`
    the conversation is over; `close` is all that may be called then.
    """

    @property
    def spec(self) -> str:
        """What the compiler is to be told: the argument of its serveEnvironment."""

    def connect(self, timeout: float | None, alive: Alive) -> None:
        """Meets the compiler.

        Args:
            timeout: seconds to wait for it; None is for as long as it is alive.
            alive: whether there is still somebody to wait for.

        Raises:
            Timeout: it did not come.
            PeerClosed: it ended before.
            SchemaMismatch: it came, but serves no environment.
        """

    def send(self, message: Mapping[str, Any]) -> None:
        """Sends a command and its action; does not wait for the observation."""

    def receive(self, timeout: float | None, alive: Alive) -> Features:
        """Waits for what the compiler has to say to the last message.

        Returns:
            All tensors by name, reserved ones included. Arrays are views that show
            this message until the next call.

        Raises:
            Timeout: it has not said it in time.
            PeerClosed: it ended, or closed the conversation.
        """

    def close(self) -> None:
        """Ends the conversation, and leaves nothing behind."""


def open_channel(spec: str) -> EnvironmentChannel:
    """A channel for one compiler.

    Args:
        spec: a model spec as the compiler takes it, such as
            ``shm:/tmp/trainer?serdes=json``. Without a name (``pipe``,
            ``shm:?serdes=json``) the channel has one of its own, which nobody else
            knows and which is gone as soon as the two have met.

    Raises:
        InvalidArgument: the spec has a mistake.
    """
    scheme = spec.partition(":")[0].partition("?")[0]
    if scheme in ("pipe", "shm"):
        return LocalChannel(spec)
    if scheme in ("grpc", "grpc+unix"):
        return grpc.TrainingChannel(spec)
    raise InvalidArgument(
        f"spec {spec!r}: an environment is reached by pipe, shm or grpc, not by"
        f" {scheme!r}"
    )


class LocalChannel:
    """Pipes or shared memory: the trainer listens, as a model does.

    The compiler's observations are its requests, and the commands are the answers.
    """

    def __init__(self, spec: str) -> None:
        """Listens. See `open_channel`."""
        place, question_mark, options = spec.partition("?")
        scheme, _, name = place.partition(":")
        self._folder: OwnFolder | None = None
        if not name:
            self._folder = OwnFolder("mlbridge-")
            place = spec_of(scheme, self._folder.path / "env")
        self._spec = f"{place}{question_mark}{options}"
        # By value: the server must not hold who holds it.
        warnings: deque[Exception] = deque(maxlen=1)
        self._warnings = warnings
        try:
            # Of the compiler's options, one is ours too.
            ours = [o for o in options.split("&") if o.startswith("max-message=")]
            path, _, _, max_message, _ = _core.server_spec(
                place + ("?" + ours[0] if ours else "")
            )
            self._server = _core.Server(
                [local_listener(path, None, max_message=max_message)],
                on_warning=lambda _, why: warnings.append(why),
            )
        except BaseException:
            self._forget_name()
            raise

    @property
    def spec(self) -> str:
        """What the compiler is to be told."""
        return self._spec

    def _forget_name(self) -> None:
        """Removes the name: who has met needs it no more.

        From here on there is nothing that a trainer could leave behind, however it
        ends.
        """
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    def connect(self, timeout: float | None, alive: Alive) -> None:
        """Waits for the compiler's first message. See `EnvironmentChannel`."""
        try:
            greeting = self.receive(timeout, alive)
        finally:
            self._forget_name()
        if "_ready" not in greeting:
            raise SchemaMismatch(
                f"process {self._server.pid} at {self._spec} asked for advice about"
                f" {names(greeting) or 'nothing'}; expected an environment, which"
                " a compiler serves with serveEnvironment"
            )

    def send(self, message: Mapping[str, Any]) -> None:
        """Sends a message. See `EnvironmentChannel`."""
        self._server.set_message(dict(message))
        self._server.send()

    def receive(self, timeout: float | None, alive: Alive) -> Features:
        """Waits for a message. See `EnvironmentChannel`."""
        server = self._server
        until = None if timeout is None else time.monotonic() + timeout
        was_alive = True
        while True:
            left = _SLICE if until is None else max(0.0, until - time.monotonic())
            message = server.exchange(min(_SLICE, left))
            if message is not None:
                return message
            if not was_alive or (server.sessions and not server.open):
                why = f": {self._warnings[0]}" if self._warnings else ""
                raise PeerClosed(f"the compiler at {self._spec} has left{why}")
            if left == 0:
                did = "said nothing" if server.sessions else "did not come"
                raise Timeout(
                    f"the compiler at {self._spec} {did} within {timeout:.3g} s"
                )
            # What it said before it ended is looked for once more.
            was_alive = alive()

    def close(self) -> None:
        """Ends the conversation. See `EnvironmentChannel`."""
        self._server.close()
        self._forget_name()
