# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Describes register allocation, so that `mlbridge train` can train a model."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from mlbridge.errors import InvalidArgument
from mlbridge_optimizations.optimization import (
    Choice,
    Metric,
    ModelFile,
    Optimization,
    PerAgent,
)

from .commands import COMMANDS

if TYPE_CHECKING:
    from .agents import AgentNetwork, RangeEncoder
    from .environment import DialogueEnv, RangeEnv

AGENTS = ("node", "task", "colour", "split")


@dataclass(frozen=True)
class RegisterAllocationSettings:
    """The options of the environment on the command line."""

    functions: Annotated[
        Path,
        Option(
            help="Folder of bitcode files, for example from `mlbridge search"
            " register-allocation-functions`. Each function is an episode."
        ),
    ] = Path("build/register-allocation/functions")
    form: Annotated[
        str,
        Option(
            help="question: one network decides about all live ranges of a function."
            " dialogue: four agents decide step by step, and `mlbridge train"
            " register-allocation` trains them with --engine rllib."
        ),
    ] = "question"
    spec: Annotated[
        str, Option(help="How opt and the trainer communicate: shm, pipe or grpc.")
    ] = "shm"
    reward: Annotated[
        str,
        Option(
            help="Measure for the reward. cost: spills, reloads and copies. cycles:"
            " llvm-mca's cycles, which take longer to compute. Both are weighted by"
            " block frequency."
        ),
    ] = "cost"
    max_ranges: Annotated[
        int,
        Option(
            min=0,
            help="Skip functions with more live ranges than this. With 0, skip none.",
        ),
    ] = 0
    order: Annotated[int, Option(help="Random seed of the functions' order.")] = 0
    plugin: Annotated[
        Path | None,
        Option(help="MLBridgeLLVM.so. [default: as found by `mlbridge doctor`]"),
    ] = None

    def __post_init__(self) -> None:
        if self.form not in ("dialogue", "question"):
            raise InvalidArgument(
                f"--form: expected dialogue or question, found {self.form!r}"
            )
        if self.reward not in ("cost", "cycles"):
            raise InvalidArgument(
                f"--reward: expected cost or cycles, found {self.reward!r}"
            )
        for name in ("functions", "plugin"):
            path = getattr(self, name)
            if path is not None:
                object.__setattr__(self, name, path.resolve())


def _make_env(
    settings: RegisterAllocationSettings, worker: int
) -> "DialogueEnv | RangeEnv":
    from .environment import DialogueEnv, QuestionEnv, RangeEnv

    common: dict[str, Any] = {
        "plugin": settings.plugin,
        "seed": settings.order,
        "max_ranges": settings.max_ranges,
        "reward": settings.reward,
        "spec": settings.spec,
        "worker": worker,
    }
    if settings.form == "question":
        return RangeEnv(QuestionEnv(settings.functions, **common))
    return DialogueEnv(settings.functions, **common)


def _network(
    agent: str, settings: RegisterAllocationSettings, *spaces: Any
) -> "AgentNetwork":
    from .agents import network_of

    return network_of(agent)


def _encoder(settings: RegisterAllocationSettings, space: Any) -> "RangeEncoder":
    from .agents import RangeEncoder

    return RangeEncoder()


def ratio_of(total: float, info: Mapping[str, Any]) -> float:
    """Returns the cost relative to greedy's, from 1/e to e."""
    greedy, cost = info.get("greedy"), info.get("cost")
    if not greedy or cost is None:
        return math.e
    return float(min(max(cost / greedy, math.exp(-1)), math.e))


def _first(observation: Mapping[str, Any]) -> int:
    return int(observation["action_mask"].argmax())


def _colour(observation: Mapping[str, Any], otherwise: int) -> int:
    from .environment import COLOURS

    free = observation["colours"][:, 0] * observation["action_mask"][:COLOURS]
    if free.any():
        return int(free.argmax())
    return otherwise if observation["action_mask"][otherwise] else _first(observation)


def _by_weight(
    settings: RegisterAllocationSettings, *, spills: bool
) -> PerAgent[Choice]:
    """Allocates heavier ranges first. Spills or leaves one if no register is free."""
    from .environment import LEAVE, SPILL

    if settings.form == "question":
        return lambda observation: 3 if spills else 0  # See `RangeEnv`.
    otherwise = SPILL if spills else LEAVE
    choices: dict[str, Choice] = dict.fromkeys(AGENTS, _first)
    choices["colour"] = partial(_colour, otherwise=otherwise)
    return choices


OPTIMIZATION = Optimization(
    "register-allocation",
    "Which live ranges of a function get which registers.",
    make_env=_make_env,
    settings=RegisterAllocationSettings,
    network={agent: partial(_network, agent) for agent in AGENTS},
    encoder={"": _encoder},  # A question's agent has no name.
    baselines={
        "weight": partial(_by_weight, spills=True),
        "free": partial(_by_weight, spills=False),
    },
    # Without a rule, the plug-in receives the logits of all live ranges.
    model_file=lambda settings, seed: ModelFile(
        decide="" if settings.form == "question" else None
    ),
    commands=COMMANDS,
    metric=Metric("ratio", "cost / greedy's cost", ratio_of, 1.0, is_cost=True),
)
