# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Serves a policy, a function from features to advice, to compilers."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, cast

from mlbridge import _core, ending
from mlbridge.batching import Batched, BatchPolicy
from mlbridge.errors import Deferred, Error, Timeout
from mlbridge.listeners import Address, RareLog, Warnings, open_listeners, open_server
from mlbridge.printable import lines, name, words
from mlbridge.signals import stops_gracefully
from mlbridge.types import Features, Policy

logger = logging.getLogger("mlbridge")


def _bound_traceback(record: logging.LogRecord) -> bool:
    """Makes a traceback short and printable: its text may quote a compiler's bytes."""
    if record.exc_info and not record.exc_text:
        record.exc_text = lines(logging.Formatter().formatException(record.exc_info))
    return True


logger.addFilter(_bound_traceback)

OnError = Literal["reply", "raise"]

MAX_DELAY = 1.0
"""The maximum ``max_delay`` in seconds; Ctrl-C may have to wait as long."""

LATENCY_INTERVAL = 0.25
"""Seconds between two updates of the latencies."""


@dataclass
class Statistics:
    """The counts of a server, updated while it runs."""

    sessions: int = 0
    """Sessions so far."""
    open: int = 0
    """Sessions that are open."""
    refused: int = 0
    """Compilers that got no session, such as those beyond ``max-sessions``."""
    requests: int = 0
    """Requests so far."""
    batches: int = 0
    """Calls of the policy."""
    deferred: int = 0
    """Requests whose decision the policy left to the compiler."""
    errors: int = 0
    """Requests that failed: the policy raised, or its advice could not be sent."""
    mistyped: int = 0
    """Replies of another type than the compiler's first request wanted. The server
    does not know whether the compiler could use them."""
    policy_seconds: float = 0.0
    """Seconds spent in the policy."""
    latencies: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """The median and the 90th and 99th percentile of the seconds from the arrival of a
    request to the sending of its reply; zeros unless `serve` measures them."""

    @property
    def policy_microseconds(self) -> float:
        """The mean time of the policy per request in microseconds."""
        return 1e6 * self.policy_seconds / self.requests if self.requests else 0.0

    @property
    def batch_size(self) -> float:
        """The mean number of requests per call of the policy."""
        return self.requests / self.batches if self.batches else 0.0

    def __str__(self) -> str:
        text = (
            f"{self.requests} requests of {self.sessions} compilers, "
            f"{self.deferred} deferred, {self.errors} failed, "
            f"{self.policy_microseconds:.1f} us each in the policy"
        )
        if self.refused:
            text += f", {self.refused} compiler{'s' * (self.refused > 1)} refused"
        if self.mistyped:
            text += f", {self.mistyped} of another type than first asked for"
        if self.batches and self.requests > self.batches:
            text += f", {self.batch_size:.1f} at once"
        if any(self.latencies):
            median, p90, p99 = (1e6 * seconds for seconds in self.latencies)
            text += f"; latency {median:.0f} us, p90 {p90:.0f}, p99 {p99:.0f}"
        return text


class _FailureLog(RareLog):
    """Logs the failures of a policy: the first of each kind with its traceback."""

    def note(self, failure: Exception, session: int, pid: int) -> None:
        """Counts a failure, and logs it unless another of its kind was logged."""
        what = (
            f"a request of session {session} (process {pid}): "
            f"{words(_description_of(failure))}"
        )
        # Replies that cannot be sent are one kind, wherever the exception was raised.
        is_unsent = isinstance(failure, Error) and failure.session != 0
        kind = (type(failure), *(("", 0) if is_unsent else _origin_of(failure)))
        if self.is_first(kind, what):
            logger.error("the policy failed on %s", what, exc_info=failure)


def _log_more_failures(count: int, total: int, last: str) -> None:
    logger.error(
        "the policy failed on %d more request%s, %d in all; the last was %s",
        count,
        "" if count == 1 else "s",
        total,
        last,
    )


