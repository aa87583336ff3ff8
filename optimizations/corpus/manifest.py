# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""manifest.json: what a corpus has, and where it is from."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mlbridge.errors import InvalidArgument, Malformed, SchemaMismatch

from .recipes import SHARED

VERSION = 1
NAME = "manifest.json"
LINKED = "linked"  # The folder of whole programs.
SPLITS = ("training", "held-out", "generated")


def is_cpp(source: str) -> bool:
    """Whether a source file is for the C++ compiler."""
    return source.endswith((".cpp", ".cc"))


@dataclass(frozen=True)
class Module:
    """One bitcode file, not optimised yet."""

    path: str  # Below the corpus's folder.
    # That it was compiled from, below the program's root; empty for one that is linked
    # of others.
    source: str
    functions: int  # That it defines.
    instructions: int  # In these.
    sha256: str  # Of the file.


@dataclass(frozen=True)
class Program:
    """A program, file by file and linked."""

    name: str  # What people call it.
    package: str  # Of Debian, or the generator that wrote it.
    version: str  # Of the package.
    split: str  # ``training``, ``held-out`` or ``generated``.
    flags: tuple[str, ...]  # Of the compiler, in full.
    libraries: tuple[str, ...]  # What the linker needs.
    root: str  # The folder in which the compiler ran, for sources below it.
    modules: tuple[Module, ...]  # One a source file.
    linked: Module  # All of these in one.
    # What it was made by, as a hash: another one means that it is out of date.
    key: str

    @property
    def is_cpp(self) -> bool:
        """Whether the C++ compiler has to link it."""
        return any(is_cpp(module.source) for module in self.modules)


@dataclass
class Corpus:
    """The programs of one folder."""

    folder: Path  # That has them.
    compiler: str  # That made them, as it calls itself.
    programs: dict[str, Program] = field(default_factory=dict)  # By name.

    def select(
        self,
        split: str | None = None,
        *,
        only: Sequence[str] = (),
        without: Sequence[str] = (),
    ) -> list[Program]:
        """Programs, by name.

        Args:
            split: theirs; None for all that were not generated.
            only: these instead, of whatever split.
            without: some that are left out.

        Raises:
            InvalidArgument: there is no such split or program, or none is left.
        """
        if split is not None and split not in SPLITS:
            raise InvalidArgument(f"no split '{split}', only {', '.join(SPLITS)}")
        for name in (*only, *without):
            if name not in self.programs:
                raise InvalidArgument(f"{self.folder} has no program '{name}'")
        found = [
            program
            for name, program in sorted(self.programs.items())
            if name not in without
            and (
                name in only
                if only
                else program.split == split
                if split
                else program.split != "generated"
            )
        ]
        if not found:
            of_split = f" of the split {split}" if split else ""
            but = f" but {', '.join(without)}" if without else ""
            raise InvalidArgument(
                f"{self.folder} has no program{of_split}{but}: `mlbridge corpus fetch "
                f"--folder {self.folder}` gets them"
            )
        return found

    def files(
        self,
        split: str | None = None,
        *,
        most: int | None = None,
        without: Sequence[str] = (),
    ) -> dict[Path, int]:
        """Bitcode files of a split's programs, and the instructions of each.

        Those in which no function is defined are left out, and those of training
        programs that a held-out one has, too.

        Args:
            split: as for `select`.
            most: instructions of a file; larger ones are left out.
            without: programs that are left out.

        Raises:
            InvalidArgument: there is no such split or program, or nothing is left.
        """
        return {
            self.folder / module.path: module.instructions
            for program in self.select(split, without=without)
            for module in program.modules
            if module.functions
            and (most is None or module.instructions <= most)
            and module.source not in SHARED.get(program.name, ())
        }

    def modules(
        self,
        split: str | None = None,
        *,
        most: int | None = None,
        without: Sequence[str] = (),
    ) -> Iterator[Path]:
        """The names of `files`."""
        yield from self.files(split, most=most, without=without)

    def save(self) -> None:
        """Writes the manifest: the whole of it, or the old one stays."""
        text = json.dumps(
            {
                "version": VERSION,
                "compiler": self.compiler,
                "programs": {
                    name: asdict(program)
                    for name, program in sorted(self.programs.items())
                },
            },
            indent=1,
        )
        temporary = self.folder / f".{NAME}.{os.getpid()}"
        temporary.write_text(text + "\n", encoding="utf-8")
        temporary.replace(self.folder / NAME)


def program_of(path: Path) -> str:
    """Whose bitcode that is: a file's folder, or what a linked one is called."""
    return path.stem if path.parent.name == LINKED else path.parent.name


def load(folder: str | os.PathLike[str]) -> Corpus:
    """The corpus of a folder.

    Raises:
        InvalidArgument: there is none.
        Malformed, SchemaMismatch: its manifest cannot be read.
    """
    path = Path(folder) / NAME
    try:
        root: Any = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise InvalidArgument(
            f"{folder} has no {NAME}: `mlbridge corpus fetch --folder {folder}` "
            "makes a corpus there"
        ) from None
    except (ValueError, RecursionError) as error:
        raise Malformed(f"{path}: expected JSON: {error}") from error
    if not isinstance(root, dict) or root.get("version") != VERSION:
        found = root.get("version") if isinstance(root, dict) else type(root).__name__
        raise SchemaMismatch(
            f"{path}: expected a manifest of version {VERSION}, found {found}: remove "
            "it, and fetch again"
        )
    try:
        programs = {name: _program(it) for name, it in root["programs"].items()}
        return Corpus(Path(folder), root["compiler"], programs)
    except (AttributeError, KeyError, TypeError) as error:
        raise SchemaMismatch(f"{path}: not a manifest: {error!r}") from error


def _program(found: Mapping[str, Any]) -> Program:
    lists = {name: tuple(found[name]) for name in ("flags", "libraries")}
    modules = tuple(Module(**module) for module in found["modules"])
    return Program(
        **{**found, **lists, "modules": modules, "linked": Module(**found["linked"])}
    )


def sha256(path: Path) -> str:
    """Of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
