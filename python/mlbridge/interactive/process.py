# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a compiler as a child process that is killed if this process dies."""

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
from os import PathLike
from pathlib import Path
from typing import IO

from mlbridge import _core
from mlbridge.errors import OSFailure

GUARD = Path(_core.__file__).with_name("mlbridge-guard")
"""The guard, a program that runs the compiler and kills it if Python dies."""

# The exit status and the prefix of stderr if the guard cannot run the compiler.
_CANNOT_RUN = 127
_GUARD_SAYS = b"mlbridge-guard: "
# The maximum number of seconds to wait for killed processes to exit.
_PATIENCE = 5.0


class GuardedProcess:
    """A command that runs in its own process group, under a guard process.

    The owner must call `kill`. The guard kills the process group at the time limit, or
    if this process dies. The folder is removed when the command has ended.

    Attributes:
        fd: a descriptor that becomes readable when the command has ended.
        pid: the process ID of the guard, which is also the ID of the process group.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        limit: float,
        *,
        cwd: str | PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Starts the command with an empty stdin. Raises OSFailure if this fails.

        This object owns the folder, which must contain only files. The guard kills the
        command after ``limit`` seconds, which may be inf.
        """
        # Set no limit above thirty years, because the guard's integer would overflow.
        milliseconds = math.ceil(limit * 1000) if limit < 1e9 else -1
        guard = [str(GUARD), str(os.getpid()), str(milliseconds), str(folder)]
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            # Redirect to files, because a full pipe would block the compiler.
            self._stdout = stack.enter_context(tempfile.TemporaryFile())
            self._stderr = stack.enter_context(tempfile.TemporaryFile())
            # Each process of the group inherits the write end. Therefore, the write end
            # is closed when all processes have exited. `_end` waits for this event.
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
        """Frees the resources of an ended command, and kills its child processes.

        Returns the exit status, stdout and stderr. After a signal, the status is minus
        the signal's number. Raises OSFailure if the command could not be run.
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
        """Kills the process group and removes the folder. May be called repeatedly."""
        self._resources.close()


def _end(process: subprocess.Popen[bytes], alive: int) -> None:
    """Kills a process group, reaps its leader, and waits for all processes to exit."""
    if process.returncode is None:
        # Kill before reaping: after wait(), another group may have this ID.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        poll = select.poll()
        poll.register(alive, 0)
        poll.poll(_PATIENCE * 1000)


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()
