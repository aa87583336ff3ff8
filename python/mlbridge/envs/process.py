# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiler's process: started, watched, and ended with all that it has started."""

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
    """A child in a process group of its own."""

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str],
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        """Starts it.

        Args:
            command: the program and its arguments.
            variables: what is added to this process's environment variables.
            folder: where it runs; by default here.

        Raises:
            InvalidArgument: there is no such program or folder.
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
        self._parent = os.getpid()
        self._exit = os.pidfd_open(self._process.pid)
        self._ended = False
        self._reaping = threading.Lock()

    @property
    def is_ours(self) -> bool:
        """Whether this process has started it, and was not forked off that one."""
        return os.getpid() == self._parent

    @property
    def pid(self) -> int:
        """Its number, which is also that of its process group."""
        return self._process.pid

    def alive(self) -> bool:
        """Whether it still runs."""
        return not self.wait(0)

    def wait(self, timeout: float) -> bool:
        """Whether it ends within so many seconds; it stays to be reaped."""
        if self._ended:
            return True
        poll = select.poll()
        poll.register(self._exit, select.POLLIN)
        return bool(poll.poll(max(0, int(timeout * 1000))))

    def end(self, grace: float = 0.0) -> None:
        """Ends it and its whole process group, and reaps it.

        Args:
            grace: seconds in which it may end by itself.
        """
        if self._ended or not self.is_ours:
            return
        self.wait(grace)
        self.kill()
        with self._reaping:
            self._process.wait()
            os.close(self._exit)
            self._ended = True

    def kill(self) -> None:
        """Ends its whole process group, from any thread; `end` is still to reap it."""
        # While its leader is not reaped, the group's number is nobody else's.
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
