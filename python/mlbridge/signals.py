# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Handles Ctrl-C and SIGTERM, so that a server can finish its current request."""

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

_Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None
_DEFAULTS: dict[int, _Handler] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}


class _OwnHandler:
    """A signal handler that calls a function."""

    def __init__(self, function: Callable[[int], None]) -> None:
        self._function = function

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._function(number)


@contextmanager
def _handling(numbers: Iterable[int], handle: Callable[[int], None]) -> Iterator[None]:
    """Replaces Python's default handlers of some signals, in the main thread only."""
    is_main = threading.current_thread() is threading.main_thread()
    ours = [n for n in numbers if is_main and signal.getsignal(n) == _DEFAULTS[n]]
    for number in ours:
        signal.signal(number, _OwnHandler(handle))
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, _DEFAULTS[number])


@contextmanager
def stops_gracefully(stop: Callable[[], None]) -> Iterator[None]:
    """Calls a function at the first SIGINT or SIGTERM, and interrupts at the second.

    The function must cause the body to end soon. Then KeyboardInterrupt is raised for
    SIGINT, and SystemExit for SIGTERM. Has no effect on signals for which the program
    has a handler, and no effect outside the main thread.
    """
    caught: list[int] = []

    def handle(number: int) -> None:
        caught.append(number)
        if len(caught) > 1:
            _interrupt(number)
        stop()

    with _handling(_DEFAULTS, handle):
        yield
        if caught:
            _interrupt(caught[0])


@contextmanager
def sigterm_exits() -> Iterator[None]:
    """Makes SIGTERM raise SystemExit, so that `finally` clauses of the body run.

    Has no effect outside the main thread, or if the program already has a handler for
    SIGTERM.
    """
    with _handling([signal.SIGTERM], _interrupt):
        yield


def _interrupt(number: int) -> NoReturn:
    """Raises KeyboardInterrupt for SIGINT and SystemExit for SIGTERM."""
    raise KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)


class _Fork(threading.local):
    """Gives a forked child the default handlers instead of each `_OwnHandler`.

    The signals are blocked during the fork, so that the child cannot lose one, for
    example the SIGTERM of multiprocessing.Pool.terminate(). A handler in Python would
    lose a signal that arrives just before the child waits for a lock.
    """

    own: tuple[int, ...] = ()
    mask: frozenset[int] = frozenset()

    def before(self) -> None:
        self.own = tuple(
            number
            for number in _DEFAULTS
            if isinstance(signal.getsignal(number), _OwnHandler)
        )
        if self.own:
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, self.own)
            self.mask = frozenset(mask)

    def after_in_parent(self) -> None:
        if self.own:
            signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)

    def after_in_child(self) -> None:
        for number in self.own:
            signal.signal(number, _DEFAULTS[number])
        self.after_in_parent()


_fork = _Fork()
os.register_at_fork(
    before=_fork.before,
    after_in_parent=_fork.after_in_parent,
    after_in_child=_fork.after_in_child,
)
