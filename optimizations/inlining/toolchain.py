# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""clang, llvm-size and the plug-in as functions."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mlbridge_optimizations.corpus.sources import SourceProgram
from mlbridge_optimizations.corpus.toolchain import CLANG, plugin_flags, run

LLVM_SIZE = "llvm-size-22"


@dataclass(frozen=True)
class Compiled:
    """One translation unit, compiled."""

    source: Path
    object_file: Path
    stderr: str  # Of the compiler with its plug-in.


def model_flags(plugin: Path, spec: str) -> list[str]:
    """Returns clang's flags to inline by the model that `spec` names.

    A model that fails must fail the compile. With a fallback, the build would compare
    LLVM's heuristic with itself.
    """
    return plugin_flags(plugin, f"inliner={spec}", "on-error=fatal")


def compile_program(
    program: SourceProgram,
    into: Path,
    *,
    extra: Callable[[Path], Sequence[str]] = lambda source: (),
    jobs: int = 1,
) -> Iterator[Compiled]:
    """Compiles each translation unit with `clang -Oz`, and yields it when finished."""
    into.mkdir(parents=True, exist_ok=True)

    def compile_one(source: Path) -> Compiled:
        target = into / f"{source.stem}.o"
        flags = ("-Oz", "-w", *program.flags, *extra(source))
        _, stderr = run([CLANG, *flags, "-c", source, "-o", target])
        return Compiled(source, target, stderr.decode(errors="replace"))

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(compile_one, program.sources)


def text_size(objects: Sequence[Path]) -> int:
    """Returns the total bytes of machine code and constants in object files."""
    stdout, _ = run([LLVM_SIZE, "--totals", *objects])
    # "   text    data     bss     dec     hex filename", then a line for each file.
    return int(stdout.decode().splitlines()[-1].split()[0])
