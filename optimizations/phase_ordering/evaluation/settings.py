# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The settings of an evaluation: fields are options of the command line."""

from dataclasses import dataclass
from typing import Annotated

from typer import Option

from ..environment.settings import Plugin, Programs, Timeout


@dataclass(frozen=True)
class Compared:
    """How a model is compared with others."""

    tries: Annotated[int, Option(min=1, help="K of the best of K.")] = 8
    seed: Annotated[int, Option(help="Of what is drawn.")] = 0
    programs: Programs = None
    most: Annotated[
        int | None, Option("--max-instructions", help="Leave larger modules out.")
    ] = None
    timeout: Timeout = 120
    plugin: Plugin = None
