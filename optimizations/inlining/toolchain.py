# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that run clang, with the plug-in, and llvm-size."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mlbridge_optimizations.corpus.sources import SourceProgram
from mlbridge_optimizations.corpus.toolchain import (
    CLANG,
    LLVM_SIZE,
    plugin_flags,
    run,
)


@dataclass(frozen=True)
class Compiled:
    """The result of compiling one translation unit."""

    source: Path
    object_file: Path
    stderr: str  # The output of the compiler and the plug-in.


def model_flags(plugin: Path, spec: str) -> list[str]:
    """Returns the flags with which clang inlines with the model of `spec`.

    If the model fails, the compile must fail too. With a fallback, the demo would
    compare LLVM's heuristic with itself.
    """
    return plugin_flags(plugin, f"inliner={spec}", "on-error=fatal")


def compile_program(
    program: SourceProgram,
    into: Path,
    *,
    extra: Callable[[Path], Sequence[str]] = lambda source: (),
    jobs: int = 1,
) -> Iterator[Compiled]:
    """Compiles each translation unit with `clang -Oz`. Yields results in order."""
    into.mkdir(parents=True, exist_ok=True)

    def compile_one(source: Path) -> Compiled:
        target = into / f"{source.stem}.o"
        flags = ("-Oz", "-w", *program.flags, *extra(source))
        _, stderr = run([CLANG, *flags, "-c", source, "-o", target])
        return Compiled(source, target, stderr.decode(errors="replace"))

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(compile_one, program.sources)


def text_size(objects: Sequence[Path]) -> int:
    """Returns the size of machine code and constants in object files, in bytes."""
    stdout, _ = run([LLVM_SIZE, "--totals", *objects])
    # Read the total, which is in the last line. The first column is "text".
    return int(stdout.decode().splitlines()[-1].split()[0])