class _PolicyServer:
    """The loop between a server and a policy."""

    def __init__(
        self,
        policy: Policy | Batched,
        at: Address | Sequence[Address],
        *,
        on_error: OnError,
        statistics: Statistics | None = None,
        max_batch: int = 1,
        max_delay: float = 0.0,
        measure_latency: bool = False,
        formats: Sequence[_core.Format] = (),
    ) -> None:
        if on_error not in ("reply", "raise"):
            raise ValueError(f"on_error is 'reply' or 'raise', found {on_error!r}")
        if max_batch < 1 or not 0 <= max_delay <= MAX_DELAY:
            raise ValueError(
                f"expected max_batch >= 1 and a max_delay from 0 to {MAX_DELAY} "
                f"seconds, found {max_batch} and {max_delay}"
            )
        addresses = [at] if isinstance(at, str | PathLike) else at
        self._warnings = Warnings()
        self.server = open_server(open_listeners(addresses, formats), self._warnings)
        self.statistics = statistics or Statistics()
        self._batched: Batched | None = policy if isinstance(policy, Batched) else None
        alone = _single(self._batched) if self._batched is not None else policy
        self._policy = cast("Policy", alone)
        self._max_batch = max_batch
        self._max_delay = max_delay
        self._raises = on_error == "raise"
        self._measures = measure_latency
        if measure_latency:
            self.server.measure_latencies()
        self._next_note = 0.0
        self._stopping = False
        self._is_replying = False
        self._failed: list[tuple[Exception, int, int]] = []
        self._failures = _FailureLog(_log_more_failures)

    def stop(self) -> None:
        """Makes run() return soon. May be called by any thread."""
        self._stopping = True
        self.server.stop()

    def interrupt(self) -> None:
        """Handles the first Ctrl-C: stops after the current request."""
        self.stop()
        if self._is_replying:
            logger.warning(
                "ending after the current request; Ctrl-C again ends at once"
            )

    def run(self, sessions: int | None = None, timeout: float | None = None) -> None:
        """Serves requests until stopped, or as the arguments of `serve` say."""
        try:
            self._run(sessions, timeout)
        finally:
            self._failures.flush()
            self._warnings.flush()

    def _run(self, sessions: int | None, timeout: float | None) -> None:
        # The end of a session is noticed only between two waits.
        wait = timeout if sessions is None else min(0.05, timeout or 0.05)
        idle_since = time.monotonic()
        while True:
            try:
                requests = self._next(wait)
            except Error as unsent:
                self._fail_unsent(unsent)
                continue
            self._count()
            if requests is not None:
                self._reply(requests)
                # The wait for the next request may be long.
                del requests
                self._report_failures()
                if self._stopping:
                    self._send()
                    return
                idle_since = time.monotonic()
            elif self._stopping or (
                sessions is not None
                and self.server.sessions >= sessions
                and not self.server.open
            ):
                return
            elif timeout is not None and time.monotonic() - idle_since >= timeout:
                raise Timeout(
                    f"no compiler asked the model at {name(self.server.name)} within "
                    f"{timeout} s"
                )

    def _next(self, wait: float | None) -> list[Features] | None:
        if self._batched is not None:
            return self.server.exchange_batch(self._max_batch, self._max_delay, wait)
        features = self.server.exchange(wait)
        return None if features is None else [features]

    def _count(self) -> None:
        server, statistics = self.server, self.statistics
        statistics.sessions = server.sessions
        statistics.open = server.open
        statistics.requests = server.requests
        statistics.batches = server.batches
        statistics.errors = self._failures.total + server.refused_requests
        statistics.refused = server.refused_compilers
        statistics.mistyped = server.mistyped
        if self._measures and time.monotonic() >= self._next_note:
            self._next_note = time.monotonic() + LATENCY_INTERVAL
            self.note_latencies()

    def note_latencies(self) -> None:
        """Updates the statistics' latencies, if they are measured."""
        if self._measures:
            median, p90, p99 = self.server.latencies([0.5, 0.9, 0.99])
            self.statistics.latencies = (median, p90, p99)

    def _reply(self, requests: list[Features]) -> None:
        started = time.perf_counter()
        self._is_replying = True
        if not self._reply_together(requests):
            for index, features in enumerate(requests):
                self._reply_to_one(self._policy, features, index)
        self._is_replying = False
        self.statistics.policy_seconds += time.perf_counter() - started

    def _reply_together(self, requests: list[Features]) -> bool:
        """Calls a batched policy once, if it succeeds for all requests together.

        Otherwise each request is asked alone, so that only those at fault fail.
        """
        if self._batched is None or len(requests) == 1:
            return False
        try:
            replies = _replies_of(self._batched, requests)
        except Exception:
            return False
        for index, reply in enumerate(replies):
            self._reply_to_one(lambda it: it, reply, index)
        return True

    def _reply_to_one(
        self, policy: Callable[[Any], Any], features: Any, index: int
    ) -> None:
        try:
            advice = policy(features)
            self.server.set_reply(advice, index)
            self.statistics.deferred += advice is None
        except Deferred as why:
            self.server.set_deferred(_text_of(why), index)
            self.statistics.deferred += 1
        except Exception as failure:
            self.server.set_error(_description_of(failure), index)
            self._failed.append((failure, *self.server.client(index)))
            if self._raises:
                self._report_failures()

    def _report_failures(self) -> None:
        """Sends the replies, then logs the failures, which may be slow."""
        failed, self._failed = self._failed, []
        if failed and not self._raises:
            self._send()
        for failure, session, pid in failed:
            self._fail(failure, session, pid)

    def _send(self) -> None:
        """Sends the last replies."""
        try:
            self.server.send()
        except Error as unsent:
            self._fail_unsent(unsent)
        self._count()

    def _fail_unsent(self, unsent: Error) -> None:
        """Counts the replies that could not be sent, one or more."""
        # An error without a session is a failure of the server itself.
        if not unsent.session:
            raise unsent
        for one in (unsent, *unsent.others):
            if one.session_ended:
                logger.warning("a session ended: %s", one)
            self._fail(one, one.session, one.pid)

    def _fail(self, failure: Exception, session: int, pid: int) -> None:
        """Raises the failure, or counts and logs it."""
        if self._raises:
            self._failures.total += 1
            try:
                self.server.send()
            finally:
                self._count()
                raise failure
        self._failures.note(failure, session, pid)


