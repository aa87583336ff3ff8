# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a policy by the chosen engine, and writes its file."""

from typing import TYPE_CHECKING

from mlbridge.export import export
from mlbridge_optimizations.optimization import guarded
from mlbridge_optimizations.show import quiet
from mlbridge_optimizations.training.curve import Show
from mlbridge_optimizations.training.experiment import Experiment, Learned

if TYPE_CHECKING:
    from mlbridge.export import Exported


def learn(
    experiment: Experiment,
    *,
    resume: bool = False,
    address: str | None = None,
    show: Show = quiet,
) -> Learned:
    """Trains by the settings' engine: see `sb3.train` and `rllib.train`."""
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
    show: Show = quiet,
) -> "dict[str, Exported]":
    """Trains, writes models into the settings' folder, and returns them by name.

    The file is ``model.onnx``, or ``AGENT.onnx`` for each of several agents. ``resume``
    goes on from the last checkpoint in the folder; ``address`` is of a Ray cluster.
    InvalidArgument is raised if another process trains into the folder, and ModelError
    if the policy answers NaN, or differs from its exported model.
    """
    settings, by = experiment.settings, experiment.optimization
    # Before the training, because it may raise. For the same reason, the engines check
    # by `Experiment.networks` whether the policy can be exported.
    what = f"model_file of '{by.name}'"
    about = guarded(what, by.model_file, experiment.environment, settings.seed)
    with experiment.claimed():
        learned = learn(experiment, resume=resume, address=address, show=show)
        features, metadata, out = about.features, about.metadata, settings.out
        return {
            name: export(it, out / f"{name}.onnx", features=features, metadata=metadata)
            for name, it in learned.policies.items()
        }
