# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Serving a policy: a function from features to a decision, and nothing else."""

import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
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
    """Makes a record's traceback printable, whoever formats it.

    It ends with the exception's text, which may quote all that a compiler has sent.
    """
    if record.exc_info and not record.exc_text:
        record.exc_text = lines(logging.Formatter().formatException(record.exc_info))
    return True


logger.addFilter(_bound_traceback)

OnError = Literal["reply", "raise"]

MAX_DELAY = 1.0
"""The most seconds that a request may wait for others; Ctrl-C waits as long."""

LATENCY_INTERVAL = 0.25
"""Seconds between two looks at the latencies."""


@dataclass
class Statistics:
    """What a server has done so far; it changes while the server runs."""

    sessions: int = 0
    """Compilers met."""
    open: int = 0
    """Of these, still here."""
    refused: int = 0
    """Compilers that got no session, such as those beyond ``max-sessions``."""
    requests: int = 0
    """Requests asked."""
    batches: int = 0
    """Calls of the policy that they were answered by."""
    deferred: int = 0
    """Of these, left to the compiler."""
    errors: int = 0
    """Of these, without an answer to use: the policy raised, or what it returned could
    not be sent."""
    mistyped: int = 0
    """Of these, answered in another type than the compiler's first request wanted.
    Whether the compiler could use that is not known here."""
    policy_seconds: float = 0.0
    """Time spent in the policy."""
    latencies: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Seconds from a request's arrival to its answer's leaving: the median, and what
    90 and 99 of 100 stay below; zeros where `serve` was not told to measure."""

    @property
    def policy_microseconds(self) -> float:
        """Mean time of the policy for one request."""
        return 1e6 * self.policy_seconds / self.requests if self.requests else 0.0

    @property
    def batch_size(self) -> float:
        """Mean number of requests that the policy was given at once."""
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
    """Tells of a policy's failures: of the first of a kind with its traceback."""

    def __init__(self) -> None:
        super().__init__(_tell_more_failures)

    def note(self, failure: Exception, session: int, pid: int) -> None:
        """Counts a failure, and tells of it or keeps it."""
        what = (
            f"a request of session {session} (process {pid}): "
            f"{words(_description_of(failure))}"
        )
        # An answer that could not be sent is the policy's, wherever that is noticed.
        is_unsent = isinstance(failure, Error) and failure.session != 0
        kind = (type(failure), *(("", 0) if is_unsent else _origin_of(failure)))
        if self.is_first(kind, what):
            logger.error("the policy failed on %s", what, exc_info=failure)


def _tell_more_failures(count: int, total: int, last: str) -> None:
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
        statistics: Statistics,
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
        places = [at] if isinstance(at, str | PathLike) else at
        self._warnings = Warnings()
        self.server = open_server(open_listeners(places, formats), self._warnings)
        self.statistics = statistics
        self._policy = policy
        self._is_batched = isinstance(policy, Batched)
        # A function of one request gains nothing from several.
        self._max_batch = max_batch if self._is_batched else 1
        self._max_delay = max_delay
        self._raises = on_error == "raise"
        self._measures = measure_latency
        if measure_latency:
            self.server.measure_latencies()
        self._next_note = 0.0
        self._stopping = False
        self._is_replying = False
        self._failed: list[tuple[Exception, int, int]] = []
        self._failures = _FailureLog()

    def stop(self) -> None:
        """Makes run() return soon; may be called by any thread."""
        self._stopping = True
        self.server.stop()

    def interrupt(self) -> None:
        """What the first Ctrl-C does: stop(), and a word where that takes a while."""
        self.stop()
        if self._is_replying:
            logger.warning(
                "ending after the request at hand; Ctrl-C again ends at once"
            )

    def run(self, sessions: int | None = None, timeout: float | None = None) -> None:
        """Answers until stopped, or as `serve` says."""
        try:
            self._run(sessions, timeout)
        finally:
            self._failures.tell()
            self._warnings.tell()

    def _run(self, sessions: int | None, timeout: float | None) -> None:
        # That a session has ended is noticed between two waits.
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
                self._tell_failures()
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
        if self._is_batched:
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
        """Takes the latencies so far to the statistics, if they are measured."""
        if self._measures:
            median, p90, p99 = self.server.latencies([0.5, 0.9, 0.99])
            self.statistics.latencies = (median, p90, p99)

    def _reply(self, requests: list[Features]) -> None:
        started = time.perf_counter()
        self._is_replying = True
        if self._is_batched:
            self._reply_together(requests)
        else:
            self._reply_to_one(cast("Policy", self._policy), requests[0], 0)
        self._is_replying = False
        self.statistics.policy_seconds += time.perf_counter() - started

    def _reply_together(self, requests: list[Features]) -> None:
        policy = cast("Batched", self._policy)
        try:
            replies = _replies_of(policy, requests)
        except Exception as failure:
            if len(requests) == 1:
                self._reply_to_one(_raising(failure), requests[0], 0)
                return
            # One compiler's nonsense is no reason to leave the others without an
            # answer: each is asked about alone, and the failure is its own.
            for index, features in enumerate(requests):
                self._reply_to_one(
                    lambda one: _replies_of(policy, [one])[0], features, index
                )
            return
        for index, reply in enumerate(replies):
            self._reply_to_one(_constant(reply), {}, index)

    def _reply_to_one(self, policy: Policy, features: Features, index: int) -> None:
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
                self._tell_failures()

    def _tell_failures(self) -> None:
        """Sends the answers, and then tells of the failures among them.

        Compilers wait, and a log may be slow.
        """
        failed, self._failed = self._failed, []
        if failed and not self._raises:
            self._send()
        for failure, session, pid in failed:
            self._fail(failure, session, pid)

    def _send(self) -> None:
        """Sends the last answers."""
        try:
            self.server.send()
        except Error as unsent:
            self._fail_unsent(unsent)
        self._count()

    def _fail_unsent(self, unsent: Error) -> None:
        """Counts the answers that could not be sent, of which there is one at least."""
        # What names no session is the server's own failure.
        if not unsent.session:
            raise unsent
        for one in (unsent, *unsent.others):
            if one.session_ended:
                logger.warning("a session ended: %s", one)
            self._fail(one, one.session, one.pid)

    def _fail(self, failure: Exception, session: int, pid: int) -> None:
        """Raises the failure, or counts it and tells of it."""
        if self._raises:
            self._failures.total += 1
            try:
                self.server.send()
            finally:
                self._count()
                raise failure
        self._failures.note(failure, session, pid)


