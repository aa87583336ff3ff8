# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a compiler as a child process, or represents a compiler that the user starts.

A child process is ended with all its children.
"""

import contextlib
import os
import select
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from mlbridge.errors import InvalidArgument


class CompilerProcess:
    """A child process with its own process group."""

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str],
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        """Starts a program with additional environment variables.

        Raises InvalidArgument if the program or ``folder`` does not exist.
        """
        self.command = list(command)
        try:
            self._process = subprocess.Popen(
                self.command,
                env={**os.environ, **variables},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise InvalidArgument(
                f"cannot start the compiler {self.command[0]!r}: {error}"
            ) from error
        self.pid = self._process.pid
        """The process ID, which is also the ID of the process group."""
        self._parent = os.getpid()
        self._exit = os.pidfd_open(self._process.pid)
        self._ended = False
        self._reaping = threading.Lock()

    @property
    def is_ours(self) -> bool:
        """Whether this process, and not a parent that forked it, started the child."""
        return os.getpid() == self._parent

    @property
    def returncode(self) -> int | None:
        """The exit status.

        After a signal, it is minus the signal's number. None before `end`.
        """
        return self._process.returncode

    def alive(self) -> bool:
        """Returns whether the process still runs."""
        return not self.wait(0)

    def wait(self, timeout: float) -> bool:
        """Waits at most ``timeout`` seconds for the process to end.

        Returns whether the process has ended.
        """
        if self._ended:
            return True
        poll = select.poll()
        poll.register(self._exit, select.POLLIN)
        return bool(poll.poll(max(0, int(timeout * 1000))))

    def end(self, grace: float = 0.0) -> None:
        """Kills the process group after ``grace`` seconds, and reaps the process."""
        if self._ended or not self.is_ours:
            return
        self.wait(grace)
        self.kill()
        with self._reaping:
            self._process.wait()
            os.close(self._exit)
            self._ended = True

    def kill(self) -> None:
        """Kills the process group. Thread-safe. Call `end` afterwards."""
        # Hold the lock, so that `end` cannot reap the process and its ID is not reused.
        with self._reaping, contextlib.suppress(ProcessLookupError):
            if not self._ended and self.is_ours:
                os.killpg(self.pid, signal.SIGKILL)

    def __str__(self) -> str:
        name = f"{Path(self.command[0]).name} (process {self.pid})"
        status = self._process.returncode
        if status is None:
            return name
        if status < 0:
            return f"{name}, ended by {signal.Signals(-status).name}"
        return f"{name}, exited with {status}"


class RemoteCompiler:
    """A compiler that the user starts, perhaps on another machine.

    It has the methods of `CompilerProcess`, but cannot be observed or ended. Only its
    channel shows whether it still runs.
    """

    pid = None
    command = ("start it, for example with `mlbridge environment serve`",)

    def __init__(self) -> None:
        self._parent = os.getpid()
        self._is_killed = False

    @property
    def is_ours(self) -> bool:
        """Whether this process, and not a parent that forked it, uses the compiler."""
        return os.getpid() == self._parent

    def alive(self) -> bool:
        """Returns true until `kill`."""
        return not self._is_killed

    def wait(self, timeout: float) -> bool:
        """Returns false immediately, because the compiler's end cannot be observed."""
        return False

    def end(self, grace: float = 0.0) -> None:
        """Does nothing. The compiler ends when its channel is closed."""

    def kill(self) -> None:
        """Ends all waits for this compiler. Thread-safe."""
        self._is_killed = True
