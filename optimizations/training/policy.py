# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a policy with the chosen engine, and writes the model file."""

from dataclasses import replace
from typing import TYPE_CHECKING

from mlbridge.export import Metadata, export
from mlbridge.files import locked
from mlbridge_optimizations.optimization import guarded
from mlbridge_optimizations.show import quiet
from mlbridge_optimizations.training.curve import ShowReturn
from mlbridge_optimizations.training.experiment import Experiment, Learned

if TYPE_CHECKING:
    from mlbridge.export import Exported


def learn(
    experiment: Experiment,
    *,
    resume: bool = False,
    address: str | None = None,
    show: ShowReturn = quiet,
) -> Learned:
    """Trains with the engine of the settings, through `sb3.train` or `rllib.train`."""
    if experiment.settings.engine == "sb3":
        from mlbridge_optimizations.training import sb3

        return sb3.train(experiment, resume=resume, show=show)
    from mlbridge_optimizations.training import rllib

    return rllib.train(experiment, resume=resume, address=address, show=show)


def train(
    experiment: Experiment,
    *,
    resume: bool = False,
    address: str | None = None,
    show: ShowReturn = quiet,
) -> "dict[str, Exported]":
    """Trains, writes the models to the settings' folder, and returns them by name.

    The file is ``model.onnx``, or ``AGENT.onnx`` for each of several agents. ``resume``
    continues from the last checkpoint. ``address`` is the address of a Ray cluster.
    InvalidArgument is raised if another process trains in the folder. ModelError is
    raised if the policy replies NaN or differs from the exported model.
    """
    settings, by = experiment.settings, experiment.optimization
    # Call model_file before the training, because it may raise. For the same reason,
    # `Experiment.networks` checks first that the policy can be exported.
    what = f"model_file of '{by.name}'"
    about = guarded(what, by.model_file, experiment.environment, settings.seed)
    metadata = about.metadata or Metadata()
    if metadata.training.seed is None:
        training = replace(metadata.training, seed=settings.seed)
        metadata = replace(metadata, training=training)
    with locked(experiment.settings.out):
        learned = learn(experiment, resume=resume, address=address, show=show)
        return {
            name: export(
                policy,
                settings.out / f"{name}.onnx",
                features=about.features,
                metadata=metadata,
                decide=about.decide,
                decision=about.decision,
            )
            for name, policy in learned.policies.items()
        }
