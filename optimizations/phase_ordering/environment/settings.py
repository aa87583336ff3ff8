# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of several commands of phase ordering, as types."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

CorpusFolder = Annotated[Path, Option(help="Corpus folder.")]

LeaveOut = Annotated[
    list[str] | None,
    Option(metavar="NAME", help="A program not to train on; may be repeated."),
]

Programs = Annotated[
    list[str] | None,
    Option(
        "--program", metavar="NAME", help="This program, of any split; may be repeated."
    ),
]

Actions = Annotated[str, Option(help="oz, odg, passes, or a JSON file.")]

Vocabulary = Annotated[
    Path | None, Option(help="Vocabulary of `embedding`, in LLVM's form.")
]

Timeout = Annotated[
    float,
    Option(
        min=1,
        help="Seconds for a sequence on a module of up to 10,000 instructions; more in"
        " proportion for a larger one.",
    ),
]

Plugin = Annotated[
    Path | None,
    Option(help="MLBridgeLLVM.so. [default: where `mlbridge doctor` finds it]"),
]


@dataclass(frozen=True)
class Compared:
    """How a model is compared with baselines."""

    tries: Annotated[int, Option(min=1, help="K of the best of K.")] = 8
    seed: Annotated[int, Option(help="Random seed.")] = 0
    programs: Programs = None
    most: Annotated[
        int | None, Option("--max-instructions", help="Leave larger modules out.")
    ] = None
    timeout: Timeout = 120
    plugin: Plugin = None
