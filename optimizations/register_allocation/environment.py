# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Register allocation as environments.

An episode is the allocation of one function by the plug-in in a stock `opt`. In a
dialogue, four agents take turns, as in RL4ReAl
(compilers/llvm/RegAlloc/DialoguePolicy.h):

======  ====================================  ===================================
agent   observation                           action
======  ====================================  ===================================
node    ranges float32 [8, 16]                the live range that comes next
task    range [16], colours [32, 6]           0: colour, 1: split
colour  the same                              a register, 32: spill, 33: to greedy
split   range [16], points [16, 6]            the loop, or the use, to split at
======  ====================================  ===================================

Each observation also has ``action_mask`` float32 [actions]: 1 where an action is legal.

In a question, one action has the preferences for all live ranges of the function
(compilers/llvm/RegAlloc/Preferences.h).
"""

import os
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from gymnasium import spaces

from mlbridge.doctor import find_llvm_plugin
from mlbridge.envs.compiler import CompilerEnv
from mlbridge.envs.multi_agent import MultiAgentCompilerEnv
from mlbridge.envs.session import CompilerOptions
from mlbridge.errors import InvalidArgument

OPT = "opt-22"

RANGES, COLOURS, POINTS = 8, 32, 16
RANGE_COLUMNS, COLOUR_COLUMNS, POINT_COLUMNS = 16, 6, 6
SPILL, LEAVE = COLOURS, COLOURS + 1
"""The actions of the agent `colour` that take no register."""


def _box(*shape: int) -> spaces.Box:
    return spaces.Box(-np.inf, np.inf, shape, np.float32)


def observation_spaces() -> dict[str, spaces.Dict]:
    """Returns the observation space of each agent."""
    one = _box(RANGE_COLUMNS)
    colours = _box(COLOURS, COLOUR_COLUMNS)
    return {
        "node": spaces.Dict(
            ranges=_box(RANGES, RANGE_COLUMNS), action_mask=_box(RANGES)
        ),
        "task": spaces.Dict(range=one, colours=colours, action_mask=_box(2)),
        "colour": spaces.Dict(
            range=one, colours=colours, action_mask=_box(COLOURS + 2)
        ),
        "split": spaces.Dict(
            range=one, points=_box(POINTS, POINT_COLUMNS), action_mask=_box(POINTS)
        ),
    }


def action_spaces() -> dict[str, spaces.Discrete[Any]]:
    """Returns the action space of each agent."""
    return {
        agent: spaces.Discrete(space["action_mask"].shape[0])  # type: ignore[index]
        for agent, space in observation_spaces().items()
    }


def command(plugin: Path | None, functions: Path, *options: str) -> list[str]:
    """Returns the command of a compiler that serves the environment.

    Raises InvalidArgument if there is no plug-in, or no function.
    """
    found = plugin or find_llvm_plugin()
    if found is None:
        raise InvalidArgument(
            "there is no MLBridgeLLVM.so; build it with `make build`, or use --plugin"
        )
    if not any(functions.glob("*.bc")):
        raise InvalidArgument(
            f"{functions}: expected bitcode files, found none; write them with"
            " `mlbridge search allocation-functions`"
        )
    passes = "-passes=mlbridge-regalloc-environment"
    where = f"-mlbridge-regalloc-functions={functions}"
    flags = [f"-load-pass-plugin={found}", passes, where, *options]
    return [OPT, *flags, "-disable-output", os.devnull]  # opt requires a module.


def _rows(box: spaces.Box) -> spaces.Sequence:
    return spaces.Sequence(box, stack=True)


class QuestionEnv(CompilerEnv):
    """Allocates a function by one action.

    The observation has ``ranges`` float32 [n, 16], ``spill_weights`` float32 [n] and
    ``interferences`` int32 [m, 2]; n and m depend on the function. The action has
    ``priority``, ``value``, ``leave`` and ``spill`` float32 [n]. The reward is that of
    `DialogueEnv`.
    """

    def __init__(
        self,
        functions: Path,
        *,
        plugin: Path | None = None,
        seed: int = 0,
        repeats: int = 1,
        spec: str = "shm",
        **options: Unpack[CompilerOptions],
    ) -> None:
        """Stores the settings. `functions` is a folder of bitcode files.

        Each function is the task of `repeats` episodes, one after another.
        """
        flags = [
            f"-mlbridge-regalloc-seed={1000 * seed + options.get('worker', 0)}",
            f"-mlbridge-regalloc-repeats={repeats}",
        ]
        pair = spaces.Box(0, np.iinfo(np.int32).max, (2,), np.int32)
        observation = spaces.Dict(
            ranges=_rows(_box(RANGE_COLUMNS)),
            spill_weights=_rows(_box()),
            interferences=_rows(pair),
        )
        action = spaces.Dict(
            priority=_rows(_box()),
            value=_rows(_box()),
            leave=_rows(_box()),
            spill=_rows(_box()),
        )
        super().__init__(
            command(plugin, functions, *flags),
            spec,
            observation_space=observation,
            action_space=action,
            failure_reward=-1.0,
            **options,
        )


class DialogueEnv(MultiAgentCompilerEnv):
    """Allocates a function step by step. All agents receive the reward at the end.

    The reward is log(greedy's cost / cost), from -1 to 1. The cost is the number of
    spills, reloads and copies, each weighted by the frequency of its block.
    """

    def __init__(
        self,
        functions: Path,
        *,
        plugin: Path | None = None,
        seed: int = 0,
        max_ranges: int = 0,
        spec: str = "shm",
        **options: Unpack[CompilerOptions],
    ) -> None:
        """Stores the settings. `functions` is a folder of bitcode files.

        Functions with more than `max_ranges` live ranges are skipped. 0 is no limit.
        """
        worker = options.get("worker", 0)
        flags = [
            "-mlbridge-regalloc-form=dialogue",
            f"-mlbridge-regalloc-max-ranges={max_ranges}",
            f"-mlbridge-regalloc-seed={1000 * seed + worker}",
        ]
        super().__init__(
            command(plugin, functions, *flags),
            spec,
            observation_spaces=observation_spaces(),
            action_spaces=action_spaces(),
            failure_reward=-1.0,
            **options,
        )
        self._acted: set[str] = set()

    def reset(self, **arguments: Any) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """See `MultiAgentCompilerEnv`."""
        self._acted.clear()
        return super().reset(**arguments)

    def step(self, action_dict: dict[Any, Any]) -> tuple[Any, Any, Any, Any, Any]:
        """See `MultiAgentCompilerEnv`."""
        self._acted |= set(action_dict)
        seen, rewards, terminated, truncated, infos = super().step(action_dict)
        if terminated["__all__"] or truncated["__all__"]:
            (last,) = rewards.values()
            rewards = dict.fromkeys(sorted(self._acted), last)
        return seen, rewards, terminated, truncated, infos
