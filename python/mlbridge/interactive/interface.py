# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`InteractiveCompilerInterface`: the paper's loop around a stock LLVM tool."""

import contextlib
import os
import select
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
    InvalidArgument,
    Malformed,
    PeerClosed,
    Timeout,
)
from mlbridge.interactive.advisors import Advisor, AdvisorName, Tool, advisors, tool_of
from mlbridge.interactive.channel import Decoder, Header
from mlbridge.interactive.process import GuardedProcess
from mlbridge.interface import BaseCompilerInterface
from mlbridge.types import Features

# How much later than this process the guard looks at the clock, in seconds: who is
# there to say what happened is to be first.
_GUARD_PATIENCE = 0.25
# Characters of stderr that an error quotes.
_STDERR_TAIL = 2000


@dataclass(frozen=True)
class Conversation:
    """What one advisor has asked."""

    decisions: int
    """Requests that were answered."""
    contexts: tuple[str, ...]
    """What it named as their subjects: each function of the register allocator's, also
    those without a request; the inliner has one without a name."""


@dataclass(frozen=True)
class CompileResult:
    """A compile that has ended by itself."""

    command: tuple[str, ...]
    """With all flags."""
    returncode: int
    """0 if all is well; minus the signal's number, if one ended it."""
    stdout: bytes
    stderr: str
    seconds: float
    """From start to end, with the time of whoever decided."""
    conversations: Mapping[AdvisorName, Conversation]
    """By advisor."""

    @property
    def decisions(self) -> int:
        """Requests that were answered, of all advisors."""
        return sum(said.decisions for said in self.conversations.values())


class _Channel:
    """The pair of FIFOs at BASE.in and BASE.out that an advisor talks through."""

    def __init__(self, advisor: Advisor, base: Path, stack: ExitStack) -> None:
        self.advisor = advisor
        self.decisions = 0
        fds = []
        for suffix in (".in", ".out"):
            path = base.with_name(base.name + suffix)
            os.mkfifo(path, 0o600)
            # Read-write, opening does not wait, and a compiler that leaves neither
            # raises SIGPIPE here nor takes another compiler's input away.
            fds.append(os.open(path, os.O_RDWR | os.O_NONBLOCK))
            stack.callback(os.close, fds[-1])
        self._replies, self.fd = fds
        self.decoder = Decoder(advisor.peer, self.fd, self._on_header)

    def reply(self, data: bytes) -> None:
        try:
            os.write(self._replies, data)
        except BlockingIOError:
            raise Malformed(
                f"{self.advisor.peer}: expected a compiler that reads its answers,"
                f" found one that asks and does not: {self.decisions} times"
            ) from None
        self.decisions += 1

    def _on_header(self, header: Header) -> None:
        self.advisor.check(header)
        # An answer that a process has died of waiting for is not the next one's.
        with contextlib.suppress(BlockingIOError):
            while os.read(self._replies, 4096):
                pass


