# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiler with several agents that take turns, for RLlib."""

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
    """A compiler whose Environment calls ``setNextAgent`` to choose the next agent.

    Each observation is for the agent that acts next. Each reward is for the agent that
    has just acted. The compiler's process is managed as in `CompilerEnv`.
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
        """Stores the settings. The first reset starts the compiler.

        Both mappings have the labels of the agents as keys. InvalidArgument is raised
        if the keys differ. `CompilerEnv` describes the other arguments.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        if not observation_spaces or set(observation_spaces) != set(action_spaces):
            raise InvalidArgument(
                "expected an observation space and an action space for each agent,"
                f" found {sorted(observation_spaces)} and {sorted(action_spaces)}"
            )
        self.possible_agents = list(observation_spaces)
        self.agents = list(observation_spaces)
        # Copy, to satisfy mypy: RLlib allows any hashable key, but our labels are str.
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
        self.check = ValueCheck(self, str(settings), check=check)
        """The counts of wrong values, if the argument ``check`` is true."""
        self._turn: str | None = None
        self._last: Any = None

    @property
    def pid(self) -> int | None:
        """The process ID of the compiler, or None if no compiler runs."""
        return self._session.pid

    def use_compiler_at(self, address: str) -> None:
        """Uses the compiler that the user starts at an address. Ignores the command.

        Call this before the first reset.
        """
        self._session.use_compiler_at(address)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """Starts an episode. Returns the observation of the agent that acts first."""
        if seed is not None:
            self._np_random, _ = seeding.np_random(seed)
        elif self._np_random is not None and self._session.fresh:
            seed = int(self._np_random.integers(2**31))
        self._turn = None
        outcome = self._session.reset(seed, options)
        # Choose any agent if the episode has already ended and the compiler names no
        # agent.
        is_over = outcome.terminated or outcome.truncated
        default = next(iter(self._readers)) if is_over else ""
        self._turn, observation, info = self._observe(outcome, default)
        return {self._turn: observation}, {self._turn: info}

    # RLlib's MultiAgentEnv changes the signature of Gymnasium's Env.
    def step(  # type: ignore[override]
        self, action_dict: dict[Any, Any]
    ) -> tuple[
        dict[Any, Any], dict[Any, Any], dict[Any, Any], dict[Any, Any], dict[Any, Any]
    ]:
        """Runs the action of the agent whose turn it is.

        Returns:
            The observation of the next agent, the reward of the agent that has acted,
            terminated and truncated (``"__all__"``), and the info.

        Raises:
            InvalidArgument: it is another agent's turn, or no episode runs.
            SchemaMismatch: see `CompilerEnv.step`.
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
        over = {"__all__": outcome.terminated}, {"__all__": outcome.truncated}
        agent, observation, info = actor, self._last, outcome.info
        if outcome.error is not None:
            rewards = {actor: self.failure_reward}
            return {actor: observation}, rewards, *over, {actor: info}
        if not outcome.was_over:
            agent, observation, info = self._observe(outcome, actor)
        self.check.reward(outcome.reward)
        if not (outcome.terminated or outcome.truncated):
            self._turn = agent
        rewards = {actor: outcome.reward}
        return {agent: observation}, rewards, *over, {agent: info}

    def close(self) -> None:
        """Requests the compiler to exit, and kills it if it still runs 2 s later."""
        self._turn = None
        self._session.close()
        self.check.report()

    def _observe(
        self, outcome: Outcome, default: str = ""
    ) -> tuple[str, Any, dict[str, Any]]:
        agent = outcome.agent or default
        if agent not in self._readers:
            raise SchemaMismatch(
                f"the compiler asks for agent {agent!r:.200}; the agents are"
                f" {', '.join(self._readers)}"
            )
        reader = self._readers[agent]
        observation, rest = reader(outcome.features)
        self.check.observation(reader.space, observation)
        self._last = observation
        return agent, observation, {**rest, **outcome.info}
