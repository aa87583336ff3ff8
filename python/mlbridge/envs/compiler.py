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
    """A compiler that serves its Environment, as a Gymnasium environment.

    The first reset starts the compiler, which runs any number of episodes. A step that
    exceeds its timeout, or in which the compiler dies, ends the episode (``truncated``,
    with the reason in ``info["error"]``): the compiler and all processes that it
    started are killed, and the next reset starts another one.

    Example::

        env = CompilerEnv(
            ["build/release/examples/environment/spills"],
            "shm",
            observation_space=Box(-inf, inf, (5, 2), float32),
            action_space=Discrete(5),
        )

    Used by one thread at a time.
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
        """Stores the settings; the first reset starts the compiler.

        Args:
            command: the compiler's program and arguments. ``{spec}`` in them becomes
                the spec to connect to (serveEnvironment's argument), which is also in
                the environment variable MLBRIDGE_SPEC; ``{worker}`` becomes the number.
            spec: the transport: ``pipe``, ``shm`` or ``grpc``, with options such as
                ``pipe:?serdes=json&max-message=16MiB``. Without a name after the colon
                each compiler gets a private one.
            observation_space: the features that are the observation: a Dict has their
                names as keys; a single tensor is the only feature, or the one called
                ``observation``. The space's shape must be the compiler's, and its dtype
                must hold all values of the compiler's. Other features go to ``info``. A
                stacked Sequence or a Graph changes its size, unless it is `Padded`.
            action_space: a single tensor is sent as ``action``, a Dict as tensors by
                its keys, each with the space's dtype.
            failure_reward: the reward of a step in which the compiler failed.
            check: check that observations are in their space and rewards are finite.
                `check` then counts those that are not. The logger ``mlbridge.envs``
                warns of the first, and `close` logs the counts.
            **options: timeouts, restarts and more; see `CompilerOptions`.

        Raises:
            TypeError: a space cannot be represented as tensors.
            InvalidArgument: the command is empty or a string.
        """
        self.observation_space = observation_space
        self.action_space = action_space
        self.failure_reward = failure_reward
        self._read = ObservationReader(observation_space)
        self._write = ActionWriter(action_space)
        settings = CompilerSettings(command, spec, **options)
        self._session = CompilerSession(settings)
        self.check = ValueCheck(self, str(settings), check=check)
        """The counts of the argument ``check``."""
        self._is_seeded = False
        self._last: Any = None
        self._running = self._has_begun = False

    @property
    def pid(self) -> int | None:
        """The process ID of the running compiler, if any."""
        return self._session.pid

    @property
    def starts(self) -> int:
        """The number of compilers started so far."""
        return self._session.starts

    def launch(self) -> None:
        """Starts the compiler unless it runs; does not wait for it."""
        self._session.launch()

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: for the compiler's ``Environment::seed()``. A restarted compiler gets
                a seed derived from it.
            options: for the compiler's ``Environment::options()``, as JSON.

        Returns:
            The observation, in arrays that the caller owns, and the compiler's info.

        Raises:
            Timeout, PeerClosed: every compiler that was started failed; the text has
                the exit status.
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
            observation, reward, terminated, truncated, info. If the step failed: the
            last observation again, ``failure_reward``, False, True, and
            ``info["error"]`` with the code and text of the error.

        Raises:
            gymnasium.error.ResetNeeded: no episode has begun, or it has ended.
            SchemaMismatch, InvalidArgument: the action or the observation does not fit
                its space or the compiler.
            Timeout, PeerClosed: more than ``max_restarts`` failures in a row.
        """
        self.send(action)
        return self.receive()

    def send(self, action: Any) -> None:
        """Sends the action of a step, so that several compilers can work at once."""
        if not self._running:
            state = "is over" if self._has_begun else "has not begun"
            raise gymnasium.error.ResetNeeded(
                f"the compiler's episode {state}; call reset() first"
            )
        self._session.send_step(self._write(action))

    def receive(self) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Waits for the result of `send`; returns what `step` does."""
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
        """Asks the compiler to end, and kills it 2 s later."""
        self._running = False
        self._session.close()
        self.check.report()

    def _observe(self, outcome: Outcome) -> tuple[Any, dict[str, Any]]:
        observation, rest = self._read(outcome.features)
        self.check.observation(self.observation_space, observation)
        self._last = observation
        return observation, {**rest, **outcome.info}
