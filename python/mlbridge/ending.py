# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The end of the interpreter, while daemon threads of it are in the library.

Python does not wait for them, and never runs them again. So it would not free what they
use: sockets and FIFOs would be left behind, and nanobind tells of each object.
"""

import atexit
import os
import sys
import threading
import time

from mlbridge import _core

GRACE = 1.5
"""Seconds that these threads have to end; more than a batch may wait (`MAX_DELAY`)."""


_PROCESS = os.getpid()

has_begun = False
"""Whether the interpreter ends."""


@atexit.register
def _end_waits() -> None:
    """Ends what waits, and then the threads that waited."""
    global has_begun
    has_begun = True
    if os.getpid() != _PROCESS:
        # It no longer has its parent's threads, but still has the objects they use.
        _core.set_leak_warnings(value=False)
        return
    others = [t for t in threading.enumerate() if t is not threading.current_thread()]
    if not _has_other_threads():
        return
    users = _core.end_waits()
    if "mlbridge._grpc" in sys.modules:
        users += sys.modules["mlbridge._grpc"].end_waits()
    until = time.monotonic() + GRACE
    waiters = [thread for thread in others if thread.ident in users]
    for thread in waiters:
        thread.join(max(0.0, until - time.monotonic()))
    # A thread that lives on keeps what it has, and what its module's globals are, which
    # is no fault of the library's.
    if _has_other_threads():
        _core.set_leak_warnings(value=False)


def _has_other_threads() -> bool:
    """Whether Python code is in any other thread, whoever has started it."""
    return len(sys._current_frames()) > 1
