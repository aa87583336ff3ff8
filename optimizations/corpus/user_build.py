# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a user's build and finds the bitcode of its programs."""

import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlbridge.errors import CompilerFailed, InvalidArgument, Malformed, OSFailure

from . import wrapper
from .archive import is_archive, objects_of
from .manifest import sha256
from .toolchain import CLANG, LLVM_NM, link_bitcode, run

COMPILERS = {
    "c": ("cc", "gcc", "clang", "clang-22"),
    "c++": ("c++", "g++", "clang++", "clang++-22"),
}
"""The names under which builds run compilers."""
MARK = ".mlbridge-build"
"""An empty file in each folder that `run_build` may empty."""
OBJECTS = (".o", ".a", ".lo", ".os", ".obj")
"""The ends of names of objects and archives."""
_END_SECONDS = 5.0
"""The time that a build has to end after SIGTERM. Then SIGKILL ends it."""


@dataclass(frozen=True)
class Unit:
    """A source file that the build has compiled."""

    folder: Path
    command: tuple[str, ...]  # Without -o and its value.
    object: Path
    bitcode: Path
    sha256: str  # The hash of the object.
    source_sha256: str = ""  # The hash of the source, when it was compiled.

    @property
    def has_source(self) -> bool:
        """Whether the source still exists and has not changed.

        For example, a build may generate several sources one after the other in one
        file.
        """
        source = self.folder / self.command[-1]
        return source.is_file() and self.source_sha256 in ("", sha256(source))


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

        An archive that is named with -l is found in the folders of -L, unless the
        linker uses a shared library with this name.
        """
        found: list[tuple[tuple[str, ...], Path | None]] = []
        options = wrapper.split(self.command[1:])
        words = ["".join(option) for option in options]
        folders = [self.folder / word[2:] for word in words if word.startswith("-L")]
        ends = (".a",) if "-static" in words else (".so", ".a")
        for option, word in zip(options, words, strict=True):
            path = None
            if word.startswith("-l"):
                files = (at / f"lib{word[2:]}{end}" for at in folders for end in ends)
                library = next((one for one in files if one.is_file()), None)
                path = library if library and library.suffix == ".a" else None
            elif word.endswith(OBJECTS) and not word.startswith("-"):
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
            gone = {one.output for one in self.links} - linked.keys()
            also = (
                f" (and {', '.join(map(str, sorted(gone)))}, now gone)" if gone else ""
            )
            raise InvalidArgument(
                f"expected one program{f' {name}' if name else ''}, but the build"
                f" linked {names}{also}; name a program or a shared library with"
                " --binary, and start the build from scratch (make clean)"
            )
        return chosen[0]

    def units_of(self, link: Link) -> list[list[Unit]]:
        """Returns a list of units for each input of a link.

        Objects that this build has not compiled, such as assembly, have no unit.
        """
        return [
            [unit for _, unit in self.members_of(path) if unit]
            for path in link.inputs()
        ]

    def members_of(self, path: Path) -> list[tuple[bytes, Unit | None]]:
        """Returns the objects in an input of a link, each with its unit."""
        by_hash = {unit.sha256: unit for unit in self.units}
        objects = objects_of(path)
        return [(one, by_hash.get(hashlib.sha256(one).hexdigest())) for one in objects]

    def linked(self, link: Link) -> dict[Path, Unit]:
        """Maps the objects of a link to their units."""
        return {unit.object: unit for units in self.units_of(link) for unit in units}

    def link_bitcode(self, link: Link, to: Path) -> None:
        """Links the bitcode of a program: all objects, and the needed members.

        Raises InvalidArgument if the build has compiled no object of the program.
        """
        objects: list[Path] = []
        members: list[Path] = []
        for path, units in zip(link.inputs(), self.units_of(link), strict=True):
            group = members if is_archive(path) else objects
            group += [unit.bitcode for unit in units if unit.bitcode not in group]
        if not objects and not members:
            raise InvalidArgument(
                f"the build has not compiled the objects of {link.output} with CC and"
                " CXX, or has changed them (such as with objcopy or ld -r)"
            )
        if not any("--whole-archive" in word for word in link.command):
            members = _needed(objects, members)
        link_bitcode([*objects, *members], to)


def _needed(objects: Sequence[Path], members: Sequence[Path]) -> list[Path]:
    """Returns the members of archives that a linker would use for a program.

    `llvm-link --only-needed` misses a member if only later members need it.
    """
    if not members:
        return []
    names = [*objects, *members]
    defined = _symbols("--defined-only", names)
    undefined = _symbols("--undefined-only", names)
    wanted = {"main"}.union(*(undefined[one] for one in objects))
    known = set[str]().union(*(defined[one] for one in objects))
    used: dict[Path, None] = {}
    while more := [
        one for one in members if one not in used and defined[one] & (wanted - known)
    ]:
        for one in more:
            # An earlier member may have defined the symbols in the meantime.
            if defined[one] & (wanted - known):
                used[one] = None
                wanted |= undefined[one]
                known |= defined[one]
    return [*used]


def _symbols(which: str, modules: Sequence[Path]) -> dict[Path, set[str]]:
    """Returns the external symbols of modules, without weak undefined symbols."""
    found: defaultdict[Path, set[str]] = defaultdict(set)
    # A file of arguments may be longer than a command.
    text = "".join(f"{shlex.quote(str(one))}\n" for one in modules)
    weak = ["--no-weak"] if which == "--undefined-only" else []
    options = [which, *weak, "--extern-only", "--print-file-name"]
    said, _ = run(
        [LLVM_NM, *options, "--format=just-symbols", "@/dev/stdin"], text=text
    )
    for line in said.decode(errors="surrogateescape").splitlines():
        module, _, symbol = line.rpartition(": ")
        found[Path(module)].add(symbol)
    return found


def _empty(folder: Path) -> None:
    """Creates or empties a folder. Raises InvalidArgument if it has other files."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = [*folder.iterdir()]
    marks = (folder / MARK, folder / wrapper.RECORDS)
    if entries and not any(mark.exists() for mark in marks):
        raise InvalidArgument(
            f"{folder}: expected an empty or new folder, or one of an earlier build"
            f" of this command, found {entries[0].name}; name another folder"
        )
    for one in entries:
        if one.is_dir() and not one.is_symlink():
            shutil.rmtree(one)
        else:
            one.unlink()
    (folder / MARK).touch()


