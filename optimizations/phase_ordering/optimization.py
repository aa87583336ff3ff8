# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Describes phase ordering, so that `mlbridge train` can train a model."""

from dataclasses import replace

from .commands import evaluate, poset_rl, search
from .model import training

OPTIMIZATION = replace(
    training.TRAINED,
    commands={**evaluate.COMMANDS, **search.COMMANDS, **poset_rl.COMMANDS},
)
