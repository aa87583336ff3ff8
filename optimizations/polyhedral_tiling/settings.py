# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of commands whose modules import PyTorch, which takes seconds."""

from dataclasses import dataclass
from typing import Annotated

from typer import Option


@dataclass(frozen=True)
class LearningOptions:
    """The options of a training."""

    epochs: Annotated[int, Option(min=1, help="Passes over the kernels.")] = 300
    rate: Annotated[float, Option(help="Largest learning rate of AdamW.")] = 0.003
    decay: Annotated[float, Option(help="Weight decay of AdamW.")] = 0.3
    expectation: Annotated[
        float, Option(help="Weight of the expected time in the loss.")
    ] = 2.0
    temperature: Annotated[
        float, Option(help="Estimates so far apart differ by e in their chances.")
    ] = 0.05
    hidden: Annotated[int, Option(min=1, help="Width of the hidden layers.")] = 64
    members: Annotated[int, Option(min=1, help="Networks in the ensemble.")] = 5
    margin: Annotated[
        float, Option(help="The original order is kept if log(time) falls by less.")
    ] = 0.05