def run_build(command: Sequence[str], folder: Path) -> Build:
    """Runs a build whose compilers are `wrapper`. ``folder`` receives the records.

    The folder is emptied first. Raises CompilerFailed if the build fails, and
    InvalidArgument if it compiles nothing, or if the folder has other files. An
    exception, for example by a signal, ends the build.
    """
    folder = folder.resolve()
    if os.pathsep in str(folder):
        raise InvalidArgument(f"{folder}: expected a name without '{os.pathsep}'")
    clang = shutil.which(CLANG)
    if clang is None:
        raise OSFailure(f"found no {CLANG}; install clang-22")
    _empty(folder)
    bin_folder = folder / "bin"
    bin_folder.mkdir()
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
    # Builds split CC at spaces. PATH finds the compilers in any folder.
    is_plain = shlex.quote(str(bin_folder)) == str(bin_folder)
    prefix = f"{bin_folder}/" if is_plain else ""
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(bin_folder), os.environ["PATH"]]),
        "CC": f"{prefix}clang",
        "CXX": f"{prefix}clang++",
        # A cached object has no bitcode.
        "CCACHE_DISABLE": "1",
        wrapper.FOLDER_VARIABLE: str(folder),
        wrapper.CLANG_VARIABLE: str(real),
    }
    status = _call(command, environment)
    if status:
        raise CompilerFailed(f"status {status} from: {' '.join(command)}")
    return read_build(folder)


def _call(command: Sequence[str], environment: dict[str, str]) -> int:
    """Runs a build, and returns its status. An exception ends all its processes."""
    # A background process group cannot read from a terminal, and would stop.
    has_group = not os.isatty(0)
    try:
        process = subprocess.Popen(
            command, env=environment, process_group=0 if has_group else None
        )
    except OSError as error:
        raise OSFailure(f"cannot run {command[0]}: {error.strerror}") from error
    try:
        return process.wait()
    except BaseException:
        end = os.killpg if has_group else os.kill
        end(process.pid, signal.SIGTERM)
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            end(process.pid, signal.SIGKILL)
            process.wait()
        raise


def read_build(folder: Path) -> Build:
    """Reads the records of a build. Raises InvalidArgument if it compiled nothing."""
    records = folder / wrapper.RECORDS
    if not records.is_file():
        raise InvalidArgument(
            "the build compiled nothing: start it from scratch (make clean), and let it"
            " find the compiler through CC, CXX or PATH"
        )
    units, links = [], []
    try:
        for line in records.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            where, words = Path(entry["folder"]), tuple(entry["command"])
            if entry["kind"] == "link":
                links.append(Link(where, words, Path(entry["output"])))
            else:
                paths = Path(entry["object"]), Path(entry["bitcode"])
                hashes = entry["sha256"], entry.get("source", "")
                units.append(Unit(where, words, *paths, *hashes))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Malformed(f"{records}: expected records of a build: {error!r}") from error
    return Build(tuple(units), tuple(links))
