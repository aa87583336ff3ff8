# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Serves a policy to compilers. A policy is a function from features to advice."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
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
    """Shortens and escapes a traceback, because it may quote bytes of a compiler."""
    if record.exc_info and not record.exc_text:
        record.exc_text = lines(logging.Formatter().formatException(record.exc_info))
    return True


logger.addFilter(_bound_traceback)

OnError = Literal["reply", "raise"]

MAX_DELAY = 1.0
"""The maximum ``max_delay`` in seconds. Ctrl-C may be delayed by this time."""

LATENCY_INTERVAL = 0.25
"""Seconds between two updates of `Statistics.latencies`."""


_SIMILAR = 5
"""The maximum number of similar features in the error for an unknown feature."""


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


@dataclass
class Statistics:
    """The counts of a server, which are updated while the server runs."""

    sessions: int = 0
    """The number of sessions since the server started."""
    open: int = 0
    """The number of sessions that are open."""
    refused: int = 0
    """The number of compilers that were refused, for example at ``max-sessions``."""
    requests: int = 0
    """The number of requests since the server started."""
    batches: int = 0
    """The number of calls of the policy."""
    deferred: int = 0
    """The number of requests for which the policy left the decision to the compiler."""
    errors: int = 0
    """The number of requests for which the policy failed or the reply was not sent."""
    mistyped: int = 0
    """The number of replies whose type differs from the type that the compiler's first
    request asked for. The compiler may be unable to use these replies."""
    policy_seconds: float = 0.0
    """The time spent in the policy in seconds."""
    latencies: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """The median, 90th and 99th percentile of the latency in seconds, from request to
    reply. The values are 0 unless ``measure_latency`` is set."""

    @property
    def policy_microseconds(self) -> float:
        """The mean time in the policy per request, in microseconds."""
        return 1e6 * self.policy_seconds / self.requests if self.requests else 0.0

    @property
    def batch_size(self) -> float:
        """The mean number of requests per call of the policy."""
        return self.requests / self.batches if self.batches else 0.0

    def __str__(self) -> str:
        text = (
            f"{_count(self.requests, 'request')} of "
            f"{_count(self.sessions, 'compiler')}, "
            f"{self.deferred} deferred, {self.errors} failed, "
            f"{self.policy_microseconds:.1f} µs each in the policy"
        )
        if self.refused:
            text += f", {_count(self.refused, 'compiler')} refused"
        if self.mistyped:
            text += f", {self.mistyped} of another type than first asked for"
        if self.batches and self.requests > self.batches:
            text += f", {self.batch_size:.1f} at once"
        if any(self.latencies):
            median, p90, p99 = (1e6 * seconds for seconds in self.latencies)
            text += f"; latency {median:.0f} µs, p90 {p90:.0f}, p99 {p99:.0f}"
        return text


class _FailureLog(RareLog):
    """Logs failures of a policy. The first of each kind is logged with a traceback."""

    def note(self, failure: Exception, session: int, pid: int) -> None:
        """Counts a failure, and logs it if it is the first of its kind."""
        what = (
            f"a request of session {session} (process {pid}): "
            f"{words(_description_of(failure))}"
        )
        # Treat all replies that cannot be sent as one kind.
        is_unsent = isinstance(failure, Error) and failure.session != 0
        kind = (type(failure), *(("", 0) if is_unsent else _origin_of(failure)))
        if self.is_first(kind, what):
            logger.error("the policy failed on %s", what, exc_info=failure)


def _log_more_failures(count: int, total: int, last: str) -> None:
    logger.error(
        "the policy failed on %s, %d in all; the last was %s",
        _count(count, "more request"),
        total,
        last,
    )


