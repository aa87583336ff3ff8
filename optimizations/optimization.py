# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The description of an optimisation, which training and evaluation read.

``mlbridge train`` and ``mlbridge evaluate`` need only a file with an `Optimization`::

    OPTIMIZATION = Optimization(
        "spills",
        "Which live range goes to memory.",
        make_env=lambda settings, worker: CompilerEnv(
            ["./spills"], "shm", observation_space=..., action_space=..., worker=worker
        ),
    )
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from traceback import extract_tb
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from mlbridge.errors import Error, InvalidArgument

if TYPE_CHECKING:
    import gymnasium
    from torch import nn

    from mlbridge.export import FeatureSource, Metadata

S = TypeVar("S")
"""A dataclass: the settings of an environment."""

T = TypeVar("T")

Choice = Callable[[Any], Any]
"""From an observation to an action."""

PerAgent: TypeAlias = T | Mapping[str, T]
"""One value for all agents, or one for each agent, by label."""


def of_agent(given: Any, agent: str) -> Any:
    """Returns an agent's own value; None if it has none."""
    return given.get(agent) if isinstance(given, Mapping) else given


def spaces_of(env: Any) -> dict[str, tuple[Any, Any]]:
    """Returns observation and action spaces by agent; a single agent is ""."""
    if hasattr(env, "possible_agents"):
        return {
            agent: (env.observation_spaces[agent], env.action_spaces[agent])
            for agent in env.possible_agents
        }
    if not hasattr(env, "observation_space"):
        raise InvalidArgument(
            f"make_env: expected a Gymnasium environment, found a {type(env).__name__}"
        )
    return {"": (env.observation_space, env.action_space)}


def merged(infos: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Merges the infos of several agents."""
    return {key: value for own in infos.values() for key, value in own.items()}


def guarded(name: str, function: Callable[..., T], *arguments: Any) -> T:
    """Calls a function of a description; InvalidArgument names it if it raises."""
    try:
        return function(*arguments)
    except Error:
        raise
    except (Exception, SystemExit) as error:
        *_, frame = extract_tb(error.__traceback__)
        why = f"{type(error).__name__}: {error} ({frame.filename}:{frame.lineno})"
        raise InvalidArgument(f"{name} failed: {why}") from error


@dataclass(frozen=True)
class NoSettings:
    """The environment has no settings."""


@dataclass(frozen=True)
class Metric:
    """The measure by which episodes are judged."""

    name: str = "return"  # One word, for columns.
    label: str = ""  # For plots; by default the name.
    # From the sum of an episode's rewards and its last info to a number.
    of: Callable[[float, Mapping[str, Any]], float] = lambda total, info: total
    stock: float | None = None  # Of the compiler's own heuristic, drawn as a line.
    stock_label: str = "the compiler"
    is_cost: bool = False  # Whether less is better.


@dataclass(frozen=True)
class ModelFile:
    """What the file of a trained model contains besides its network."""

    features: "FeatureSource" = None  # By default the observation space's.
    metadata: "Metadata | None" = None  # See docs/reference/model-metadata.md.


@dataclass(frozen=True)
class Optimization(Generic[S]):
    """A learned decision with all that belongs to it.

    Attributes:
        name: its name on the command line.
        help: one line.
        make_env: makes an environment for a worker, which starts its compiler at the
            first reset. A `MultiAgentCompilerEnv` trains a model for each agent.
        settings: a dataclass whose fields become command-line options of the
            environment; ``Annotated`` with ``typer.Option`` gives their help.
        encoder: makes the first part of a network for an observation space: a module
            from a batch of observations to [N, ``out_features``]. None: the engine's.
        network: makes a whole network for both spaces, instead of encoder and hidden
            layers (ppo, a2c, appo): a module from a batch of observations to logits
            [N, actions] and values [N, 1]. With a logit for each row of an observation,
            the number of actions may change. None, or a result of None: the engine's.
        baselines: heuristics to compare with, by name.
        metric: the measure by which episodes are judged.
        model_file: further contents of a trained model's file, for a seed.
        packages: imports of the environment besides Gymnasium, checked before training.
        commands: further ones for `typer.Typer.command`, by their words: ``evaluate
            outputs``. ``evaluate NAME`` replaces the general command.
    """

    name: str
    help: str
    make_env: "Callable[[S, int], gymnasium.Env[Any, Any]]"
    settings: type[S] = NoSettings  # type: ignore[assignment]
    encoder: "PerAgent[Callable[[S, gymnasium.Space[Any]], nn.Module]] | None" = None
    network: """PerAgent[
        Callable[[S, gymnasium.Space[Any], gymnasium.Space[Any]], nn.Module | None]
    ] | None""" = None
    baselines: Mapping[str, Callable[[S], PerAgent[Choice]]] = field(
        default_factory=dict
    )
    metric: Metric = Metric()
    model_file: Callable[[S, int], ModelFile] = lambda settings, seed: ModelFile()
    packages: tuple[str, ...] = ()
    commands: Mapping[str, Callable[..., None]] = field(default_factory=dict)

    def environment(self, settings: S, worker: int = 0) -> Any:
        """Makes an environment, whose compiler starts at its first reset."""
        return guarded(f"make_env of '{self.name}'", self.make_env, settings, worker)
