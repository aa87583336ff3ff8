# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of a policy's training: options, environment, networks and metric."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from mlbridge_optimizations.commands.shared import CorpusFolder, Plugin
from mlbridge_optimizations.optimization import Metric, ModelFile, Optimization

from ..environment.settings import (
    OF_MODULE,
    Actions,
    LeaveOut,
    Vocabulary,
)

if TYPE_CHECKING:
    from ..environment.compiler import EpisodeOptions
    from ..environment.environment import PhaseOrderingEnv
    from .networks import Normalised, Once


@dataclass(frozen=True)
class PhaseOrderingSettings:
    """The options of the environment on the command line."""

    corpus: CorpusFolder = Path("build/corpus")
    leave_out: LeaveOut = None
    observation: Annotated[
        str,
        Option(
            help=f"Features that the policy uses: {OF_MODULE}, step (the number of"
            " actions so far), actions (how often each action was taken, and the last"
            " action)."
        ),
    ] = "histogram,counts,step,actions"
    actions: Actions = "oz"
    reward: Annotated[
        str,
        Option(
            help="Weights of the parts of the reward: text-size, instructions,"
            " mca-cycles and weighted-cycles, for example text-size:10,mca-cycles:5."
            " Instead, poset-rl selects the reward of POSET-RL, and poset-rl-weighted"
            " the same reward with weighted-cycles."
        ),
    ] = "text-size:10"
    baseline: Annotated[
        str,
        Option(
            help="State with which the final module is compared: `start` is the module"
            " before the first action, `oz` is the module after -Oz."
        ),
    ] = "start"
    episode: Annotated[int, Option(min=1, help="Actions per episode.")] = 15
    stop: Annotated[
        bool, Option("--stop", help="Add an action that ends the episode.")
    ] = False
    vocabulary: Vocabulary = None
    max_instructions: Annotated[
        int, Option(help="Omit modules with more instructions than this.")
    ] = 6000
    kept_programs: Annotated[
        int | None,
        Option(
            min=1,
            help="Maximum number of modules in each compiler's cache. [default: as many"
            " as fit into 20 MB of bitcode]",
        ),
    ] = None
    plugin: Plugin = None

    def __post_init__(self) -> None:
        # Make paths absolute: compilers may run in other folders or on other machines.
        for name in ("corpus", "vocabulary", "plugin"):
            path = getattr(self, name)
            if path is not None:
                object.__setattr__(self, name, path.resolve())

    def arguments(self) -> dict[str, Any]:
        """Returns the arguments of a `PhaseOrderingEnv`."""
        found = {**vars(self), "leave_out": self.leave_out or (), "flat": True}
        found["action"], found["steps"] = found.pop("actions"), found.pop("episode")
        return found

    def options(self) -> "EpisodeOptions":
        """Returns the compiler's options. Raises InvalidArgument if they conflict."""
        from ..environment.environment import EnvSettings

        settings = EnvSettings(**self.arguments())
        return settings.options(self.kept_programs).checked()


def _make_env(settings: PhaseOrderingSettings, worker: int) -> "PhaseOrderingEnv":
    from ..environment.environment import TrainingEnv

    return TrainingEnv(**settings.arguments(), worker=worker)


def _encoder(settings: PhaseOrderingSettings, space: object) -> "Normalised":
    from .networks import Normalised

    options = settings.options()
    return Normalised(options.widths, options.steps)


def _encoder_once(settings: PhaseOrderingSettings, space: object) -> "Once":
    from .networks import Once

    options = settings.options()
    return Once(options.widths, options.steps)


def _model_file(settings: PhaseOrderingSettings, seed: int) -> ModelFile:
    from .export import about_model
    from .model import Task

    options = settings.options()
    task = Task(options.space, options.steps, options.stop, tuple(options.widths))
    return about_model(replace(options, reward=settings.reward), task, seed)


def ratio_of(total: float, info: Mapping[str, Any]) -> float:
    """Returns the last state's size relative to -Oz, or 1 for a module without code."""
    size = info.get("final_text_size", info.get("text_size", 0))
    stock = info.get("oz_text_size", 0)
    return float(size / stock) if stock else 1.0


TRAINED = Optimization(
    "phase-ordering",
    "In which order LLVM's passes run on a module.",
    make_env=_make_env,
    settings=PhaseOrderingSettings,
    encoder=_encoder,
    metric=Metric("ratio", "size / -Oz at the end", ratio_of, 1.0, is_cost=True),
    model_file=_model_file,
    packages=("elftools",),
)
"""Phase ordering without its commands, because these commands use this object."""

ONCE = replace(TRAINED, encoder=_encoder_once)
"""Phase ordering in which the agent takes each action at most once (dqn of sb3).

The observation must have the feature ``actions``, and no action ends the episode.
"""
