# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the recorded decision that breaks a program, by a binary search in its log."""

import os
import select
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlbridge.errors import InvalidArgument
from mlbridge.files import spec_of
from mlbridge.interactive.process import GuardedProcess

SPEC = "{spec}"
"""The text in a command that is replaced by the model spec."""
VARIABLE = "MLBRIDGE_REPLAY"
"""The environment variable that contains the model spec."""

_CANNOT_TEST = 125
"""The exit status of a test that has no result, as for `git bisect run`."""
_LAST_LINES = 5


@dataclass(frozen=True)
class ReplayTest:
    """A command that compiles and tests a program with a part of a log's decisions."""

    log: Path
    command: Sequence[str]
    """The command. `SPEC` in its arguments is replaced by the model spec, which is also
    the value of the environment variable `VARIABLE`."""
    limit: float
    """The time limit of one run in seconds. A run that exceeds it has failed."""

    def spec(self, decisions: int) -> str:
        """Returns a spec that replays the first `decisions` decisions of the log.

        The compiler makes all later decisions with its heuristic.
        """
        if not decisions:
            return "none"
        return f"{spec_of('replay', self.log)}?until={decisions}"

    def run(self, decisions: int) -> str | None:
        """Returns None if the program works with the first decisions of the log.

        Otherwise, returns the reason: the end of stderr and the exit status.

        Raises:
            InvalidArgument: the command exited with 125, because it cannot test.
            OSFailure: the command cannot be run.
        """
        spec = self.spec(decisions)
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


def first_failing(count: int, fails: Callable[[int], str | None]) -> int:
    """Returns the number of the decision that breaks a program, counted from 1.

    Args:
        count: the number of decisions in the log.
        fails: returns why the program fails with the first N decisions, or None if it
            works. It is called at most 14 times for 10,000 decisions. If the
            result is R, fails(R) has returned a reason, and fails(R - 1) None.

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
            f"the test succeeds with all {count} decisions of the log; no decision "
            f"breaks the program"
        )
    return broken
