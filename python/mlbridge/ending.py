# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Frees the library's resources when the interpreter shuts down.

Python neither waits for daemon threads nor runs them again. Sockets and FIFOs that they
use would be left behind, and nanobind would report their objects as leaked.
"""

import atexit
import os
import sys
import threading
import time

from mlbridge import _core

GRACE = 1.5
"""Seconds that threads have to end; longer than `MAX_DELAY`, the wait for a batch."""

_PROCESS = os.getpid()

has_begun = False
"""True once the interpreter shuts down."""


@atexit.register
def _end_waits() -> None:
    """Ends the waits in the library, then joins the threads that waited."""
    global has_begun
    has_begun = True
    if os.getpid() != _PROCESS:
        # A forked child has its parent's objects, but not the threads that use them.
        _core.set_leak_warnings(value=False)
        return
    others = [t for t in threading.enumerate() if t is not threading.current_thread()]
    if not _has_other_threads():
        return
    users = _core.end_waits()
    if "mlbridge._grpc" in sys.modules:
        users += sys.modules["mlbridge._grpc"].end_waits()
    until = time.monotonic() + GRACE
    for thread in others:
        if thread.ident in users:
            thread.join(max(0.0, until - time.monotonic()))
    # The objects and globals of a thread that still runs are no leaks of the library.
    if _has_other_threads():
        _core.set_leak_warnings(value=False)


def _has_other_threads() -> bool:
    """True if another thread runs Python code, whether or not Python started it."""
    return len(sys._current_frames()) > 1
