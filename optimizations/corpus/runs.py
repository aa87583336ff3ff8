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
from mlbridge.folders import OwnFolder
from mlbridge_optimizations.corpus import inputs, toolchain
from mlbridge_optimizations.corpus.manifest import Corpus, Program

SECONDS = 300.0
"""A program that takes longer is stopped: it hangs. Unoptimised ones take 20 s."""

LARGEST = 2 << 30
"""Bytes of a file that a program may write: one that goes wrong may write for ever."""


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


def _text(megabytes: float) -> Callable[[Path], None]:
    return lambda folder: inputs.text(folder / "in", megabytes)


def _script(name: str, script: str, megabytes: float = 0) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / name).write_text(script, encoding="utf-8")
        if megabytes:
            inputs.text(folder / "in", megabytes)

    return make


def _packer(megabytes: float, pack: str, unpack: str) -> RunTest:
    """A program that packs its stdin, and unpacks it again."""
    steps = (
        Step(tuple(pack.split()), "in", "packed"),
        Step(tuple(unpack.split()), "packed", "back"),
    )
    return RunTest(_text(megabytes), steps, ("packed", "back"), ("in", "back"))


def _in_folder(name: str, make: Callable[[Path], None]) -> Callable[[Path], None]:
    def make_below(folder: Path) -> None:
        (folder / name).mkdir()
        make(folder / name)

    return make_below


def _json_and_filter(folder: Path) -> None:
    inputs.json(folder / "in", 60_000)
    (folder / "run.jq").write_text(inputs.JQ, encoding="utf-8")


def _tiffs(folder: Path) -> None:
    inputs.tiff(folder / "in", 3000, 2000)
    inputs.tiff(folder / "two", 3000, 2000, bilevel=True)


_PATTERNS = (
    ("-c", r"\b(\w+) .*\b\1\b"),
    ("-o2 -i", r"(th|an)([a-f]{2,4})(?=\s\d)"),
    ("-n --color=never", r"^(?:[^aeiou\s]+[aeiou]){3,}.*(?<!\d)77\b"),
    ("-v -c", r"(?<word>[h-t]++)(?:\s(?&word)){2}"),
    ("-u -c", r"\p{Lu}|\p{Ll}{9,}\R|^\X{70,}$"),
    ("-F -o -w", "7"),
)
"""Options of pcre2grep, and what it looks for."""

