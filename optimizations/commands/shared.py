# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options that the commands of several optimisations share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from mlbridge.doctor import find_llvm_plugin
from mlbridge.errors import InvalidArgument

Plugin = Annotated[
    Path | None,
    Option(help="MLBridgeLLVM.so. [default: as found by `mlbridge doctor`]"),
]
Jobs = Annotated[int, Option("--jobs", "-j", min=1, help="Parallel compilers.")]


@dataclass(frozen=True)
class ExecutionOptions:
    """The options of a comparison of running programs."""

    rounds: Annotated[int, Option(min=1, help="Pairs of runs for each row.")] = 5
    count: Annotated[
        bool,
        Option(help="Also count instructions with valgrind, which takes minutes."),
    ] = True


def plugin_of(given: Path | None) -> Path:
    """Returns the plug-in that was given, or the one that `mlbridge doctor` finds.

    Raises InvalidArgument if the file does not exist.
    """
    found = given or find_llvm_plugin()
    if found is None or not found.is_file():
        raise InvalidArgument(
            f"{found or 'MLBridgeLLVM.so'}: found no such plug-in; build it with"
            " `make build`, or name it with --plugin"
        )
    return found.resolve()