class InteractiveCompilerInterface(BaseCompilerInterface):
    """Runs a stock clang, opt or llc, and is asked for its decisions.

    Such as::

        command = ["llc-22", "-O2", "-filetype=obj", "x.bc", "-o", "x.o"]
        with InteractiveCompilerInterface(command, "eviction") as compiler:
            for features in compiler:
                compiler.populate_buffer(int(features["mask"].argmax()))
        print(compiler.result.decisions)

    The compiler belongs to this object: it ends with it, however that comes, and so do
    the processes that it started and the files between here and there. Used by one
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
            command: clang, opt or llc with its arguments, but for those that open
                the channels. clang may compile several files; each of its processes
                is served.
            advisor: which one asks, or several: ``"inliner"`` (clang, opt),
                ``"eviction"`` and ``"priority"`` (clang, llc).
            tool: what the command is, where its name does not tell.
            timeout: seconds that the whole compile may take, deciding included; it is
                ended then even if the one who decides hangs.
            decision_timeout: seconds in which a request, or the end, must follow the
                start or an answer; None leaves it to ``timeout``.
            include_default: whether the inliner's requests have LLVM's own decision,
                ``inlining_default``, which the answer None stands for.
            cwd: where the command runs.
            env: its whole environment; None is this process's.

        Raises:
            InvalidArgument: there is no such advisor, or the tool does not have it.
            OSFailure: nothing can be started.
        """
        words = [fspath(word) for word in command]
        if not words:
            raise InvalidArgument("expected a command, found an empty list")
        for limit in (timeout, decision_timeout):
            if limit is not None and not limit > 0:
                raise InvalidArgument(f"expected a time limit above 0, found {limit} s")
        chosen = advisors(advisor, kind := tool or tool_of(words[0]), include_default)
        self.timeout = timeout
        self.decision_timeout = decision_timeout
        self._owner = os.getpid()
        self._result: CompileResult | None = None
        self._asking: _Channel | None = None
        self._reply: bytes | None = None
        with ExitStack() as stack:
            folder = Path(tempfile.mkdtemp(prefix="mlbridge-llvm-"))
            stack.callback(_remove, folder)
            self._channels = [
                _Channel(each, folder / each.name, stack) for each in chosen
            ]
            for each in chosen:
                for flag in each.flags(str(folder / each.name)):
                    words += ["-mllvm", flag] if kind == "clang" else [flag]
            # A crash is reported here; clang need not write files about it.
            words += ["-fno-crash-diagnostics"] if kind == "clang" else []
            self._command = tuple(words)
            self._start = self._asked = time.monotonic()
            self._process = GuardedProcess(
                words,
                folder,
                timeout + _GUARD_PATIENCE,
                cwd=None if cwd is None else Path(cwd),
                env=env,
            )
            stack.callback(self._process.kill)
            self._poll = select.poll()
            for channel in self._channels:
                self._poll.register(channel.fd, select.POLLIN)
            self._poll.register(self._process.fd, select.POLLIN)
            # Runs once: by close(), when nobody has this object, or at exit.
            self._finalizer = weakref.finalize(
                self, _release, stack.pop_all(), self._owner
            )

    @overload
    def evaluate(self, mode: None = None) -> Features: ...

    @overload
    def evaluate(self, mode: Literal["exit"]) -> None: ...

    def evaluate(self, mode: Literal["exit"] | None = None) -> Features | None:
        """Sends the answer that was stored, and returns the next request's features.

        When there is no next request (`__iter__` ends then), or anything else is
        raised, the compile is over and nothing of it is left, but for `result`.

        Args:
            mode: ``"exit"`` sends the answer, waits for nothing and returns None.

        Returns:
            The features by name: read-only arrays in LLVM's own types and shapes, a
            scalar of which is [1]. They show this request until the next one;
            copying one keeps it (``x.copy()``).

        Raises:
            PeerClosed: the compile has ended; `result` says how.
            CompilerFailed: with an error, that is. It is a PeerClosed.
            Timeout: it took too long, and has been killed.
            Malformed, SchemaMismatch: what it writes is not LLVM's protocol, or not of
                the version that this library knows.
            OSFailure: the command cannot be run.
            InvalidArgument: the request at hand has no answer yet, or this process was
                forked from that of the compile.
        """
        if mode == "exit":
            self._send()
            return None
        features = self._next()
        if features is None:
            raise PeerClosed(f"{self.name} has ended, and asks no more")
        return features

    def __iter__(self) -> Iterator[Features]:
        """The requests, one after another, until the compile has ended well."""
        while (features := self._next()) is not None:
            yield features

    def populate_buffer(self, advice: Any) -> None:
        """Stores the answer to the request at hand, for `evaluate` to send.

        Args:
            advice: a number in any form: Python's or NumPy's, an array or CPU tensor
                of one element, or a dict with that under the advice's name. The
                inliner takes 0, 1, a bool, or None for LLVM's own decision; eviction
                takes an index at which ``mask`` is 1; priority takes 0 or more.

        Raises:
            SchemaMismatch, Unsupported: LLVM must not get this; the compile is ended.
            InvalidArgument: there is no request at hand.
        """
        self._check_process()
        if self._asking is None:
            raise InvalidArgument(f"{self.name} has no request to answer")
        channel = self._asking
        try:
            self._reply = channel.advisor.encode(advice, channel.decoder.features)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the compile where it has not ended, and leaves nothing behind."""
        self._asking = self._reply = None
        self._finalizer()

    @property
    def name(self) -> str:
        """What errors call this compile."""
        return " ".join(self._command[:1])

    @property
    def pid(self) -> int:
        """The number of the process group that the compile runs in."""
        return self._process.pid

    @property
    def advisor(self) -> AdvisorName | None:
        """Which one asks the request at hand."""
        return self._asking.advisor.name if self._asking else None

    @property
    def context(self) -> str:
        """What the request at hand is about: a function, of a register allocator."""
        return self._asking.decoder.context if self._asking else ""

    @property
    def headers(self) -> dict[AdvisorName, Header]:
        """What each advisor has said of its requests, once it has."""
        return {
            channel.advisor.name: channel.decoder.header
            for channel in self._channels
            if channel.decoder.header is not None
        }

    @property
    def result(self) -> CompileResult:
        """How the compile ended.

        Raises:
            InvalidArgument: it did not end by itself, or has not yet.
        """
        if self._result is None:
            raise InvalidArgument(
                f"{self.name} has no result: it did not end by itself"
            )
        return self._result

    def __repr__(self) -> str:
        state = "running" if self._result is None else f"{self._result.returncode}"
        return f"<{type(self).__name__} {self.name} ({state})>"

    def _check_process(self) -> None:
        if os.getpid() != self._owner:
            raise InvalidArgument(
                f"{self.name} was started by process {self._owner}, from which this one"
                " was forked; it answers that one only"
            )

    def _send(self) -> None:
        self._check_process()
        if self._asking is None:
            return
        if self._reply is None:
            raise InvalidArgument(
                f"{self.name}: the request of the {self.advisor} advisor has no answer"
            )
        try:
            self._asking.reply(self._reply)
        except BaseException:
            self.close()
            raise
        self._asking = self._reply = None
        self._asked = time.monotonic()

    def _next(self) -> Features | None:
        """The next request; None when the compile has ended well."""
        self._check_process()
        if self._result is not None:
            return None
        # Its descriptors may be another one's by now.
        if not self._finalizer.alive:
            raise PeerClosed(f"{self.name}: this compile is over")
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
        """Waits for bytes, and reads them; whether there are none any more."""
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
        # poll() has no more than 31 bits.
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
            # The guard may have been first.
            if result.seconds >= self.timeout:
                self._raise_timeout()
            self._result = result
            how = f"status {status}" if status > 0 else f"signal {-status}"
            failure = CompilerFailed(
                f"{self.name} ended with {how} after {result.decisions} decisions:"
                f" {stderr[-_STDERR_TAIL:].strip() or 'it said nothing'}"
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
    """Closes them, but for a fork of the process that they belong to."""
    if os.getpid() == owner:
        resources.close()


def _remove(folder: Path) -> None:
    """Removes a folder of FIFOs that nobody has taken over."""
    with contextlib.suppress(FileNotFoundError):
        for path in list(folder.iterdir()):
            path.unlink(missing_ok=True)
        folder.rmdir()
