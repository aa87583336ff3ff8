# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""clang, llvm-size and the plug-in as functions."""

import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from mlbridge_optimizations.inlining.corpus import Program

CLANG = "clang-22"
LLVM_SIZE = "llvm-size-22"

# No command here should take a tenth of this, in seconds.
TIMEOUT = 300.0


@dataclass(frozen=True)
class Compiled:
    """One translation unit, compiled.

    Attributes:
        source: The C file.
        object_file: What came out.
        stderr: What the compiler, or the plug-in in it, said.
    """

    source: Path
    object_file: Path
    stderr: str


class ToolFailed(Exception):
    """A command ended with another status than 0."""

    def __init__(self, command: Sequence[str | Path], status: int, stderr: str):
        words = " ".join(str(word) for word in command)
        super().__init__(f"status {status} from: {words}\n{stderr.strip()}")


def run(
    command: Sequence[str | Path], *, stdin: Path | None = None
) -> tuple[bytes, str]:
    """Runs a command and returns its stdout and, as text, its stderr.

    Raises:
        ToolFailed: Its status is not 0.
        subprocess.TimeoutExpired: It did not end; it has been killed.
    """
    with (stdin or Path("/dev/null")).open("rb") as source:
        done = subprocess.run(
            command, stdin=source, capture_output=True, timeout=TIMEOUT
        )
    stderr = done.stderr.decode(errors="replace")
    if done.returncode != 0:
        raise ToolFailed(command, done.returncode, stderr)
    return done.stdout, stderr


def model_flags(plugin: Path, spec: str) -> list[str]:
    """The flags with which clang inlines by the model that `spec` names.

    A model that fails must fail the compile: had LLVM's heuristic stepped in, there
    would be nothing left to compare it with.
    """
    options = [f"-mlbridge-inliner={spec}", "-mlbridge-on-error=fatal"]
    return [f"-fpass-plugin={plugin}", *mllvm(options)]


def mllvm(options: Sequence[str]) -> list[str]:
    """Options for LLVM as clang takes them."""
    return [word for option in options for word in ("-mllvm", option)]


def in_spec(path: Path) -> str:
    """A path as it is written in a model spec, where some characters are special."""
    return quote(str(path), safe="/")


def compile_program(
    program: Program,
    into: Path,
    *,
    extra: Callable[[Path], Sequence[str]] = lambda source: (),
    jobs: int = 1,
) -> Iterator[Compiled]:
    """Compiles each translation unit with `clang -Oz` and yields it when it is done.

    Args:
        program: What to compile.
        into: The folder for the object files.
        extra: More flags for one source file.
        jobs: How many compilers may run at once.

    Raises:
        ToolFailed: clang found an error, or the plug-in did.
    """
    into.mkdir(parents=True, exist_ok=True)

    def compile_one(source: Path) -> Compiled:
        target = into / f"{source.stem}.o"
        flags = ("-Oz", "-w", *program.flags, *extra(source))
        _, stderr = run([CLANG, *flags, "-c", source, "-o", target])
        return Compiled(source, target, stderr)

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(compile_one, program.sources)


def link(objects: Sequence[Path], program: Path) -> None:
    """Links object files to an executable."""
    run([CLANG, *objects, "-o", program])


def clang_version() -> str:
    """The compiler's own word on what it is."""
    stdout, _ = run([CLANG, "--version"])
    return stdout.decode().splitlines()[0]


def text_size(objects: Sequence[Path]) -> int:
    """The bytes of machine code and constants in object files, added up."""
    stdout, _ = run([LLVM_SIZE, "--totals", *objects])
    # "   text    data     bss     dec     hex filename", then a line a file.
    return int(stdout.decode().splitlines()[-1].split()[0])
