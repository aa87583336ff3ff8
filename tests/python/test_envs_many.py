# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several compilers at once, and several agents in one compiler."""

import os
import time
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="needs scripts/make-venv train")

from gymnasium import spaces

import mlbridge
from compilers import COUNT_SPACES, PROGRAM, SPILLS, SPILLS_SPACES
from mlbridge.envs import CompilerEnv, make_vec
from stock_llvm import processes

pytestmark = pytest.mark.usefixtures("tag")


@pytest.mark.parametrize("spec", ["pipe", "shm"])
def test_many_are_as_each_alone(spec: str, tag: str) -> None:
    """The same seeds and actions give the same episodes."""
    many = make_vec(3, SPILLS, spec, **SPILLS_SPACES)
    alone = [CompilerEnv(SPILLS, spec, **SPILLS_SPACES) for _ in range(3)]
    observations, _ = many.reset(seed=11)
    for i, env in enumerate(alone):
        np.testing.assert_array_equal(observations[i], env.reset(seed=11 + i)[0])
    assert len(processes(tag)) == 6
    rng = np.random.default_rng(0)
    is_over = [False] * 3
    episodes = 0
    for _ in range(100):
        actions = rng.integers(0, 5, 3)
        found = many.step(actions)
        for i, env in enumerate(alone):
            if is_over[i]:
                observation, info = env.reset()
                reward, over = 0.0, False
                episodes += 1
            else:
                observation, reward, over, _, info = env.step(actions[i])
            np.testing.assert_array_equal(found[0][i], observation)
            assert (found[1][i], found[2][i], found[3][i]) == (reward, over, False)
            for key, value in info.items():
                assert found[4][key][i] == value
            is_over[i] = over
    assert episodes > 5
    many.close()
    for env in alone:
        env.close()


def test_they_work_at_the_same_time() -> None:
    many = make_vec(4, [PROGRAM], "pipe", **COUNT_SPACES)
    many.reset(options={"at": 1, "do": "nap"})
    start = time.monotonic()
    many.step(np.zeros(4, np.int64))
    assert 0.3 <= time.monotonic() - start < 0.9, "each takes 0.3 s"
    many.close()


def test_one_of_many_fails() -> None:
    many = make_vec(3, [PROGRAM, "{spec}"], "shm", **COUNT_SPACES)
    many.reset()
    pids = [env.pid for env in many.envs]
    assert pids[1] is not None
    os.kill(pids[1], 9)
    actions = np.zeros(3, np.int64)
    observations, _, terminated, truncated, infos = many.step(actions)
    assert observations["count"].tolist() == [1, 0, 1]
    assert terminated.tolist() == [False] * 3
    assert truncated.tolist() == [False, True, False]
    assert "SIGKILL" in infos["error"][1]
    observations = many.step(actions)[0]
    assert observations["count"].tolist() == [2, 0, 2]
    kept = [env.pid == pid for env, pid in zip(many.envs, pids, strict=True)]
    assert kept == [True, False, True]
    assert many.step(actions)[0]["count"].tolist() == [3, 1, 3]
    many.close()


def test_none_is_not_many() -> None:
    with pytest.raises(mlbridge.InvalidArgument):
        make_vec(0, [PROGRAM], **COUNT_SPACES)


def test_stable_baselines() -> None:
    pytest.importorskip("stable_baselines3", reason="needs scripts/make-venv train")
    from mlbridge.envs import CompilerVecEnv

    many: Any = CompilerVecEnv(2, [PROGRAM], "shm", **COUNT_SPACES)
    many.seed(4)
    assert many.reset()["count"].tolist() == [0, 0]
    assert [info["seed"] for info in many.reset_infos] == [4, 5]
    for step in range(1, 10):
        observations, rewards, dones, infos = many.step(np.zeros(2, np.int64))
        assert observations["count"].tolist() == [step] * 2
        assert rewards.tolist() == [step] * 2
        assert not dones.any()
    observations, rewards, dones, infos = many.step(np.zeros(2, np.int64))
    assert dones.all()
    assert observations["count"].tolist() == [0, 0]
    assert rewards.tolist() == [10, 10]
    assert infos[0]["terminal_observation"] == {"count": 10}
    assert infos[0]["TimeLimit.truncated"] is False
    many.set_options({"at": 1, "do": "truncate"})
    many.reset()
    assert many.step(np.zeros(2, np.int64))[3][1]["TimeLimit.truncated"] is True
    assert many.get_attr("starts") == [1, 1]
    many.close()


