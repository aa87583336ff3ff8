# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of commands whose modules import PyTorch, which takes seconds."""

from dataclasses import dataclass
from typing import Annotated

from typer import Option

from mlbridge_optimizations.training.settings import Hidden


@dataclass(frozen=True)
class LearningOptions:
    """The options of a training."""

    rows: Annotated[
        int,
        Option(min=100, help="Maximum rows per table to sample for column summaries."),
    ] = 30_000
    judged: Annotated[
        int,
        Option(min=100, help="Maximum rows per table to count selectivities on."),
    ] = 20_000
    terms: Annotated[int, Option(min=1, help="Random conditions per table.")] = 600
    conjunctions: Annotated[
        int, Option(min=1, help="Random conjunctions of these conditions per table.")
    ] = 3000
    epochs: Annotated[int, Option(min=1, help="Passes over the conjunctions.")] = 30
    batch: Annotated[int, Option(min=1, help="Examples in a batch.")] = 256
    rate: Annotated[float, Option(help="Largest learning rate of AdamW.")] = 0.01
    hidden: Hidden = 32
    unsure: Annotated[
        float,
        Option(
            help="Use an estimate only if |log(estimate / SQLite's assumption)| exceeds"
            " this multiple of the error that the model expects."
        ),
    ] = 1.0
    share: Annotated[
        float,
        Option(
            help="Use the model for a statement only if its conditions on some table"
            " accept at most this share of the table's rows."
        ),
    ] = 0.03
    seed: Annotated[int, Option(min=0, help="Random seed.")] = 0
