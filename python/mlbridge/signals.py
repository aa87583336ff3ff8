# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ending a server by Ctrl-C or a service manager, without cutting anybody off."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None


@contextmanager
def stops_gracefully(stop: Callable[[], None]) -> Iterator[None]:
    """Lets the first SIGINT or SIGTERM call a function, and a second one interrupt.

    What the body does after the first is its own affair; it should come to its end
    soon. Then KeyboardInterrupt is raised for SIGINT, and SystemExit for SIGTERM, with
    the status that shells expect. Signals that the program handles by itself, or that
    a thread other than the main one could not hear, are left as they are.
    """
    defaults: dict[int, _Handler] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
    }
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = [n for n, default in defaults.items() if signal.getsignal(n) == default]
    caught: list[int] = []
    process = os.getpid()

    def handle(number: int, frame: FrameType | None) -> None:
        if os.getpid() != process:
            _default(number)
        caught.append(number)
        if len(caught) > 1:
            raise _exception_for(number)
        stop()

    for number in ours:
        signal.signal(number, handle)
    try:
        yield
        if caught:
            raise _exception_for(caught[0])
    finally:
        for number in ours:
            signal.signal(number, defaults[number])


@contextmanager
def sigterm_exits() -> Iterator[None]:
    """Lets SIGTERM raise SystemExit, where it would end the process on the spot.

    So what the body has under way is ended in order. A SIGTERM that the program handles
    by itself, or that another thread than the main one could not hear, is left alone.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    process = os.getpid()

    def handle(number: int, frame: FrameType | None) -> None:
        if os.getpid() != process:
            _default(number)
        raise _exception_for(number)

    signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _default(number: int) -> None:
    """Ends a forked child as a signal does that nobody handles.

    It must not run its parent's clean-up.
    """
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _exception_for(number: int) -> BaseException:
    if number == signal.SIGINT:
        return KeyboardInterrupt()
    return SystemExit(128 + number)
