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


class _OwnHandler:
    """A handler of this module; its function is not called in a forked child."""

    def __init__(self, function: Callable[[int], None]) -> None:
        self._function = function
        self._process = os.getpid()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:
            _default(number)
        self._function(number)


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

    def handle(number: int) -> None:
        caught.append(number)
        if len(caught) > 1:
            raise _exception_for(number)
        stop()

    for number in ours:
        signal.signal(number, _OwnHandler(handle))
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

    def handle(number: int) -> None:
        raise _exception_for(number)

    signal.signal(signal.SIGTERM, _OwnHandler(handle))
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


class _Fork(threading.local):
    """Blocks the signals of _OwnHandler while a thread forks.

    Python forgets what a child receives before it has run Python code: a SIGTERM sent
    at once, as by multiprocessing.Pool.terminate(), would be lost.
    """

    mask: set[signal.Signals] | None = None

    def before(self) -> None:
        numbers = (signal.SIGINT, signal.SIGTERM)
        own = [n for n in numbers if isinstance(signal.getsignal(n), _OwnHandler)]
        if own:
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, own)
            self.mask = {signal.Signals(number) for number in mask}

    def after(self) -> None:
        mask, self.mask = self.mask, None
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


_fork = _Fork()
os.register_at_fork(
    before=_fork.before, after_in_parent=_fork.after, after_in_child=_fork.after
)
