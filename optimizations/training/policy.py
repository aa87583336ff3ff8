# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A policy from settings to file, by whichever engine."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from mlbridge_optimizations.phase_ordering.export import export_model
from mlbridge_optimizations.phase_ordering.model import Task
from mlbridge_optimizations.training.curve import Curve
from mlbridge_optimizations.training.settings import PolicySettings

if TYPE_CHECKING:
    from mlbridge.export import Exported
    from mlbridge_optimizations.phase_ordering.network import Scores

Show = Callable[[int, float | None], None]


def learn(
    settings: PolicySettings,
    *,
    resume: bool = False,
    address: str | None = None,
    show: Show = lambda done, recent: None,
) -> tuple["Scores", Curve]:
    """Trains by the settings' engine; see there."""
    if settings.engine == "sb3":
        from mlbridge_optimizations.training import sb3

        return sb3.train(settings, resume=resume, show=show)
    from mlbridge_optimizations.training import rllib

    return rllib.train(settings, resume=resume, address=address, show=show)


def train(
    settings: PolicySettings,
    *,
    resume: bool = False,
    address: str | None = None,
    show: Show = lambda done, recent: None,
) -> "Exported":
    """Trains, and writes ``model.onnx`` in the settings' folder.

    Args:
        settings: what is asked for.
        resume: to go on from the last checkpoint there.
        address: of a Ray cluster, for rllib.
        show: is told the actions so far, and the mean return of the last episodes.
    """
    scores, _ = learn(settings, resume=resume, address=address, show=show)
    options = settings.make_env().options
    seen = tuple(options.widths)
    task = Task(options.space, options.steps, options.stop, seen)
    return export_model(
        scores,
        settings.out / "model.onnx",
        options,
        task,
        seed=settings.seed,
        decide=f"argmax:{scores.output}",
    )
