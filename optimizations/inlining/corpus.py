# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs: where their sources come from, and how they are compiled.

All are Debian source packages. Two are learned from and one is kept for the test.
"""

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mlbridge_optimizations.corpus.build import SCRIPTS


@dataclass(frozen=True)
class Program:
    """One program, unpacked and ready to be compiled.

    Attributes:
        name: What people call it.
        version: That of the Debian package.
        sources: The C files, one translation unit each.
        flags: What its own build passes to the C compiler, without -O.
    """

    name: str
    version: str
    sources: tuple[Path, ...]
    flags: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """The folder that holds all the sources."""
        return self.sources[0].parent


@dataclass(frozen=True)
class Recipe:
    """What there is to know about a program before it has been fetched.

    Attributes:
        package: The Debian source package.
        patterns: Which of its files to compile, as globs.
        without: The names of files that those match and that are not wanted.
        flags: As in Program; `{tree}` stands for the package's folder.
    """

    package: str
    patterns: tuple[str, ...]
    without: frozenset[str] = frozenset()
    flags: tuple[str, ...] = ()


# The package has more programs than one.
BZIP2_FILES = (
    *("blocksort", "huffman", "crctable", "randtable"),
    *("compress", "decompress", "bzlib", "bzip2"),
)

# Flags and files as in the programs' own makefiles.
RECIPES = {
    "zlib": Recipe(
        "zlib",
        patterns=("*.c", "test/minigzip.c"),
        flags=("-D_LARGEFILE64_SOURCE=1", "-DHAVE_UNISTD_H", "-I{tree}"),
    ),
    # luac.c is another program.
    "lua": Recipe(
        "lua5.4",
        patterns=("src/*.c",),
        without=frozenset({"luac.c"}),
        flags=("-std=gnu99", "-DLUA_COMPAT_5_3", "-DLUA_USE_LINUX"),
    ),
    "bzip2": Recipe(
        "bzip2",
        patterns=tuple(f"{name}.c" for name in BZIP2_FILES),
        flags=("-D_FILE_OFFSET_BITS=64",),
    ),
}
TRAINING = ("zlib", "lua")
TEST = "bzip2"


def fetch(folder: Path) -> dict[str, Program]:
    """Unpacks all programs below `folder`; what is there already is kept.

    Raises:
        subprocess.SubprocessError: A package could not be fetched; why is on stderr.
    """
    packages = [recipe.package for recipe in RECIPES.values()]
    script = SCRIPTS / "fetch-workloads"
    subprocess.run(
        [script, folder, *packages], check=True, stdout=subprocess.DEVNULL, timeout=600
    )
    return {
        name: _prepare(name, recipe, folder.resolve())
        for name, recipe in RECIPES.items()
    }


def _prepare(name: str, recipe: Recipe, folder: Path) -> Program:
    tree = folder / recipe.package
    sources = sorted(
        path
        for pattern in recipe.patterns
        for path in tree.glob(pattern)
        if path.name not in recipe.without
    )
    flags = [flag.format(tree=tree) for flag in recipe.flags]
    if name == "lua":
        flags.append(f"-I{_lua_configuration(folder)}")
    return Program(name, _version(tree), tuple(sources), tuple(flags))


def _version(tree: Path) -> str:
    """The version in the first line of debian/changelog: `bzip2 (1.0.8-5) ...`."""
    with (tree / "debian" / "changelog").open(encoding="utf-8") as changelog:
        return changelog.readline().split("(", 1)[1].split(")", 1)[0]


def _lua_configuration(folder: Path) -> Path:
    """Makes the one header that Debian's build of Lua makes; returns its folder."""
    triple = subprocess.run(
        ["dpkg-architecture", "-qDEB_HOST_MULTIARCH"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    generated = folder / "generated"
    generated.mkdir(exist_ok=True)
    header = generated / "lua5.4-deb-multiarch.h"
    header.write_text(f'#define DEB_HOST_MULTIARCH "{triple}"\n', encoding="utf-8")
    return generated


def concatenate_sources(programs: Iterable[Program], into: Path) -> Path:
    """Writes the sources of some programs to one file, for lack of a larger text."""
    with into.open("wb") as text:
        for program in programs:
            for source in program.sources:
                text.write(source.read_bytes())
    return into
