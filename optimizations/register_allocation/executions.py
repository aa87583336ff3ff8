# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs programs whose registers were allocated in different ways, and compares them.

valgrind counts executed instructions and accesses to memory. Times are measured in
alternating pairs with greedy's program, because other load changes during minutes.
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

from mlbridge.errors import ModelError, Unsupported
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.corpus.manifest import Corpus, Program
from mlbridge_optimizations.corpus.runs import Tester
from mlbridge_optimizations.register_allocation.evaluate import GREEDY
from mlbridge_optimizations.register_allocation.functions import LEVEL

# valgrind is some 50 times as slow as the processor.
COUNT_SECONDS = 7200.0

_COUNTS = ("instructions", "reads", "writes")
_REFERENCES = re.compile(
    r"I +refs: +([\d,]+).*?([\d,]+) rd +\+ +([\d,]+) wr", re.DOTALL
)


@dataclass(frozen=True)
class Counted:
    """What valgrind counts in all steps of a program's test."""

    instructions: int
    reads: int
    writes: int


@dataclass(frozen=True)
class Executed:
    """A program's execution relative to greedy's.

    Attributes:
        seconds: greedy's user time, the median of all rounds.
        time: the median ratio of user times in a round, or 0 if the program is too
            short for the clock.
        instructions: the ratio of executed instructions, or 0 if they were not counted.
        reads: the ratio of reads of memory, or 0.
        writes: the ratio of writes of memory, or 0.
    """

    seconds: float
    time: float
    instructions: float = 0.0
    reads: float = 0.0
    writes: float = 0.0


def build(program: Program, options: str, plugin: Path, executable: Path) -> None:
    """Compiles and links a program with options of LLVM and the plug-in."""
    flags = toolchain.plugin_flags(plugin) + toolchain.mllvm(options.split())
    objects = []
    for number, module in enumerate(program.modules):
        objects.append(executable.with_suffix(f".{number}.o"))
        command = toolchain.source_command(program, [module], LEVEL, flags)
        command += ["-c", "-o", str(objects[-1])]
        toolchain.run(command, folder=Path(program.root), seconds=COUNT_SECONDS)
    toolchain.link(objects, program.libraries, executable, cpp=program.is_cpp)


def count(tester: Tester, executable: Path, folder: Path) -> Counted:
    """Runs a program's test under valgrind, without random addresses."""
    if not shutil.which("valgrind"):
        raise Unsupported("valgrind is not installed: use --no-count")
    logs = folder / "logs"
    logs.mkdir()
    script = folder / "counted"
    command = ["setarch", "-R", "valgrind", "--tool=cachegrind", "--cache-sim=yes"]
    command += [f"--log-file={logs}/%p", "--cachegrind-out-file=/dev/null"]
    script.write_text(
        f'#!/bin/sh\nexec {shlex.join([*command, str(executable)])} "$@"\n'
    )
    script.chmod(0o755)
    _check(tester, script, COUNT_SECONDS)
    sums = [0, 0, 0]
    for log in logs.iterdir():
        found = _REFERENCES.search(log.read_text())
        if found is None:
            raise ModelError(f"valgrind counted nothing: {log.read_text()[-500:]}")
        for place, number in enumerate(found.groups()):
            sums[place] += int(number.replace(",", ""))
    shutil.rmtree(logs)
    return Counted(*sums)


def _check(tester: Tester, executable: Path, seconds: float | None = None) -> float:
    done = tester.run(executable, seconds)
    if not done.passed:
        raise ModelError(f"{done.program}: {done.problem}")
    return done.seconds


def execute(
    corpus: Corpus,
    programs: Sequence[Program],
    rows: Mapping[str, str],
    plugin: Path,
    *,
    rounds: int,
    counts: bool,
    jobs: int,
    advance: Callable[[], None],
) -> dict[str, dict[str, Executed]]:
    """Returns results by program and row. `rows` maps names to options.

    Raises ModelError if a program prints something else than without optimisation.
    """
    found: dict[str, dict[str, Executed]] = {}
    for program in programs:
        with (
            TemporaryDirectory(prefix="mlbridge-executions-") as name,
            Tester(corpus, program) as tester,
        ):
            found[program.name] = _of_program(
                program, tester, rows, plugin, Path(name), rounds, counts, jobs, advance
            )
    return found


def _of_program(
    program: Program,
    tester: Tester,
    rows: Mapping[str, str],
    plugin: Path,
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
        build(program, rows[row], plugin, built[row])
        counted = count(tester, built[row], built[row].parent) if counts else None
        advance()
        return counted

    with ThreadPoolExecutor(jobs) as pool:
        counted = dict(zip(rows, pool.map(prepare, rows), strict=True))
    # One program runs at a time.
    times: dict[str, list[tuple[float, float]]] = {row: [] for row in rows}
    for row in rows:
        for _ in range(rounds):
            before = _check(tester, built[GREEDY])
            times[row].append((before, _check(tester, built[row])))
        advance()

    base = counted[GREEDY]
    results = {}
    for row, pairs in times.items():
        ratios = [after / before for before, after in pairs if before > 0] or [0.0]
        own = counted[row]
        shares = (
            [getattr(own, what) / getattr(base, what) for what in _COUNTS]
            if own and base
            else []
        )
        seconds = median(before for before, _ in pairs)
        results[row] = Executed(seconds, median(ratios), *shares)
    return results
