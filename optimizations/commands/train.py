# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command ``mlbridge train``, which learns a model for the compiler."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from typer import Option

from mlbridge.errors import InvalidArgument
from mlbridge.options import is_said, with_options
from mlbridge.signals import sigterm_exits
from mlbridge.terminal import console
from mlbridge_optimizations.commands.groups import decision_of, group_of
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.extras import need
from mlbridge_optimizations.optimization import Optimization
from mlbridge_optimizations.training.experiment import Experiment
from mlbridge_optimizations.training.settings import TrainingSettings

PACKAGES = (
    *("torch", "gymnasium", "matplotlib", "tensorboardX"),
    # The export after the training needs these packages.
    *("onnx", "onnxruntime", "onnxscript"),
)

ENGINES = {"sb3": "stable_baselines3", "rllib": "ray", "ars": "sb3_contrib"}
"""The additional package that an engine or an algorithm needs."""


@dataclass(frozen=True)
class How:
    """The options of one run, which are not saved."""

    resume: Annotated[
        bool, Option("--resume", help="Continue from the last checkpoint.")
    ] = False
    force: Annotated[
        bool, Option("--force", help="Replace the finished training in --out.")
    ] = False
    tune: Annotated[
        int,
        Option(
            metavar="N", min=0, help="First try N random settings, and use the best."
        ),
    ] = 0
    address: Annotated[
        str | None, Option(help="Address of a Ray cluster, for rllib or --tune.")
    ] = None


def _command(described: Optimization[Any]) -> Callable[..., None] | None:
    if described.make_env is None:
        return None

    def run(
        context: typer.Context, settings: TrainingSettings, environment: Any, how: How
    ) -> None:
        _train(context, Experiment(described, environment, settings), how)

    return with_options(
        run,
        TrainingSettings,
        described.settings,
        How,
        text=f"Train a model for {described.command}.\n\n{decision_of(described)} The"
        " command writes the model (model.onnx, or a file for each of several agents),"
        " the learning curve and checkpoints to --out. The progress bar counts actions."
        ' Its "mean return" is the mean sum of rewards in the last 100 episodes.',
        defaults={
            "out": Path("build") / described.name / "policy",
            **described.defaults,
        },
    )


app = group_of(
    "train",
    _command,
    "Learn a model that decides in the compiler: docs/guides/training.md.",
)


def _train(context: typer.Context, experiment: Experiment, how: How) -> None:
    settings = experiment.settings
    is_ray = settings.engine == "rllib" or bool(how.tune)
    if how.address is not None and not is_ray:
        raise InvalidArgument("--address is for --engine rllib, or for --tune")
    if how.tune and settings.compilers:
        raise InvalidArgument("--tune starts its own compilers: leave --compilers")
    if how.resume and how.tune:
        raise InvalidArgument("--resume uses the settings found by --tune: leave that")
    if not (how.resume or how.force) and (models := experiment.models()):
        raise InvalidArgument(
            f"{settings.out} contains a finished training ({models[0].name}): continue"
            " it with --resume, replace it with --force, or name another --out"
        )
    by = experiment.optimization
    using = {settings.engine, settings.algo, *(["rllib"] if is_ray else [])}
    more = [ENGINES[name] for name in ENGINES if name in using]
    need(f"mlbridge train {by.command}", (*PACKAGES, *more, *by.packages))
    from mlbridge_optimizations.training import policy

    if how.resume:
        # Use the settings that --tune has found, unless they are given again.
        tuned = ("gamma", "entropy", "hidden", "learning_rate")
        experiment = experiment.as_begun([n for n in tuned if not is_said(context, n)])
    if how.tune:
        experiment = _tuned(experiment, how)
    with sigterm_exits(), ProgressBars() as bars:
        task = bars.add_task("Actions", total=settings.steps)

        def show(done: int, total: int, recent: float | None) -> None:
            text = "Actions"
            if recent is not None:
                text += f" (mean return {recent:.3f})"
            bars.update(task, completed=done, total=total, description=text)

        exported = policy.train(
            experiment, resume=how.resume, address=how.address, show=show
        )
    names = ", ".join(str(one.path) for one in exported.values())
    plural = "models are" if len(exported) > 1 else "model is"
    curve = settings.out / "curve.png"
    # Without a complete episode, there is no curve.
    shown = f"the curve is {curve}" if curve.exists() else "no episode is complete"
    console.print(f"The {plural} {names}; {shown}.")
    if find_spec("tensorboard") is not None:
        console.print(f"TensorBoard: tensorboard --logdir {settings.out}/tensorboard")


def _tuned(experiment: Experiment, how: How) -> Experiment:
    """Tries settings and prints them. Returns the experiment with the best settings."""
    from mlbridge_optimizations.training.tune import tune

    by = experiment.settings
    with ProgressBars() as bars:
        advance = bars.steps(f"Trials ({by.algo}, {by.engine})", how.tune)
        best, table = tune(experiment, how.tune, address=how.address, show=advance)
    shown = Table("learning rate", "gamma", "entropy", "hidden", "mean return")
    shown.title = "Mean sum of rewards in the last 100 episodes of each trial"
    for row in table:
        shown.add_row(*row)
    console.print(shown)
    return best
