# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CompilerEnv: a compiler as a Gymnasium environment."""

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

    It starts the compiler at the first reset, and lets it live for as many episodes
    as it likes. A step that takes too long, or in which the compiler dies, is the end
    of the episode (``truncated``, and ``info["error"]`` says why); the compiler is
    killed with all that it has started, and the next reset starts another one.

    Such as::

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
        """Describes the compiler; nothing is started before the first reset.

        Args:
            command: the compiler's program and its arguments. ``{spec}`` in them is
                where it has to go (serveEnvironment's argument), ``{worker}`` its
                number. The spec is in the variable MLBRIDGE_SPEC too.
            spec: how to reach it: ``pipe``, ``shm``, with options such as
                ``pipe:?serdes=json&max-message=16MiB``. Without a name behind the
                colon each compiler is met at one of its own.
            observation_space: what of the compiler's features is the observation: a
                Dict has their names as keys; a single tensor is the only feature, or
                the one called ``observation``. dtype and shape must be the
                compiler's, or hold all its values. Other features go to ``info``.
                Of changing size: a stacked Sequence, a Graph, or either `Padded`.
            action_space: a single tensor is sent as ``action``, a Dict as tensors by
                its keys; each of the space's own dtype.
            failure_reward: the reward of a step in which the compiler failed.
            check: whether to look at values, too: at each observation, whether it is in
                its space, and at each reward, whether it is finite. Then `check` counts
                those that are not. The first is logged as a warning (of the logger
                ``mlbridge.envs``), and `close` logs how many there were.
            **options: timeouts, restarts and more; see `CompilerOptions`.

        Raises:
            TypeError: a space that has no form as tensors.
            InvalidArgument: the command is none.
        """
        self.observation_space = observation_space
        self.action_space = action_space
        self.failure_reward = failure_reward
        self._read = ObservationReader(observation_space)
        self._write = ActionWriter(action_space)
        settings = CompilerSettings(command, spec, **options)
        self._session = CompilerSession(settings)
        self.check = ValueCheck(
            self, check=check, command=command, worker=settings.worker
        )
        """What was found, where somebody has asked for that."""
        self._is_seeded = False
        self._last: Any = None
        self._running = self._has_begun = False

    @property
    def pid(self) -> int | None:
        """The process of the compiler that runs, if one does."""
        return self._session.pid

    @property
    def starts(self) -> int:
        """How many compilers have been started so far."""
        return self._session.starts

    def launch(self) -> None:
        """Starts the compiler if it does not run yet, without waiting for it."""
        self._session.launch()

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: for the compiler's ``Environment::seed()``. One that has to be
                started in place of another gets a seed that follows from this.
            options: for the compiler's ``Environment::options()``, as JSON.

        Returns:
            The observation, in arrays of its own, and the compiler's info.

        Raises:
            Timeout, PeerClosed: each compiler that was started failed. The text says
                with what status.
            SchemaMismatch: the observation is not in the observation space's form.
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
        """Lets the compiler do the action.

        Returns:
            observation, reward, terminated, truncated, info. Where the compiler has
            failed: the last observation again, ``failure_reward``, False, True, and
            ``info["error"]`` with the kind of the error and what happened.

        Raises:
            gymnasium.error.ResetNeeded: no episode is under way.
            SchemaMismatch, InvalidArgument: the action or the observation is not of
                the form that the compiler, or the space, has.
            Timeout, PeerClosed: the compiler had to be started in vain too often.
        """
        self.send(action)
        return self.receive()

    def send(self, action: Any) -> None:
        """The first half of a step: several compilers may work at the same time."""
        if not self._running:
            state = "is over" if self._has_begun else "has not begun"
            raise gymnasium.error.ResetNeeded(
                f"the compiler's episode {state}; call reset() first"
            )
        self._session.send_step(self._write(action))

    def receive(self) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """The second half of a step."""
        self._running = False
        outcome = self._session.receive_step()
        if outcome.error is not None:
            error = f"{outcome.error.code}: {outcome.error}"
            last = copy.deepcopy(self._last)
            return last, self.failure_reward, False, True, {"error": error}
        if outcome.was_over:
            last = copy.deepcopy(self._last)
            return last, 0.0, outcome.terminated, outcome.truncated, outcome.info
        observation, info = self._observe(outcome)
        self.check.reward(outcome.reward)
        self._running = not (outcome.terminated or outcome.truncated)
        return (
            observation,
            outcome.reward,
            outcome.terminated,
            outcome.truncated,
            info,
        )

    def close(self) -> None:
        """Ends the compiler: it is asked to first, and killed 2 s later."""
        self._running = False
        self._session.close()
        self.check.report()

    def _observe(self, outcome: Outcome) -> tuple[Any, dict[str, Any]]:
        observation, rest = self._read(outcome.features)
        self.check.observation(self.observation_space, observation)
        self._last = observation
        return observation, {**rest, **outcome.info}