def multi_agent(
    command: list[str], agents: list[str], each: dict[str, Any], **settings: Any
) -> Any:
    """Returns an environment whose agents all have the same spaces."""
    pytest.importorskip("ray", reason="needs scripts/make-venv train")
    from mlbridge.envs import MultiAgentCompilerEnv

    per_agent: dict[str, Any] = {
        f"{name}s": dict.fromkeys(agents, space) for name, space in each.items()
    }
    return MultiAgentCompilerEnv(command, "pipe", **per_agent, **settings)


def spills(**settings: Any) -> Any:
    command = [*SPILLS, "--classes=2"]
    return multi_agent(command, ["int", "float"], SPILLS_SPACES, **settings)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_agents_take_turns() -> None:
    env = spills()
    observations, infos = env.reset(seed=2)
    turns, total = [], 0.0
    while True:
        (agent,) = observations
        assert list(infos) == [agent]
        assert observations[agent] in SPILLS_SPACES["observation_space"]
        turns.append(agent)
        observations, rewards, terminated, truncated, infos = env.step({agent: 2})
        assert list(rewards) == [agent], "only the agent that acted is rewarded"
        total += rewards[agent]
        assert truncated == {"__all__": False}
        if terminated["__all__"]:
            break
    assert set(turns) == {"int", "float"}
    assert turns != sorted(turns), "the function determines the order"
    assert total <= -1
    (last,) = infos.values()
    assert last["cost"] / last["optimum"] == pytest.approx(-total)
    with pytest.raises(mlbridge.InvalidArgument, match="reset"):
        env.step({"int": 0})
    env.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_values_of_agents_are_checked(caplog: pytest.LogCaptureFixture) -> None:
    env = spills(check=True)
    observations, _ = env.reset(seed=2)
    (agent,) = observations
    env.step({agent: 2})
    assert (env.check.observations, env.check.rewards) == (2, 1)
    assert (env.check.outside, env.check.non_finite) == (0, 0)
    env.close()
    assert caplog.records == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_whose_turn_it_is() -> None:
    env = spills()
    with pytest.raises(mlbridge.InvalidArgument, match="no episode has begun"):
        env.step({"int": 0})
    ((agent, _),) = env.reset(seed=2)[0].items()
    other = "float" if agent == "int" else "int"
    for wrong in ({other: 0}, {agent: 0, other: 0}, {}):
        with pytest.raises(mlbridge.InvalidArgument, match=f"turn of '{agent}'"):
            env.step(wrong)
    env.step({agent: 0})
    os.kill(env.pid, 9)
    ((agent, _),) = env.reset(seed=2)[0].items()
    os.kill(env.pid, 9)
    observations, rewards, _, truncated, infos = env.step({agent: 0})
    assert list(observations) == [agent]
    assert (rewards, truncated) == ({agent: 0.0}, {"__all__": True})
    assert "SIGKILL" in infos[agent]["error"]
    env.reset()
    env.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_episode_of_agents_that_is_over_at_once() -> None:
    """If the compiler names no agent, the first agent may end the episode."""
    env = multi_agent([PROGRAM], ["first", "second"], COUNT_SPACES)
    for _ in range(2):
        observations, _ = env.reset(options={"at": 0, "do": "done"})
        assert observations == {"first": {"count": 0}}
        assert env.step({"first": 1})[:4] == (
            {"first": {"count": 0}},
            {"first": 0.0},
            {"__all__": True},
            {"__all__": False},
        )
        with pytest.raises(mlbridge.InvalidArgument, match="the episode is over"):
            env.step({"first": 1})
    with pytest.raises(mlbridge.SchemaMismatch, match="asks for agent ''"):
        env.reset()
    env.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_agents_that_nobody_knows() -> None:
    env = multi_agent([*SPILLS, "--classes=2"], ["vector"], SPILLS_SPACES)
    with pytest.raises(mlbridge.SchemaMismatch, match="the agents are vector"):
        env.reset()
    env.close()
    some: dict[str, Any] = {"vector": spaces.Discrete(2)}
    with pytest.raises(mlbridge.InvalidArgument, match="each agent"):
        type(env)(SPILLS, observation_spaces=some, action_spaces={})
