# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an optimisation is: the description that training and evaluation read.

A file with an `Optimization` is all that ``mlbridge train`` and ``mlbridge evaluate``
need::

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
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    import gymnasium
    from torch import nn

    from mlbridge.export import FeatureSource, Metadata

S = TypeVar("S")
"""A dataclass: what can be said of the environment."""

T = TypeVar("T")

Choice = Callable[[Any], Any]
"""From an observation to an action."""

PerAgent: TypeAlias = T | Mapping[str, T]
"""One for all agents, or each agent's own by its label."""


def of_agent(given: Any, agent: str) -> Any:
    """An agent's own; None where it has none."""
    return given.get(agent) if isinstance(given, Mapping) else given


def spaces_of(env: Any) -> dict[str, tuple[Any, Any]]:
    """The spaces of observations and actions by agent: "" where there is one."""
    if not hasattr(env, "possible_agents"):
        return {"": (env.observation_space, env.action_space)}
    return {
        agent: (env.observation_spaces[agent], env.action_spaces[agent])
        for agent in env.possible_agents
    }


def merged(infos: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What the infos of several agents say together."""
    return {key: value for own in infos.values() for key, value in own.items()}


@dataclass(frozen=True)
class NoSettings:
    """There is nothing to say of the environment."""


@dataclass(frozen=True)
class Metric:
    """By what an episode is judged.

    Attributes:
        name: a word, for columns.
        label: in plots; the name if it is empty.
        of: from the sum of an episode's rewards and its last info to a number.
        stock: what the compiler's own heuristic has, drawn as a line; None: unknown.
        stock_label: what that line is called.
        is_cost: whether less is better.
    """

    name: str = "return"
    label: str = ""
    of: Callable[[float, Mapping[str, Any]], float] = lambda total, info: total
    stock: float | None = None
    stock_label: str = "the compiler"
    is_cost: bool = False


@dataclass(frozen=True)
class ModelFile:
    """What the file of a trained model says besides its network.

    Attributes:
        features: as the compiler populates them; None: those of the observation space.
        metadata: see docs/model-metadata.md.
    """

    features: "FeatureSource" = None
    metadata: "Metadata | None" = None


@dataclass(frozen=True)
class Optimization(Generic[S]):
    """A learned decision, with all that belongs to it.

    Attributes:
        name: as the command line has it.
        help: in a line.
        make_env: makes an environment, for a worker of that number; it starts its
            compiler at the first reset. A `MultiAgentCompilerEnv` has several agents,
            who learn a model each.
        settings: a dataclass, whose fields are the command line's options of the
            environment; ``Annotated`` with ``typer.Option`` they say what they are.
        encoder: makes what a network begins with, for an observation space: a module
            from a batch of observations to [N, ``out_features``]. None: the engine's.
        network: makes a whole network, for an observation and an action space, in place
            of encoder and hidden layers (ppo, a2c, appo): a module from a batch of
            observations to logits [N, actions] and values [N, 1]. A network whose
            logits are those of an observation's rows decides among as many as there
            are. None, and one that makes None: the engine's.
        baselines: heuristics to compare with, by name.
        metric: by what episodes are judged.
        model_file: what else is in the file of a trained model, for a seed.
        packages: that its environment imports beside Gymnasium; they are looked for
            before a training begins.
        commands: of its own, for `typer.Typer.command`, by what is said: ``evaluate
            outputs``. One called ``evaluate NAME`` takes the place of the general one.
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
