# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Do the programs still do what they should? Real inputs, some seconds of CPU each.

What is expected is what the same program does that was compiled without optimisation;
for what packs and unpacks, also that the one undoes the other.
"""

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from mlbridge.errors import CompilerFailed, Error, InvalidArgument, Timeout
from mlbridge.files import OwnFolder

from . import inputs, toolchain
from .manifest import Corpus, Program, sha256
from .recipes import FILE, PROGRAMS, words

# A program that takes longer is stopped: it hangs. Unoptimised ones take 20 s.
SECONDS = 300.0

# Bytes of a file that a program may write: one that goes wrong may write for ever.
LARGEST = 2 << 30


@dataclass(frozen=True)
class Step:
    """The program is run once."""

    arguments: tuple[str, ...]  # Its own; ``{tree}`` is the package's folder.
    stdin: str | None = None  # The file for it.
    stdout: str = "out"  # The file that gets it.
    status: int = 0  # With which it should end.


@dataclass(frozen=True)
class RunTest:
    """How a program is tried."""

    make: Callable[[Path], None]  # Writes the inputs to a folder.
    steps: tuple[Step, ...]  # Run there, one after another.
    outputs: tuple[str, ...] = ("out",)  # The files that have to be as expected.
    # Two files that have to be equal: what went in, and what came back.
    same: tuple[str, str] | None = None


@dataclass(frozen=True)
class Expected:
    """What a program does that was compiled without optimisation."""

    outputs: dict[str, str]  # The SHA-256 of each output.
    seconds: float  # CPU time in user mode.


@dataclass(frozen=True)
class Run:
    """What came of a program's test."""

    program: str  # Its name.
    passed: bool  # Whether all was as expected.
    seconds: float  # CPU time in user mode, of all steps.
    problem: str = ""  # What was not as expected.
    is_late: bool = False  # Whether it is that it did not end.


def _test(make: str, steps: str, outputs: str = "out", same: str = "") -> RunTest:
    """A program's, as ``programs.toml`` has it."""

    def make_all(folder: Path) -> None:
        for function, name, *numbers in map(words, make.splitlines()):
            (folder / name).parent.mkdir(exist_ok=True)
            getattr(inputs, function)(folder / name, *map(json.loads, numbers))

    before, after = words(same) or ("", "")
    return RunTest(
        make_all,
        tuple(map(_step, steps.splitlines())),
        words(outputs),
        (before, after) if same else None,
    )


def _step(line: str) -> Step:
    """Its arguments, among them ``<stdin``, ``>stdout`` and ``=status``."""
    said = {word[0]: word[1:] for word in words(line) if word[0] in "<>="}
    arguments = tuple(word for word in words(line) if word[0] not in "<>=")
    status = int(said.get("=", 0))
    return Step(arguments, said.get("<"), said.get(">", "out"), status)


RUN_TESTS = {name: _test(**about["test"]) for name, about in PROGRAMS.items()}


def run_tests(
    corpus: Corpus,
    executables: Mapping[str, Path],
    *,
    show: Callable[[Run], None] = lambda run: None,
) -> list[Run]:
    """Runs executables of a corpus's programs on what there is for each.

    One after another: their times are to be compared. What is expected is found out
    once, by an executable without optimisation, and kept in the corpus's folder.

    Args:
        corpus: whose programs they are.
        executables: by the programs' names.
        show: is told of each when it is done.

    Raises:
        InvalidArgument: there is no such program, or no test for it.
        Error: a program cannot even be compiled without optimisation.
    """
    runs = []
    for name, executable in executables.items():
        if name not in corpus.programs:
            raise InvalidArgument(f"{corpus.folder} has no program '{name}'")
        with Tester(corpus, corpus.programs[name]) as tester:
            runs.append(tester.run(executable))
        show(runs[-1])
    return runs


class Tester:
    """One program's test, for as many executables of it as one likes.

    The inputs are made once. A context manager.
    """

    def __init__(self, corpus: Corpus, program: Program) -> None:
        """Finds out what is expected, where that is not known yet.

        Raises:
            InvalidArgument: there is no test for it.
            Error: it cannot even be compiled without optimisation.
        """
        self.program = program
        self._test = test_of(program)
        self.expected = expected_outputs(corpus, program)
        self._inputs = OwnFolder("mlbridge-inputs-")
        try:
            self._test.make(self._inputs.path)
        except BaseException:
            self.close()
            raise

    def run(self, executable: Path, seconds: float | None = None) -> Run:
        """Runs one; each step may take so long, or `SECONDS`."""
        name, inputs_folder = self.program.name, self._inputs.path
        try:
            found, used = _outputs(
                self._test, self.program, executable, inputs_folder, seconds
            )
        except Error as error:
            return Run(name, False, 0.0, str(error), isinstance(error, Timeout))
        expected = self.expected.outputs
        wrong = sorted(k for k in expected if found.get(k) != expected[k])
        problem = f"not as expected: {', '.join(wrong)}" if wrong else ""
        return Run(name, not wrong, used, problem)

    def close(self) -> None:
        """Removes the inputs."""
        self._inputs.close()

    def __enter__(self) -> "Tester":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def run_stock(corpus: Corpus, program: str, level: str) -> Run:
    """Runs a program as stock clang makes it of its sources: ``-O2``, ``-Oz``, ...

    Raises:
        InvalidArgument: there is no such program, or no test for it.
        CompilerFailed: there is no such level, or the sources are gone.
    """
    if program not in corpus.programs:
        raise InvalidArgument(f"{corpus.folder} has no program '{program}'")
    found = corpus.programs[program]
    with tempfile.TemporaryDirectory(prefix="mlbridge-run-") as folder:
        executable = Path(folder, program)
        toolchain.executable(found, executable, level)
        return run_tests(corpus, {program: executable})[0]


