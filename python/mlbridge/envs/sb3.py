# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A vector environment of several compilers for Stable-Baselines3."""

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from gymnasium.vector.utils import concatenate, create_empty_array
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

from mlbridge.envs.compiler import CompilerEnv
from mlbridge.envs.vector import make_envs
from mlbridge.errors import InvalidArgument


class CompilerVecEnv(VecEnv):
    """Several compilers as a ``VecEnv``, in one process and one thread.

    A step sends all actions and then waits, so the compilers run in parallel.
    """

    def __init__(
        self,
        compilers: int | Sequence[str],
        command: Sequence[str] = (),
        spec: str = "pipe",
        **settings: Any,
    ) -> None:
        """Creates environments from the arguments of `make_vec`."""
        self._begin(make_envs(compilers, command, spec, **settings))

    @classmethod
    def of(cls, envs: Sequence[CompilerEnv]) -> Self:
        """Takes ownership of environments with the same spaces."""
        made = cls.__new__(cls)
        made._begin(envs)
        return made

    def _begin(self, envs: Sequence[CompilerEnv]) -> None:
        self.envs = list(envs)
        if not envs:
            raise InvalidArgument("expected one compiler or more, found none")
        super().__init__(len(envs), envs[0].observation_space, envs[0].action_space)

    def reset(self) -> Any:
        """Starts an episode of each compiler, with the seeds and options set before."""
        for env in self.envs:
            env.launch()
        observations = []
        for i, env in enumerate(self.envs):
            observation, self.reset_infos[i] = env.reset(
                seed=self._seeds[i], options=self._options[i] or None
            )
            observations.append(observation)
        self._reset_seeds()
        self._reset_options()
        return self._stack(observations)

    def step_async(self, actions: Any) -> None:
        """Sends all actions."""
        for env, action in zip(self.envs, actions, strict=True):
            env.send(action)

    def step_wait(
        self,
    ) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Waits for all compilers. Resets the compilers whose episodes have ended."""
        rewards = np.zeros(self.num_envs, np.float32)
        dones = np.zeros(self.num_envs, bool)
        observations: list[Any] = []
        infos: list[dict[str, Any]] = []
        for i, env in enumerate(self.envs):
            observation, rewards[i], terminated, truncated, info = env.receive()
            dones[i] = terminated or truncated
            info["TimeLimit.truncated"] = truncated and not terminated
            if dones[i]:
                info["terminal_observation"] = observation
            observations.append(observation)
            infos.append(info)
        for i, env in enumerate(self.envs):
            if dones[i]:
                observations[i], self.reset_infos[i] = env.reset()
        return self._stack(observations), rewards, dones, infos

    def close(self) -> None:
        """Ends all compilers."""
        for env in self.envs:
            env.close()

    def _stack(self, observations: list[Any]) -> Any:
        space = self.observation_space
        empty = create_empty_array(space, self.num_envs)
        return concatenate(space, observations, empty)

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Gets an attribute of the chosen environments."""
        return [getattr(env, attr_name) for env in self._chosen(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Sets an attribute of the chosen environments."""
        for env in self._chosen(indices):
            setattr(env, attr_name, value)

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any
    ) -> list[Any]:
        """Calls a method of the chosen environments."""
        return [
            getattr(env, method_name)(*args, **kwargs) for env in self._chosen(indices)
        ]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Returns false for each environment, because wrappers wrap this object."""
        return [False for _ in self._chosen(indices)]

    def _chosen(self, indices: int | Iterable[int] | None) -> list[CompilerEnv]:
        return [self.envs[i] for i in self._get_indices(indices)]
