# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of commands whose modules import PyTorch, which takes seconds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from mlbridge_optimizations.commands.shared import times_of
from mlbridge_optimizations.training.settings import CostSettings

DECISIONS = ("distribution", "factors")
"""The decisions that models of loops can make."""

Times = Annotated[list[Path], times_of("loop-distribution-times")]


@dataclass(frozen=True)
class LoopCosts(CostSettings):
    """The options of a training."""

    steps: Annotated[int, Option(min=0, help="Message-passing steps of a network.")] = 3


COSTS = LoopCosts(epochs=15, batch=32, hidden=32, members=3)
"""The defaults."""
