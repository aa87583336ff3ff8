# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where compilers come to a model: from specs to a listening server."""

import logging
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from os import PathLike

from mlbridge import _core, grpc
from mlbridge.errors import InvalidArgument
from mlbridge.files import spec_of

logger = logging.getLogger("mlbridge")

MAX_MESSAGE = 1 << 30
"""The longest message in bytes that a compiler may announce, unless told otherwise."""

PEER_TIMEOUT = 10.0
"""Seconds that a compiler may take to accept an answer, unless told otherwise."""

MAX_SESSIONS = 4096
"""How many compilers a server may have at a time, unless told otherwise."""

Address = str | PathLike[str]
"""Where to serve: a model spec such as ``pipe:/tmp/advisor``, or a path."""


def local_listener(
    name: str,
    serdes: str | None,
    *,
    max_message: int = MAX_MESSAGE,
    max_sessions: int = MAX_SESSIONS,
    peer_timeout: float = PEER_TIMEOUT,
    formats: Sequence[_core.Format] = (),
) -> _core.Listener:
    """Listens at NAME.sock and, if bare compilers speak a SerDes, at its FIFOs."""
    return _core.local_listener(
        name,
        bare_format=serdes or "",
        max_message=max_message,
        max_sessions=max_sessions,
        peer_timeout=peer_timeout,
        formats=formats,
    )


def open_listeners(
    addresses: Iterable[Address], formats: Sequence[_core.Format] = ()
) -> list[_core.Listener]:
    """A listener for each place; ``pipe:NAME`` and ``shm:NAME`` share one.

    Raises:
        InvalidArgument: a spec has a mistake, or two contradict each other.
        OSFailure: a name is taken by a live server, or not writable.
    """
    # By the local name: what bare compilers speak there, and the limits.
    local: dict[str, tuple[str | None, tuple[int, int]]] = {}
    remote: list[str] = []
    for place in addresses:
        spec = place if isinstance(place, str) else spec_of("pipe", place)
        if grpc.is_named_in(spec):
            remote.append(spec)
            continue
        name, serdes, bare, max_message, max_sessions = _core.server_spec(spec)
        wanted = (serdes if bare else None, (max_message, max_sessions))
        known = local.get(name, wanted)
        # Whether bare compilers are welcome is for the pipe to say.
        if known[1] != wanted[1] or (known[0] and wanted[0] not in (known[0], None)):
            raise InvalidArgument(
                f"'{spec}' contradicts another place of the same name; give both the "
                f"same options"
            )
        local[name] = (known[0] or wanted[0], wanted[1])
    return [
        local_listener(
            name,
            serdes,
            max_message=max_message,
            max_sessions=max_sessions,
            formats=formats,
        )
        for name, (serdes, (max_message, max_sessions)) in local.items()
    ] + [
        grpc.listener(spec, peer_timeout=PEER_TIMEOUT, formats=formats)
        for spec in remote
    ]


class RareLog:
    """Tells of events without a line for each.

    The first of a kind is the caller's to tell of. The others are counted, and told
    every few seconds at most, and in the end: how many there were since the last time,
    how many in all, and what the last one was.
    """

    _INTERVAL = 5.0
    _KINDS = 16

    def __init__(self, tell_more: Callable[[int, int, str], None]) -> None:
        self.total = 0
        self._tell_more = tell_more
        self._silent = 0
        self._kinds: set[Hashable] = set()
        self._next = 0.0
        self._last = ""

    def is_first(self, kind: Hashable, what: str) -> bool:
        """Counts an event: whether it is the first of its kind, or kept for later."""
        self.total += 1
        self._last = what
        now = time.monotonic()
        if kind not in self._kinds and len(self._kinds) < self._KINDS:
            self._kinds.add(kind)
            self._next = now + self._INTERVAL
            return True
        self._silent += 1
        if now >= self._next:
            self.tell()
        return False

    def tell(self) -> None:
        """Tells how many there were since the last line, if any."""
        if self._silent:
            self._tell_more(self._silent, self.total, self._last)
        self._silent = 0
        self._next = time.monotonic() + self._INTERVAL


class Warnings:
    """Logs what befell compilers: broken sessions, and refusals without a line each."""

    # The server's words for one.
    _REFUSAL = "refused a compiler"

    def __init__(self) -> None:
        self._refusals = RareLog(_tell_more_refusals)

    def __call__(self, what: str, why: Exception) -> None:
        """Takes what a server warns of."""
        if what != self._REFUSAL or self._refusals.is_first(str(why), str(why)):
            logger.warning("%s: %s", what, why)

    def tell(self) -> None:
        """Tells how many were refused since the last line, if any."""
        self._refusals.tell()


def _tell_more_refusals(count: int, total: int, last: str) -> None:
    if count == 1:
        logger.warning("refused a compiler, %d in all: %s", total, last)
    else:
        logger.warning("refused %d more compilers, %d in all: %s", count, total, last)


def open_server(
    listeners: list[_core.Listener], warnings: Warnings | None = None
) -> _core.Server:
    """A listening server that reports refusals and broken sessions to the log."""
    return _core.Server(listeners, on_warning=warnings or Warnings())
