# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that tests run in a Python of their own."""

import subprocess
import sys
from pathlib import Path
from typing import IO, Any

CLI = "from mlbridge.cli import main; main()"
"""The installed command `mlbridge`."""


class Started(subprocess.Popen[str]):
    """A program that runs beside the test; use it in a ``with`` statement."""

    stdout: IO[str]
    stderr: IO[str]

    def __init__(self, program: str, *arguments: str | Path, **more: Any) -> None:
        pipe = subprocess.PIPE
        options = {"stdout": pipe, "stderr": pipe, "text": True, **more}
        super().__init__([sys.executable, "-c", program, *arguments], **options)


def run_python(
    program: str,
    *arguments: str | Path,
    check: bool = False,
    timeout: float = 60,
    **more: Any,
) -> subprocess.CompletedProcess[str]:
    """What a program printed, and its exit status, which `check` says has to be 0."""
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, **more
    )
    assert not check or done.returncode == 0, done.stderr
    return done
