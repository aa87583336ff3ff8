# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads ``programs.toml``, which defines the programs and how they are compiled."""

import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("programs.toml")
DRIVERS = Path(__file__).with_name("run")  # Main programs for libraries, in C++.

# Programs that are not used for training, by split. `ALSO` has the only exception. A
# split is evaluated only once, so phase ordering, register allocation, POSET-RL's
# agents and code size have different splits.
HELD_OUT: Mapping[str, frozenset[str]] = {
    "held-out": frozenset({"cadical", "gawk", "sqlite3", "zstd"}),
    "held-out-allocation": frozenset({"duktape", "fasttext", "wavpack", "zpaq"}),
    "held-out-poset-rl": frozenset({"cppunit", "lcms2", "libexif", "libonig"}),
    "held-out-size": frozenset(
        {
            "capnproto",
            "giflib",
            "jansson",
            "libyaml",
            "marisa",
            "mpclib3",
            "muparser",
            "uchardet",
        }
    ),
}

# Additional C++ programs. Only models that reduce code size are trained on them.
SIZE = "training-size"
SIZE_ONLY = frozenset(
    {
        "double-conversion",
        "exiv2",
        "fmtlib",
        "gflags",
        "google-glog",
        "leveldb",
        "libjsoncpp",
        "log4cplus",
        "protobuf",
        "pugixml",
        "snappy",
        "yaml-cpp",
    }
)

# Programs that belong to a split in addition to their own split.
ALSO: Mapping[str, frozenset[str]] = {SIZE: frozenset({"cadical", "minisat"})}

# Sources of training programs that are also part of a held-out program. For example,
# zstd contains xxHash. These sources are compiled, but not used for training.
SHARED: Mapping[str, frozenset[str]] = {"lz4": frozenset({"lib/xxhash.c"})}


@dataclass(frozen=True)
class Recipe:
    """How to compile one program. ``programs.toml`` explains the words in braces."""

    package: str  # The Debian source package, by default the program's name.
    sources: tuple[str, ...]  # Globs of sources, relative to ``root``.
    without: tuple[str, ...] = ()  # Globs of sources to leave out.
    flags: tuple[str, ...] = ()  # Flags of the compiler, without -O.
    libraries: tuple[str, ...] = ()  # Flags of the linker.
    root: str = "{tree}"  # The folder of the sources.
    # Texts by file name, written to ``{made}``: headers, and a library's driver.
    headers: Mapping[str, str] = field(default_factory=dict)
    commands: tuple[tuple[str, ...], ...] = ()  # Run in ``{made}`` before compiling.


def words(text: str) -> tuple[str, ...]:
    """Splits a text into words like a shell."""
    return tuple(shlex.split(text))


def _recipe(name: str, about: Mapping[str, Any]) -> Recipe:
    lists = ("sources", "without", "flags", "libraries")
    split = {key: words(about[key]) for key in lists if key in about}
    commands = tuple(map(words, about.get("commands", "").splitlines()))
    values = {"package": name, **about, **split, "commands": commands}
    del values["test"]
    if drivers := words(values.pop("drivers", "")):
        # The driver and the library need a common folder.
        texts = {name: (DRIVERS / name).read_text("utf-8") for name in drivers}
        values["headers"] = {**texts, **values.get("headers", {})}
        values["root"] = "{made}"
        values["commands"] = (("ln", "-s", "{tree}", "tree"), *commands)
    return Recipe(**values)


PROGRAMS: Mapping[str, Mapping[str, Any]] = tomllib.loads(FILE.read_text("utf-8"))
RECIPES = {name: _recipe(name, about) for name, about in PROGRAMS.items()}


def split_of(program: str) -> str:
    """Returns a program's split: a key of `HELD_OUT`, `SIZE`, or ``training``."""
    for split, programs in {**HELD_OUT, SIZE: SIZE_ONLY}.items():
        if program in programs:
            return split
    return "training"
