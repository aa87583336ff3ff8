# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The description of an optimisation, which training and evaluation read.

``mlbridge train`` and ``mlbridge evaluate`` only need a file with an `Optimization`::

    OPTIMIZATION = Optimization(
        "spills",
        "Which live range goes to memory.",
        make_env=lambda settings, worker: CompilerEnv(
            ["./spills"], "shm", observation_space=..., action_space=..., worker=worker
        ),
    )
"""

import re
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
"""The type of an environment's settings, which is a dataclass."""

T = TypeVar("T")

MODEL = "model"
"""The name of a single agent's model file, without the suffix. With several agents, the
name of each agent's file is the agent's label."""

Choice = Callable[[Any], Any]
"""Maps an observation to an action."""

PerAgent: TypeAlias = T | Mapping[str, T]
"""One value for all agents, or a mapping from agents' labels to values."""


def of_agent(given: Any, agent: str) -> Any:
    """Returns an agent's value, or None if the mapping has no value for it."""
    return given.get(agent) if isinstance(given, Mapping) else given


def spaces_of(env: Any) -> dict[str, tuple[Any, Any]]:
    """Returns a dict from agent to its observation space and its action space.

    A single agent has the name "".
    """
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
    """Calls a function of a description. If it fails, raises InvalidArgument."""
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
    """The settings of an environment that has no settings."""


def _returns(total: float, info: Mapping[str, Any]) -> float:
    return total


@dataclass(frozen=True)
class Metric:
    """The measure with which episodes are compared."""

    name: str = "return"  # One word, the title of a column.
    label: str = ""  # The label of plots, by default the name.
    # Maps an episode's sum of rewards and its last info to a value.
    of: Callable[[float, Mapping[str, Any]], float] = _returns
    stock: float | None = None  # The value of the compiler's own heuristic.
    stock_label: str = "the compiler"
    is_cost: bool = False  # True if lower is better.

    def __post_init__(self) -> None:
        if self.name == "steps" or (self.name == "return" and self.of is not _returns):
            raise InvalidArgument(
                f"metric '{self.name}': learning curves have another column of that"
                " name; rename the metric"
            )

    def value(self, total: float, info: Mapping[str, Any]) -> float:
        """Returns an episode's value. Raises InvalidArgument if ``of`` fails."""
        what = f"metric '{self.name}'"
        return guarded(what, lambda: float(self.of(total, info)))


@dataclass(frozen=True)
class ModelFile:
    """The contents of a trained model's file in addition to the network."""

    features: "FeatureSource" = None  # By default, the observation space.
    metadata: "Metadata | None" = None  # See docs/reference/model-metadata.md.
    decide: str | None = None  # See `mlbridge.export.export`.
    decision: str | None = None  # See `mlbridge.export.export`.


@dataclass(frozen=True)
class Optimization(Generic[S]):
    """A learned decision: its environment, networks, baselines and metric.

    Attributes:
        name: the name on the command line: letters, digits, hyphens and underscores.
        help: one line of help, which completes the sentence "The model decides ...".
        make_env: makes a worker's environment, whose compiler starts at the first
            reset. With a `MultiAgentCompilerEnv`, a model is trained for each agent.
            None means that `commands` train and evaluate without an environment.
        settings: a dataclass whose fields become command-line options. ``Annotated``
            with ``typer.Option`` defines their help.
        encoder: makes the first part of a network for an observation space. This part
            is a module that maps observations to [N, ``out_features``]. If it has a
            method ``legal``, which maps observations to bools [N, actions], dqn of sb3
            only takes legal actions. None means the engine's encoder.
        network: makes a whole network instead of an encoder (ppo, a2c, appo). This
            network is a module that maps observations to logits [N, actions] and values
            [N, 1]. The number of actions may vary if each row of an observation has a
            logit. If ``network`` or its result is None, the engine's network is used.
        baselines: heuristics by name. Models are compared with them.
        metric: the measure with which episodes are compared. The default is the return.
        model_file: maps the settings and the training's seed to further contents of a
            model's file.
        packages: further packages that the environment imports.
        commands: further commands by name, ``VERB NAME`` or ``VERB NAME-WHAT``. A
            command ``evaluate NAME`` or ``train NAME`` replaces the general command.
        what: the part WHAT of the general commands' names, if they are ``evaluate
            NAME-WHAT`` and ``train NAME-WHAT`` rather than ``evaluate NAME`` and
            ``train NAME``.
        defaults: defaults of ``mlbridge train`` that replace those of
            `TrainingSettings`, by field.
    """

    name: str
    help: str
    make_env: "Callable[[S, int], gymnasium.Env[Any, Any]] | None" = None
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
    what: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", self.name):
            raise InvalidArgument(
                "an optimisation's name: expected letters, digits, hyphens and"
                f" underscores, found {self.name!r}"
            )

    @property
    def command(self) -> str:
        """The name of the general commands."""
        return f"{self.name}-{self.what}" if self.what else self.name

    def environment(self, settings: S, worker: int = 0) -> Any:
        """Makes an environment. Its compiler starts at the first reset."""
        if self.make_env is None:
            raise InvalidArgument(f"'{self.name}' has no environment")
        return guarded(f"make_env of '{self.name}'", self.make_env, settings, worker)
