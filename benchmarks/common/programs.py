# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Real programs for the benchmarks to compile: Debian's bzip2, zlib and Lua."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlbridge.errors import OSFailure

ROOT = Path(__file__).resolve().parents[2]
"""Of the checkout, which has the sources' script, the plug-in and the models."""

FETCH_SECONDS = 600.0


@dataclass(frozen=True)
class Program:
    """A program's sources, and how its own makefile compiles them."""

    package: str
    patterns: tuple[str, ...]
    flags: tuple[str, ...]
    """{tree} is the package's folder, {generated} that of Lua's made header."""
    without: tuple[str, ...] = ()

    def sources(self, workloads: Path) -> list[Path]:
        """The C files, the largest first."""
        tree = workloads / self.package
        found = [path for pattern in self.patterns for path in tree.glob(pattern)]
        kept = [path for path in found if path.name not in self.without]
        return sorted(kept, key=lambda path: (-path.stat().st_size, path))

    def options(self, workloads: Path) -> list[str]:
        """The compiler's options, but for those of optimisation."""
        tree, generated = workloads / self.package, workloads / "bench-generated"
        return [flag.format(tree=tree, generated=generated) for flag in self.flags]


PROGRAMS = {
    "bzip2": Program(
        "bzip2",
        ("*.c",),
        ("-D_FILE_OFFSET_BITS=64",),
        # Programs of their own, and one that only Windows has.
        without=("bzip2recover.c", "dlltest.c", "mk251.c", "spewG.c", "unzcrash.c"),
    ),
    "zlib": Program(
        "zlib",
        ("*.c", "test/minigzip.c"),
        ("-D_LARGEFILE64_SOURCE=1", "-DHAVE_UNISTD_H", "-I{tree}"),
    ),
    "lua": Program(
        "lua5.4",
        ("src/*.c",),
        ("-std=gnu99", "-DLUA_COMPAT_5_3", "-DLUA_USE_LINUX", "-I{generated}"),
        without=("luac.c",),
    ),
}


def fetch(names: Sequence[str], workloads: Path) -> None:
    """Unpacks the programs below `workloads`, unless they are there.

    Raises:
        OSFailure: they cannot be had; why is on stderr.
    """
    packages = [PROGRAMS[name].package for name in names]
    script = ROOT / "scripts" / "fetch-workloads"
    try:
        subprocess.run(
            [script, workloads, *packages],
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=FETCH_SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise OSFailure(f"the programs' sources cannot be fetched: {error}") from error
    # The one header that Debian's build of Lua makes.
    generated = workloads / "bench-generated"
    generated.mkdir(exist_ok=True)
    header = generated / "lua5.4-deb-multiarch.h"
    triple = f"{os.uname().machine}-linux-gnu"
    header.write_text(f'#define DEB_HOST_MULTIARCH "{triple}"\n')


def in_checkout(path: str) -> Path:
    """A file of the checkout.

    Raises:
        OSFailure: it is not there.
    """
    found = ROOT / path
    if not found.exists():
        raise OSFailure(f"there is no {path} in {ROOT}, which has to be a checkout")
    return found
