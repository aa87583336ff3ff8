# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a user's build and finds the bitcode of its programs."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlbridge.errors import CompilerFailed, InvalidArgument, OSFailure

from . import wrapper
from .manifest import sha256
from .toolchain import CLANG, LLVM_AR, LLVM_LINK, link_bitcode, run

COMPILERS = {
    "c": ("cc", "gcc", "clang", "clang-22"),
    "c++": ("c++", "g++", "clang++", "clang++-22"),
}
"""The names under which builds run compilers."""


@dataclass(frozen=True)
class Unit:
    """A source file that the build has compiled."""

    folder: Path
    command: tuple[str, ...]  # Without -o and its value.
    object: Path
    bitcode: Path
    sha256: str  # The hash of the object.


@dataclass(frozen=True)
class Link:
    """A program or shared library that the build has linked."""

    folder: Path
    command: tuple[str, ...]
    output: Path

    @property
    def is_shared(self) -> bool:
        """Whether this is a shared library."""
        return "-shared" in self.command

    def options(self) -> list[tuple[tuple[str, ...], Path | None]]:
        """Returns the options of the command, each with the object or archive it names.

        An archive that is named with -l is found in the folders of -L.
        """
        found: list[tuple[tuple[str, ...], Path | None]] = []
        folders: list[Path] = []
        for option in wrapper.split(self.command[1:]):
            word, path = "".join(option), None
            if word.startswith("-L"):
                folders.append(self.folder / word[2:])
            elif word.startswith("-l"):
                archives = (folder / f"lib{word[2:]}.a" for folder in folders)
                path = next((one for one in archives if one.is_file()), None)
            elif word.endswith((".o", ".a", ".lo")) and not word.startswith("-"):
                path = self.folder / word
            found.append((option, path))
        return found

    def inputs(self) -> list[Path]:
        """Returns the objects and archives of the link, in the command's order."""
        return [path for _, path in self.options() if path]


@dataclass(frozen=True)
class Build:
    """The records of a build."""

    units: tuple[Unit, ...]
    links: tuple[Link, ...]

    def program(self, name: str | None) -> Link:
        """Returns the program or library with this file name.

        Without a name, returns the only program, or else the only shared library.
        Raises InvalidArgument if none matches, or more than one.
        """
        linked = {one.output: one for one in self.links if one.output.is_file()}
        if name:
            chosen = [one for one in linked.values() if one.output.name == name]
        else:
            programs = [one for one in linked.values() if not one.is_shared]
            chosen = programs or [*linked.values()]
        if len(chosen) != 1:
            names = ", ".join(sorted(path.name for path in linked)) or "nothing"
            raise InvalidArgument(
                f"expected one program{f' {name}' if name else ''}, but the build"
                f" linked {names}; name a program or a shared library with --binary,"
                " and start the build from scratch (make clean)"
            )
        return chosen[0]

    def units_of(self, link: Link) -> list[list[Unit]]:
        """Returns a list of units for each input of a link.

        Objects that this build has not compiled, such as assembly, have no unit.
        """
        by_hash = {unit.sha256: unit for unit in self.units}
        return [
            [by_hash[code] for code in _hashes(path) if code in by_hash]
            for path in link.inputs()
        ]

    def linked(self, link: Link) -> dict[Path, Unit]:
        """Maps the objects of a link to their units."""
        return {unit.object: unit for units in self.units_of(link) for unit in units}


def _hashes(path: Path) -> list[str]:
    """Returns the hashes of an object, or of an archive's members."""
    if path.suffix != ".a":
        return [sha256(path)]
    with tempfile.TemporaryDirectory(prefix="mlbridge-archive-") as folder:
        run([LLVM_AR, "x", path.resolve()], folder=Path(folder))
        members = sorted(Path(folder).iterdir())
        return [sha256(one) for one in members]


def run_build(command: Sequence[str], folder: Path) -> Build:
    """Runs a build whose compilers are `wrapper`. ``folder`` receives the records.

    Raises CompilerFailed if the build fails, and InvalidArgument if it compiles
    nothing.
    """
    folder = folder.resolve()
    bin_folder = folder / "bin"
    shutil.rmtree(folder, ignore_errors=True)
    bin_folder.mkdir(parents=True)
    clang = shutil.which(CLANG)
    if clang is None:
        raise OSFailure(f"found no {CLANG}; install clang-22")
    for language, names in COMPILERS.items():
        for name in names:
            script = bin_folder / name
            script.write_text(
                f'#!/bin/sh\nexec "{sys.executable}" -S -E "{wrapper.__file__}"'
                f' {language} "$@"\n'
            )
            script.chmod(0o755)
    # LLVM's C++ compiler is beside its C compiler.
    real = Path(clang).resolve().with_name("clang")
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(bin_folder), os.environ["PATH"]]),
        "CC": str(bin_folder / "clang"),
        "CXX": str(bin_folder / "clang++"),
        wrapper.FOLDER: str(folder),
        wrapper.CLANG: str(real),
    }
    try:
        status = subprocess.call(command, env=environment)
    except OSError as error:
        raise OSFailure(f"cannot run {command[0]}: {error.strerror}") from error
    if status:
        raise CompilerFailed(f"status {status} from: {' '.join(command)}")
    return read(folder)


def read(folder: Path) -> Build:
    """Reads the records of a build. Raises InvalidArgument if it compiled nothing."""
    records = folder / wrapper.RECORDS
    if not records.is_file():
        raise InvalidArgument(
            "the build compiled nothing: start it from scratch (make clean), and let it"
            " find the compiler through CC, CXX or PATH"
        )
    units, links = [], []
    for line in records.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        where, words = Path(entry["folder"]), tuple(entry["command"])
        if entry["kind"] == "link":
            links.append(Link(where, words, Path(entry["output"])))
        else:
            paths = Path(entry["object"]), Path(entry["bitcode"])
            units.append(Unit(where, words, *paths, entry["sha256"]))
    return Build(tuple(units), tuple(links))


def link_units(units: Sequence[Sequence[Unit]], to: Path) -> None:
    """Links the bitcode of a program. ``units`` has a list of units for each input.

    Links all objects. From archives, links only the members that the program needs.
    """
    objects = [group[0].bitcode for group in units if len(group) == 1]
    archives = [unit.bitcode for group in units if len(group) > 1 for unit in group]
    link_bitcode(objects, to)
    if archives:
        run([LLVM_LINK, "--only-needed", to, *archives, "-o", to])
