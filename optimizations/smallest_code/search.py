# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Searches for inlining decisions that reduce a program's linked size."""

import os
import re
import select
import shlex
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mlbridge.errors import CompilerFailed, Timeout
from mlbridge_optimizations.corpus.toolchain import OPT

_PROGRESS = re.compile(
    r"trials=(\d+) seconds=([\d.]+) sites=(\d+) stock=(\d+) best=(\d+)"
)

QUIET_SECONDS = 1800.0
"""Maximum time between two lines of opt, which writes a line after each trial."""


@dataclass(frozen=True)
class Progress:
    """The state of a search. Sizes are the linked code in bytes."""

    trials: int
    seconds: float  # CPU time.
    sites: int  # Call sites about which the inliner may decide.
    stock: int
    best: int


def search(
    bitcode: Path,
    decisions: Path,
    *,
    plugin: Path,
    seconds: float,
    seed: int = 1,
    start: Path | None = None,
    flips: Path | None = None,
    pipelines: Path | None = None,
    is_shared: bool = False,
    quiet_seconds: float = QUIET_SECONDS,
    show: Callable[[Progress], None] = lambda _: None,
) -> Progress | None:
    """Searches for decisions about a program's module, and writes them to a file.

    Returns the last state, or None if there was no time for a trial. ``start`` is a
    file of decisions to start with. ``flips`` receives each trial as a line of JSON:
    the reversed decisions, and the change of the size. ``pipelines`` is an action space
    in JSON, whose pipelines are tried in place of -Oz's pipeline. Raises CompilerFailed
    if opt fails, and Timeout if opt writes nothing for ``quiet_seconds``. Timeout, an
    exception of ``show`` and a signal end opt.
    """
    options = [f"size-output={decisions}", f"size-seconds={seconds}"]
    options += [f"size-seed={seed}", *([f"size-start={start}"] if start else [])]
    options += [f"size-flips={flips}"] if flips else []
    options += [f"size-pipelines={pipelines}"] if pipelines else []
    options += ["size-shared"] if is_shared else []
    command = [OPT, f"-load-pass-plugin={plugin}", "-passes=mlbridge-size-search"]
    command += [f"-mlbridge-{option}" for option in options]
    command += ["-disable-output", str(bitcode)]
    last, said = None, []
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            for line in _lines(process, quiet_seconds):
                if found := _PROGRESS.search(line):
                    trials, spent, sites, stock, best = found.groups()
                    last = Progress(
                        int(trials), float(spent), int(sites), int(stock), int(best)
                    )
                    show(last)
                else:
                    said.append(line)
            process.wait(quiet_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Timeout(
                f"no output for {quiet_seconds:.0f} s from: {shlex.join(command)}"
            ) from None
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise CompilerFailed(
            f"status {process.returncode} from: {shlex.join(command)}\n"
            + "".join(said)[-2000:].strip()
        )
    return last


def _lines(process: "subprocess.Popen[bytes]", seconds: float) -> Iterator[str]:
    """Yields the lines of stderr. Raises TimeoutExpired after ``seconds`` without any.

    Reads the descriptor itself, because poll() does not see lines in Python's buffer.
    """
    assert process.stderr is not None
    poll = select.poll()
    poll.register(process.stderr, select.POLLIN)
    rest = b""
    while poll.poll(seconds * 1000):
        part = os.read(process.stderr.fileno(), 1 << 16)
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace") + "\n"
        if not part:
            if rest:
                yield rest.decode(errors="replace")
            return
    raise subprocess.TimeoutExpired(process.args, seconds)
