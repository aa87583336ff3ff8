# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A policy from an experiment to a file, by whichever engine."""

from typing import TYPE_CHECKING

from mlbridge.export import export
from mlbridge_optimizations.training.curve import Show
from mlbridge_optimizations.training.experiment import Experiment, Learned

if TYPE_CHECKING:
    from mlbridge.export import Exported


def learn(
    experiment: Experiment,
    *,
    resume: bool = False,
    address: str | None = None,
    show: Show = lambda done, recent: None,
) -> Learned:
    """Trains by the settings' engine; see there."""
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
    show: Show = lambda done, recent: None,
) -> "dict[str, Exported]":
    """Trains, and writes models into the settings' folder, by their names.

    That is ``model.onnx``, or ``AGENT.onnx`` for each agent where there are several.

    Args:
        experiment: what is asked for.
        resume: to go on from the last checkpoint there.
        address: of a Ray cluster, for rllib.
        show: is told the actions so far, and the mean return of the last episodes.

    Raises:
        InvalidArgument: another process trains into that folder.
        ModelError: what was learned answers NaN, or not as its model does.
    """
    settings = experiment.settings
    # Before the learning, not after: this may raise. The engines check by
    # `Experiment.networks` whether the policy can be exported.
    about = experiment.optimization.model_file(experiment.environment, settings.seed)
    with experiment.claimed():
        learned = learn(experiment, resume=resume, address=address, show=show)
        return {
            name: export(
                learned_policy,
                settings.out / f"{name}.onnx",
                features=about.features,
                metadata=about.metadata,
                **learned.options,
            )
            for name, learned_policy in learned.policies.items()
        }
