# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Serving a policy: a function from features to a decision, and nothing else."""

import logging
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from types import FrameType
from typing import Literal

from mlbridge import _core
from mlbridge.errors import Deferred, Error, Timeout
from mlbridge.interface import open_server
from mlbridge.types import Features, Policy

logger = logging.getLogger("mlbridge")

OnError = Literal["reply", "raise"]


@dataclass
class Statistics:
    """What a server has done so far; it changes while the server runs."""

    sessions: int = 0
    """Compilers met."""
    open: int = 0
    """Of these, still here."""
    questions: int = 0
    """Questions asked."""
    deferred: int = 0
    """Of these, left to the compiler."""
    errors: int = 0
    """Of these, on which the policy failed."""
    policy_seconds: float = 0.0
    """Time spent in the policy."""

    @property
    def policy_microseconds(self) -> float:
        """Mean time of the policy for one question."""
        return 1e6 * self.policy_seconds / self.questions if self.questions else 0.0

    def __str__(self) -> str:
        return (
            f"{self.questions} questions of {self.sessions} compilers, "
            f"{self.deferred} deferred, {self.errors} failed, "
            f"{self.policy_microseconds:.1f} us each in the policy"
        )


class _PolicyServer:
    """The loop between a server and a policy."""

    def __init__(
        self,
        policy: Policy,
        spec: str | PathLike[str],
        on_error: OnError,
        statistics: Statistics,
    ) -> None:
        if on_error not in ("reply", "raise"):
            raise ValueError(f"on_error is 'reply' or 'raise', found {on_error!r}")
        if isinstance(spec, str):
            name, serdes, bare, max_message = _core.server_spec(spec)
            self.server = open_server(name, serdes, bare=bare, max_message=max_message)
        else:
            self.server = open_server(fspath(spec), "bitstream")
        self.statistics = statistics
        self._policy = policy
        self._raises = on_error == "raise"
        self._stopping = False
        self._last_failure = ""

    def stop(self) -> None:
        """Makes run() return soon; may be called by any thread."""
        self._stopping = True
        self.server.stop()

    def run(self, sessions: int | None = None, timeout: float | None = None) -> None:
        """Answers until stopped, or as `serve` says."""
        server, statistics = self.server, self.statistics
        # That a session has ended is noticed between two waits.
        wait = timeout if sessions is None else min(0.05, timeout or 0.05)
        idle_since = time.monotonic()
        while True:
            try:
                features = server.exchange(wait)
            except Error as unsent:
                # An answer that does not fit the session's format has ended it;
                # what names no session is the server's own failure.
                if not unsent.session:
                    raise
                self._fail(unsent, unsent.session, unsent.pid)
                continue
            statistics.sessions = server.sessions
            statistics.open = server.open
            statistics.questions = server.questions
            if features is not None:
                self._answer(features)
                # The wait for the next question may be long.
                del features
                idle_since = time.monotonic()
            elif self._stopping or self._are_gone(sessions):
                return
            elif timeout is not None and time.monotonic() - idle_since >= timeout:
                raise Timeout(
                    f"no compiler asked the model at {server.name} within {timeout} s"
                )

    def _are_gone(self, sessions: int | None) -> bool:
        server = self.server
        return sessions is not None and server.sessions >= sessions and not server.open

    def _answer(self, features: Features) -> None:
        started = time.perf_counter()
        try:
            advice = self._policy(features)
            self.server.set_reply(advice)
            self.statistics.deferred += advice is None
        except Deferred as why:
            self.server.set_deferred(_text_of(why))
            self.statistics.deferred += 1
        except Exception as failure:
            self.server.set_error(_description_of(failure))
            self._fail(failure, self.server.session, self.server.pid)
        self.statistics.policy_seconds += time.perf_counter() - started

    def _fail(self, failure: Exception, session: int, pid: int) -> None:
        """Raises the failure, or logs it: the same one with its traceback once."""
        self.statistics.errors += 1
        if self._raises:
            try:
                self.server.send()
            finally:
                raise failure
        text = _description_of(failure)
        logger.error(
            "the policy failed on a question of session %d (process %d): %s",
            session,
            pid,
            text,
            exc_info=None if text == self._last_failure else failure,
        )
        self._last_failure = text


