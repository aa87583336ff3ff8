# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a stock LLVM tool, and lets Python code make its decisions."""

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

# The guard's timeout is longer by this number of seconds, so that Python reports
# timeouts first.
_GUARD_PATIENCE = 0.25
# The number of last characters of stderr to quote in an error message.
_STDERR_TAIL = 2000


@dataclass(frozen=True)
class Conversation:
    """A summary of the requests of one advisor."""

    decisions: int
    """The number of requests with a reply."""
    contexts: tuple[str, ...]
    """The contexts. The register allocator sends a context per function, even if it has
    no request for the function. The inliner sends one context with an empty name."""


@dataclass(frozen=True)
class CompileResult:
    """The result of a compile that has ended by itself."""

    command: tuple[str, ...]
    """The command with all flags."""
    returncode: int
    """The exit status. After a signal, it is minus the signal's number."""
    stdout: bytes
    stderr: str
    seconds: float
    """The duration in seconds, including the decisions."""
    conversations: Mapping[AdvisorName, Conversation]
    """Maps each advisor to a summary of its requests."""

    @property
    def decisions(self) -> int:
        """The number of replies to all advisors."""
        return sum(said.decisions for said in self.conversations.values())


class _Channel:
    """The two FIFOs of an advisor, BASE.in and BASE.out."""

    def __init__(self, advisor: Advisor, base: Path, stack: ExitStack) -> None:
        self.advisor = advisor
        self.decisions = 0
        fds = []
        for suffix in (".in", ".out"):
            path = base.with_name(base.name + suffix)
            os.mkfifo(path, 0o600)
            # Open read-write, so that open() does not block, a compiler's exit does not
            # cause SIGPIPE, and another compiler can use the FIFO.
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
        # Discard replies that an earlier process did not read before it died.
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

    The compiler and its child processes are killed by `close`, by garbage collection of
    this object, and if this process ends. One thread at a time may use this object.
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
            command: clang, opt or llc with its arguments. The flags for the advisors
                are added. clang may compile several files.
            advisor: one or several advisors: ``"inliner"`` (clang, opt), ``"eviction"``
                or ``"priority"`` (clang, llc).
            tool: the tool, if the name of the command does not contain it.
            timeout: seconds for the whole compile, including the decisions. The limit
                also applies if a decision hangs.
            decision_timeout: seconds from the start, or from a reply, to the next
                request or the end of the compile. None sets no such limit.
            include_default: whether the inliner's requests have the additional feature
                ``inlining_default``, LLVM's own decision. Then the advice may be None.
            cwd: the working directory.
            env: all environment variables. The default is this process's variables.

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
        """The name of this compile in error messages."""
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
            # Disable clang's crash files, because `result` reports a crash.
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
            # The finalizer runs at close(), garbage collection or exit.
            self._finalizer = weakref.finalize(
                self, _release, stack.pop_all(), self._owner
            )

    @overload
    def evaluate(self, mode: None = None) -> Features: ...

    @overload
    def evaluate(self, mode: Literal["exit"]) -> None: ...

    def evaluate(self, mode: Literal["exit"] | None = None) -> Features | None:
        """Sends the stored reply, and returns the features of the next request.

        After any exception except InvalidArgument, the compile has ended, and only
        `result` may be used. A loop over this object stops at the end of the compile.

        Args:
            mode: ``"exit"`` sends the reply and returns None without waiting.

        Returns:
            The features by name, as read-only arrays with LLVM's types and shapes. A
            scalar has the shape [1]. The next request overwrites the arrays.

        Raises:
            PeerClosed: the compile has ended. See `result`.
            CompilerFailed: the compile has failed. It derives from PeerClosed.
            Timeout: the compile exceeded a timeout, and was killed.
            Malformed, SchemaMismatch: the compiler does not follow the protocol of
                LLVM 22.
            OSFailure: the command cannot be run.
            InvalidArgument: no reply was set for the current request, or this process
                was forked from the process that runs the compile.
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
        """Stores the reply to the current request. The next `evaluate` sends the reply.

        Args:
            advice: a number, an array or CPU tensor of one element, or a dict that maps
                the advice's name to one of these. For the inliner, the advice is 0, 1,
                a bool, or None for LLVM's own decision. For eviction, it is an index at
                which ``mask`` is 1. For priority, it is a number >= 0.

        Raises:
            SchemaMismatch, Unsupported: the advice is illegal. The compile is killed.
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
        """Kills the compile if it runs, and frees its resources."""
        self._asking = self._reply = None
        self._finalizer()

    @property
    def advisor(self) -> AdvisorName | None:
        """The advisor of the current request."""
        return self._asking.advisor.name if self._asking else None

    @property
    def context(self) -> str:
        """The context of the current request.

        For the register allocator, this is the name of the function being allocated.
        """
        return self._asking.decoder.context if self._asking else ""

    @property
    def headers(self) -> dict[AdvisorName, Header]:
        """Maps each advisor that has sent a header to the header."""
        return {
            channel.advisor.name: channel.decoder.header
            for channel in self._channels
            if channel.decoder.header is not None
        }

    @property
    def result(self) -> CompileResult:
        """The result. Raises InvalidArgument if the compile runs or was killed."""
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
        # Do not use the descriptors after close(): their numbers may be reused.
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
        """Waits for bytes and reads them. Returns whether the compile has ended."""
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
        # Limit the time to 31 bits, because poll() accepts an int.
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
                f"{self.name} sent no request for {self.decision_timeout} s,"
                f" and was ended after {asked} decisions"
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
            # Report a timeout if the guard has killed the compile.
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
    """Closes resources, unless this process was forked from their owner."""
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

    If a policy raises, or after Ctrl-C or SIGTERM, the compiler is killed before this
    function returns. If this process is killed, so is the compiler.

    ``inliner`` returns 0, 1 or a bool, or None to leave the decision to LLVM.
    ``eviction`` returns the index of the register to evict. ``features["mask"][0]`` is
    1 at legal indices. ``priority`` returns a number from 0 to 4294967040. The live
    range with the highest number is allocated first. With ``check=False``, a failed
    compile returns a result. `InteractiveCompilerInterface` describes the other
    arguments.

    Raises:
        CompilerFailed: the compiler failed or was ended by a signal.
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
