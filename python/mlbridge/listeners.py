# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Opens the listeners of specs, and servers that log warnings."""

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
"""The default limit of a compiler's message in bytes."""

PEER_TIMEOUT = 10.0
"""The default time in seconds that a compiler may take to accept a reply."""

MAX_SESSIONS = 4096
"""The default limit of a server's open sessions."""

Address = str | PathLike[str]
"""Where to serve: a model spec such as ``pipe:/tmp/advisor``, or a path."""


local_listener = partial(
    _core.local_listener,
    max_message=MAX_MESSAGE,
    max_sessions=MAX_SESSIONS,
    peer_timeout=PEER_TIMEOUT,
)
"""Listens at NAME.sock and, if ``bare_format`` names a SerDes, at NAME's FIFOs."""


def open_listeners(
    addresses: Iterable[Address], formats: Sequence[_core.Format] = ()
) -> list[_core.Listener]:
    """Opens a listener for each address; ``pipe:NAME`` and ``shm:NAME`` share one.

    Raises InvalidArgument if a spec is invalid or two contradict each other, OSFailure
    if a live server uses a name or it is not writable.
    """
    # By local name: the SerDes of bare compilers or "", max_message and max_sessions.
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
        # An address without bare compilers, such as shm:NAME, fits any SerDes.
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

    The caller logs the first event of a kind. The others are logged together every few
    seconds and at the end, by ``log_more(new, total, last)``: the number since the last
    line, the number in all and the last event.
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
        """Counts an event. Returns true if the caller is to log it."""
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
        """Logs the events since the last line, if any."""
        if self._silent:
            self._log_more(self._silent, self.total, self._last)
        self._silent = 0
        self._next = time.monotonic() + self._INTERVAL


class Warnings:
    """Logs the warnings of a server: failed sessions, and refusals by a `RareLog`."""

    def __init__(self) -> None:
        self._refusals = RareLog(_log_more_refusals)
        self.flush = self._refusals.flush

    def __call__(self, what: str, why: Exception) -> None:
        """Takes a warning of the C++ server."""
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
    """A server that logs refusals and failed sessions as warnings."""
    return _core.Server(listeners, on_warning=warnings or Warnings())
