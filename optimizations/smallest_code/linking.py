# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the bitcode of a build's files, links its programs, and measures them."""

import shlex
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from elftools.elf.elffile import ELFFile

from mlbridge.errors import InvalidArgument
from mlbridge_optimizations.corpus.archive import is_archive
from mlbridge_optimizations.corpus.manifest import Program, is_cpp
from mlbridge_optimizations.corpus.toolchain import LLVM_AR, LLVM_NM, UNOPTIMISED, run
from mlbridge_optimizations.corpus.user_build import (
    Build,
    Link,
    Unit,
    read_build,
    run_build,
)
from mlbridge_optimizations.corpus.wrapper import RECORDS, without_output

MODULE = "program.bc"
LIST_SYMBOLS = (
    LLVM_NM,
    "--defined-only",
    "--extern-only",
    "--format=just-symbols",
)


@dataclass(frozen=True)
class BuiltProgram:
    """A program, and the folder with the records of its build."""

    folder: Path
    build: Build
    link: Link

    @classmethod
    def of_corpus(cls, program: Program, folder: Path) -> Self:
        """Builds a program of the corpus, unless the folder already has its build.

        Raises InvalidArgument if the program's files have different flags.
        """
        if any(module.flags for module in program.modules):
            raise InvalidArgument(
                f"{program.name}: its sources have different flags; expected one list"
                " of flags: use `mlbridge search smallest-code` with the program's own"
                " build"
            )
        to = folder.resolve() / program.name
        if not (to / RECORDS).is_file():
            run_build(["sh", "-c", _build_script(program, to)], to)
        build = read_build(to)
        return cls(to, build, build.program(program.name))

    @property
    def name(self) -> str:
        """The program's name."""
        return self.link.output.name

    @property
    def module(self) -> Path:
        """The file of the program's bitcode, linked into one module."""
        return self.folder / MODULE

    def link_module(self) -> None:
        """Writes `module`."""
        self.build.link_bitcode(self.link, self.module)


def _build_script(program: Program, to: Path) -> str:
    """Returns the shell commands that build a program of the corpus.

    In a C++ program, the C compiler compiles the C sources, because the C++ compiler
    would compile them as C++.
    """
    flags = program.flags[len(UNOPTIMISED) :]
    lines = [["cd", program.root]]
    inputs: list[str] = []
    for number, source in enumerate(module.source for module in program.modules):
        if program.is_cpp and not is_cpp(source):
            inputs.append(str(to / f"{number}.o"))
            lines.append(["cc", *flags, "-c", source, "-o", inputs[-1]])
        else:
            inputs.append(source)
    compiler = "c++" if program.is_cpp else "cc"
    output = str(to / program.name)
    lines.append([compiler, *flags, *inputs, "-o", output, *program.libraries])
    return " && ".join(map(shlex.join, lines))


def bitcode_command(unit: Unit) -> list[str]:
    """Returns the command that compiles a file's bitcode, without the option -o."""
    return [*unit.command[:-1], "-x", "ir", str(unit.bitcode)]


def source_of(unit: Unit) -> str:
    """Returns the name by which clang knows a source file."""
    return unit.command[-1]


def write_callee_files(link: Link, to: Path) -> None:
    """Counts the objects of a link that define each function.

    Writes the file of -mlbridge-inliner-callee-files. Each member of an archive counts
    as an object. The file also contains variables, which the plug-in ignores.
    """
    counts: Counter[str] = Counter()
    for path in dict.fromkeys(link.inputs()):
        listed, _ = run([*LIST_SYMBOLS, path])
        lines = listed.decode().splitlines()
        # A line with a colon names a member of an archive.
        counts.update(line for line in lines if line and not line.endswith(":"))
    text = "".join(f"{count} {name}\n" for name, count in sorted(counts.items()))
    to.write_text(text, encoding="utf-8")


def split_flags(link: Link, flags: Sequence[str]) -> tuple[list[str], Link]:
    """Returns the compiler's flags, and the link with the linker's flags.

    The linker's flags begin with ``-Wl,``.
    """
    for_linker = [flag for flag in flags if flag.startswith("-Wl,")]
    others = [flag for flag in flags if flag not in for_linker]
    return others, replace(link, command=(*link.command, *for_linker))


