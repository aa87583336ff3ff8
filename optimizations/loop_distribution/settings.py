# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of commands whose modules import PyTorch, which takes seconds."""

from dataclasses import dataclass
from typing import Annotated

from typer import Option

from mlbridge_optimizations.training.settings import (
    Decay,
    Expectation,
    Hidden,
    Members,
    Rate,
    Temperature,
)

DECISIONS = ("distribution", "factors")
"""The decisions that models of loops can make."""


@dataclass(frozen=True)
class LearningOptions:
    """The options of a training."""

    epochs: Annotated[int, Option(min=1, help="Passes over the loops.")] = 15
    batch: Annotated[int, Option(min=1, help="Loops in a batch.")] = 32
    rate: Rate = 0.003
    decay: Decay = 0.05
    expectation: Expectation = 0.3
    temperature: Temperature = 0.05
    hidden: Hidden = 32
    steps: Annotated[int, Option(min=0, help="Message-passing steps.")] = 3
    members: Members = 3
    margin: Annotated[
        float,
        Option(
            help="Change a loop only if its estimated log(time) falls by more than"
            " this."
        ),
    ] = 0.05
