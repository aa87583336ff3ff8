# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of the demo: two for training, and one for the test."""

from collections.abc import Iterable
from pathlib import Path

from mlbridge_optimizations.corpus.sources import SourceProgram, unpack

TRAINING = ("zlib", "lua")
TEST = "bzip2"


def fetch(folder: Path) -> dict[str, SourceProgram]:
    """Unpacks the programs into a folder, unless they are already there."""
    return unpack((*TRAINING, TEST), folder)


def concatenate_sources(programs: Iterable[SourceProgram], into: Path) -> Path:
    """Writes all sources to one file, which is a large text for bzip2."""
    with into.open("wb") as text:
        for program in programs:
            for source in program.sources:
                text.write(source.read_bytes())
    return into
