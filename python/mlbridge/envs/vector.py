# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A vector environment of several compilers, in one process and one thread.

A step sends an action to each compiler before it waits for a result. The compilers
therefore run in parallel, although Python needs only one thread.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from mlbridge import grpc
from mlbridge.envs.compiler import CompilerEnv
from mlbridge.errors import InvalidArgument


class CompilerVectorEnv(VectorEnv[Any, Any, Any]):
    """Several compilers as a Gymnasium vector environment. See `make_vec`.

    If an episode has ended, the next step ignores its action and resets the compiler
    (``AutoresetMode.NEXT_STEP``, Gymnasium's default).
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, envs: Sequence[CompilerEnv]) -> None:
        """Takes ownership of environments with the same spaces."""
        self.envs = list(envs)
        if not envs:
            raise InvalidArgument("expected one compiler or more, found none")
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
        """Starts an episode of each compiler. See `CompilerEnv.reset`.

        Args:
            seed: a list with one seed per compiler, or the first of consecutive seeds.
            options: the options for each compiler.
        """
        if seed is None:
            seed = [None] * self.num_envs
        elif isinstance(seed, int):
            seed = range(seed, seed + self.num_envs)
        for env in self.envs:
            env.launch()
        results = [
            env.reset(seed=s, options=options)
            for env, s in zip(self.envs, seed, strict=True)
        ]
        self._is_over[:] = False
        observations, infos = zip(*results, strict=True)
        return self._batch(observations, infos)

    def step(
        self, actions: Any
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Runs one action in each compiler, in parallel."""
        resets = self._is_over.copy()
        each = list(iterate(self.action_space, actions))
        for env, action, is_reset in zip(self.envs, each, resets, strict=True):
            if not is_reset:
                env.send(action)
        begun = {int(i): self.envs[i].reset() for i in np.flatnonzero(resets)}
        results = [
            (begun[i][0], 0.0, False, False, begun[i][1])
            if i in begun
            else env.receive()
            for i, env in enumerate(self.envs)
        ]
        observations, rewards, *over, infos = map(list, zip(*results, strict=True))
        terminated, truncated = np.array(over, bool)
        self._is_over = terminated | truncated
        batch, info = self._batch(observations, infos)
        return batch, np.array(rewards, np.float64), terminated, truncated, info

    def close_extras(self, **kwargs: Any) -> None:
        """Ends all compilers."""
        for env in self.envs:
            env.close()

    def _batch(
        self, observations: Sequence[Any], infos: Sequence[dict[str, Any]]
    ) -> tuple[Any, dict[str, Any]]:
        out = create_empty_array(self.single_observation_space, self.num_envs)
        merged: dict[str, Any] = {}
        for i, info in enumerate(infos):
            merged = self._add_info(merged, info, i)
        return concatenate(self.single_observation_space, observations, out), merged


def make_vec(
    compilers: int | Sequence[str],
    command: Sequence[str] = (),
    spec: str = "pipe",
    **settings: Any,
) -> CompilerVectorEnv:
    """Makes a Gymnasium vector environment of several compilers.

    ``compilers`` is the number of compilers, or a list with the addresses of compilers
    that the user starts, such as ``["grpc://a:50051-50058", "grpc://b:50051"]``. A list
    replaces ``command`` and ``spec``.

    `CompilerEnv` describes the other arguments. ``observation_space`` and
    ``action_space`` are the spaces of one compiler. ``{worker}`` in the command is 0,
    1, ...
    """
    return CompilerVectorEnv(make_envs(compilers, command, spec, **settings))


def make_envs(
    compilers: int | Sequence[str], command: Sequence[str], spec: str, **settings: Any
) -> list[CompilerEnv]:
    """Makes several environments with different workers. See `make_vec`."""
    if isinstance(compilers, int):
        specs = [spec] * compilers
    elif isinstance(compilers, str) or command:
        raise InvalidArgument(
            "expected the number of compilers, or a list of addresses and no command,"
            f" found {compilers!r} and the command {command!r}"
        )
    else:
        specs = [one for address in compilers for one in grpc.expand(address)]
    return [
        CompilerEnv(command, one, worker=worker, **settings)
        for worker, one in enumerate(specs)
    ]