RUN_TESTS: dict[str, RunTest] = {
    "brotli": _packer(16, "-q 7 -c", "-d -c"),
    "byacc": RunTest(
        lambda folder: inputs.grammar(folder / "in.y", 1500),
        (Step(("-v", "-d", "-b", "made", "in.y"), stdout="said"),),
        ("made.tab.c", "made.tab.h", "made.output"),
    ),
    "bzip2": _packer(16, "-9 -c", "-d -c"),
    "cadical": RunTest(
        lambda folder: inputs.satisfiability(folder / "in", 250, 4.26),
        (Step(("-q", "in"), status=20),),
    ),
    "cmark": RunTest(
        lambda folder: inputs.markdown(folder / "in.md", 6000),
        tuple(
            Step(("-t", kind, *more, "in.md"), stdout=kind)
            for kind, more in (
                *(("html", ("--smart",)), ("xml", ("--sourcepos",)), ("man", ())),
                *(("latex", ()), ("commonmark", ("--width", "72"))),
            )
        ),
        ("html", "xml", "man", "latex", "commonmark"),
    ),
    "dash": RunTest(
        _script("run.sh", inputs.SHELL, 0.4), (Step(("run.sh",), status=3),)
    ),
    "expat": RunTest(
        _in_folder("documents", lambda folder: inputs.xml(folder / "in", 100_000)),
        # What comes of a document gets the name that it had elsewhere.
        (Step(("-n", "-d", ".", *["documents/in"] * 4), stdout="said"),),
        ("in",),
    ),
    "flac": RunTest(
        lambda folder: inputs.wav(folder / "in.wav", 120),
        (
            Step(("-s", "-8", "-o", "packed", "in.wav"), stdout="said"),
            Step(("-s", "-d", "-o", "back", "packed"), stdout="said"),
        ),
        ("packed", "back"),
        ("in.wav", "back"),
    ),
    "gawk": RunTest(
        _script("count.awk", inputs.AWK, 8),
        # The same file again, as if there were more.
        (Step(("-f", "count.awk", *["in"] * 4)),),
    ),
    "glpk": RunTest(
        lambda folder: inputs.integer_program(folder / "in", 10, 60),
        (
            Step(("--lp", "in", "-o", "all", "--cuts"), stdout="said"),
            Step(("--lp", "in", "-o", "inner", "--nomip", "--interior"), stdout="said"),
        ),
        ("all", "inner"),
    ),
    "jq": RunTest(
        _json_and_filter,
        (Step(("-s", "-S", "-f", "run.jq", "in")),),
    ),
    "lame": RunTest(
        lambda folder: inputs.wav(folder / "in.wav", 40),
        (
            Step(("--silent", "-V", "2", "in.wav", "variable"), stdout="said"),
            Step(("--silent", "--cbr", "-b", "128", "in.wav", "fixed"), stdout="said"),
            Step(
                ("--silent", "--decode", "--mp3input", "fixed", "back"), stdout="said"
            ),
        ),
        ("variable", "fixed", "back"),
    ),
    "libjpeg-turbo": RunTest(
        lambda folder: inputs.ppm(folder / "in", 4000, 3000),
        (
            Step(("-quality", "90", "-optimize", "in"), stdout="baseline"),
            Step(("-quality", "80", "-progressive", "in"), stdout="progressive"),
            Step(("-arithmetic", "-dct", "float", "in"), stdout="arithmetic"),
            Step(("-quality", "97", "-sample", "1x1", "in"), stdout="fine"),
            Step(("-grayscale", "-dct", "fast", "-optimize", "in"), stdout="gray"),
        ),
        ("baseline", "progressive", "arithmetic", "fine", "gray"),
    ),
    "libpng": RunTest(
        lambda folder: inputs.png(folder / "in", 3000, 2000),
        (Step(("in", "written"), stdout="said"),),
        ("written",),
    ),
    "libwebp": RunTest(
        lambda folder: inputs.ppm(folder / "in", 1800, 1300),
        (
            Step(("-quiet", "-m", "4", "-q", "80", "in", "-o", "lossy")),
            # It reads what it has written.
            Step(("-quiet", "-lossless", "-q", "30", "lossy", "-o", "lossless")),
            Step(("-quiet", "-sharp_yuv", "-resize", "500", "0", "in", "-o", "small")),
        ),
        ("lossy", "lossless", "small"),
    ),
    "lua": RunTest(
        _script("run.lua", inputs.LUA.replace("ROUNDS", "5")), (Step(("run.lua",)),)
    ),
    "lz4": _packer(48, "-9 -c", "-d -c"),
    "minisat": RunTest(
        lambda folder: inputs.satisfiability(folder / "in", 250, 4.26),
        (Step(("-verb=0", "in"), status=20),),
    ),
    "mujs": RunTest(_script("run.js", inputs.JAVASCRIPT), (Step(("run.js",)),)),
    "nasm": RunTest(
        lambda folder: inputs.assembly(folder / "in", 8000),
        (
            Step(("-f", "elf64", "in", "-o", "elf", "-l", "list")),
            # Without the time of day.
            Step(("-f", "win64", "--reproducible", "in", "-o", "win")),
        ),
        ("elf", "list", "win"),
    ),
    "opus": RunTest(
        # Its samples are taken as they are, and the header as some more.
        lambda folder: inputs.wav(folder / "in", 50),
        (
            Step(("audio", "48000", "2", "96000", "in", "music")),
            Step(("voip", "48000", "2", "20000", "-complexity", "10", "in", "speech")),
        ),
        ("music", "speech"),
    ),
    "pcre2": RunTest(
        _text(8),
        tuple(
            Step((*options.split(), pattern, "in"), stdout=f"out{number}")
            for number, (options, pattern) in enumerate(_PATTERNS)
        ),
        tuple(f"out{number}" for number in range(len(_PATTERNS))),
    ),
    "picosat": RunTest(
        lambda folder: inputs.satisfiability(folder / "in", 250, 4.26),
        (Step(("in",), status=20),),
    ),
    "potrace": RunTest(
        lambda folder: inputs.bitmap(folder / "in", 3000, 2000),
        tuple(
            Step(("-b", kind, *more, "in", "-o", kind))
            for kind, more in (
                *(("svg", ("-u", "100")), ("geojson", ("-t", "9")), ("dxf", ())),
                *(("eps", ("-c",)), ("pdf", ("-O", "1")), ("pgm", ("-r", "50"))),
            )
        ),
        ("svg", "geojson", "dxf", "eps", "pdf", "pgm"),
    ),
    "sqlite3": RunTest(
        _script("run.sql", inputs.SQL), (Step((":memory:",), "run.sql"),)
    ),
    "tcc": RunTest(
        lambda folder: inputs.c_source(folder / "in.c", 60_000),
        (
            Step(("-B{tree}", "-c", "in.c", "-o", "out.o"), stdout="said"),
            Step(("-B{tree}", "-E", "in.c", "-o", "out.i"), stdout="said"),
        ),
        ("out.o", "out.i"),
    ),
    "tiff": RunTest(
        _tiffs,
        (
            Step(("-c", "lzw:2", "-r", "64", "in", "lzw")),
            Step(("-c", "zip:2:p6", "-r", "64", "lzw", "zip")),
            Step(("-c", "packbits", "-p", "separate", "lzw", "packbits")),
            Step(("-c", "lzw", "-t", "-w", "128", "-l", "64", "zip", "tiles")),
            Step(("-c", "none", "-B", "-s", "-r", "2000", "tiles", "back")),
            Step(("-c", "g4", "two", "g4")),
            Step(("-c", "g3:2d", "g4", "g3")),
        ),
        ("lzw", "zip", "packbits", "tiles", "back", "g4", "g3"),
    ),
    "xz": _packer(5, "-4 -T1 -c", "-d -c"),
    "zlib": _packer(24, "-7", "-d"),
    "zopfli": RunTest(
        lambda folder: inputs.png(folder / "in", 200, 150),
        (Step(("-y", "--iterations=5", "--filters=0pm", "in", "packed")),),
        ("packed",),
    ),
    "zstd": _packer(16, "-11 -c", "-d -c"),
}


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
        """Runs one.

        Args:
            executable: of the program.
            seconds: that each step may take; `SECONDS` if not given.
        """
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
    sources = (Path(__file__), Path(inputs.__file__))
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
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
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
