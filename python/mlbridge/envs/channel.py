# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The channels that connect a trainer to a compiler that serves an environment."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Protocol

from mlbridge import _core, grpc
from mlbridge.errors import InvalidArgument, PeerClosed, SchemaMismatch, Timeout
from mlbridge.files import OwnFolder, spec_of
from mlbridge.listeners import local_listener
from mlbridge.printable import names
from mlbridge.types import Features

Alive = Callable[[], bool]
"""A function that returns whether the compiler's process still runs."""

_SLICE = 0.1
"""Seconds between two checks that the compiler is alive, during a wait."""


class EnvironmentChannel(Protocol):
    """A channel for one session. Create it before the compiler is started.

    A channel may be used by one thread at a time. After an exception of `connect`,
    `send` or `receive`, only `close` may be called.
    """

    @property
    def spec(self) -> str:
        """The spec that the compiler must pass to serveEnvironment."""

    def connect(self, timeout: float | None, alive: Alive) -> None:
        """Waits for the compiler to connect.

        Args:
            timeout: seconds to wait. None waits as long as the compiler is alive.
            alive: returns whether the compiler's process still runs.

        Raises:
            Timeout: the compiler did not connect in time.
            PeerClosed: the compiler ended before it connected.
            SchemaMismatch: the compiler does not serve an environment.
        """

    def send(self, message: Mapping[str, Any]) -> None:
        """Sends a command, such as a step with its action, without waiting."""

    def receive(self, timeout: float | None, alive: Alive) -> Features:
        """Waits for the compiler's reply to the last message.

        Returns:
            All tensors by name, also tensors with reserved names. Arrays are views that
            are valid until the next call.

        Raises:
            Timeout: the compiler did not reply in time.
            PeerClosed: the compiler ended or closed the session.
        """

    def close(self) -> None:
        """Ends the session and frees its resources."""


def open_channel(spec: str, formats: Sequence[_core.Format] = ()) -> EnvironmentChannel:
    """Opens a channel for one compiler. Raises InvalidArgument for an invalid spec.

    The spec is a model spec, for example ``shm:/tmp/trainer?serdes=json``. If the spec
    has no name (``pipe``, ``shm:?serdes=json``), the channel listens at a private name,
    which is removed after the handshake. ``formats`` are additional SerDes.
    """
    scheme = spec.partition(":")[0].partition("?")[0]
    if scheme in ("pipe", "shm"):
        return LocalChannel(spec, formats)
    if scheme in ("grpc", "grpc+unix"):
        return grpc.TrainingChannel(spec, formats=formats)
    raise InvalidArgument(
        f"spec {spec!r}: expected pipe, shm or grpc for an environment, found"
        f" {scheme!r}"
    )


class LocalChannel:
    """A channel that uses pipes or shared memory. The trainer listens on it.

    The compiler's observations are sent as requests, and the commands as replies.
    """

    def __init__(self, spec: str, formats: Sequence[_core.Format] = ()) -> None:
        """Starts to listen at the spec, which `open_channel` describes."""
        address, question_mark, options = spec.partition("?")
        scheme, _, name = address.partition(":")
        self._own = ExitStack()
        """Closing this stack removes the folder of a private name."""
        if not name:
            folder = self._own.enter_context(OwnFolder("mlbridge-"))
            address = spec_of(scheme, folder.path / "env")
        self.spec = f"{address}{question_mark}{options}"
        # Capture `warnings`, not self: a reference from the server to self would be a
        # cycle.
        warnings: deque[Exception] = deque(maxlen=1)
        self._warnings = warnings
        # Use only this option, because the other options are for the compiler.
        ours = [o for o in options.split("&") if o.startswith("max-message=")]
        try:
            path, _, _, max_message, _ = _core.server_spec(
                "?".join([address, *ours[:1]])
            )
            self._server = _core.Server(
                [
                    local_listener(
                        path,
                        bare_format="",
                        max_message=max_message,
                        formats=formats,
                    )
                ],
                on_warning=lambda _, why: warnings.append(why),
            )
        except BaseException:
            self._own.close()
            raise

    def connect(self, timeout: float | None, alive: Alive) -> None:
        """Waits for the compiler's first message. See `EnvironmentChannel`."""
        # Remove a private name now, because a trainer that crashes later cannot remove
        # it.
        with self._own:
            greeting = self.receive(timeout, alive)
        if "_ready" not in greeting:
            raise SchemaMismatch(
                f"process {self._server.pid} at {self.spec} asked for advice about"
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
                if not server.sessions:
                    why += (
                        "; expected it to call serveEnvironment with the value of"
                        " MLBRIDGE_SPEC"
                    )
                did = "disconnected" if server.sessions else "did not connect"
                raise PeerClosed(f"the compiler at {self.spec} {did}{why}")
            if left == 0:
                did = "sent nothing" if server.sessions else "did not connect"
                raise Timeout(
                    f"the compiler at {self.spec} {did} within {timeout:.3g} s"
                )
            # After the process has ended, receive once more: a message may be queued.
            was_alive = alive()

    def close(self) -> None:
        """Ends the session. See `EnvironmentChannel`."""
        self._server.close()
        self._own.close()
