# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the generated C file with the installed C compiler."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlbridge.errors import Error, InvalidArgument, Unsupported

# These flags let the compiler vectorise sums, but keep infinity and NaN correct. Do not
# use -ffast-math: it would disable denormal numbers in the whole process.
_FLAGS = [
    *("-std=gnu11", "-O3", "-fPIC", "-fvisibility=hidden", "-fstack-usage", "-w"),
    *("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math"),
    *("-fno-math-errno", "-ffp-contract=fast"),
]
# In a library, the symbol of the model does not depend on the model's name.
_EXPORTS = """extern const char mlbridge_aot_model_NAME[];
const void *const mlbridge_aot_model = mlbridge_aot_model_NAME;
"""
MAX_STACK = 256 << 10
"""The maximum stack size of a model in bytes. The compiler that runs the model also
needs stack."""


class CompilerError(Error, RuntimeError, code="System"):
    """The C compiler or `ar` failed."""


@dataclass(frozen=True)
class CCompiler:
    """A working C compiler."""

    command: tuple[str, ...]
    version: str

    @classmethod
    def find(cls, wanted: str | None = None) -> "CCompiler":
        """Finds `wanted`, or else the first of $CC, cc, gcc, clang and clang-22."""
        named = wanted or os.environ.get("CC")
        candidates = [named] if named else ["cc", "gcc", "clang", "clang-22"]
        for candidate in candidates:
            try:
                command = shlex.split(candidate)
            except ValueError:  # A quotation has no end.
                continue
            if not command or not (path := shutil.which(command[0])):
                continue
            found = subprocess.run(
                [path, *command[1:], "--version"],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            if found.returncode == 0 and found.stdout:
                return cls((path, *command[1:]), found.stdout.splitlines()[0])
        raise InvalidArgument(
            f"found no C compiler {' or '.join(candidates)}; name one with --cc or CC"
        )

    def object(self, source: Path, output: Path) -> None:
        """Compiles a file, with the file's folder as the working directory.

        Raises Unsupported if the code needs more than `MAX_STACK` bytes of stack.
        """
        # Omit the folder's random name, so that ccache can find the object again.
        files = ["-c", source.name, "-o", output.name]
        _run([*self.command, *_FLAGS, *files], source.parent)
        usage = output.with_suffix(".su")
        _check_stack(usage.read_text())
        usage.unlink()

    def shared(self, source: Path, output: Path) -> None:
        """Links a model's object into a library without undefined symbols."""
        exports = source.with_suffix(".exports.c")
        exports.write_text(_EXPORTS.replace("NAME", source.stem))
        files = [str(source), str(exports), "-o", str(output), "-lm"]
        _run([*self.command, "-shared", "-fPIC", "-Wl,-z,defs", *files])


def archive(source: Path, output: Path) -> None:
    """Makes a static library that contains one object."""
    program = os.environ.get("AR") or shutil.which("ar") or shutil.which("llvm-ar-22")
    if program is None:
        raise CompilerError("found no `ar`: apt-get install binutils, or set AR")
    output.unlink(missing_ok=True)
    _run([program, "rcsD", str(output), str(source)])


def _run(command: Sequence[str], folder: Path | None = None) -> None:
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder
    )
    if result.returncode:
        raise CompilerError(
            f"{shlex.join(command)} failed:\n{result.stderr[-2000:].strip()}"
        )


def _check_stack(usage: str) -> None:
    for line in usage.splitlines():
        function, size, kind = line.rsplit("\t", 2)
        name = re.sub(r".*:", "", function)
        if "dynamic" in kind and "bounded" not in kind:
            raise Unsupported(
                f"{name}: an operator needs stack memory whose size "
                "depends on a free extent; fix that extent with --pin EXTENT=SIZE"
            )
        if int(size) > MAX_STACK:
            raise Unsupported(
                f"{name}: the model needs {int(size) >> 10} KiB of stack; expected at "
                f"most {MAX_STACK >> 10}"
            )
