# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several compilers at once, in one Python process and one thread.

A step of a compiler is a message there and one back. So all get their actions first,
and then each is waited for: they work at the same time, without threads, without
processes of ours in between, and without copies from one to the other.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from mlbridge.envs.compiler import CompilerEnv
from mlbridge.errors import InvalidArgument


class CompilerVectorEnv(VectorEnv[Any, Any, Any]):
    """Compilers as a Gymnasium vector environment; see `make_vec`.

    An episode that is over is followed by a reset in the next step, whose action is
    not looked at (``AutoresetMode.NEXT_STEP``, Gymnasium's own default).
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, envs: Sequence[CompilerEnv]) -> None:
        """Takes the environments, which have the same spaces, for its own."""
        self.envs = list(envs)
        if not envs:
            raise InvalidArgument("a vector environment of no compiler")
        self.num_envs = len(envs)
        self.single_observation_space = envs[0].observation_space
        self.single_action_space = envs[0].action_space
        self.observation_space = batch_space(
            self.single_observation_space, self.num_envs
        )
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._is_over = np.zeros(self.num_envs, bool)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode of each. See `CompilerEnv.reset`.

        Args:
            seed: one for each, or the first one's: the others count up from it.
            options: for all of them.
        """
        if seed is None or isinstance(seed, int):
            seeds: Sequence[int | None] = [
                None if seed is None else seed + i for i in range(self.num_envs)
            ]
        else:
            seeds = seed
        for env in self.envs:
            env.launch()
        results = [
            env.reset(seed=s, options=options)
            for env, s in zip(self.envs, seeds, strict=True)
        ]
        self._is_over[:] = False
        return self._batch(
            [observation for observation, _ in results], [info for _, info in results]
        )

    def step(
        self, actions: Any
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Lets all compilers do their actions, at the same time."""
        resets = self._is_over.copy()
        each = list(iterate(self.action_space, actions))
        for env, action, is_reset in zip(self.envs, each, resets, strict=True):
            if not is_reset:
                env.send(action)
        begun = {int(i): self.envs[i].reset() for i in np.flatnonzero(resets)}

        rewards = np.zeros(self.num_envs, np.float64)
        terminated = np.zeros(self.num_envs, bool)
        truncated = np.zeros(self.num_envs, bool)
        observations: list[Any] = []
        infos: list[dict[str, Any]] = []
        for i, env in enumerate(self.envs):
            if i in begun:
                observation, info = begun[i]
            else:
                (observation, rewards[i], terminated[i], truncated[i], info) = (
                    env.receive()
                )
            observations.append(observation)
            infos.append(info)
        self._is_over = terminated | truncated
        batch, info = self._batch(observations, infos)
        return batch, rewards, terminated, truncated, info

    def close_extras(self, **kwargs: Any) -> None:
        """Ends all compilers."""
        for env in self.envs:
            env.close()

    def _batch(
        self, observations: list[Any], infos: list[dict[str, Any]]
    ) -> tuple[Any, dict[str, Any]]:
        out = create_empty_array(self.single_observation_space, self.num_envs)
        merged: dict[str, Any] = {}
        for i, info in enumerate(infos):
            merged = self._add_info(merged, info, i)
        return concatenate(self.single_observation_space, observations, out), merged


def make_vec(
    num_envs: int,
    command: Sequence[str],
    spec: str = "pipe",
    *,
    observation_space: spaces.Space[Any],
    action_space: spaces.Space[Any],
    **settings: Any,
) -> CompilerVectorEnv:
    """So many compilers as one Gymnasium vector environment.

    Args:
        num_envs: how many.
        command: as for `CompilerEnv`; ``{worker}`` counts from 0.
        spec: as for `CompilerEnv`.
        observation_space: of one of them.
        action_space: of one of them.
        settings: what else `CompilerEnv` takes.
    """
    return CompilerVectorEnv(
        make_envs(
            num_envs,
            command,
            spec,
            observation_space=observation_space,
            action_space=action_space,
            **settings,
        )
    )


def make_envs(
    num_envs: int, command: Sequence[str], spec: str, **settings: Any
) -> list[CompilerEnv]:
    """So many environments of one compiler, each with its number."""
    return [CompilerEnv(command, spec, worker=i, **settings) for i in range(num_envs)]
