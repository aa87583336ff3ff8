# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads ``programs.toml``: the programs, and how each is compiled."""

import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("programs.toml")

HELD_OUT = frozenset({"cadical", "gawk", "sqlite3", "zstd"})  # Never trained on.

# Sources of training programs that are also in a held-out program: zstd has xxHash.
# They are compiled, because their program needs them, but never trained on.
SHARED: Mapping[str, frozenset[str]] = {"lz4": frozenset({"lib/xxhash.c"})}


@dataclass(frozen=True)
class Recipe:
    """How to compile one program; ``programs.toml`` explains the words in braces."""

    package: str  # The Debian source package; by default the program's name.
    sources: tuple[str, ...]  # Globs below ``root``.
    without: tuple[str, ...] = ()  # Globs of sources to leave out.
    flags: tuple[str, ...] = ()  # Of the compiler, without optimisation.
    libraries: tuple[str, ...] = ()  # Flags of the linker.
    root: str = "{tree}"  # The folder of the sources.
    headers: Mapping[str, str] = field(default_factory=dict)  # Texts in ``{made}``.
    commands: tuple[tuple[str, ...], ...] = ()  # Run in ``{made}`` before compiling.


def words(text: str) -> tuple[str, ...]:
    """Splits words as a shell does."""
    return tuple(shlex.split(text))


def _recipe(name: str, about: Mapping[str, Any]) -> Recipe:
    lists = ("sources", "without", "flags", "libraries")
    split = {key: words(about[key]) for key in lists if key in about}
    commands = tuple(map(words, about.get("commands", "").splitlines()))
    values = {"package": name, **about, **split, "commands": commands}
    del values["test"]
    return Recipe(**values)


PROGRAMS: Mapping[str, Mapping[str, Any]] = tomllib.loads(FILE.read_text("utf-8"))
RECIPES = {name: _recipe(name, about) for name, about in PROGRAMS.items()}


def split_of(program: str) -> str:
    """Returns ``held-out`` or ``training``; splits are by whole programs."""
    return "held-out" if program in HELD_OUT else "training"
