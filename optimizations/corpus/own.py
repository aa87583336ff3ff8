# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adds a user's own program to a corpus, from its build or its compile database."""

import hashlib
import json
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from mlbridge.errors import InvalidArgument, Malformed, OSFailure
from mlbridge_optimizations.show import ShowStage, quiet

from . import runs, toolchain, wrapper
from .build import alone, compile_module, link_modules, open_corpus
from .manifest import LINKED, SPLITS, Module, Program, sha256
from .recipes import RECIPES
from .user_build import Build, Link, Unit, run_build

OWN = "own"
"""The package of the programs that users add."""

_RESERVED = (LINKED, "made", "expected")
_FOLDER_OPTIONS = ("-I", "-isystem", "-iquote", "-idirafter", "-include", "-imacros")
"""Options whose value is a file or a folder."""

# Options that choose outputs, optimisations, debug information, warnings or
# dependencies. -Wp, passes options to the preprocessor.
_DROPPED = re.compile(r"-(c$|o|O|g|M|W(?!p,)|Wp,-M|flto|l|L|Xlinker|Rpass)")
_OF_LINKER = re.compile(
    r"-(l|L|Wl,|Xlinker$|pthread$|rdynamic$|static|fopenmp|T$|u$|z$)"
)
_MEMBER = re.compile(r"(?P<archive>.+\.a)\((?P<member>[^()]+)\)")

Source = tuple[str, tuple[str, ...]]
"""A source file and its own flags."""


@dataclass(frozen=True)
class Own:
    """How to compile and test a user's program."""

    name: str
    source: Path  # The program's folder.
    build: str | None = None  # A command line that runs in this folder.
    binary: str | None = None  # The program's file name, if the build links several.
    database: Path | None = None  # A compile_commands.json to use instead of `build`.
    leave_out: Sequence[str] = ()  # Globs of sources to omit.
    libraries: Sequence[str] = ()  # Additional flags of the linker.
    steps: Sequence[str] = ()  # The steps of the run test, as in programs.toml.
    outputs: Sequence[str] = ()  # Files that the steps write, in addition to stdout.
    split: str = "training"


def add(
    folder: str | os.PathLike[str],
    own: Own,
    *,
    jobs: int | None = None,
    show: ShowStage = quiet,
) -> Program:
    """Adds a program to a corpus, or replaces it.

    If the program has a run test, the test runs without optimisation, and its outputs
    become the expected outputs. Up to ``jobs`` compilers run in parallel, by default
    one per core.

    Raises InvalidArgument for a wrong argument, and CompilerFailed if the build, a
    compile or the run test fails.
    """
    _check(own)
    into, root = Path(folder).resolve(), own.source.resolve()
    into.mkdir(parents=True, exist_ok=True)
    found, libraries = _built(own, root) if own.build else (_of_database(own), [])
    sources = _sources(found, own, root)
    common = _common([flags for _, flags in sources])
    flags = (*toolchain.UNOPTIMISED, f"-ffile-prefix-map={root}=.", *common)
    libraries += own.libraries
    key = hashlib.sha256(repr((own, sources, libraries)).encode()).hexdigest()
    about = (own.name, OWN, key[:8], own.split, flags, tuple(libraries), str(root))
    test = tuple(own.steps), tuple(own.outputs)
    program = Program(*about, (), Module("", "", 0, 0, ""), key, *test)

    def compile_one(source: Source) -> Module:
        name, its = source
        more = () if common else its
        module = compile_module(own.name, root, (*flags, *more), name, into)
        return replace(module, flags=more)

    with alone(into), ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        corpus = open_corpus(into)
        shutil.rmtree(into / own.name, ignore_errors=True)
        (into / "expected" / f"{own.name}.json").unlink(missing_ok=True)
        modules = []
        for module in pool.map(compile_one, sources):
            modules.append(module)
            show("Compiling", len(modules), len(sources))
        program = link_modules(program, modules, into)
        if program.steps:
            runs.expected_outputs(corpus, program)
        corpus.programs[own.name] = program
        corpus.save()
    return program


def _check(own: Own) -> None:
    name, splits = own.name, [split for split in SPLITS if split != "generated"]
    if not re.fullmatch(r"[\w+-][\w.+-]*", name) or name in _RESERVED:
        raise InvalidArgument(
            f"program {name!r}: expected a name of letters, digits and ._+-, and not"
            f" {', '.join(_RESERVED)}"
        )
    if name in RECIPES:
        raise InvalidArgument(f"'{name}' is a program of the corpus: use another name")
    if own.split not in splits:
        raise InvalidArgument(f"no split '{own.split}', only {', '.join(splits)}")
    if (own.build is None) == (own.database is None):
        raise InvalidArgument(
            "expected either a build (--build) or a compile database"
            " (--compile-commands)"
        )
    if not own.source.is_dir():
        raise InvalidArgument(f"there is no folder {own.source}")