def _replies_of(policy: BatchPolicy, requests: list[Features]) -> list[Any]:
    replies = policy(requests)
    if isinstance(replies, str | Mapping):
        raise TypeError(
            "a batched policy returns a list or an array, one reply per request; "
            f"found {type(replies).__name__}"
        )
    if len(replies) != len(requests):
        raise ValueError(
            f"the policy gave {len(replies)} replies to {len(requests)} requests"
        )
    return list(replies)


def _single(policy: Batched) -> Policy:
    """A policy for one request at a time."""
    return lambda features: _replies_of(policy, [features])[0]


def _origin_of(failure: Exception) -> tuple[str, int]:
    """The file and the line that raised an exception."""
    traceback = failure.__traceback__
    if traceback is None:
        return "", 0
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback.tb_frame.f_code.co_filename, traceback.tb_lineno


def _text_of(failure: Exception) -> str:
    """The text of an exception, even if its ``__str__`` raises."""
    try:
        return str(failure)
    except Exception:
        return f"a {type(failure).__name__} without a text"


def _description_of(failure: Exception) -> str:
    return f"{type(failure).__name__}: {_text_of(failure)}"


def serve(
    policy: Policy | Batched,
    at: Address | Sequence[Address],
    *,
    sessions: int | None = None,
    timeout: float | None = None,
    on_error: OnError = "reply",
    max_batch: int = 1,
    max_delay: float = 0.0,
    measure_latency: bool = False,
    statistics: Statistics | None = None,
    formats: Sequence[_core.Format] = (),
) -> Statistics:
    """Serves a policy to compilers until Ctrl-C.

    Example::

        serve(lambda features: features["callee_size"] < 30, "pipe:/tmp/advisor")

    Any number of compilers may connect. Each has its own session, and one that dies,
    stalls or sends invalid bytes ends only its own. Ctrl-C or SIGTERM, unless the
    program handles them, ends the server after the current request, a second one at
    once; SIGTERM then raises SystemExit here.

    Args:
        policy: called with the features of each request; `Policy` says what it may
            return. Its arrays show the request until it returns. A policy marked as
            `batched` is called with a list of requests.
        at: the address to serve at, or several: ``pipe:NAME`` with the options
            ``serdes`` (of bare compilers), ``bare=no``, ``max-message`` and
            ``max-sessions`` (4096 by default); ``shm:NAME``, without bare compilers; or
            a path. Compilers with this library may use pipe or shm at either.
        sessions: return after so many compilers have connected and all have left.
        timeout: give up after so many seconds without a request.
        on_error: what to do if the policy raises or its advice cannot be sent (no
            tensor, a bool of 2, text that is not UTF-8, more than ``max-message``
            bytes). ``"reply"`` continues, and logs the first exception of each kind and
            the number of the others; ``"raise"`` raises the exception here. In either
            case the compiler gets an error of code ``Model`` with the exception's text,
            decides itself, and keeps its session. A bare compiler with the bitstream
            cannot be told: its session ends, as it does for a deferral.
        max_batch: the maximum number of requests in a call of a batched policy.
        max_delay: seconds that a request may wait for others to join its batch.
        measure_latency: measure the statistics' ``latencies``.
        statistics: updated while serving, for a thread that shows them.
        formats: more formats than this build has, such as those of
            `mlbridge.protobuf.messages`.

    Returns:
        The statistics, after ``sessions`` or Ctrl-C; the server's files are removed.

    Raises:
        Timeout: no request for ``timeout`` seconds.
        InvalidArgument: a spec is invalid.
        OSFailure: a live server uses the name, or it is not writable.
    """
    loop = _PolicyServer(
        policy,
        at,
        on_error=on_error,
        statistics=statistics,
        max_batch=max_batch,
        max_delay=max_delay,
        measure_latency=measure_latency,
        formats=formats,
    )
    logger.info("serving at %s", name(loop.server.name))
    try:
        with stops_gracefully(loop.interrupt):
            loop.run(sessions, timeout)
    except KeyboardInterrupt:
        # The caller reports the statistics.
        logger.info("interrupted")
    finally:
        loop.note_latencies()
        loop.server.close()
    return loop.statistics


