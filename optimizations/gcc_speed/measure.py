# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the programs with stock gcc, and counts their instructions with valgrind.

Searches and evaluations use only C programs. Their split was fixed before any result
was known. The held-out programs are the corpus's held-out programs, and every fifth of
the other programs in alphabetical order.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from typer import Option

from mlbridge.errors import InvalidArgument, ModelError
from mlbridge.files import OwnFolder
from mlbridge_optimizations.built import built_of
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.corpus.inputs import SCRIPTS
from mlbridge_optimizations.corpus.manifest import Program
from mlbridge_optimizations.corpus.recipes import PROGRAMS, words
from mlbridge_optimizations.corpus.runs import (
    Expected,
    Tester,
    parse_test,
    run_steps,
    test_of,
)
from mlbridge_optimizations.evaluation.executions import check, under_valgrind

GCC, GXX = "gcc", "g++"
SMALL = tomllib.loads(Path(__file__).with_name("inputs.toml").read_text("utf-8"))
"""The programs' small inputs."""

Plugin = Annotated[
    Path | None, Option(help="mlbridge.so. [default: as found by `mlbridge doctor`]")
]

COUNT_SECONDS = 600.0
_TOTAL = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)
# In valgrind's files, a line of costs begins with one of these characters, because it
# begins with an absolute or relative line number.
_COST = tuple("0123456789+-*")

HELD_OUT = frozenset(
    words("brotli duktape expat gawk libjpeg-turbo mujs potrace sqlite3 wavpack zstd")
)
"""The programs that are never used for training."""


def find_plugin(given: Path | None) -> Path:
    """Returns gcc's plug-in. Raises InvalidArgument if it does not exist."""
    return built_of(given, "mlbridge.so", package="gcc-12-plugin-dev")


def names_of(split: str) -> list[str]:
    """Returns the names of the programs of a split: training or held-out."""
    if split not in ("training", "held-out"):
        raise InvalidArgument(f"expected training or held-out, found {split!r}")
    return [name for name in SMALL if (name in HELD_OUT) == (split == "held-out")]


@dataclass(frozen=True)
class Counted:
    """Valgrind's counts in all steps of a test.

    Attributes:
        instructions: executed instructions.
        functions: executed instructions by function, without callees.
        calls: the number of calls by caller and callee.
    """

    instructions: int
    functions: dict[str, int] = field(default_factory=dict)
    calls: dict[tuple[str, str], int] = field(default_factory=dict)


class SmallTester(Tester):
    """Tests a program on small inputs. Stock gcc's executable is the reference."""

    def __init__(self, program: Program, reference: Path) -> None:
        """Runs the reference."""
        small = SMALL.get(program.name, {})
        self.program = program
        self._test = (
            parse_test(**{**PROGRAMS[program.name]["test"], "make": small["make"]})
            if small
            else test_of(program)
        )
        self._inputs = OwnFolder("mlbridge-inputs-")
        folder = self._inputs.path
        self._test.make(folder)
        _edit(folder, words(small.get("edits", "")))
        self.expected = Expected(*run_steps(self._test, program, reference, folder))

    def count(self, executable: Path, folder: Path, *, calls: bool = False) -> Counted:
        """Counts executed instructions. Raises ModelError for a wrong output.

        With `calls`, calls are counted too, which takes longer.
        """
        with OwnFolder("mlbridge-counts-") as logs:
            tool, more = (
                ("callgrind", []) if calls else ("cachegrind", ["--cache-sim=no"])
            )
            options = ["--quiet", f"--tool={tool}", *more]
            options.append(f"--{tool}-out-file={logs.path}/%p")
            script = under_valgrind(executable, folder, options)
            check(self, script, COUNT_SECONDS)
            return read_counts([log.read_text() for log in sorted(logs.path.iterdir())])


