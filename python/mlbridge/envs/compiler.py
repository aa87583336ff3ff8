# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiler as a Gymnasium environment."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import gymnasium
from gymnasium import spaces

from mlbridge.envs.check import ValueCheck
from mlbridge.envs.session import (
    CompilerOptions,
    CompilerSession,
    CompilerSettings,
    Outcome,
)
from mlbridge.envs.spaces import ActionWriter, ObservationReader


class CompilerEnv(gymnasium.Env[Any, Any]):
    """A Gymnasium environment whose episodes run in a compiler.

    The first reset starts the compiler, which runs any number of episodes. If a step
    exceeds its timeout or the compiler crashes, the episode is truncated, and
    ``info["error"]`` has the reason. Then the compiler and all its child processes are
    killed, and the next reset starts a new compiler.

    Example::

        env = CompilerEnv(
            ["build/release/examples/environment/spills"],
            "shm",
            observation_space=Box(-inf, inf, (5, 2), float32),
            action_space=Discrete(5),
        )

    Only one thread at a time may use an environment.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own declaration)

    def __init__(
        self,
        command: Sequence[str],
        spec: str = "pipe",
        *,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        failure_reward: float = 0.0,
        check: bool = False,
        **options: Unpack[CompilerOptions],
    ) -> None:
        """Stores the settings. The first reset starts the compiler.

        Args:
            command: the compiler's program and arguments. ``{spec}`` is replaced by the
                spec for serveEnvironment. The variable MLBRIDGE_SPEC has the same spec.
                ``{worker}`` is replaced by the worker's number. If the list is empty,
                the user starts the compiler, and ``spec`` contains the compiler's
                address.
            spec: the transport, ``pipe``, ``shm`` or ``grpc``, with options such as
                ``pipe:?serdes=json&max-message=16MiB``. If the spec has no name after
                the colon, each compiler gets a private name. If the spec lists several
                ports, such as ``grpc://host:50051-50058``, ``worker`` selects one.
            observation_space: the space of the features that form the observation. The
                keys of a Dict are names of features. A space of one tensor describes
                the feature ``observation``, or the only feature. Shapes must equal the
                features' shapes, and dtypes must be able to hold the features' values.
                Other features are part of ``info``.
            action_space: the space of the actions. A single tensor is sent with the
                name ``action``. For a Dict, one tensor is sent per key.
            failure_reward: the reward of a step in which the compiler failed.
            check: whether to check that observations are in their space and rewards are
                finite. The attribute `check` then counts the wrong values, and the
                first of them is logged.
            **options: timeouts, restarts and more. See `CompilerOptions`.

        Raises:
            TypeError: a space cannot be represented as tensors.
            InvalidArgument: the command is a string, or is empty without an address.
        """
        self.observation_space = observation_space
        self.action_space = action_space
        self.failure_reward = failure_reward
        self._read = ObservationReader(observation_space)
        self._write = ActionWriter(action_space)
        settings = CompilerSettings(command, spec, **options)
        self._session = CompilerSession(settings)
        self.check = ValueCheck(self, str(settings), check=check)
        """The counts of wrong values, if the argument ``check`` is true."""
        self._is_seeded = False
        self._last: Any = None
        self._running = self._has_begun = False

    @property
    def pid(self) -> int | None:
        """The process ID of the compiler, or None if no compiler runs."""
        return self._session.pid

    @property
    def starts(self) -> int:
        """The number of compilers started so far."""
        return self._session.starts

    def use_compiler_at(self, address: str) -> None:
        """Uses the compiler that the user starts at an address. Ignores the command.

        Call this before the first reset.
        """
        self._session.use_compiler_at(address)

    def launch(self) -> None:
        """Starts the compiler if it does not run. Does not wait for it."""
        self._session.launch()

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: the value of ``Environment::seed()`` in the compiler. A restarted
                compiler gets another seed, which is derived from this one.
            options: the value of ``Environment::options()``, sent as JSON.

        Returns:
            The observation, in arrays that the caller owns, and the compiler's info.

        Raises:
            Timeout, PeerClosed: the compiler failed, also after all restarts. The
                message has the exit status. If the user starts the compiler, Timeout
                means that no compiler answered at the address within ``reset_timeout``.
            SchemaMismatch: the observation does not fit the observation space.
            Error: the compiler could not begin this episode.
        """
        super().reset(seed=seed)
        self._running = False
        if seed is not None:
            self._is_seeded = True
        elif self._is_seeded and self._session.fresh:
            seed = int(self.np_random.integers(2**31))
        outcome = self._session.reset(seed, options)
        observation, info = self._observe(outcome)
        self._running = self._has_begun = True
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Runs the action in the compiler.

        Returns:
            observation, reward, terminated, truncated, info. If the step failed, the
            last observation is returned again, the reward is ``failure_reward``, and
            truncated is true. ``info["error"]`` then has the code and text of the
            error.

        Raises:
            gymnasium.error.ResetNeeded: no episode has begun, or it has ended.
            SchemaMismatch, InvalidArgument: the action or the observation does not fit
                its space, or the compiler rejects the action.
            Timeout, PeerClosed: more than ``max_restarts`` consecutive failures.
        """
        self.send(action)
        return self.receive()

    def send(self, action: Any) -> None:
        """Sends the action of a step without waiting, so compilers run in parallel."""
        if not self._running:
            state = "is over" if self._has_begun else "has not begun"
            raise gymnasium.error.ResetNeeded(
                f"the compiler's episode {state}; call reset() first"
            )
        self._session.send_step(self._write(action))

    def receive(self) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Waits for the result of `send`. Returns the same values as `step`."""
        self._running = False
        outcome = self._session.receive_step()
        over = outcome.terminated, outcome.truncated
        if outcome.error is not None or outcome.was_over:
            reward = 0.0 if outcome.was_over else self.failure_reward
            return copy.deepcopy(self._last), reward, *over, outcome.info
        observation, info = self._observe(outcome)
        self.check.reward(outcome.reward)
        self._running = not any(over)
        return observation, outcome.reward, *over, info

    def close(self) -> None:
        """Requests the compiler to exit, and kills it if it still runs 2 s later."""
        self._running = False
        self._session.close()
        self.check.report()

    def _observe(self, outcome: Outcome) -> tuple[Any, dict[str, Any]]:
        observation, rest = self._read(outcome.features)
        self.check.observation(self.observation_space, observation)
        self._last = observation
        return observation, {**rest, **outcome.info}
