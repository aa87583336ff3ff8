# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Frees the library's resources when the interpreter shuts down.

At shutdown, Python stops daemon threads without cleanup. Without this module, their
sockets and FIFOs would remain, and nanobind would report their objects as leaked.
"""

import atexit
import os
import sys
import threading
import time

from mlbridge import _core

GRACE = 1.5
"""Seconds to wait for threads to end. Must exceed `MAX_DELAY`, the wait for a batch."""

_PROCESS = os.getpid()

has_begun = False
"""Whether the interpreter has begun to shut down."""


@atexit.register
def _end_waits() -> None:
    """Ends all waits in the library, and then joins the threads that waited."""
    global has_begun
    has_begun = True
    if os.getpid() != _PROCESS:
        # Do not report leaks in a forked child, which cannot free its parent's objects.
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
    # A thread that still runs keeps its objects alive. Such objects are not leaks.
    if _has_other_threads():
        _core.set_leak_warnings(value=False)


def _has_other_threads() -> bool:
    """Returns whether another thread, started by Python or C++, runs Python code."""
    return len(sys._current_frames()) > 1
