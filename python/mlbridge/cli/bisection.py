# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the recorded decision that breaks a program, by a binary search in its logs."""

import os
import select
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from urllib.parse import quote

from mlbridge.errors import InvalidArgument
from mlbridge.files import spec_of
from mlbridge.interactive.process import GuardedProcess
from mlbridge.log import TrainingLog, read_log

SPEC = "{spec}"
"""The text in a command that is replaced by the model spec."""
VARIABLE = "MLBRIDGE_REPLAY"
"""The environment variable that contains the model spec."""
MODULE = "{module}"
"""The text in a log's name that LLVM's plug-in replaces by a name for the module."""

_CANNOT_TEST = 125
"""The exit status of a test that has no result, as for `git bisect run`."""
_LAST_LINES = 5


@dataclass(frozen=True)
class ReplayTest:
    """A command that compiles and tests a program with a part of the decisions."""

    command: Sequence[str]
    """The command. `SPEC` in its arguments is replaced by the model spec, which is also
    the value of the environment variable `VARIABLE`."""
    limit: float
    """The time limit of one run in seconds. A run that exceeds it has failed."""

    def run(self, spec: str) -> str | None:
        """Returns None if the program works with the model of a spec.

        Otherwise, returns the reason: the end of stderr and the exit status.

        Raises:
            InvalidArgument: the command exited with 125, because it cannot test.
            OSFailure: the command cannot be run.
        """
        process = GuardedProcess(
            [word.replace(SPEC, spec) for word in self.command],
            Path(tempfile.mkdtemp(prefix="mlbridge-bisect-")),
            self.limit,
            env={**os.environ, VARIABLE: spec},
        )
        try:
            poll = select.poll()
            poll.register(process.fd, select.POLLIN)
            poll.poll()
            status, _, stderr = process.finish()
        finally:
            process.kill()
        if status == 0:
            return None
        lines = stderr.strip().splitlines()[-_LAST_LINES:]
        why = "\n".join([*lines, f"exit status {status}"])
        if status == _CANNOT_TEST:
            raise InvalidArgument(f"the test of {spec} has no result: {why}")
        return why


def replay(log: Path, decisions: int) -> str:
    """Returns a spec that replays the first `decisions` decisions of a log.

    The compiler makes all later decisions with its heuristic.
    """
    if not decisions:
        return "none"
    return f"{spec_of('replay', log)}?until={decisions}"


class OneLog:
    """One log, whose first decisions are replayed.

    Attributes:
        logs: a list that contains only this log.
        counts: a list that contains only the number of the log's decisions.
    """

    def __init__(self, path: Path) -> None:
        """Reads a log. Raises the errors of `read_log`, and Malformed."""
        self.logs = [read_log(path)]
        self.counts = [sum(1 for _ in self.logs[0])]

    def spec(self, complete: int, decisions: int) -> str:
        """Returns the spec for `ReplayTest`. See `ModuleLogs.spec`."""
        return replay(self.logs[0].path, self.counts[0] if complete else decisions)


class ModuleLogs:
    """The logs of several modules. A folder contains the part of each log to replay.

    Attributes:
        logs: the logs with decisions, in the order of their names.
        counts: the number of decisions in each of these logs.
    """

    def __init__(self, pattern: Path, folder: Path) -> None:
        """Reads all logs that the spec ``record:`` with this file name has written.

        Raises:
            InvalidArgument: there is no log with decisions, or `MODULE` is in a
                folder's name.
            Malformed: a log does not follow the format.
            OSError: a log cannot be read.
        """
        if MODULE in str(pattern.parent):
            raise InvalidArgument(f"{pattern}: expected {MODULE} in the file name only")
        self._spec = spec_of("replay", folder / pattern.name)
        self._folder = folder
        self._sizes: dict[Path, int] = {}
        self._ends: list[list[int]] = []
        self.logs: list[TrainingLog] = []
        for path in sorted(
            pattern.parent.glob(escape(pattern.name).replace(MODULE, "*"))
        ):
            # The log of a module without decisions is empty, or only a header.
            ends = list(read_log(path).offsets()) if path.stat().st_size else [0]
            if len(ends) == 1:
                self._write(path, ends[0])
            else:
                self.logs.append(read_log(path))
                self._ends.append(ends)
        self.counts = [len(ends) - 1 for ends in self._ends]
        if not self.logs:
            raise InvalidArgument(
                f"{pattern}: expected logs with decisions, found none"
            )

    def spec(self, complete: int, decisions: int) -> str:
        """Writes the folder, and returns the spec for `ReplayTest`.

        Args:
            complete: the number of logs whose decisions are all replayed.
            decisions: the number of decisions that are replayed from the next log.

        The compiler makes all other decisions with its heuristic.
        """
        for place, (log, ends) in enumerate(zip(self.logs, self._ends, strict=True)):
            wanted = -1 if place < complete else decisions if place == complete else 0
            self._write(log.path, ends[wanted])
        return f"{self._spec.replace(quote(MODULE), MODULE)}?until=end"

    def _write(self, path: Path, size: int) -> None:
        """Copies the first `size` bytes of a log, unless this copy already exists."""
        if self._sizes.get(path) != size:
            with path.open("rb") as log:
                (self._folder / path.name).write_bytes(log.read(size))
            self._sizes[path] = size


def first_failing_of(
    counts: Sequence[int], fails: Callable[[int, int], str | None]
) -> tuple[int, int]:
    """Returns the decision in several logs that breaks a program.

    The result is the position of the log, counted from 0, and the number of the
    decision in this log, counted from 1.

    Args:
        counts: the number of decisions in each log.
        fails: returns why the program fails with the first K logs and the first N
            decisions of the next log, or None if it works. For F logs with at most M
            decisions each, `fails` is called at most ceil(log2(F)) + 1 + ceil(log2(M))
            times. For one log, see `first_failing`.

    Raises:
        InvalidArgument: the program fails without decisions, or works with all of them.
    """
    if len(counts) == 1:
        return 0, first_failing(counts[0], lambda decisions: fails(0, decisions))
    log = first_failing(len(counts), lambda logs: fails(logs, 0), "logs") - 1
    works, broken = 0, counts[log]
    while broken - works > 1:
        middle = (works + broken) // 2
        if fails(log, middle) is None:
            works = middle
        else:
            broken = middle
    return log, broken


def first_failing(
    count: int,
    fails: Callable[[int], str | None],
    what: str = "decisions of the log",
) -> int:
    """Returns the number of the decision that breaks a program, counted from 1.

    Args:
        count: the number of decisions in the log.
        fails: returns why the program fails with the first N decisions, or None if it
            works. It is called at most 14 times for 10,000 decisions. If the
            result is R, fails(R) has returned a reason, and fails(R - 1) None.
        what: the plural of what is counted, for messages.

    Raises:
        InvalidArgument: the program fails without decisions, or works with all of them.
    """
    if count < 1:
        raise InvalidArgument("the log contains no decision")
    works, broken = 0, count
    while broken - works > 1:
        # A result at an end of the log costs one more call of `fails`. Therefore, while
        # the range still touches an end, split off the smaller part at that end.
        is_last = works > 0 and broken == count
        middle = (works + broken + is_last) // 2
        if fails(middle) is None:
            works = middle
        else:
            broken = middle
    if works == 0 and (why := fails(0)) is not None:
        raise InvalidArgument(
            f"the test also fails without the log's decisions, so check it: {why}"
        )
    if broken == count and fails(count) is None:
        raise InvalidArgument(
            f"the test succeeds with all {count} {what}; no decision breaks the program"
        )
    return broken
