# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs programs that were compiled in different ways, and compares them.

valgrind counts executed instructions and accesses to memory. To measure times, each
program and the first way's program run alternately, because the machine's load changes
within minutes.
"""

import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rich.table import Table

from mlbridge.errors import ModelError, Unsupported
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.corpus.manifest import Corpus, Program
from mlbridge_optimizations.corpus.runs import Tester

# valgrind is some 50 times as slow as the processor.
COUNT_SECONDS = 7200.0

_COUNTS = ("instructions", "reads", "writes")
_REFERENCES = re.compile(
    r"I +refs: +([\d,]+).*?([\d,]+) rd +\+ +([\d,]+) wr", re.DOTALL
)


@dataclass(frozen=True)
class Counted:
    """Valgrind's counts for all steps of a program's test."""

    instructions: int
    reads: int
    writes: int


@dataclass(frozen=True)
class Executed:
    """A program's execution, compared with the first row's executable.

    Attributes:
        seconds: the first row's user time, as the median over all rounds.
        time: the ratio of user times, as the median over all rounds. It is 0 if the
            program is too short for the clock.
        instructions: the ratio of executed instructions, or 0 if they were not counted.
        reads: the ratio of memory reads, or 0.
        writes: the ratio of memory writes, or 0.
    """

    seconds: float
    time: float
    instructions: float = 0.0
    reads: float = 0.0
    writes: float = 0.0


def under_valgrind(executable: Path, folder: Path, options: Sequence[str]) -> Path:
    """Writes a script that runs an executable under valgrind, with fixed addresses."""
    if not shutil.which("valgrind"):
        raise Unsupported("valgrind is not installed: use --no-valgrind")
    script = folder / "counted"
    command = ["setarch", "-R", "valgrind", *options, str(executable.resolve())]
    script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    script.chmod(0o755)
    return script


def count(tester: Tester, executable: Path, folder: Path) -> Counted:
    """Runs a program's test under valgrind."""
    logs = folder / "logs"
    logs.mkdir()
    options = ["--tool=cachegrind", "--cache-sim=yes", f"--log-file={logs}/%p"]
    script = under_valgrind(
        executable, folder, [*options, "--cachegrind-out-file=/dev/null"]
    )
    check(tester, script, COUNT_SECONDS)
    sums = [0, 0, 0]
    for log in logs.iterdir():
        found = _REFERENCES.search(log.read_text())
        if found is None:
            raise ModelError(f"valgrind counted nothing: {log.read_text()[-500:]}")
        for place, number in enumerate(found.groups()):
            sums[place] += int(number.replace(",", ""))
    shutil.rmtree(logs)
    return Counted(*sums)


def check(tester: Tester, executable: Path, seconds: float | None = None) -> float:
    """Returns the user time of a test. Raises ModelError if the test fails."""
    done = tester.run(executable, seconds)
    if not done.passed:
        raise ModelError(f"{done.program}: {done.problem}")
    return done.seconds


def paired_times(
    tester: Tester, before: Path, after: Path, rounds: int
) -> list[tuple[float, float]]:
    """Returns the user times of two executables in alternating runs."""
    return [(check(tester, before), check(tester, after)) for _ in range(rounds)]


def median_ratio(pairs: Sequence[tuple[float, float]]) -> float:
    """Returns the median of after / before, or 0 if the runs are too short."""
    return median([after / before for before, after in pairs if before > 0] or [0.0])


def execute(
    corpus: Corpus,
    programs: Sequence[Program],
    rows: Mapping[str, Sequence[str]],
    *,
    rounds: int,
    counts: bool,
    jobs: int,
    advance: Callable[[], None],
) -> dict[str, dict[str, Executed]]:
    """Returns results by program and row. `rows` maps names to clang's flags.

    Calls `advance` twice for each program and row. Raises ModelError if a program's
    output differs from the unoptimised program's.
    """
    found: dict[str, dict[str, Executed]] = {}
    for program in programs:
        with (
            TemporaryDirectory(prefix="mlbridge-executions-") as name,
            Tester(corpus, program) as tester,
        ):
            found[program.name] = _of_program(
                program, tester, rows, Path(name), rounds, counts, jobs, advance
            )
    return found


def _of_program(
    program: Program,
    tester: Tester,
    rows: Mapping[str, Sequence[str]],
    folder: Path,
    rounds: int,
    counts: bool,
    jobs: int,
    advance: Callable[[], None],
) -> dict[str, Executed]:
    built = {}
    for number, row in enumerate(rows):
        (folder / str(number)).mkdir()
        built[row] = folder / str(number) / "program"

    def prepare(row: str) -> Counted | None:
        executable, (level, *flags) = built[row], rows[row]
        toolchain.executable(program, executable, level, flags, jobs=1)
        counted = count(tester, executable, executable.parent) if counts else None
        advance()
        return counted

    with ThreadPoolExecutor(jobs) as pool:
        counted = dict(zip(rows, pool.map(prepare, rows), strict=True))
    base = next(iter(rows))
    times = {}
    for row in rows:
        times[row] = paired_times(tester, built[base], built[row], rounds)
        advance()

    expected = counted[base]
    results = {}
    for row, pairs in times.items():
        own = counted[row]
        shares = (
            [getattr(own, what) / getattr(expected, what) for what in _COUNTS]
            if own and expected
            else []
        )
        seconds = median(before for before, _ in pairs)
        results[row] = Executed(seconds, median_ratio(pairs), *shares)
    return results


def table(
    found: Mapping[str, Mapping[str, Executed]], title: str, heading: str
) -> Table:
    """Returns the ratios as a table. `heading` is the title of the first column."""
    shown = Table(title=title)
    for name in ("program", heading):
        shown.add_column(name)
    for name in ("time", "instructions", "reads", "writes"):
        shown.add_column(name, justify="right")
    for program, results in found.items():
        for number, (row, one) in enumerate(results.items()):
            ratios = (one.time, one.instructions, one.reads, one.writes)
            cells = (f"{ratio:.4f}" if ratio else "-" for ratio in ratios)
            shown.add_row("" if number else program, row, *cells)
        shown.add_section()
    return shown
