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
With a vocabulary of MIR2Vec, the observation also has the vectors of the instructions
of each live range. The compiler also sends strings, which are in the ``info`` of resets
and steps: ``function``, ``file`` and, in a dialogue, ``status``: the outcome of the
last live range (``outcomes`` in compilers/llvm/RegAlloc/AllocationPolicy.h).

A question is the only request of an episode. Its action has preferences for all live
ranges (compilers/llvm/RegAlloc/Preferences.h). `RangeEnv` makes this action range by
range.
"""

import os
from pathlib import Path
from typing import Any, Unpack

import gymnasium
import numpy as np
from gymnasium import spaces

from mlbridge.doctor import find_llvm_plugin
from mlbridge.envs.compiler import CompilerEnv
from mlbridge.envs.multi_agent import MultiAgentCompilerEnv
from mlbridge.envs.session import CompilerOptions
from mlbridge.errors import InvalidArgument

from .functions import bitcode_files

OPT = "opt-22"

RANGES, COLOURS, POINTS = 8, 32, 16
RANGE_COLUMNS, COLOUR_COLUMNS, POINT_COLUMNS = 16, 6, 6
CHOICES = 4
"""The number of choices for a live range in `RangeEnv`."""
REWARDS = ("cost", "cycles")
"""The costs for rewards: spills, reloads and copies, or cycles by llvm-mca. Both costs
are weighted by the frequencies of the blocks."""
SPILL, LEAVE = COLOURS, COLOURS + 1
"""The actions of the agent `colour` that assign no register."""


def _box(*shape: int) -> spaces.Box:
    return spaces.Box(-np.inf, np.inf, shape, np.float32)


def _indices(*shape: int) -> spaces.Box:
    return spaces.Box(0, np.iinfo(np.int32).max, shape, np.int32)


def _rows(box: spaces.Box) -> spaces.Sequence:
    return spaces.Sequence(box, stack=True)


def observation_spaces(dimension: int = 0) -> dict[str, spaces.Dict]:
    """Returns the observation space of each agent.

    `dimension` is the number of elements of a vocabulary's vectors. Unless it is 0, the
    spaces also have ``instructions`` float32 [k, dimension] and ``instruction_ends``
    int32, [8] for the agent `node` and [1] for other agents.
    """
    one = _box(RANGE_COLUMNS)
    colours = _box(COLOURS, COLOUR_COLUMNS)
    found = {
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
    if dimension:
        for agent, space in found.items():
            count = RANGES if agent == "node" else 1
            space["instructions"] = _rows(_box(dimension))
            space["instruction_ends"] = _indices(count)
    return found


def action_spaces() -> dict[str, spaces.Discrete[Any]]:
    """Returns the action space of each agent."""
    return {
        agent: spaces.Discrete(space["action_mask"].shape[0])  # type: ignore[index]
        for agent, space in observation_spaces().items()
    }


def command(
    plugin: Path | None,
    functions: Path,
    *options: str,
    seed: int,
    worker: int,
    max_ranges: int,
    vocabulary: Path | None,
    reward: str,
) -> list[str]:
    """Returns the command of a compiler that serves the environment.

    The workers of a training allocate the functions in different orders. Raises
    InvalidArgument if the plug-in or the functions are missing, or for an unknown
    reward.
    """
    if reward not in REWARDS:
        raise InvalidArgument(
            f"reward: expected {' or '.join(REWARDS)}, found {reward!r}"
        )
    found = plugin or find_llvm_plugin()
    if found is None:
        raise InvalidArgument(
            "there is no MLBridgeLLVM.so; build it with `make build`, or use --plugin"
        )
    bitcode_files(functions)
    passes = "-passes=mlbridge-regalloc-environment"
    flags = [
        f"-mlbridge-regalloc-functions={functions}",
        f"-mlbridge-regalloc-max-ranges={max_ranges}",
        f"-mlbridge-regalloc-seed={1000 * seed + worker}",
        f"-mlbridge-regalloc-reward={reward}",
        *options,
    ]
    if vocabulary is not None:
        flags.append(f"-mlbridge-regalloc-vocabulary={vocabulary}")
    plug_in = f"-load-pass-plugin={found}"
    # opt requires a module.
    return [OPT, plug_in, passes, *flags, "-disable-output", os.devnull]


class QuestionEnv(CompilerEnv):
    """Allocates a function with one action.

    The observation has ``ranges`` float32 [n, 16], ``spill_weights`` float32 [n] and
    ``interferences`` int32 [m, 2], where n and m depend on the function. The action has
    ``priority``, ``value``, ``leave``, ``split`` and ``spill`` float32 [n]. See
    `DialogueEnv` for the reward.
    """

    def __init__(
        self,
        functions: Path,
        *,
        plugin: Path | None = None,
        seed: int = 0,
        repeats: int = 1,
        max_ranges: int = 0,
        vocabulary: Path | None = None,
        dimension: int = 100,
        reward: str = "cost",
        spec: str = "shm",
        **options: Unpack[CompilerOptions],
    ) -> None:
        """Stores the settings. `functions` is a folder of bitcode files.

        With a `vocabulary` of MIR2Vec whose vectors have `dimension` elements, the
        observation also has ``instructions`` float32 [k, dimension], the vectors of the
        instructions of all live ranges. ``instruction_ends`` int32 [n] has the index
        after the last instruction of each range.

        Each function has `repeats` consecutive episodes. Functions with more than
        `max_ranges` live ranges are skipped. With 0, none are skipped. `reward` is one
        of `REWARDS`.
        """
        parts: dict[str, spaces.Space[Any]] = {
            "ranges": _rows(_box(RANGE_COLUMNS)),
            "spill_weights": _rows(_box()),
            "interferences": _rows(_indices(2)),
        }
        if vocabulary is not None:
            parts |= {
                "instructions": _rows(_box(dimension)),
                "instruction_ends": _rows(_indices()),
            }
        advice = ("priority", "value", "leave", "split", "spill")
        action = spaces.Dict({name: _rows(_box()) for name in advice})
        super().__init__(
            command(
                plugin,
                functions,
                f"-mlbridge-regalloc-repeats={repeats}",
                seed=seed,
                worker=options.get("worker", 0),
                max_ranges=max_ranges,
                vocabulary=vocabulary,
                reward=reward,
            ),
            spec,
            observation_space=spaces.Dict(parts),
            action_space=action,
            failure_reward=-1.0,
            **options,
        )


class RangeEnv(gymnasium.Env[dict[str, Any], int]):
    """Makes the action of a `QuestionEnv` in one step for each live range.

    The observation has ``ranges`` float32 [16]: the features of one live range. The
    action decides what happens to the range:

    - 0: it gets a register if one is free or belongs to lighter ranges. Otherwise it is
      left to greedy.
    - 1: it is left to greedy.
    - 2: if it gets no register, it is split, if possible.
    - 3: if it gets no register, it is spilled.

    The heaviest range comes first. The last step has the reward of `DialogueEnv`. The
    network decides about each range alone, so the exported model decides about all
    ranges of a function in one batch: it maps ``ranges`` float32 [n, 16] to the advice
    ``logits`` float32 [n, 4].
    """

    observation_space: spaces.Dict
    action_space: spaces.Discrete[Any]

    def __init__(self, questions: QuestionEnv) -> None:
        """Takes ownership of `questions`."""
        self.observation_space = spaces.Dict(ranges=_box(RANGE_COLUMNS))
        self.action_space = spaces.Discrete(CHOICES)
        self._questions = questions
        self._ranges = np.zeros((0, RANGE_COLUMNS), np.float32)
        self._weights = np.zeros(0, np.float32)
        self._actions: list[int] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts with the next function."""
        seen, info = self._questions.reset(seed=seed, options=options)
        self._ranges = seen["ranges"]
        self._weights = np.minimum(seen["spill_weights"], np.float32(1e30))
        self._actions = []
        return self._observation(), info

    def _observation(self) -> dict[str, Any]:
        row = min(len(self._actions), len(self._ranges) - 1)
        return {"ranges": self._ranges[row]}

    def step(
        self, action: int
    ) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Stores the choice for one live range."""
        self._actions.append(int(action))
        if len(self._actions) < len(self._ranges):
            return self._observation(), 0.0, False, False, {}
        chosen = np.array(self._actions)
        advice = {"priority": self._weights, "value": self._weights}
        for choice, name in enumerate(("leave", "split", "spill"), start=1):
            advice[name] = (chosen == choice).astype(np.float32)
        _, reward, terminated, truncated, info = self._questions.step(advice)
        return self._observation(), float(reward), terminated, truncated, info

    def close(self) -> None:
        """Ends the compiler."""
        self._questions.close()


class DialogueEnv(MultiAgentCompilerEnv):
    """Allocates a function step by step. All agents receive the reward at the end.

    The reward is log(greedy's cost / cost), limited to -1 to 1. The cost is one of
    `REWARDS`: the number of spills, reloads and copies, or the cycles. Both costs are
    weighted by block frequency.
    """

    def __init__(
        self,
        functions: Path,
        *,
        plugin: Path | None = None,
        seed: int = 0,
        max_ranges: int = 0,
        vocabulary: Path | None = None,
        dimension: int = 100,
        reward: str = "cost",
        spec: str = "shm",
        **options: Unpack[CompilerOptions],
    ) -> None:
        """Stores the settings. `functions` is a folder of bitcode files.

        With a `vocabulary` of MIR2Vec whose vectors have `dimension` elements, the
        observations also have the vectors of instructions, see `observation_spaces`.

        Functions with more than `max_ranges` live ranges are skipped. With 0, none are
        skipped. `reward` is one of `REWARDS`.
        """
        super().__init__(
            command(
                plugin,
                functions,
                "-mlbridge-regalloc-form=dialogue",
                seed=seed,
                worker=options.get("worker", 0),
                max_ranges=max_ranges,
                vocabulary=vocabulary,
                reward=reward,
            ),
            spec,
            observation_spaces=observation_spaces(dimension if vocabulary else 0),
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
