# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which programs there are, and how each is compiled: ``programs.toml``, read."""

import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("programs.toml")

# The programs that nothing is ever trained on.
HELD_OUT = frozenset({"cadical", "gawk", "sqlite3", "zstd"})

# Sources of training programs that a held-out program has, too: xxHash is in zstd. They
# are compiled, for the program needs them, and nothing is trained on them.
SHARED: Mapping[str, frozenset[str]] = {"lz4": frozenset({"lib/xxhash.c"})}


@dataclass(frozen=True)
class Recipe:
    """How to compile one program; ``programs.toml`` says what stands in braces."""

    package: str  # The Debian source package; the program's name if it is not said.
    sources: tuple[str, ...]  # Its files, as globs below ``root``.
    without: tuple[str, ...] = ()  # Those of them that are not wanted, as globs.
    flags: tuple[str, ...] = ()  # Of the compiler, but for those of optimisation.
    libraries: tuple[str, ...] = ()  # What the linker needs.
    root: str = "{tree}"  # Where the sources are.
    # To be written to ``{made}``, by name.
    headers: Mapping[str, str] = field(default_factory=dict)
    # To be run in ``{made}`` before anything is compiled.
    commands: tuple[tuple[str, ...], ...] = ()


def words(text: str) -> tuple[str, ...]:
    """Words as a shell has them."""
    return tuple(shlex.split(text))


def _recipe(name: str, about: Mapping[str, Any]) -> Recipe:
    lists = ("sources", "without", "flags", "libraries")
    said = {key: words(text) for key, text in about.items() if key in lists}
    lines = about.get("commands", "").splitlines()
    others = {"package": name, **about, **said, "commands": tuple(map(words, lines))}
    del others["test"]
    return Recipe(**others)


PROGRAMS: Mapping[str, Mapping[str, Any]] = tomllib.loads(FILE.read_text("utf-8"))
RECIPES = {name: _recipe(name, about) for name, about in PROGRAMS.items()}


def split_of(program: str) -> str:
    """``held-out`` or ``training``: whole programs, so that no code is in both."""
    return "held-out" if program in HELD_OUT else "training"
