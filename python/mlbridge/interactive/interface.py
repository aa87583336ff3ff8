# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a stock LLVM tool and replies to its requests, by a loop or by functions."""

import contextlib
import os
import select
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, overload

from mlbridge.errors import (
    CompilerFailed,
    Deferred,
    InvalidArgument,
    Malformed,
    PeerClosed,
    Timeout,
)
from mlbridge.interactive.advisors import Advisor, AdvisorName, Tool, advisors, tool_of
from mlbridge.interactive.channel import Decoder, Header
from mlbridge.interactive.process import GuardedProcess
from mlbridge.interface import BaseCompilerInterface
from mlbridge.signals import sigterm_exits
from mlbridge.types import Features, Policy

# Seconds by which the guard's timeout is longer, so that this process reports it first.
_GUARD_PATIENCE = 0.25
# The number of characters of stderr that an error quotes.
_STDERR_TAIL = 2000


@dataclass(frozen=True)
class Conversation:
    """The requests of one advisor."""

    decisions: int
    """The number of requests with a reply."""
    contexts: tuple[str, ...]
    """The contexts: for the register allocator every function, also those without a
    request; for the inliner one with an empty name."""


@dataclass(frozen=True)
class CompileResult:
    """The result of a compile that this process did not kill."""

    command: tuple[str, ...]
    """The command with all flags."""
    returncode: int
    """The exit status; minus the signal's number if one ended it."""
    stdout: bytes
    stderr: str
    seconds: float
    """The duration, with the time of the decisions."""
    conversations: Mapping[AdvisorName, Conversation]
    """The requests by advisor."""

    @property
    def decisions(self) -> int:
        """The number of requests with a reply, of all advisors."""
        return sum(said.decisions for said in self.conversations.values())


class _Channel:
    """An advisor's pair of FIFOs, BASE.in and BASE.out."""

    def __init__(self, advisor: Advisor, base: Path, stack: ExitStack) -> None:
        self.advisor = advisor
        self.decisions = 0
        fds = []
        for suffix in (".in", ".out"):
            path = base.with_name(base.name + suffix)
            os.mkfifo(path, 0o600)
            # Opening read-write does not block. When a compiler closes its end, this
            # process gets no SIGPIPE, and another compiler can use the FIFO.
            fds.append(os.open(path, os.O_RDWR | os.O_NONBLOCK))
            stack.callback(os.close, fds[-1])
        self._replies, self.fd = fds
        self.decoder = Decoder(advisor.peer, self.fd, self._on_header)

    def reply(self, data: bytes) -> None:
        try:
            os.write(self._replies, data)
        except BlockingIOError:
            raise Malformed(
                f"{self.advisor.peer}: expected a compiler that reads its replies,"
                f" found {self.decisions} replies that it has not read"
            ) from None
        self.decisions += 1

    def _on_header(self, header: Header) -> None:
        self.advisor.check(header)
        # Drop replies that a process did not read before it died.
        with contextlib.suppress(BlockingIOError):
            while os.read(self._replies, 4096):
                pass


