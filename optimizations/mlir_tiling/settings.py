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


@dataclass(frozen=True)
class LearningOptions:
    """The options of a training."""

    epochs: Annotated[int, Option(min=1, help="Passes over the kernels.")] = 120
    batch: Annotated[int, Option(min=1, help="Kernels in a batch.")] = 16
    rate: Rate = 0.003
    decay: Decay = 0.05
    expectation: Expectation = 0.3
    temperature: Temperature = 0.1
    hidden: Hidden = 64
    members: Members = 5
    margin: Annotated[
        float,
        Option(
            help="Change a nest only if its estimated log(time) falls by more than"
            " this."
        ),
    ] = 0.03
