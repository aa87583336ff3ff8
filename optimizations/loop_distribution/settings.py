# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of commands whose modules import PyTorch, which takes seconds."""

from dataclasses import dataclass
from typing import Annotated

from typer import Option

DECISIONS = ("distribution", "factors")
"""What a model of loops can decide."""


@dataclass(frozen=True)
class LearningOptions:
    """The options of a training."""

    epochs: Annotated[int, Option(min=1, help="Passes over the loops.")] = 15
    batch: Annotated[int, Option(min=1, help="Loops in a batch.")] = 32
    rate: Annotated[float, Option(help="Largest learning rate of AdamW.")] = 0.003
    decay: Annotated[float, Option(help="Weight decay of AdamW.")] = 0.05
    expectation: Annotated[
        float, Option(help="Weight of the expected time in the loss.")
    ] = 0.3
    temperature: Annotated[
        float, Option(help="Temperature of that expectation's softmax, in log(time).")
    ] = 0.05
    hidden: Annotated[int, Option(min=1, help="Width of the hidden layers.")] = 32
    steps: Annotated[int, Option(min=0, help="Steps of the graph network.")] = 3
    members: Annotated[int, Option(min=1, help="Networks in an ensemble.")] = 3
    margin: Annotated[
        float, Option(help="Leave a loop as it is if log(time) falls by less.")
    ] = 0.05