class _PolicyServer:
    """The loop that receives requests, calls the policy and sends the replies."""

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
        """Makes run() return soon. Thread-safe."""
        self._stopping = True
        self.server.stop()

    def interrupt(self) -> None:
        """Stops after the current request. Called at the first Ctrl-C."""
        self.stop()
        if self._is_replying:
            logger.warning(
                "ending after the current request; Ctrl-C again ends at once"
            )

    def run(self, sessions: int | None = None, timeout: float | None = None) -> None:
        """Serves requests until `stop` is called or a limit is reached. See `serve`."""
        try:
            self._run(sessions, timeout)
        finally:
            self._failures.flush()
            self._warnings.flush()

    def _run(self, sessions: int | None, timeout: float | None) -> None:
        # With `sessions`, wait in short steps, to notice that a session has ended.
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
                # Free the memory now, because the next request may come much later.
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
        """Updates `Statistics.latencies` if latencies are measured."""
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
        """Calls a batched policy for all requests. Returns false if this fails.

        The caller then calls the policy once per request, to find the request at fault.
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
            _note_features(failure, features)
            self.server.set_error(_description_of(failure), index)
            self._failed.append((failure, *self.server.client(index)))
            if self._raises:
                self._report_failures()

    def _report_failures(self) -> None:
        """Logs failures, but first sends the replies, because logging may be slow."""
        failed, self._failed = self._failed, []
        if failed and not self._raises:
            self._send()
        for failure, session, pid in failed:
            self._fail(failure, session, pid)

    def _send(self) -> None:
        """Sends the replies without waiting for another request."""
        try:
            self.server.send()
        except Error as unsent:
            self._fail_unsent(unsent)
        self._count()

    def _fail_unsent(self, unsent: Error) -> None:
        """Counts and logs all replies of a batch that could not be sent."""
        # Raise an error without a session, because then the server itself has failed.
        if not unsent.session:
            raise unsent
        for one in (unsent, *unsent.others):
            if one.session_ended:
                logger.warning("a session ended: %s", one)
            self._fail(one, one.session, one.pid)

    def _fail(self, failure: Exception, session: int, pid: int) -> None:
        """Raises a failure with on_error="raise", or else counts and logs it."""
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
    """Turns a batched policy into a policy for one request."""
    return lambda features: _replies_of(policy, [features])[0]


def _origin_of(failure: Exception) -> tuple[str, int]:
    """Returns the file and the line that raised an exception."""
    traceback = failure.__traceback__
    if traceback is None:
        return "", 0
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback.tb_frame.f_code.co_filename, traceback.tb_lineno


def _text_of(failure: Exception) -> str:
    """Returns the text of an exception, even if its ``__str__`` raises."""
    try:
        return str(failure)
    except Exception:
        return f"a {type(failure).__name__} without a text"


def _description_of(failure: Exception) -> str:
    notes = getattr(failure, "__notes__", ())
    return "; ".join([f"{type(failure).__name__}: {_text_of(failure)}", *notes])


def _note_features(failure: Exception, features: Any) -> None:
    """Adds the request's most similar features to the error for an unknown feature."""
    match failure:
        case KeyError(args=(str(key),)) if (
            isinstance(features, Mapping)
            and key not in features
            and not hasattr(failure, "__notes__")
        ):
            # Bound the search, because the compiler chooses the names.
            known = [feature for feature in islice(features, 256) if len(feature) < 64]
            similar = get_close_matches(key, known, _SIMILAR, 0)
            shown = ", ".join(f"'{name(feature)}'" for feature in similar)
            failure.add_note(
                f"the request has {_count(len(features), 'feature')}"
                + f", for example {shown}" * bool(similar)
            )


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

    Any number of compilers may connect. Each compiler has its own session. If a
    compiler dies, stalls or sends invalid bytes, only its session ends.

    After Ctrl-C or SIGTERM, the server stops when the current request is answered.
    After a second signal, it stops immediately. In both cases, SIGTERM raises
    SystemExit.

    Args:
        policy: a `Policy`, which is called with the features of each request, or a
            `batched` policy, which is called with a list of requests. The arrays are
            valid until the policy returns.
        at: an address, or a list of addresses. ``pipe:NAME`` may have the options
            ``serdes`` (for bare mode, without a handshake), ``bare=no``,
            ``max-message`` and ``max-sessions``. ``shm:NAME`` has no bare mode. A path
            is short for ``pipe:``. Compilers may connect to either kind of address with
            ``pipe:NAME`` or ``shm:NAME``.
        sessions: return when this many compilers have connected and disconnected.
        timeout: raise Timeout after this many seconds without a request.
        on_error: what to do if the policy raises, or if its advice cannot be sent.
            ``"reply"`` logs the exception and continues. ``"raise"`` raises the
            exception here. In either case, the compiler receives an error of code
            ``Model`` and makes the decision itself. In bare mode with the bitstream
            SerDes, a compiler cannot receive errors or deferrals, so its session ends.
        max_batch: the maximum number of requests in one call of a batched policy.
        max_delay: the maximum number of seconds to wait until a batch is full.
        measure_latency: whether to measure `Statistics.latencies`.
        statistics: an object to update while serving, for example to show it.
        formats: additional SerDes, for example from `mlbridge.protobuf.messages`.

    Returns:
        The statistics, after ``sessions`` or Ctrl-C. Then all files are removed.

    Raises:
        Timeout: no request came for ``timeout`` seconds.
        InvalidArgument: a spec is invalid.
        OSFailure: another server uses the path, or the path is not writable.
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
        # Return normally after Ctrl-C, so that the caller can report the statistics.
        logger.info("interrupted")
    finally:
        loop.note_latencies()
        loop.server.close()
    return loop.statistics


class Serving:
    """A policy that is served by a thread. `serving` creates it."""

    def __init__(self, loop: _PolicyServer) -> None:
        self._loop = loop
        self.statistics = loop.statistics
        """The counts since the server started."""
        self._failure: BaseException | None = None
        self._process = os.getpid()
        self._thread = threading.Thread(
            target=self._run, name=f"mlbridge {loop.server.name}", daemon=True
        )

    def _run(self) -> None:
        try:
            self._loop.run()
        except BaseException as failure:
            # Store the exception for finish(), which is not called at shutdown.
            self._failure = None if ending.has_begun else failure
        finally:
            # Close the sessions now, so that compilers do not wait for finish().
            self._loop.server.close()

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def finish(self) -> None:
        """Stops the thread. If the thread has raised an exception, raises it."""
        # Do nothing in a forked child, which does not have the thread.
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

    `serve` describes the arguments and errors. With ``on_error="raise"``, an exception
    is raised at the end of the ``with``.
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