def _text_of(failure: Exception) -> str:
    """The text of an exception, even of one that cannot make it."""
    try:
        return str(failure)
    except Exception:
        return f"a {type(failure).__name__} without a text"


def _description_of(failure: Exception) -> str:
    return f"{type(failure).__name__}: {_text_of(failure)}"


def serve(
    policy: Policy,
    spec: str | PathLike[str],
    *,
    sessions: int | None = None,
    timeout: float | None = None,
    on_error: OnError = "reply",
    statistics: Statistics | None = None,
) -> Statistics:
    """Answers compilers with a policy, until Ctrl-C.

    SIGTERM, unless it is handled otherwise, ends the program as cleanly: it raises
    SystemExit here. (Python lets the main thread alone handle signals.)

    Such as::

        serve(lambda features: features["callee_size"] < 30, "pipe:/tmp/advisor")

    Args:
        policy: called with the features of each question; see `Policy` for what it
            may return. The arrays it gets show the question until it returns.
        spec: where to serve: ``pipe:NAME``, with the options ``serdes`` (what bare
            compilers speak), ``bare=no`` and ``max-message``; ``shm:NAME``, which
            has no bare compilers; or a path. Our own compilers come to each of them
            by pipe or by shm, as they like.
        sessions: return when so many compilers have come and gone.
        timeout: seconds without a question after which to give up.
        on_error: what happens when the policy raises, or returns what cannot be
            sent: ``"reply"`` logs the exception and goes on; ``"raise"`` raises it
            here. The compiler decides by itself in either case. It sees the error
            code ``Model`` with the exception's text, but where there is no way to
            tell it, its session ends: a bare compiler that speaks the bitstream
            (which can be told of no deferral either), or any one when the answer
            does not fit its format or ``max-message``.
        statistics: kept up to date while serving, for a thread that shows them.

    Returns:
        What was done, when ``sessions`` have gone or Ctrl-C was pressed; the files at
        the name are gone then.

    Raises:
        Timeout: nobody asked in time.
        InvalidArgument: the spec has a mistake.
        OSFailure: the name is taken by a live server, or not writable.
    """
    loop = _PolicyServer(policy, spec, on_error, statistics or Statistics())
    try:
        with sigterm_raises(SystemExit(128 + signal.SIGTERM)):
            loop.run(sessions, timeout)
    except KeyboardInterrupt:
        logger.info("interrupted; %s", loop.statistics)
    finally:
        loop.server.close()
    return loop.statistics


@contextmanager
def sigterm_raises(end: BaseException) -> Iterator[None]:
    """Lets SIGTERM raise the end, where it would end the process on the spot."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def raise_end(number: int, frame: FrameType | None) -> None:
        raise end

    signal.signal(signal.SIGTERM, raise_end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


class Serving:
    """A policy that is being served by a thread; see `serving`."""

    def __init__(self, loop: _PolicyServer) -> None:
        self._loop = loop
        self._failure: BaseException | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"mlbridge {loop.server.name}", daemon=True
        )

    @property
    def statistics(self) -> Statistics:
        """What has been done so far."""
        return self._loop.statistics

    def _run(self) -> None:
        try:
            self._loop.run()
        except BaseException as failure:
            # Raised again by finish().
            self._failure = failure

    def start(self) -> None:
        """Starts to answer."""
        self._thread.start()

    def finish(self) -> None:
        """Stops answering, cleans up, and raises what the thread ended with."""
        self._loop.stop()
        self._thread.join()
        self._loop.server.close()
        if self._failure is not None:
            raise self._failure


@contextmanager
def serving(
    policy: Policy, spec: str | PathLike[str], *, on_error: OnError = "reply"
) -> Iterator[Serving]:
    """Serves a policy in a thread while the body of a ``with`` runs.

    Such as::

        with serving(policy, "pipe:/tmp/advisor") as served:
            subprocess.run(["clang", ...], check=True)
        print(served.statistics)

    Args:
        policy: as for `serve`; it runs in the other thread.
        spec: as for `serve`.
        on_error: as for `serve`; with ``"raise"`` the exception is raised at the end
            of the ``with``.

    Raises:
        InvalidArgument: the spec has a mistake.
        OSFailure: the name is taken by a live server, or not writable.
    """
    served = Serving(_PolicyServer(policy, spec, on_error, Statistics()))
    served.start()
    try:
        yield served
    finally:
        served.finish()
