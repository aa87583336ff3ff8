# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads and writes manifest.json, which lists a corpus's programs and their origin."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mlbridge.errors import InvalidArgument, Malformed, SchemaMismatch
from mlbridge.files import expect_regular_file

from .recipes import ALSO, HELD_OUT, SHARED, SIZE

VERSION = 1
NAME = "manifest.json"
LINKED = "linked"  # The folder of linked programs.
SPLITS = ("training", SIZE, *HELD_OUT, "generated")


def is_cpp(source: str) -> bool:
    """Returns whether a source file needs the C++ compiler."""
    return source.endswith((".cpp", ".cc", ".cxx", ".C", ".c++", ".cp"))


@dataclass(frozen=True)
class Module:
    """One bitcode file before optimisation."""

    path: str  # The path relative to the corpus folder.
    source: str  # The path relative to the program's root. Empty for a linked module.
    functions: int  # The number of functions with a body.
    instructions: int  # The number of instructions.
    sha256: str  # The hash of the file.
    # Compiler flags in addition to the program's, if the sources have different flags.
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program:
    """A program as one module per source file, and as one linked module."""

    name: str
    package: str  # The Debian package, the generator, or `own`.
    version: str  # The package's version.
    split: str  # One of `SPLITS`.
    flags: tuple[str, ...]  # All compiler flags that the sources share.
    libraries: tuple[str, ...]  # Linker flags for libraries.
    root: str  # The compiler's working directory, which contains the sources.
    modules: tuple[Module, ...]  # One module for each source file.
    linked: Module  # All modules linked into one.
    key: str  # A hash of recipe, version and flags, to detect changes.
    # The run test's steps, as in programs.toml, of a program that a user has added.
    steps: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()  # Files that the steps write, in addition to stdout.

    @property
    def is_cpp(self) -> bool:
        """Whether the C++ compiler must link the program."""
        return any(is_cpp(module.source) for module in self.modules)


@dataclass
class Corpus:
    """The programs of one folder."""

    folder: Path
    compiler: str  # The first line of `clang --version`.
    programs: dict[str, Program] = field(default_factory=dict)  # Programs by name.

    def select(
        self,
        split: str | None = None,
        *,
        only: Sequence[str] = (),
        without: Sequence[str] = (),
    ) -> list[Program]:
        """Returns the programs of a split, or the programs that ``only`` names.

        A split includes the programs that `ALSO` adds. The default is the training
        programs and the split ``held-out``. InvalidArgument is raised for an unknown
        split or program, and if no program is left.
        """
        if split is not None and split not in SPLITS:
            raise InvalidArgument(f"no split '{split}', only {', '.join(SPLITS)}")
        splits = [split] if split else ["training", "held-out"]
        more = {name for each in splits for name in ALSO.get(each, ())}
        names = only or [
            n for n, p in self.programs.items() if p.split in splits or n in more
        ]
        found = [self.program(name) for name in sorted({*names} - {*without})]
        for name in without:
            self.program(name)
        if not found:
            of_split = f" of the split {split}" if split else ""
            but = f" but {', '.join(without)}" if without else ""
            raise InvalidArgument(
                f"{self.folder} has no program{of_split}{but}: `mlbridge corpus fetch "
                f"--folder {self.folder}` gets them"
            )
        return found

    def all_but_generated(self) -> list[Program]:
        """Returns the programs that csmith did not generate, sorted by name."""
        found = sorted(self.programs.items())
        return [program for _, program in found if program.split != "generated"]

    def program(self, name: str) -> Program:
        """Returns a program. Raises InvalidArgument if the corpus lacks it."""
        if name not in self.programs:
            raise InvalidArgument(f"{self.folder} has no program '{name}'")
        return self.programs[name]

    def files(
        self,
        split: str | None = None,
        *,
        most: int | None = None,
        without: Sequence[str] = (),
    ) -> dict[Path, int]:
        """Returns a dict from bitcode file to its number of instructions.

        The files belong to the programs that `select` returns. Leaves out files that
        have no functions, that have more than ``most`` instructions, or that a held-out
        program contains too.
        """
        return {
            self.folder / module.path: module.instructions
            for program in self.select(split, without=without)
            for module in program.modules
            if module.functions
            and (most is None or module.instructions <= most)
            and module.source not in SHARED.get(program.name, ())
        }

    def modules(self, split: str | None = None, **limits: Any) -> Iterator[Path]:
        """Yields the paths that `files` returns for the same arguments."""
        yield from self.files(split, **limits)

    def save(self) -> None:
        """Replaces the manifest atomically."""
        programs = {n: asdict(program) for n, program in sorted(self.programs.items())}
        root = {"version": VERSION, "compiler": self.compiler, "programs": programs}
        temporary = self.folder / f".{NAME}.{os.getpid()}"
        temporary.write_text(json.dumps(root, indent=1) + "\n", encoding="utf-8")
        temporary.replace(self.folder / NAME)


def program_of(path: Path) -> str:
    """Returns the name of a module's program, which is in the module's path."""
    return path.stem if path.parent.name == LINKED else path.parent.name


def load(folder: str | os.PathLike[str]) -> Corpus:
    """Reads a folder's corpus. Raises InvalidArgument, Malformed or SchemaMismatch."""
    path = Path(folder) / NAME
    try:
        expect_regular_file(path)
        text = path.read_bytes()
    except FileNotFoundError:
        raise InvalidArgument(
            f"{folder} has no {NAME}: `mlbridge corpus fetch --folder {folder}` "
            "makes a corpus there"
        ) from None
    try:
        root: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"{path}: expected JSON: {error}") from error
    if not isinstance(root, dict) or root.get("version") != VERSION:
        found = root.get("version") if isinstance(root, dict) else type(root).__name__
        raise SchemaMismatch(
            f"{path}: expected a manifest of version {VERSION}, found {found}: remove"
            " the file, and fetch again"
        )
    try:
        programs = {name: _program(it) for name, it in root["programs"].items()}
        return Corpus(Path(folder), root["compiler"], programs)
    except (AttributeError, KeyError, TypeError) as error:
        raise SchemaMismatch(f"{path}: not a manifest: {error!r}") from error


def _program(found: Mapping[str, Any]) -> Program:
    names = ("flags", "libraries", "steps", "outputs")
    lists = {name: tuple(found[name]) for name in names if name in found}
    modules = [
        Module(**{**module, "flags": tuple(module.get("flags", ()))})
        for module in (found["linked"], *found["modules"])
    ]
    linked = {"linked": modules[0], "modules": tuple(modules[1:])}
    return Program(**{**found, **lists, **linked})


def sha256(path: Path) -> str:
    """Returns the SHA-256 of a file as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
