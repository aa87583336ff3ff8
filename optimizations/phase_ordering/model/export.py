# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports a trained network to an ONNX file."""

from pathlib import Path

from torch import nn

from mlbridge import ir2vec
from mlbridge.export import Exported, FeatureSpec, Metadata, Training, export
from mlbridge_optimizations.optimization import ModelFile

from ..environment.compiler import EpisodeOptions
from .model import KEY, Task

_MOST = 1e5  # The largest count in the random inputs that test the exported file.


def about_model(options: EpisodeOptions, task: Task, seed: int) -> ModelFile:
    """Returns the features and the metadata for the ONNX file of a model."""
    most = {"step": float(options.steps), "actions": 4.0}
    features = [
        FeatureSpec(
            name,
            "float",
            (width,),
            low=-_MOST if name == "embedding" else 0,
            high=most.get(name, _MOST),
        )
        for name, width in options.widths.items()
    ]
    vocabulary = None
    if options.vocabulary is not None and "embedding" in options.widths:
        found = ir2vec.load(options.vocabulary)
        vocabulary = (found.name, found.hash)
    training, more = Training(seed=seed), {KEY: task.to_json()}
    return ModelFile(
        features, Metadata(options.reward, vocabulary, training=training, more=more)
    )


def export_model(
    module: nn.Module,
    path: Path,
    options: EpisodeOptions,
    task: Task,
    *,
    seed: int,
    decide: str,
) -> Exported:
    """Exports a network whose input is a row of all features.

    ``decide`` is the rule that makes a decision from an output, for example
    ``argmax:logits``.
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
