# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests the programs on fixed inputs. A test takes a few seconds of CPU time.

The unoptimised program produces the expected outputs. A program that packs and unpacks
must also restore its input.
"""

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from mlbridge.errors import CompilerFailed, Error, InvalidArgument, Timeout
from mlbridge.files import OwnFolder

from . import inputs, toolchain
from .manifest import Corpus, Program, sha256
from .recipes import PROGRAMS, words
from .sources import filled

SECONDS = 300.0  # The time limit of a step. Unoptimised programs take 20 s.
LEAST_SECONDS = 20.0  # `generous_limit` adds 20 times the time at -O0.
LARGEST = 2 << 30  # The maximum bytes of a file that a program writes.


@dataclass(frozen=True)
class Step:
    """One run of the program."""

    arguments: tuple[str, ...]  # ``{tree}`` is the program's folder, also in stdin.
    stdin: str | None = None  # stdin and stdout are file names.
    stdout: str = "out"
    status: int = 0  # The expected exit status.


@dataclass(frozen=True)
class RunTest:
    """How to test a program."""

    make: Callable[[Path], None]  # Writes the inputs to a folder.
    steps: tuple[Step, ...]  # The runs in that folder, in order.
    outputs: tuple[str, ...] = ("out",)  # Files to compare.
    same: tuple[str, str] | None = None  # An input and an output that must be equal.


@dataclass(frozen=True)
class Expected:
    """The outputs of an unoptimised program."""

    outputs: dict[str, str]  # SHA-256 by file.
    seconds: float  # CPU time in user mode.


@dataclass(frozen=True)
class Run:
    """The result of a program's test."""

    program: str
    passed: bool
    seconds: float  # CPU time of all steps in user mode.
    problem: str = ""
    is_late: bool = False  # True if a step timed out.


def parse_test(make: str, steps: str, outputs: str = "out", same: str = "") -> RunTest:
    """Creates a program's test from its entry in ``programs.toml``."""

    def make_all(folder: Path) -> None:
        for function, name, *numbers in map(words, make.splitlines()):
            (folder / name).parent.mkdir(exist_ok=True)
            getattr(inputs, function)(folder / name, *map(json.loads, numbers))

    before, after = words(same) or ("", "")
    pair = (before, after) if same else None
    return RunTest(
        make_all, tuple(map(_step, steps.splitlines())), words(outputs), pair
    )


def _step(line: str) -> Step:
    """Parses arguments, ``<stdin``, ``>stdout`` and ``=status``."""
    found = {word[0]: word[1:] for word in words(line) if word[0] in "<>="}
    arguments = tuple(word for word in words(line) if word[0] not in "<>=")
    status = int(found.get("=", 0))
    return Step(arguments, found.get("<"), found.get(">", "out"), status)


RUN_TESTS = {name: parse_test(**about["test"]) for name, about in PROGRAMS.items()}


def run_tests(
    corpus: Corpus, executables: Mapping[str, str | os.PathLike[str]]
) -> list[Run]:
    """Tests each program's executable, one at a time, so that times are accurate."""
    runs = []
    for name, executable in executables.items():
        with Tester(corpus, corpus.program(name)) as tester:
            runs.append(tester.run(Path(executable)))
    return runs


class Tester(AbstractContextManager["Tester"]):
    """A context manager that tests any number of executables of one program."""

    def __init__(self, corpus: Corpus, program: Program) -> None:
        """Prepares the files. Raises InvalidArgument if the program has no test."""
        self.program = program
        self._test = test_of(program)
        self.expected = expected_outputs(corpus, program)
        self._inputs = OwnFolder("mlbridge-inputs-")
        try:
            self._test.make(self._inputs.path)
        except BaseException:
            self.close()
            raise

    def generous_limit(self) -> float:
        """Returns a time limit in seconds that is sufficient even on a busy machine.

        The limit is for programs that were compiled with a policy.
        """
        return LEAST_SECONDS + 20 * self.expected.seconds

    def run(self, executable: Path, seconds: float | None = None) -> Run:
        """Tests an executable. `seconds` limits each step, by default to `SECONDS`."""
        name, made = self.program.name, self._inputs.path
        try:
            found, used = run_steps(self._test, self.program, executable, made, seconds)
        except Error as error:
            return Run(name, False, 0.0, str(error), isinstance(error, Timeout))
        expected = self.expected.outputs
        wrong = sorted(k for k in expected if found.get(k) != expected[k])
        problem = f"not as expected: {', '.join(wrong)}" if wrong else ""
        return Run(name, not wrong, used, problem)

    def close(self) -> None:
        """Removes the inputs."""
        self._inputs.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def run_stock(corpus: Corpus, program: str, level: str) -> Run:
    """Compiles a program with stock clang at a level, such as ``-O2``, and tests it."""
    found = corpus.program(program)
    with tempfile.TemporaryDirectory(prefix="mlbridge-run-") as folder:
        executable = Path(folder, program)
        toolchain.executable(found, executable, level)
        return run_tests(corpus, {program: executable})[0]