def _replies_of(policy: BatchPolicy, requests: list[Features]) -> Sequence[Any]:
    replies = policy(requests)
    if isinstance(replies, str | Mapping):
        raise TypeError(
            "a batched policy returns a list or an array, one answer a request; "
            f"found {type(replies).__name__}"
        )
    if len(replies) != len(requests):
        raise ValueError(
            f"the policy gave {len(replies)} replies to {len(requests)} requests"
        )
    return replies


def _constant(reply: Any) -> Policy:
    return lambda _: reply


def _raising(failure: Exception) -> Policy:
    def policy(_: Features) -> Any:
        raise failure

    return policy


def _origin_of(failure: Exception) -> tuple[str, int]:
    """The file and the line that have raised it."""
    place = failure.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None:
        return "", 0
    return place.tb_frame.f_code.co_filename, place.tb_lineno


def _text_of(failure: Exception) -> str:
    """The text of an exception, even of one that cannot make it."""
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
    """Answers compilers with a policy, until Ctrl-C.

    Such as::

        serve(lambda features: features["callee_size"] < 30, "pipe:/tmp/advisor")

    Any number of compilers may come, each in a session of its own: one that dies,
    stalls or sends nonsense ends its own only. Ctrl-C and SIGTERM, unless the program
    handles them otherwise, end it after the request at hand is answered (a second one
    ends it at once); SIGTERM raises SystemExit here then.

    Args:
        policy: called with the features of each request; see `Policy` for what it
            may return. The arrays it gets show the request until it returns. One that
            is marked as `batched` is called with a list of them.
        at: where to serve, one place or several: ``pipe:NAME``, with the options
            ``serdes`` (what bare compilers speak), ``bare=no``, ``max-message`` and
            ``max-sessions`` (how many compilers the server has at a time: 4096);
            ``shm:NAME``, which has no bare compilers; or a path. Our own compilers come
            to each of them by pipe or by shm, as they like.
        sessions: return when so many compilers have come and gone.
        timeout: seconds without a request after which to give up.
        on_error: what happens when the policy raises, or returns what cannot be
            sent (a type that is no tensor, a bool of 2, text that is not UTF-8, more
            than ``max-message`` bytes): ``"reply"`` goes on, and logs the first
            exception of a kind, and how many more there are; ``"raise"`` raises it
            here. The compiler decides by itself in either case. It sees the error
            code ``Model`` with the exception's text, and its session goes on. Only a
            bare compiler that speaks the bitstream cannot be told: its session ends
            (as when it is deferred to).
        max_batch: the most requests that a batched policy gets at once.
        max_delay: seconds that a request may wait for others to join its batch.
        measure_latency: whether the statistics tell how long requests took.
        statistics: kept up to date while serving, for a thread that shows them.
        formats: what compilers may speak beside the formats of this build: messages
            of your own, by `mlbridge.protobuf.messages`.

    Returns:
        What was done, when ``sessions`` have gone or Ctrl-C was pressed; the files at
        the name are gone then.

    Raises:
        Timeout: nobody asked in time.
        InvalidArgument: a spec has a mistake.
        OSFailure: a name is taken by a live server, or not writable.
    """
    loop = _PolicyServer(
        policy,
        at,
        on_error=on_error,
        statistics=statistics or Statistics(),
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
        # What was done is for the caller to tell.
        logger.info("interrupted")
    finally:
        loop.note_latencies()
        loop.server.close()
    return loop.statistics


class Serving:
    """A policy that is being served by a thread; see `serving`."""

    def __init__(self, loop: _PolicyServer) -> None:
        self._loop = loop
        self._failure: BaseException | None = None
        self._process = os.getpid()
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
            # Raised again by finish(), which nobody waits for in the end.
            self._failure = None if ending.has_begun else failure
        finally:
            # Who still asks is not to wait for the end of the `with`.
            self._loop.server.close()

    def start(self) -> None:
        """Starts to answer."""
        self._thread.start()

    def finish(self) -> None:
        """Stops answering, cleans up, and raises what the thread ended with.

        Does nothing in a forked child, which has no such thread.
        """
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

    Such as::

        with serving(policy, "pipe:/tmp/advisor") as served:
            subprocess.run(["clang", ...], check=True)
        print(served.statistics)

    The arguments are those of `serve`; with ``on_error="raise"`` the exception is
    raised at the end of the ``with``.

    Raises:
        InvalidArgument: a spec has a mistake.
        OSFailure: a name is taken by a live server, or not writable.
    """
    served = Serving(
        _PolicyServer(
            policy,
            at,
            on_error=on_error,
            statistics=Statistics(),
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