def _built(own: Own, root: Path) -> tuple[list[Unit], list[str]]:
    """Runs the build. Returns the program's units and the flags of its linker."""
    with tempfile.TemporaryDirectory(prefix="mlbridge-build-") as name:
        records = Path(name, "build")
        command = (own.build or "").replace("{cc}", str(records / "bin/clang"))
        command = command.replace("{cxx}", str(records / "bin/clang++"))
        line = f"cd {shlex.quote(str(root))} && {command}"
        build = run_build(["sh", "-c", line], records)
        return _linked(build, build.program(own.binary), Path(name))


def _linked(build: Build, link: Link, temporary: Path) -> tuple[list[Unit], list[str]]:
    """Returns the units that the linker used, and the flags of the linker.

    The linker uses only those members of an archive that the program needs. Objects and
    archives without a unit, for example assembly, become flags.
    """
    command = wrapper.without_output(link.command)
    command += ["-Wl,--trace", "-o", str(temporary / "traced")]
    traced = toolchain.run(command, folder=link.folder)[0].decode().splitlines()
    by_hash = {unit.sha256: unit for unit in build.units}
    inputs = {str(path.resolve()) for path in link.inputs()}
    units: dict[str, Unit] = {}
    libraries: dict[str, None] = {}
    for line in traced:
        member = _MEMBER.fullmatch(line)
        path = str((link.folder / (member["archive"] if member else line)).resolve())
        if path not in inputs:
            continue
        code = _hash(Path(path), member and member["member"])
        if code in by_hash:
            units[code] = by_hash[code]
        else:
            libraries[path] = None
    for option in wrapper.split(link.command[1:]):
        if not _OF_LINKER.match(option[0]) or option[0] in wrapper.LINK:
            continue
        if (word := "".join(option)).startswith("-L"):
            option = (f"-L{(link.folder / word[2:]).resolve()}",)
        libraries.update(dict.fromkeys(option))
    return list(units.values()), list(libraries)


def _hash(path: Path, member: str | None) -> str:
    """Returns the SHA-256 of an object, or of an archive's member."""
    if member is None:
        return sha256(path)
    printed, _ = toolchain.run([toolchain.LLVM_AR, "p", path, member])
    return hashlib.sha256(printed).hexdigest()


def _of_database(own: Own) -> list[Unit]:
    """Reads a compile_commands.json."""
    assert own.database is not None
    try:
        entries: Any = json.loads(own.database.read_bytes())
        return [
            Unit(
                own.database.resolve().parent / entry["directory"],
                tuple(entry.get("arguments") or shlex.split(entry["command"])),
                *(Path(), Path(), ""),
            )
            for entry in entries
        ]
    except OSError as error:
        raise OSFailure(f"{own.database}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Malformed(f"{own.database}: not a compile database: {error!r}") from None


def _sources(units: Iterable[Unit], own: Own, root: Path) -> list[Source]:
    """Returns the sources by decreasing size, so that all cores finish together."""
    found: dict[str, Source] = {}
    for unit in units:
        for name, flags in _of_command(unit, root):
            if any(fnmatch(name, pattern) for pattern in own.leave_out):
                continue
            # Module files are named after their sources, so these names must differ.
            other = found.setdefault(name.replace("/", "_"), (name, flags))
            if other != (name, flags):
                raise InvalidArgument(
                    f"{own.name}: {name} is compiled twice, with {shlex.join(other[1])}"
                    f" and with {shlex.join(flags)}; expected one command for each"
                    " source: omit sources with --leave-out"
                )
    if not found:
        raise InvalidArgument(f"{own.name}: expected a source in C or C++, found none")
    return sorted(
        found.values(), key=lambda it: (-(root / it[0]).stat().st_size, it[0])
    )


def _of_command(unit: Unit, root: Path) -> list[Source]:
    """Returns the sources of a compile, and the flags that their code depends on."""
    names: list[str] = []
    flags: list[str] = []
    for option in wrapper.split(unit.command[1:]):
        if wrapper.is_source(option):
            path = (unit.folder / option[0]).resolve()
            inside = path.is_relative_to(root)
            names.append(str(path.relative_to(root) if inside else path))
        elif option[0] not in wrapper.COMPILE and not _DROPPED.match(option[0]):
            flags += _absolute(option, unit.folder)
    return [(name, tuple(flags)) for name in names]


def _absolute(option: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """Makes a path absolute, because modules are compiled in another folder."""
    for name in _FOLDER_OPTIONS:
        value = "".join(option).removeprefix(name)
        if option[0].startswith(name) and (folder / value).exists():
            return name, str((folder / value).resolve())
    return option


def _common(flags: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Returns the flags of all sources if they are equal, and otherwise no flags."""
    return flags[0] if len(set(flags)) == 1 else ()