def test_of(program: Program) -> RunTest:
    """Returns a program's test. Raises InvalidArgument if it has no test."""
    if program.split == "generated":  # The test compares stdout.
        return RunTest(lambda folder: None, (Step(()),))
    if program.steps:
        steps = tuple(map(_step, program.steps))
        outputs = dict.fromkeys([*(step.stdout for step in steps), *program.outputs])
        return RunTest(lambda folder: None, steps, tuple(outputs))
    if program.name not in RUN_TESTS:
        raise InvalidArgument(f"there is no run test for '{program.name}'")
    return RUN_TESTS[program.name]


def tests_digest(programs: Iterable[str]) -> str:
    """Returns the SHA-256 of the programs' tests and of the sources of their inputs."""
    tests = {name: PROGRAMS[name]["test"] for name in programs if name in PROGRAMS}
    # Leave out drivers, because a driver is part of its program.
    scripts = [s for s in inputs.SCRIPTS.iterdir() if s.suffix not in (".cpp", ".h")]
    sources = (Path(__file__), Path(inputs.__file__), *sorted(scripts))
    texts = (repr(tests).encode(), *(source.read_bytes() for source in sources))
    return hashlib.sha256(b"".join(texts)).hexdigest()


def expected_outputs(corpus: Corpus, program: Program) -> Expected:
    """Returns the outputs of the unoptimised program. They are cached in a file."""
    test = test_of(program)
    made_by = program.linked.sha256 + tests_digest([program.name])
    key = hashlib.sha256(made_by.encode()).hexdigest()
    kept = corpus.folder / "expected" / f"{program.name}.json"
    # Ignore errors, because a missing or damaged file is written again.
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        known = json.loads(kept.read_bytes())
        if known["key"] == key:
            return Expected(dict(known["outputs"]), float(known["seconds"]))
    with tempfile.TemporaryDirectory(prefix="mlbridge-run-") as folder:
        executable = Path(folder, program.name)
        toolchain.executable(program, executable, "-O0")
        made = Path(folder, "inputs")
        made.mkdir()
        test.make(made)
        found = Expected(*run_steps(test, program, executable, made))
    kept.parent.mkdir(exist_ok=True)
    temporary = kept.with_suffix(f".{os.getpid()}")
    text = json.dumps({"key": key, **asdict(found)})
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(kept)
    return found


def run_steps(
    test: RunTest,
    program: Program,
    executable: Path,
    made: Path,
    limit: float | None = None,
) -> tuple[dict[str, str], float]:
    """Runs all steps. Returns the SHA-256 of each output, and the CPU time."""
    with tempfile.TemporaryDirectory(prefix="mlbridge-run-") as name:
        folder = Path(name)
        for file in made.iterdir():
            (folder / file.name).symlink_to(file)
        seconds = sum(
            _run(step, program, executable, folder, limit or SECONDS)
            for step in test.steps
        )
        if test.same and len({_digest(folder / part) for part in test.same}) > 1:
            raise CompilerFailed(
                f"{program.name}: {test.same[1]} is not what {test.same[0]} was"
            )
        return {name: _digest(folder / name) for name in test.outputs}, seconds


def _digest(path: Path) -> str:
    return sha256(path) if path.is_file() else "missing"


def _run(
    step: Step, program: Program, executable: Path, folder: Path, limit: float
) -> float:
    """Runs a step. Returns its CPU time in user mode, or raises CompilerFailed."""
    places = {"tree": program.root}
    words = [filled(word, places) for word in step.arguments]
    stdin = folder / filled(step.stdin or os.devnull, places)
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
