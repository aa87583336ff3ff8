# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Opens listeners for specs, and servers that log warnings."""

import logging
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from os import PathLike

from mlbridge import _core, grpc
from mlbridge.errors import InvalidArgument
from mlbridge.files import spec_of

logger = logging.getLogger("mlbridge")

MAX_MESSAGE = 1 << 30
"""The default maximum size of a compiler's message in bytes."""

PEER_TIMEOUT = 10.0
"""The default number of seconds within which a compiler must read a reply."""

MAX_SESSIONS = 4096
"""The default maximum number of open sessions of a server."""

Address = str | PathLike[str]
"""An address to serve at: a model spec such as ``pipe:/tmp/advisor``, or a path."""


local_listener = partial(
    _core.local_listener,
    max_message=MAX_MESSAGE,
    max_sessions=MAX_SESSIONS,
    peer_timeout=PEER_TIMEOUT,
)
"""Listens at NAME.sock. If ``bare_format`` is not "", also listens at two FIFOs."""


def open_listeners(
    addresses: Iterable[Address], formats: Sequence[_core.Format] = ()
) -> list[_core.Listener]:
    """Opens a listener per address. ``pipe:NAME`` and ``shm:NAME`` share a listener.

    Raises InvalidArgument if a spec is invalid or two specs conflict. Raises OSFailure
    if another server uses a path, or if the path is not writable.
    """
    # Maps names to (SerDes, max_message, max_sessions). Without bare mode, the SerDes
    # is "".
    local: dict[str, tuple[str, int, int]] = {}
    remote: list[str] = []
    for address in addresses:
        spec = address if isinstance(address, str) else spec_of("pipe", address)
        if grpc.is_named_in(spec):
            remote.append(spec)
            continue
        name, serdes, bare, max_message, max_sessions = _core.server_spec(spec)
        wanted = (serdes if bare else "", max_message, max_sessions)
        known = local.get(name, wanted)
        # An address without bare mode does not conflict with any SerDes.
        if known[1:] != wanted[1:] or (known[0] and wanted[0] not in (known[0], "")):
            raise InvalidArgument(
                f"'{spec}' contradicts another address of the same name; give both the "
                f"same options"
            )
        local[name] = (known[0] or wanted[0], max_message, max_sessions)
    return [
        local_listener(
            name,
            bare_format=bare_format,
            max_message=max_message,
            max_sessions=max_sessions,
            formats=formats,
        )
        for name, (bare_format, max_message, max_sessions) in local.items()
    ] + [
        grpc.listener(spec, peer_timeout=PEER_TIMEOUT, formats=formats)
        for spec in remote
    ]


class RareLog:
    """Limits how often similar events are logged.

    The caller logs the first event of each kind. For later events, ``log_more`` is
    called every few seconds and at the end. Its arguments are the number of events
    since the last call, the total number, and the last event.
    """

    _INTERVAL = 5.0
    _KINDS = 16

    def __init__(self, log_more: Callable[[int, int, str], None]) -> None:
        self.total = 0
        self._log_more = log_more
        self._silent = 0
        self._kinds: set[Hashable] = set()
        self._next = 0.0
        self._last = ""

    def is_first(self, kind: Hashable, what: str) -> bool:
        """Counts an event. Returns whether the caller must log it."""
        self.total += 1
        self._last = what
        now = time.monotonic()
        if kind not in self._kinds and len(self._kinds) < self._KINDS:
            self._kinds.add(kind)
            self._next = now + self._INTERVAL
            return True
        self._silent += 1
        if now >= self._next:
            self.flush()
        return False

    def flush(self) -> None:
        """Calls ``log_more`` if there were events since the last call."""
        if self._silent:
            self._log_more(self._silent, self.total, self._last)
        self._silent = 0
        self._next = time.monotonic() + self._INTERVAL


class Warnings:
    """Logs the warnings of a server. Refused compilers are logged with a `RareLog`."""

    def __init__(self) -> None:
        self._refusals = RareLog(_log_more_refusals)
        self.flush = self._refusals.flush

    def __call__(self, what: str, why: Exception) -> None:
        """Logs a warning of the C++ server, or only counts it."""
        is_refusal = what == "refused a compiler"
        if not is_refusal or self._refusals.is_first(str(why), str(why)):
            logger.warning("%s: %s", what, why)


def _log_more_refusals(count: int, total: int, last: str) -> None:
    if count == 1:
        logger.warning("refused a compiler, %d in all: %s", total, last)
    else:
        logger.warning("refused %d more compilers, %d in all: %s", count, total, last)


def open_server(
    listeners: list[_core.Listener], warnings: Warnings | None = None
) -> _core.Server:
    """Opens a server that logs refused compilers and failed sessions as warnings."""
    return _core.Server(listeners, on_warning=warnings or Warnings())