class Serving:
    """A policy that a thread serves; see `serving`."""

    def __init__(self, loop: _PolicyServer) -> None:
        self._loop = loop
        self.statistics = loop.statistics
        """The counts so far."""
        self._failure: BaseException | None = None
        self._process = os.getpid()
        self._thread = threading.Thread(
            target=self._run, name=f"mlbridge {loop.server.name}", daemon=True
        )

    def _run(self) -> None:
        try:
            self._loop.run()
        except BaseException as failure:
            # finish() raises it; no one calls finish() during interpreter shutdown.
            self._failure = None if ending.has_begun else failure
        finally:
            # Do not let compilers wait until the end of the `with`.
            self._loop.server.close()

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def finish(self) -> None:
        """Stops serving, cleans up, and raises the thread's exception, if any."""
        # A forked child does not have the thread.
        if os.getpid() != self._process:
            return
        self._loop.stop()
        self._thread.join()
        self._loop.server.close()
        if self._failure is not None:
            raise self._failure


@contextmanager
def serving(
    policy: Policy | Batched,
    at: Address | Sequence[Address],
    *,
    on_error: OnError = "reply",
    max_batch: int = 1,
    max_delay: float = 0.0,
    formats: Sequence[_core.Format] = (),
) -> Iterator[Serving]:
    """Serves a policy in a thread while the body of a ``with`` runs.

    Example::

        with serving(policy, "pipe:/tmp/advisor") as served:
            subprocess.run(["clang", ...], check=True)
        print(served.statistics)

    The arguments and errors are those of `serve`. With ``on_error="raise"`` the
    exception is raised at the end of the ``with``.
    """
    served = Serving(
        _PolicyServer(
            policy,
            at,
            on_error=on_error,
            max_batch=max_batch,
            max_delay=max_delay,
            formats=formats,
        )
    )
    served.start()
    try:
        yield served
    finally:
        served.finish()
