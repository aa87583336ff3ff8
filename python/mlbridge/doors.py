# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where compilers come to a model: from specs to a listening server."""

import logging
from collections.abc import Iterable, Sequence
from os import PathLike, fspath

from mlbridge import _core, grpc
from mlbridge.errors import InvalidArgument

logger = logging.getLogger("mlbridge")

MAX_MESSAGE = 1 << 30
"""The longest message in bytes that a compiler may announce, unless told otherwise."""

PEER_TIMEOUT = 10.0
"""Seconds that a compiler may take to accept an answer, unless told otherwise."""

MAX_SESSIONS = 4096
"""How many compilers a server may have at a time, unless told otherwise."""

Place = str | PathLike[str]
"""Where to serve: a model spec such as ``pipe:/tmp/advisor``, or a path."""


def local_door(
    name: str,
    serdes: str | None,
    *,
    max_message: int = MAX_MESSAGE,
    max_sessions: int = MAX_SESSIONS,
    peer_timeout: float = PEER_TIMEOUT,
    formats: Sequence[_core.Format] = (),
) -> _core.Door:
    """Listens at NAME.sock and, if bare compilers speak a SerDes, at its FIFOs."""
    return _core.local_door(
        name,
        bare_format=serdes or "",
        max_message=max_message,
        max_sessions=max_sessions,
        peer_timeout=peer_timeout,
        formats=formats,
    )


def open_doors(
    places: Iterable[Place], formats: Sequence[_core.Format] = ()
) -> list[_core.Door]:
    """A door for each place; ``pipe:NAME`` and ``shm:NAME`` share one.

    Raises:
        InvalidArgument: a spec has a mistake, or two contradict each other.
        OSFailure: a name is taken by a live server, or not writable.
    """
    # By the local name: what bare compilers speak there, and the limits.
    local: dict[str, tuple[str | None, tuple[int, int]]] = {}
    remote: list[str] = []
    for place in places:
        spec = place if isinstance(place, str) else f"pipe:{fspath(place)}"
        if grpc.is_named_in(spec):
            remote.append(spec)
            continue
        name, serdes, bare, *limits = _core.server_spec(spec)
        wanted = (serdes if bare else None, (limits[0], limits[1]))
        known = local.get(name, wanted)
        # Whether bare compilers are welcome is for the pipe to say.
        if known[1] != wanted[1] or (known[0] and wanted[0] not in (known[0], None)):
            raise InvalidArgument(
                f"'{spec}' contradicts another place of the same name; give both the "
                f"same options"
            )
        local[name] = (known[0] or wanted[0], wanted[1])
    return [
        local_door(
            name,
            serdes,
            max_message=max_message,
            max_sessions=max_sessions,
            formats=formats,
        )
        for name, (serdes, (max_message, max_sessions)) in local.items()
    ] + [grpc.door(spec, peer_timeout=PEER_TIMEOUT, formats=formats) for spec in remote]


def open_server(doors: list[_core.Door]) -> _core.Server:
    """A listening server that reports broken sessions to the log."""
    return _core.Server(doors, on_warning=_log_warning)


def _log_warning(what: str, why: Exception) -> None:
    logger.warning("%s: %s", what, why)