def relink(build: Build, link: Link, objects: Mapping[Path, Path], to: Path) -> None:
    """Links a program again. `objects` maps replaced objects to new objects."""
    with tempfile.TemporaryDirectory(prefix="mlbridge-link-") as folder:
        inputs = {
            path: made
            for path in dict.fromkeys(link.inputs())
            if (made := _new_input(build, path, objects, folder))
        }
        words = [link.command[0]]
        for option, path in link.options():
            words += [str(inputs[path])] if path in inputs else option
        run([*without_output(words), "-o", to.resolve()], folder=link.folder)


def _new_input(
    build: Build, path: Path, objects: Mapping[Path, Path], folder: str
) -> Path | None:
    """Returns the object, or a new archive, that replaces an input of a link.

    The members of an archive that the build has not compiled, such as assembly, stay.
    Returns None if the build has compiled no member.
    """
    members = build.members_of(path)
    found = [objects[unit.object].resolve() for _, unit in members if unit]
    if not found or not is_archive(path):
        return found[0] if found else None
    made = Path(tempfile.mkdtemp(dir=folder), path.name)
    names = []
    for number, (contents, unit) in enumerate(members):
        name = objects[unit.object].resolve() if unit else made.with_name(f"{number}.o")
        if not unit:
            name.write_bytes(contents)
        names.append(str(name))
    # A list of members may be longer than a command.
    text = "".join(f"{shlex.quote(name)}\n" for name in names)
    run([LLVM_AR, "qcs", made, "@/dev/stdin"], text=text)
    return made


@dataclass(frozen=True)
class Sizes:
    """The sizes of sections of a linked program, in bytes."""

    text: int
    eh_frame: int

    @classmethod
    def of(cls, path: Path) -> "Sizes":
        """Reads the sizes of a file."""
        with path.open("rb") as file:
            elf = ELFFile(file)
            sections = [
                elf.get_section_by_name(name) for name in (".text", ".eh_frame")
            ]
            return cls(*(one.data_size if one else 0 for one in sections))


def compile_units(
    units: Mapping[Path, Unit],
    command: Callable[[Unit], Sequence[str]],
    folder: Path,
    jobs: int,
    advance: Callable[[], None] = lambda: None,
) -> dict[Path, tuple[Path, str]]:
    """Compiles files of a program to objects in a folder.

    ``units`` maps the objects of earlier compiles to files. ``command`` returns clang's
    command for a file, without the option -o. Returns, for each earlier object, the new
    object and the output of clang. Raises CompilerFailed.
    """

    def compile_one(unit: Unit) -> tuple[Path, str]:
        made = folder / f"{unit.bitcode.stem}.o"
        # Only a source needs the folder in which it was compiled.
        where = unit.folder if unit.folder.is_dir() else folder
        _, said = run([*command(unit), "-w", "-o", str(made)], folder=where)
        advance()
        return made, said.decode(errors="replace")

    with ThreadPoolExecutor(jobs) as pool:
        return dict(zip(units, pool.map(compile_one, units.values()), strict=True))


def rebuild_from_source(
    build: Build, link: Link, flags: Sequence[str], to: Path, jobs: int
) -> Sizes:
    """Compiles the sources of a program with further flags of clang, and links it.

    Compiles the bitcode of a source that has changed or does not exist any more.
    """

    def command(unit: Unit) -> list[str]:
        source = unit.command if unit.has_source else bitcode_command(unit)
        return [*source, *flags]

    return _rebuild(build, link, command, to, jobs)


def rebuild(
    build: Build, link: Link, flags: Sequence[str], to: Path, jobs: int
) -> Sizes:
    """Compiles the bitcode of a program with further flags of clang, and links it.

    Flags that begin with ``-Wl,`` are for the linker.
    """
    others, link = split_flags(link, flags)
    return _rebuild(
        build, link, lambda unit: [*bitcode_command(unit), *others], to, jobs
    )


def _rebuild(
    build: Build,
    link: Link,
    command: Callable[[Unit], Sequence[str]],
    to: Path,
    jobs: int,
) -> Sizes:
    with tempfile.TemporaryDirectory(prefix="mlbridge-rebuild-") as folder:
        made = compile_units(build.linked(link), command, Path(folder), jobs)
        relink(build, link, {old: new for old, (new, _) in made.items()}, to)
    return Sizes.of(to)
