# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Describes loop distribution, so that `mlbridge train` can train a model."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from mlbridge_optimizations.optimization import (
    Choice,
    Metric,
    Optimization,
    PerAgent,
)

from .commands import COMMANDS
from .settings import Times

if TYPE_CHECKING:
    from .agents import AgentNetwork
    from .environment import LoopEnv


@dataclass(frozen=True)
class LoopSettings:
    """The options of the environment on the command line."""

    times: Times = field(
        default_factory=lambda: [Path("build/loop-distribution/generated.jsonl")]
    )
    order: Annotated[int, Option(help="Random seed of the loops' order.")] = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", [one.resolve() for one in self.times])


def _make_env(settings: LoopSettings, worker: int) -> "LoopEnv":
    from .environment import LoopEnv
    from .table import read_table

    entries = [entry for file in settings.times for entry in read_table(file)]
    return LoopEnv(entries, seed=1000 * settings.order + worker)


def _network(actions: int | None, settings: LoopSettings, *_: Any) -> "AgentNetwork":
    from .agents import AgentNetwork

    return AgentNetwork(actions)


def ratio_of(total: float, info: Mapping[str, Any]) -> float:
    """Returns the time relative to stock clang's."""
    return float(info.get("ratio", math.e))


def _first(observation: Mapping[str, Any]) -> int:
    return int(observation["action_mask"].argmax())


def _same_loop(settings: LoopSettings) -> PerAgent[Choice]:
    """Adds each seed to the current loop if that is legal."""
    return {"node": _first, "partition": _first}


def _last(observation: Mapping[str, Any]) -> int:
    return int(observation["action_mask"].nonzero()[0][-1])


def _new_loops(settings: LoopSettings) -> PerAgent[Choice]:
    """Begins a new loop for each seed if that is legal."""
    return {"node": _first, "partition": _last}


OPTIMIZATION = Optimization(
    "loop-distribution",
    "How to distribute a loop over several loops.",
    make_env=_make_env,
    settings=LoopSettings,
    network={"node": partial(_network, None), "partition": partial(_network, 2)},
    baselines={"one": _same_loop, "many": _new_loops},
    commands=COMMANDS,
    metric=Metric("ratio", "time / stock clang's time", ratio_of, 1.0, is_cost=True),
)
