# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From what was trained to the file that a compiler asks."""

from pathlib import Path

from torch import nn

from mlbridge import ir2vec
from mlbridge.export import Exported, FeatureSpec, Metadata, Training, export
from mlbridge_optimizations.optimization import ModelFile

from ..environment.compiler import EpisodeOptions
from .model import KEY, Task

_MOST = 1e5  # Counts that an exported model is checked with are drawn up to here.


def about_model(options: EpisodeOptions, task: Task, seed: int) -> ModelFile:
    """What a model's file says: all that deployment has to know."""
    features = [
        FeatureSpec(
            name,
            "float",
            (width,),
            low=-_MOST if name == "embedding" else 0,
            high={"step": float(options.steps), "actions": 4.0}.get(name, _MOST),
        )
        for name, width in options.widths.items()
    ]
    vocabulary = None
    if options.vocabulary is not None and "embedding" in options.widths:
        found = ir2vec.load(options.vocabulary)
        vocabulary = (found.name, found.hash)
    metadata = Metadata(
        reward=options.reward,
        vocabulary=vocabulary,
        training=Training(seed=seed),
        more={KEY: task.to_json()},
    )
    return ModelFile(features, metadata)


def export_model(
    module: nn.Module,
    path: Path,
    options: EpisodeOptions,
    task: Task,
    *,
    seed: int,
    decide: str,
) -> Exported:
    """Writes a network that takes the features in a row as a model's file.

    ``decide`` says what becomes of its output, such as ``argmax:logits``.
    """
    about = about_model(options, task, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    return export(
        module.eval(),
        path,
        features=about.features,
        decide=decide,
        metadata=about.metadata,
    )
