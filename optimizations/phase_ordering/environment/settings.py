# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options that several commands of phase ordering share, as types."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

CorpusFolder = Annotated[Path, Option(help="Corpus folder.")]

LeaveOut = Annotated[
    list[str] | None,
    Option(metavar="NAME", help="Program to omit from training. May be repeated."),
]

Programs = Annotated[
    list[str] | None,
    Option("--program", metavar="NAME", help="Use only this program. May be repeated."),
]

Actions = Annotated[str, Option(help="Action space: oz, odg, passes or a JSON file.")]

Vocabulary = Annotated[
    Path | None, Option(help="Vocabulary for the feature embedding: LLVM's JSON file.")
]

Timeout = Annotated[
    float,
    Option(
        min=1,
        help="Time limit for a sequence of passes, in seconds. It is longer for modules"
        " of more than 10,000 instructions.",
    ),
]

Plugin = Annotated[
    Path | None,
    Option(help="Path of MLBridgeLLVM.so. [default: as found by `mlbridge doctor`]"),
]


@dataclass(frozen=True)
class Compared:
    """The settings of a comparison between a model and baselines."""

    tries: Annotated[
        int, Option(min=1, help="K: also compare the best of K sequences per file.")
    ] = 8
    seed: Annotated[int, Option(help="Random seed.")] = 0
    programs: Programs = None
    most: Annotated[
        int | None, Option("--max-instructions", help="Size of the largest module.")
    ] = None
    timeout: Timeout = 120
    plugin: Plugin = None
