# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options that the commands of several optimisations share."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from typer import Option

Plugin = Annotated[
    Path | None,
    Option(help="MLBridgeLLVM.so. [default: as found by `mlbridge doctor`]"),
]
Split = Annotated[
    str,
    Option(
        help="Part of the corpus: training, training-size, held-out,"
        " held-out-allocation, held-out-poset-rl, held-out-size or generated."
    ),
]
Jobs = Annotated[int, Option("--jobs", "-j", min=1, help="Parallel compilers.")]
Binary = Annotated[
    str | None,
    Option(
        metavar="NAME",
        help="File name of the program or library, if the build links several.",
    ),
]
CorpusFolder = Annotated[Path, Option(help="Corpus folder.")]
Programs = Annotated[
    list[str] | None,
    Option("--program", metavar="NAME", help="Only this program. May be repeated."),
]


def times_of(search: str) -> Any:
    """Returns the option ``--times``, for the files that ``search`` has written.

    ``search`` is the name of a command of ``mlbridge search``.
    """
    said = f"Times that `mlbridge search {search}` measured. May be repeated."
    return Option("--times", metavar="FILE.jsonl", help=said)


TimesFile = Annotated[
    Path,
    Option("--out", metavar="FILE.jsonl", help="File to which the times are appended."),
]
ModelFile = Annotated[
    Path, Option("--out", metavar="FILE.onnx", help="Write the model to this file.")
]
RatiosFile = Annotated[
    Path | None, Option(metavar="FILE", help="Write all ratios to this file.")
]


@dataclass(frozen=True)
class ProgramOptions:
    """The options of a comparison of programs."""

    corpus: CorpusFolder = Path("build/corpus")
    split: Split = "training"
    programs: Programs = None
    json: RatiosFile = None
    plugin: Plugin = None
    jobs: Jobs = os.cpu_count() or 1


@dataclass(frozen=True)
class ExecutionOptions:
    """The options of a comparison of running programs."""

    rounds: Annotated[int, Option(min=1, help="Pairs of runs for each row.")] = 5
    valgrind: Annotated[
        bool,
        Option(
            help="Also count executed instructions with valgrind, which takes minutes."
        ),
    ] = True