def _edit(folder: Path, edits: Sequence[str]) -> None:
    """Makes interpreters' scripts shorter. `edits` are pairs of old and new texts."""
    for before, after in zip(edits[::2], edits[1::2], strict=True):
        for file in folder.iterdir():
            if (SCRIPTS / file.name).exists():
                file.write_text(file.read_text().replace(before, after))


def read_counts(logs: Sequence[str]) -> Counted:
    """Sums the counts in the files of cachegrind or callgrind."""
    total = 0
    functions: dict[str, int] = {}
    calls: dict[tuple[str, str], int] = {}
    names: dict[str, str] = {}

    def name_of(text: str) -> str:
        number, _, name = text.partition(" ")
        if not number.startswith("("):
            return text
        if name:
            names[number] = name
        return names[number].partition("'")[0]  # Callgrind marks recursion by '2.

    for log in logs:
        found = _TOTAL.search(log)
        if found is None:
            raise ModelError(f"valgrind counted nothing: {log[-500:]}")
        total += int(found.group(1))
        names.clear()
        function = callee = ""
        is_call = False
        for line in log.splitlines():
            key, _, value = line.partition("=")
            if key == "fn":
                function = name_of(value)
            elif key == "cfn":
                callee = name_of(value)
            elif key == "calls":
                pair = function, callee
                calls[pair] = calls.get(pair, 0) + int(value.split()[0])
                is_call = True  # The next line has the callee's instructions.
            elif is_call:
                is_call = False
            elif line.startswith(_COST):
                functions[function] = functions.get(function, 0) + int(line.split()[1])
    return Counted(total, functions, calls)


@dataclass
class Build:
    """A program that stock gcc compiles to a folder, one object per source."""

    program: Program
    folder: Path
    objects: dict[str, Path] = field(default_factory=dict)

    def compile(self, source: str, to: Path, more: Sequence[str] = ()) -> str:
        """Compiles one source. Returns gcc's messages.

        Raises ModelError if a model fails, because gcc then decides alone.
        """
        # Skip the first flags, with which clang makes unoptimised bitcode.
        flags = list(self.program.flags[len(toolchain.UNOPTIMISED) :])
        for module in self.program.modules:
            flags += module.flags if module.source == source else ()
        command = [GCC, "-O2", "-w", *flags, *more, "-c", source]
        _, said = toolchain.run(
            [*command, "-o", to.resolve()], folder=Path(self.program.root)
        )
        messages = said.decode(errors="replace")
        if "mlbridge: " in messages:
            raise ModelError(f"{source}: {messages[-2000:]}")
        return messages

    def all(self, more: Sequence[str] = (), *, keep: bool = False) -> "Build":
        """Compiles all sources. With `keep`, keeps objects that the folder has."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for number, module in enumerate(self.program.modules):
            target = self.folder / f"{number}.o"
            if not (keep and target.exists()):
                self.compile(module.source, target, more)
            self.objects[module.source] = target
        return self

    def link(self, to: Path, other: Mapping[str, Path] | None = None) -> Path:
        """Links all objects. `other` replaces objects of some sources."""
        objects = {**self.objects, **(other or {})}
        linker = GCC if all(source.endswith(".c") for source in objects) else GXX
        toolchain.run([linker, *objects.values(), *self.program.libraries, "-o", to])
        return to


def text_and_constants(executable: Path) -> int:
    """Returns the bytes of code and constants, as `size` counts them."""
    printed, _ = toolchain.run(["size", executable])
    return int(printed.splitlines()[1].split()[0])


def function_sizes(executable: Path) -> dict[str, int]:
    """Returns the bytes of each function."""
    printed, _ = toolchain.run(["nm", "-S", "--defined-only", executable])
    sizes: dict[str, int] = {}
    for line in printed.decode().splitlines():
        parts = line.split()
        if len(parts) == 4 and parts[2] in "tTwW":
            sizes[parts[3]] = sizes.get(parts[3], 0) + int(parts[1], 16)
    return sizes
