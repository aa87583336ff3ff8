# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options that several commands of phase ordering share, as types."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from mlbridge_optimizations.commands.shared import Plugin, Programs

LeaveOut = Annotated[
    list[str] | None,
    Option(metavar="NAME", help="Program to omit from training. May be repeated."),
]

Actions = Annotated[
    str,
    Option(
        help="Action space: oz (an action is a piece of -Oz), odg (a path in the"
        " dependence graph of -Oz's passes), passes (a single pass of -Oz) or a JSON"
        " file."
    ),
]

Vocabulary = Annotated[
    Path | None,
    Option(
        help="IR2Vec vocabulary in LLVM's JSON format. Required if --observation"
        " contains `embedding`."
    ),
]

OF_MODULE = (
    "histogram (how often each opcode, type, operand kind and predicate occurs),"
    " embedding (the module's IR2Vec vector), counts (the numbers of functions, blocks,"
    " calls and so on)"
)
"""Explains the features of a module, for help texts."""

Timeout = Annotated[
    float,
    Option(
        min=1,
        help="Time limit for a sequence of passes, in seconds. It is longer for modules"
        " of more than 10,000 instructions.",
    ),
]


@dataclass(frozen=True)
class Compared:
    """The settings of a comparison between a model and baselines."""

    tries: Annotated[
        int,
        Option(
            min=1,
            help="Value of K in the rows 'best of K'. For each file, such a row uses"
            " the smallest of the results of K sequences and of -Oz.",
        ),
    ] = 8
    seed: Annotated[int, Option(help="Random seed of drawn sequences.")] = 0
    programs: Programs = None
    most: Annotated[
        int | None,
        Option(
            "--max-instructions", help="Omit modules with more instructions than this."
        ),
    ] = None
    timeout: Timeout = 120
    plugin: Plugin = None