class InteractiveCompilerInterface(BaseCompilerInterface):
    """Runs a stock clang, opt or llc and receives its requests for decisions.

    Example::

        command = ["llc-22", "-O2", "-filetype=obj", "x.bc", "-o", "x.o"]
        with InteractiveCompilerInterface(command, "eviction") as compiler:
            for features in compiler:
                compiler.populate_buffer(int(features["mask"].argmax()))
        print(compiler.result.decisions)

    This object owns the compiler: its close, its garbage collection and the end of this
    process kill the compiler with its child processes and remove the FIFOs. Used by one
    thread at a time.
    """

    def __init__(
        self,
        command: Sequence[str | PathLike[str]],
        advisor: AdvisorName | Sequence[AdvisorName],
        *,
        tool: Tool | None = None,
        timeout: float = 300.0,
        decision_timeout: float | None = None,
        include_default: bool = True,
        cwd: str | PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Starts the compile.

        Args:
            command: clang, opt or llc with its arguments, without those that open the
                channels. clang may compile several files in several processes.
            advisor: the advisors that ask: ``"inliner"`` (clang, opt), ``"eviction"``
                or ``"priority"`` (clang, llc), or several of these.
            tool: the tool that the command runs, if its name does not tell.
            timeout: seconds for the whole compile, decisions included. It is enforced
                even if a decision hangs.
            decision_timeout: seconds until a request, or the end, after the start or a
                reply; None means only ``timeout`` applies.
            include_default: add LLVM's own decision, ``inlining_default``, to the
                inliner's requests; the advice None then stands for it.
            cwd: the working directory.
            env: all environment variables; None inherits those of this process.

        Raises:
            InvalidArgument: the advisor is unknown, or the tool does not have it.
            OSFailure: the command cannot be started.
        """
        words = [fspath(word) for word in command]
        if not words:
            raise InvalidArgument("expected a command, found an empty list")
        for limit in (timeout, decision_timeout):
            if limit is not None and not limit > 0:
                raise InvalidArgument(f"expected a time limit above 0, found {limit} s")
        chosen = advisors(advisor, kind := tool or tool_of(words[0]), include_default)
        self.name = words[0]
        """The name of this compile in errors."""
        self.timeout = timeout
        self.decision_timeout = decision_timeout
        self._owner = os.getpid()
        self._result: CompileResult | None = None
        self._asking: _Channel | None = None
        self._reply: bytes | None = None
        with ExitStack() as stack:
            folder = Path(tempfile.mkdtemp(prefix="mlbridge-llvm-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            self._channels = [
                _Channel(each, folder / each.name, stack) for each in chosen
            ]
            for each in chosen:
                for flag in each.flags(str(folder / each.name)):
                    words += ["-mllvm", flag] if kind == "clang" else [flag]
            # The result reports a crash, so clang need not write files about it.
            words += ["-fno-crash-diagnostics"] if kind == "clang" else []
            self._command = tuple(words)
            self._start = self._asked = time.monotonic()
            limit = timeout + _GUARD_PATIENCE
            self._process = GuardedProcess(words, folder, limit, cwd=cwd, env=env)
            self.pid = self._process.pid
            """The ID of the compile's process group."""
            stack.callback(self._process.kill)
            self._poll = select.poll()
            for channel in self._channels:
                self._poll.register(channel.fd, select.POLLIN)
            self._poll.register(self._process.fd, select.POLLIN)
            # Runs once: at close(), garbage collection or exit.
            self._finalizer = weakref.finalize(
                self, _release, stack.pop_all(), self._owner
            )

    @overload
    def evaluate(self, mode: None = None) -> Features: ...

    @overload
    def evaluate(self, mode: Literal["exit"]) -> None: ...

    def evaluate(self, mode: Literal["exit"] | None = None) -> Features | None:
        """Sends the stored reply and returns the next request's features.

        After any exception except InvalidArgument the compile has ended, and only
        `result` is left of it. Iteration (`__iter__`) stops at its end.

        Args:
            mode: ``"exit"`` sends the reply and returns None without waiting.

        Returns:
            The features by name: read-only arrays of LLVM's types and shapes; a scalar
            has shape [1]. They show this request until the next; ``x.copy()`` keeps
            one.

        Raises:
            PeerClosed: the compile has ended; see `result`.
            CompilerFailed: the compile has failed; a PeerClosed.
            Timeout: the compile exceeded a timeout, and was killed.
            Malformed, SchemaMismatch: the compiler does not follow LLVM's protocol, or
                has another version of it.
            OSFailure: the command cannot be run.
            InvalidArgument: the current request has no reply yet, or this process is a
                fork of the one that runs the compile.
        """
        if mode == "exit":
            self._send()
            return None
        features = self._next()
        if features is None:
            raise PeerClosed(f"{self.name} has ended, and sends no more requests")
        return features

    def __iter__(self) -> Iterator[Features]:
        """Yields the requests until the compile has ended successfully."""
        while (features := self._next()) is not None:
            yield features

    def populate_buffer(self, advice: Any) -> None:
        """Stores the reply to the current request, which `evaluate` sends.

        Args:
            advice: a number of Python or NumPy, an array or CPU tensor of one element,
                or a dict of one of these under the advice's name. The inliner takes 0,
                1, a bool, or None for LLVM's own decision; eviction takes an index
                where ``mask`` is 1; priority takes 0 or more.

        Raises:
            SchemaMismatch, Unsupported: the advice is illegal; ends the compile.
            InvalidArgument: no request waits for a reply.
        """
        self._check_process()
        if self._asking is None:
            raise InvalidArgument(f"{self.name}: no request waits for a reply")
        channel = self._asking
        try:
            self._reply = channel.advisor.encode(advice, channel.decoder.features)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the compile, if it runs, and cleans up."""
        self._asking = self._reply = None
        self._finalizer()

    @property
    def advisor(self) -> AdvisorName | None:
        """The advisor of the current request."""
        return self._asking.advisor.name if self._asking else None

    @property
    def context(self) -> str:
        """The current request's context: for the register allocator the function."""
        return self._asking.decoder.context if self._asking else ""

    @property
    def headers(self) -> dict[AdvisorName, Header]:
        """The header of each advisor that has sent one."""
        return {
            channel.advisor.name: channel.decoder.header
            for channel in self._channels
            if channel.decoder.header is not None
        }

    @property
    def result(self) -> CompileResult:
        """The result; raises InvalidArgument if the compile runs, or was killed."""
        if self._result is None:
            raise InvalidArgument(f"{self.name} has no result: it runs, or was killed")
        return self._result

    def __repr__(self) -> str:
        state = "running" if self._result is None else f"{self._result.returncode}"
        return f"<{type(self).__name__} {self.name} ({state})>"

    def _check_process(self) -> None:
        if os.getpid() != self._owner:
            raise InvalidArgument(
                f"{self.name} was started by process {self._owner}, from which this one"
                " was forked; only that process can use it"
            )

    def _send(self) -> None:
        self._check_process()
        if self._asking is None:
            return
        if self._reply is None:
            raise InvalidArgument(
                f"{self.name}: the request of the {self.advisor} advisor has no reply"
            )
        try:
            self._asking.reply(self._reply)
        except BaseException:
            self.close()
            raise
        self._asking = self._reply = None
        self._asked = time.monotonic()

    def _next(self) -> Features | None:
        """Returns the next request, or None if the compile has ended successfully."""
        self._check_process()
        if self._result is not None:
            return None
        # After close() the descriptors may have been reused.
        if not self._finalizer.alive:
            raise PeerClosed(f"{self.name}: this compile has ended")
        self._send()
        try:
            while True:
                for channel in self._channels:
                    if channel.decoder.advance():
                        self._asking = channel
                        return channel.decoder.features.copy()
                if self._wait():
                    self._result = self._finish()
                    self.close()
                    return None
        except BaseException:
            self.close()
            raise

    def _wait(self) -> bool:
        """Waits for bytes and reads them. Returns true at the end of the compile."""
        ready = self._poll.poll(self._milliseconds_left())
        fds = [fd for fd, _ in ready]
        received = False
        for channel in self._channels:
            if channel.fd in fds:
                received |= channel.decoder.receive()
        if not ready:
            self._raise_timeout()
        return not received and self._process.fd in fds

    def _milliseconds_left(self) -> float:
        left = self._start + self.timeout
        if self.decision_timeout is not None:
            left = min(left, self._asked + self.decision_timeout)
        # poll() takes at most 31 bits.
        return min(max(0.0, (left - time.monotonic()) * 1000), 2**31 - 1)

    def _raise_timeout(self) -> None:
        now = time.monotonic()
        asked = sum(channel.decisions for channel in self._channels)
        if now >= self._start + self.timeout:
            raise Timeout(
                f"{self.name} has not ended within {self.timeout} s, and was ended"
                f" after {asked} decisions"
            )
        if self.decision_timeout and now >= self._asked + self.decision_timeout:
            raise Timeout(
                f"{self.name} has neither asked nor ended for"
                f" {self.decision_timeout} s, and was ended after {asked} decisions"
            )

    def _finish(self) -> CompileResult:
        status, stdout, stderr = self._process.finish()
        result = CompileResult(
            self._command,
            status,
            stdout,
            stderr,
            time.monotonic() - self._start,
            {
                channel.advisor.name: Conversation(
                    channel.decisions, tuple(channel.decoder.contexts)
                )
                for channel in self._channels
            },
        )
        if status != 0:
            # The guard may have killed it first.
            if result.seconds >= self.timeout:
                self._raise_timeout()
            self._result = result
            how = f"status {status}" if status > 0 else f"signal {-status}"
            failure = CompilerFailed(
                f"{self.name} ended with {how} after {result.decisions} decisions:"
                f" {stderr[-_STDERR_TAIL:].strip() or 'stderr is empty'}"
            )
            failure.returncode, failure.stderr = status, stderr
            raise failure
        for channel in self._channels:
            if channel.decoder.has_rest:
                raise Malformed(
                    f"{channel.advisor.peer}: expected the end of a message, found the"
                    " end of the compile"
                )
        return result


def _release(resources: ExitStack, owner: int) -> None:
    """Closes resources, except in a fork of the process that owns them."""
    if os.getpid() == owner:
        resources.close()


def compile_with_policy(
    command: Sequence[str | PathLike[str]],
    *,
    inliner: Policy | None = None,
    eviction: Policy | None = None,
    priority: Policy | None = None,
    tool: Tool | None = None,
    timeout: float = 300.0,
    decision_timeout: float | None = None,
    include_default: bool = True,
    check: bool = True,
    cwd: str | PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
) -> CompileResult:
    """Runs a stock clang, opt or llc whose decisions are made by functions.

    Example::

        compile_with_policy(
            ["llc-22", "-O2", "-filetype=obj", "x.bc", "-o", "x.o"],
            eviction=lambda features: features["mask"].argmax(),
            priority=lambda features: features["li_size"],
        )

    The compiler ends before this call does, also after an exception of a policy, Ctrl-C
    or SIGTERM; after kill -9 of this process it ends within milliseconds.

    ``inliner`` returns 0, 1 or a bool; None or raising `Deferred` leaves the decision
    to LLVM. ``eviction`` returns an index where ``features["mask"][0]`` is 1: the live
    range that loses its register. ``priority`` returns a number from 0 to 4294967040;
    the highest gets a register first. With ``check=False`` a failed compile returns a
    result. The other arguments are those of `InteractiveCompilerInterface`.

    Raises:
        CompilerFailed: the compiler ended with an error, or by a signal.
        Timeout: the compile exceeded a timeout, and was killed.
        SchemaMismatch, Unsupported: a policy returned illegal advice.
        Malformed: the compiler does not follow LLVM's protocol.
        InvalidArgument: an argument is invalid.
        OSFailure: the command cannot be run.
        Exception: an exception of a policy.
    """
    given: dict[AdvisorName, Policy | None] = {
        "inliner": inliner,
        "eviction": eviction,
        "priority": priority,
    }
    policies = {name: policy for name, policy in given.items() if policy is not None}
    if not policies:
        raise InvalidArgument(f"expected a policy for one of {', '.join(given)}")
    with (
        sigterm_exits(),
        InteractiveCompilerInterface(
            command,
            list(policies),
            tool=tool,
            timeout=timeout,
            decision_timeout=decision_timeout,
            include_default=include_default,
            cwd=cwd,
            env=env,
        ) as compiler,
    ):
        try:
            for features in compiler:
                assert compiler.advisor is not None
                try:
                    advice = policies[compiler.advisor](features)
                except Deferred:
                    advice = None
                compiler.populate_buffer(advice)
        except CompilerFailed:
            if check:
                raise
        return compiler.result
