# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keeps compilers running, so that trainers on other machines can use them."""

import logging
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from mlbridge import grpc
from mlbridge.envs.process import CompilerProcess
from mlbridge.errors import InvalidArgument, OSFailure
from mlbridge.interactive.process import GUARD
from mlbridge.signals import sigterm_exits

logger = logging.getLogger("mlbridge.envs")

_POLL_INTERVAL = 0.05
"""Seconds between two checks whether a compiler has ended."""
_SOON = 2.0
"""A compiler that fails within this number of seconds may never work."""
_FAILURES = 3
"""The service ends after this number of such failures in a row."""


def serve_compilers(command: Sequence[str], at: Sequence[str]) -> None:
    """Runs a compiler at each address. Starts a new compiler when a compiler ends.

    A compiler ends when its trainer disconnects, or when it crashes. This function
    never returns. SIGINT raises KeyboardInterrupt, and SIGTERM raises SystemExit. Both
    end all compilers. The compilers also end if this process is killed.

    Args:
        command: the compiler's program and arguments. ``{spec}`` and ``{worker}`` are
            replaced as for `CompilerEnv`.
        at: addresses such as ``grpc://0.0.0.0:50051-50058``, with options.

    Raises:
        InvalidArgument: an address is no gRPC address.
        OSFailure: a compiler failed several times in a row soon after its start.
    """
    specs = [one for address in at for one in grpc.expand(address)]
    for spec in specs:
        if not grpc.is_named_in(spec):
            raise InvalidArgument(
                f"spec {spec!r}: expected an address such as grpc://0.0.0.0:50051-50058"
            )
    kept: list[_Kept] = []
    with sigterm_exits():
        try:
            kept.extend(_Kept(command, *one) for one in enumerate(specs))
            logger.info("the compilers wait for trainers at %s", ", ".join(at))
            while True:
                for one in kept:
                    one.check()
                time.sleep(_POLL_INTERVAL)
        finally:
            for one in kept:
                one.process.end()


class _Kept:
    """A compiler that is started again when it ends."""

    def __init__(self, command: Sequence[str], worker: int, spec: str) -> None:
        self._spec = spec
        # Set no limit, because a compiler waits only 30 s for a trainer by default.
        spec = grpc.with_default(spec, "connect=inf")
        # Set the SerDes, because the compiler's default depends on its libraries.
        spec = grpc.with_default(spec, "serdes=bitstream")
        self._variables = {"MLBRIDGE_SPEC": spec}
        words = [part.replace("{spec}", spec) for part in command]
        self._command = [part.replace("{worker}", str(worker)) for part in words]
        self._failures = 0
        self._start()

    def _start(self) -> None:
        self._started = time.monotonic()
        # The guard ends the compiler if this process is killed, and removes the folder.
        folder = tempfile.mkdtemp(prefix="mlbridge-")
        guard = [str(GUARD), str(os.getpid()), "-1", folder]
        try:
            self.process = CompilerProcess([*guard, *self._command], self._variables)
        except BaseException:
            Path(folder).rmdir()
            raise
        self.process.command = self._command

    def check(self) -> None:
        """Starts the compiler again if it has ended."""
        if self.process.alive():
            return
        self.process.end()
        is_failure = self.process.returncode != 0
        was_soon = time.monotonic() - self._started < _SOON
        self._failures = self._failures + 1 if is_failure and was_soon else 0
        what = f"{self._spec}: {self.process}"
        if self._failures == _FAILURES:
            raise OSFailure(
                f"{what} soon after its start, {_FAILURES} times in a row; expected a"
                " compiler that calls serveEnvironment, and an address that is free"
            )
        level = logging.WARNING if is_failure else logging.INFO
        logger.log(level, "%s; a new compiler starts", what)
        self._start()
