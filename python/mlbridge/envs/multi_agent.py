# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiler with several agents, who take turns, for RLlib."""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from gymnasium import spaces
from gymnasium.utils import seeding
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from mlbridge.envs.check import ValueCheck
from mlbridge.envs.session import (
    CompilerOptions,
    CompilerSession,
    CompilerSettings,
    Outcome,
)
from mlbridge.envs.spaces import ActionWriter, ObservationReader
from mlbridge.errors import InvalidArgument, SchemaMismatch


class MultiAgentCompilerEnv(MultiAgentEnv):
    """A compiler whose Environment says whose turn it is (``setNextAgent``).

    Each observation is for one agent, who acts next. A reward is for the agent who
    has acted. Otherwise this is `CompilerEnv`: it starts, watches and restarts the
    compiler in the same way.
    """

    def __init__(
        self,
        command: Sequence[str],
        spec: str = "pipe",
        *,
        observation_spaces: Mapping[str, spaces.Space[Any]],
        action_spaces: Mapping[str, spaces.Space[Any]],
        failure_reward: float = 0.0,
        check: bool = False,
        **options: Unpack[CompilerOptions],
    ) -> None:
        """Describes the compiler; nothing is started before the first reset.

        Args:
            command: as for `CompilerEnv`, as all that follow.
            spec: how to reach it.
            observation_spaces: by the agents' labels.
            action_spaces: by the agents' labels, which are the same.
            failure_reward: of the agent in whose step the compiler failed.
            check: whether to look at values, too.
            **options: see `CompilerOptions`.

        Raises:
            InvalidArgument: the spaces are not of the same agents.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        if not observation_spaces or set(observation_spaces) != set(action_spaces):
            raise InvalidArgument(
                "expected an observation space and an action space for each agent,"
                f" found {sorted(observation_spaces)} and {sorted(action_spaces)}"
            )
        self.possible_agents = list(observation_spaces)
        self.agents = list(observation_spaces)
        # RLlib's keys may be any hashable; ours are the compiler's labels.
        self.observation_spaces = dict(observation_spaces.items())
        self.action_spaces = dict(action_spaces.items())
        self.failure_reward = failure_reward
        self._readers = {
            agent: ObservationReader(space)
            for agent, space in observation_spaces.items()
        }
        self._writers = {
            agent: ActionWriter(space) for agent, space in action_spaces.items()
        }
        settings = CompilerSettings(command, spec, **options)
        self._session = CompilerSession(settings)
        self.check = ValueCheck(
            self, check=check, command=command, worker=settings.worker
        )
        """What was found, where somebody has asked for that."""
        self._turn: str | None = None
        self._last: Any = None

    @property
    def pid(self) -> int | None:
        """The process of the compiler that runs, if one does."""
        return self._session.pid

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """Starts an episode; see `CompilerEnv.reset`.

        Returns:
            The observation and the info of the agent who acts first.
        """
        if seed is not None:
            self._np_random, _ = seeding.np_random(seed)
        elif self._np_random is not None and self._session.fresh:
            seed = int(self._np_random.integers(2**31))
        self._turn = None
        outcome = self._session.reset(seed, options)
        # An episode that is over is anybody's to end.
        is_over = outcome.terminated or outcome.truncated
        default = next(iter(self._readers)) if is_over else ""
        self._turn, observation, info = self._observe(outcome, default)
        return {self._turn: observation}, {self._turn: info}

    # An agent's environment in RLlib is no Gymnasium one, though it derives from it.
    def step(  # type: ignore[override]
        self, action_dict: dict[Any, Any]
    ) -> tuple[
        dict[Any, Any], dict[Any, Any], dict[Any, Any], dict[Any, Any], dict[Any, Any]
    ]:
        """Lets the compiler do the action of the agent whose turn it is.

        Returns:
            The observation of who acts next, the reward of who has acted, whether
            the episode is over (``"__all__"``), and the info.

        Raises:
            InvalidArgument: it is another agent's turn, or no episode is under way.
            SchemaMismatch: as for `CompilerEnv.step`.
        """
        actor = self._turn
        if actor is None or set(action_dict) != {actor}:
            if actor is not None:
                why = f"it is the turn of {actor!r}"
            elif self._last is None:
                why = "no episode has begun; call reset() first"
            else:
                why = "the episode is over; call reset() first"
            raise InvalidArgument(f"{why}; found an action of {sorted(action_dict)}")
        self._turn = None
        self._session.send_step(self._writers[actor](action_dict[actor]))
        outcome = self._session.receive_step()
        if outcome.error is not None:
            error = {"error": f"{outcome.error.code}: {outcome.error}"}
            over = {"__all__": False}, {"__all__": True}
            rewards = {actor: self.failure_reward}
            return {actor: self._last}, rewards, *over, {actor: error}

        if outcome.was_over:
            agent, observation, info = actor, self._last, outcome.info
        else:
            agent, observation, info = self._observe(outcome, actor)
        self.check.reward(outcome.reward)
        if not (outcome.terminated or outcome.truncated):
            self._turn = agent
        return (
            {agent: observation},
            {actor: outcome.reward},
            {"__all__": outcome.terminated},
            {"__all__": outcome.truncated},
            {agent: info},
        )

    def close(self) -> None:
        """Ends the compiler: it is asked to first, and killed 2 s later."""
        self._turn = None
        self._session.close()
        self.check.report()

    def _observe(
        self, outcome: Outcome, default: str = ""
    ) -> tuple[str, Any, dict[str, Any]]:
        agent = outcome.agent or default
        if agent not in self._readers:
            raise SchemaMismatch(
                f"the compiler asks for agent {agent!r:.200}; there are"
                f" {', '.join(self._readers)}"
            )
        reader = self._readers[agent]
        observation, rest = reader(outcome.features)
        self.check.observation(reader.space, observation)
        self._last = observation
        return agent, observation, {**rest, **outcome.info}
