# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of commands whose modules import PyTorch, which takes seconds."""

from dataclasses import dataclass
from typing import Annotated

from typer import Option

from mlbridge_optimizations.training.settings import Width


@dataclass(frozen=True)
class ImitationOptions:
    """The options of a training."""

    seed: Annotated[int, Option(min=0, help="Random seed.")] = 1
    epochs: Annotated[int, Option(min=1, help="Passes over all calls.")] = 60
    hidden: Width = 32
    rate: Annotated[float, Option(help="Learning rate of AdamW.")] = 2e-3
    decay: Annotated[float, Option(help="Weight decay of AdamW.")] = 0.3
    dropout: Annotated[float, Option(help="Share of dropped activations.")] = 0.2
    most: Annotated[
        int,
        Option(
            help="Upper limit of a call's weight in training. The weight is the number"
            " of bytes that the call's decision saves."
        ),
    ] = 64
    least: Annotated[
        float,
        Option(
            help="Lower limit of a call's weight in training. For example, a call that"
            " the search has not tried has this weight."
        ),
    ] = 1.0