def test_of(program: Program) -> RunTest:
    """The test of a program; one that was generated prints what is to be compared.

    Raises:
        InvalidArgument: there is none.
    """
    if program.split == "generated":
        return RunTest(lambda folder: None, (Step(()),))
    if program.name not in RUN_TESTS:
        raise InvalidArgument(f"there is no run test for '{program.name}'")
    return RUN_TESTS[program.name]


def tests_digest() -> str:
    """The SHA-256 of all tests and their inputs: another one means other outputs."""
    scripts = sorted(inputs.SCRIPTS.iterdir())
    sources = (Path(__file__), Path(inputs.__file__), FILE, *scripts)
    return hashlib.sha256(b"".join(s.read_bytes() for s in sources)).hexdigest()


def expected_outputs(corpus: Corpus, program: Program) -> Expected:
    """What the program without optimisation does: found out once, and kept."""
    test = test_of(program)
    # Another program, test or input: other outputs.
    made_by = program.linked.sha256 + tests_digest()
    key = hashlib.sha256(made_by.encode()).hexdigest()
    kept = corpus.folder / "expected" / f"{program.name}.json"
    try:
        known = json.loads(kept.read_bytes())
        if known["key"] == key:
            return Expected(dict(known["outputs"]), float(known["seconds"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        # Not known yet, or not readable: it is found out, and written anew.
        pass
    with tempfile.TemporaryDirectory(prefix="mlbridge-run-") as folder:
        executable = Path(folder, program.name)
        toolchain.executable(program, executable, "-O0")
        made = Path(folder, "inputs")
        made.mkdir()
        test.make(made)
        found = Expected(*_outputs(test, program, executable, made))
    kept.parent.mkdir(exist_ok=True)
    temporary = kept.with_suffix(f".{os.getpid()}")
    text = json.dumps({"key": key, **asdict(found)})
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(kept)
    return found


def _outputs(
    test: RunTest,
    program: Program,
    executable: Path,
    made: Path,
    limit: float | None = None,
) -> tuple[dict[str, str], float]:
    """The SHA-256 of each output, and the CPU time that it took."""
    with tempfile.TemporaryDirectory(prefix="mlbridge-run-") as name:
        folder = Path(name)
        for file in made.iterdir():
            (folder / file.name).symlink_to(file)
        seconds = sum(
            _run(step, program, executable, folder, limit or SECONDS)
            for step in test.steps
        )
        if test.same and not _equal(*(folder / part for part in test.same)):
            raise CompilerFailed(
                f"{program.name}: {test.same[1]} is not what {test.same[0]} was"
            )
        return {name: _digest(folder / name) for name in test.outputs}, seconds


def _equal(left: Path, right: Path) -> bool:
    return _digest(left) == _digest(right)


def _digest(path: Path) -> str:
    try:
        return sha256(path)
    except FileNotFoundError:
        return "missing"


def _run(
    step: Step, program: Program, executable: Path, folder: Path, limit: float
) -> float:
    """Runs a step; returns the seconds that it took of the CPU, in user mode.

    Raises:
        CompilerFailed: it ended with another status than it should.
        Timeout: it did not end.
    """
    words = [word.replace("{tree}", program.root) for word in step.arguments]
    stdin = folder / step.stdin if step.stdin else Path(os.devnull)
    with stdin.open("rb") as source, (folder / step.stdout).open("wb") as target:
        process = subprocess.Popen(
            [executable.resolve(), *words],
            cwd=folder,
            stdin=source,
            stdout=target,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath, "LC_ALL": "C"},
        )
        what = " ".join([program.name, *words])
        used = toolchain.wait_for(process, what, limit, largest=LARGEST)
    if process.returncode != step.status:
        raise CompilerFailed(
            f"{what}: expected status {step.status}, found {process.returncode}"
        )
    return used.ru_utime
