# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiler as a child that is never left alone: `GuardedProcess`."""

import contextlib
import math
import os
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from mlbridge import _core
from mlbridge.errors import OSFailure

GUARD = Path(_core.__file__).with_name("mlbridge-guard")
"""The program between this process and the compiler; its source says what it does."""

# What the guard says of itself; its status then is a shell's.
_CANNOT_RUN = 127
_GUARD_SAYS = b"mlbridge-guard: "
# Seconds that a killed process may take to be gone.
_PATIENCE = 5.0


class GuardedProcess:
    """A command in a process group of its own, all of which ends with this process.

    The folder is removed when the command ends, too. Whoever has this object is to end
    it by `kill`; where this process does not come to that (kill -9), and at the time
    limit, the guard does.

    Attributes:
        fd: readable when the command has ended, for `select.poll`.
        pid: the guard's process, whose number is the group's.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        limit: float,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Starts the command, with nothing to read from stdin.

        The folder, of files alone, belongs to this object from now on. The guard ends
        the command after ``limit`` seconds, which may be inf.

        Raises:
            OSFailure: the guard cannot be started.
        """
        # What takes longer than thirty years has no limit.
        milliseconds = math.ceil(limit * 1000) if limit < 1e9 else -1
        guard = [str(GUARD), str(os.getpid()), str(milliseconds), str(folder)]
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            # Files, since a pipe that nobody empties would hold the compiler up.
            self._stdout = stack.enter_context(tempfile.TemporaryFile())
            self._stderr = stack.enter_context(tempfile.TemporaryFile())
            # Each process of the group holds the other end, which is closed when the
            # last one is gone.
            alive, inherited = os.pipe()
            stack.callback(os.close, alive)
            try:
                process = subprocess.Popen(
                    [*guard, *command],
                    stdin=subprocess.DEVNULL,
                    stdout=self._stdout,
                    stderr=self._stderr,
                    cwd=cwd,
                    env=env,
                    process_group=0,
                    pass_fds=(inherited,),
                )
            except (OSError, ValueError) as error:
                raise OSFailure(f"cannot run {command[0]}: {error}") from None
            finally:
                os.close(inherited)
            stack.callback(_end, process, alive)
            self.fd = os.pidfd_open(process.pid)
            stack.callback(os.close, self.fd)
            self._process, self._alive = process, alive
            self.pid = process.pid
            self._resources = stack.pop_all()

    def finish(self) -> tuple[int, bytes, str]:
        """Takes leave of a command that has ended, and ends what it left running.

        Returns:
            Its status (minus the signal, if one ended it), stdout and stderr.

        Raises:
            OSFailure: there is no such command.
        """
        _end(self._process, self._alive)
        status = self._process.returncode
        stdout, stderr = _content(self._stdout), _content(self._stderr)
        self.kill()
        if status == _CANNOT_RUN and stderr.startswith(_GUARD_SAYS):
            reason = stderr.removeprefix(_GUARD_SAYS).decode(errors="replace").strip()
            raise OSFailure(f"cannot run {reason}")
        return status, stdout, stderr.decode(errors="replace")

    def kill(self) -> None:
        """Ends the command and all that it started, and removes the folder.

        Nothing is left when this returns, and doing it again does nothing.
        """
        self._resources.close()


def _end(process: subprocess.Popen[bytes], alive: int) -> None:
    """Kills a process group, reaps its leader, and waits for the others to be gone."""
    if process.returncode is None:
        # Until it is reaped, nobody else can have the group's number.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        poll = select.poll()
        poll.register(alive, 0)
        poll.poll(_PATIENCE * 1000)


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()
