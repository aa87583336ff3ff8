# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM's advisors as Gymnasium environments, which run stock clang and llc."""

import os
import re
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

import mlbridge
import mlbridge.envs
from mlbridge.envs import MLGOEviction, MLGOInliner, MLGOPriority
from mlbridge.envs.machine_code import text_size
from mlbridge.interactive.advisors import Priority
from programs import run_program, run_python
from stock_llvm import CLANG, LLC, assert_gone, compiler_of, needs_llvm

pytestmark = [needs_llvm, pytest.mark.usefixtures("leaves_nothing")]

MODULES = {"MLGOInliner": "calls", "MLGOEviction": "pressure", "MLGOPriority": "calls"}
FEATURES = {"MLGOInliner": 38, "MLGOEviction": 21, "MLGOPriority": 3}


@pytest.fixture(params=MODULES)
def env(request: pytest.FixtureRequest, sources: Path) -> Iterator[Any]:
    """Each environment, with two modules that need decisions and one without any."""
    first = sources / f"{MODULES[request.param]}.c"
    second = sources / "second.c"
    text = first.read_text().replace("30", "17").replace("q = p[14]", "q = n")
    second.write_text(text)
    modules = [first, second, sources / "nothing.c"]
    made: Any = gymnasium.make(f"mlbridge/{request.param}-v0", modules=modules)
    yield made
    made.close()


def legal(env: Any, info: dict[str, Any]) -> Any:
    return env.action_space.sample(info.get("action_mask"))


def finish(env: Any, info: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    """Plays an episode of random legal actions.

    Returns the return and the last info.
    """
    total, over = 0.0, False
    while not over:
        observation, reward, terminated, truncated, info = env.step(legal(env, info))
        assert observation in env.observation_space
        assert not truncated
        total, over = total + reward, terminated
        assert over or reward == 0.0
    return total, info


def always(action: int, _: mlbridge.Features) -> int:
    return action


def test_an_id_with_its_module_needs_no_import() -> None:
    done = run_python(
        "import gymnasium\n"
        "gymnasium.make('mlbridge.envs:mlbridge/MLGOInliner-v0', modules=[])"
    )
    assert "InvalidArgument: expected modules to compile" in done.stderr


def test_they_are_environments(env: Any) -> None:
    check_env(env.unwrapped)


def test_spaces_are_llvms(env: Any) -> None:
    space = env.observation_space
    assert isinstance(space, spaces.Dict)
    assert space.contains(space.sample())
    name = type(env.unwrapped).__name__
    assert len(space.spaces) == FEATURES[name]
    for box in space.values():
        assert isinstance(box, spaces.Box)
        assert box.dtype in (np.int64, np.float32)
    assert {box.shape for box in space.values()} == (
        {(1, 33), (1,)} if name == "MLGOEviction" else {(1,)}
    )
    expected = {
        "MLGOInliner": spaces.Discrete(2),
        "MLGOEviction": spaces.Discrete(33),
        "MLGOPriority": spaces.Box(0, 1, (1,), np.float32),
    }
    assert env.action_space == expected[name]


def test_episodes(env: Any) -> None:
    env.action_space.seed(1)
    seen = set()
    for seed in range(6):
        observation, info = env.reset(seed=seed)
        assert observation in env.observation_space
        assert info["decisions"] == 0
        seen.add(Path(info["module"]).stem)
        total, last = finish(env, info)
        assert last["decisions"] > 1
        stock, size = last["stock_text_size"], last["text_size"]
        assert total == (stock - size) / stock
        with pytest.raises(gymnasium.error.ResetNeeded):
            env.unwrapped.step(legal(env, last))
    # The module without decisions is skipped.
    assert len(seen) == 2
    assert "nothing" not in seen


def llvm_size(object_file: Path) -> int:
    """Returns the bytes of machine code in an object file, measured by LLVM's tool."""
    printed = run_program(["llvm-size-22", "-A", object_file], check=True).stdout
    return sum(map(int, re.findall(r"^\.text\S* +(\d+)", printed, re.MULTILINE)))


def test_the_reward_is_what_is_saved(sources: Path) -> None:
    """The reward agrees with llvm-size's measure of objects that clang writes."""
    module = sources / "calls.c"
    env = MLGOInliner([module])
    ours, stock = sources / "ours.o", sources / "stock.o"
    run_program([CLANG, "-Oz", "-c", module, "-o", stock], check=True)
    rewards = []
    for action in (0, 1):
        env.reset()
        done = False
        while not done:
            _, reward, done, _, info = env.step(action)
        command = [CLANG, "-Oz", "-c", str(module), "-o", str(ours)]
        mlbridge.compile_with_policy(command, inliner=partial(always, action))
        assert info["text_size"] == llvm_size(ours)
        assert info["stock_text_size"] == llvm_size(stock)
        assert reward == 1 - llvm_size(ours) / llvm_size(stock)
        rewards.append(reward)
    assert rewards[0] != rewards[1]


def test_llvms_own_decisions_are_worth_nothing(sources: Path) -> None:
    env = MLGOInliner([sources / "calls.c"], include_default=True)
    observation, _ = env.reset()
    done = False
    while not done:
        action = int(observation["inlining_default"][0])
        observation, reward, done, _, _ = env.step(action)
    assert reward == 0.0


def test_masks(sources: Path) -> None:
    env = MLGOEviction([sources / "pressure.c"])
    observation, info = env.reset()
    for _ in range(20):
        mask = info["action_mask"]
        assert mask.dtype == np.int8
        assert env.action_masks().dtype == np.bool_
        assert mask.tolist() == observation["mask"][0].tolist()
        assert mask.tolist() == env.action_masks().tolist()
        assert mask.any()
        observation, _, done, _, info = env.step(env.action_space.sample(mask))
        assert not done
    env.close()


@pytest.mark.parametrize(
    ("kind", "action", "says"),
    [
        (MLGOEviction, 0, "where 'mask' is 1"),
        (MLGOInliner, 2, "expected 0 or 1, found 2"),
        (MLGOPriority, np.array([np.nan], np.float32), "found"),
        (MLGOPriority, np.array([1.1], np.float32), "found"),
    ],
)
def test_an_illegal_action_ends_the_episode(
    sources: Path, kind: Any, action: Any, says: str
) -> None:
    module = sources / f"{MODULES[kind.__name__]}.c"
    env = kind([module], illegal_action_penalty=0.5)
    _, info = env.reset()
    if kind is MLGOEviction:
        assert not info["action_mask"][0]
    observation, reward, terminated, truncated, info = env.step(action)
    assert (reward, terminated, truncated) == (-0.5, True, False)
    assert says in info["illegal_action"]
    assert not any(value.any() for value in observation.values())
    env.reset()
    env.close()


def test_priorities_are_shares(sources: Path) -> None:
    """0 and 1 are legal. 1 is LLVM's highest priority."""
    env = MLGOPriority([sources / "calls.c"])
    for value in (0.0, 1.0, 2.0**-32):
        env.reset()
        _, _, terminated, _, info = env.step(np.array([value], np.float32))
        assert not terminated
        assert info["decisions"] == 1
    assert Priority.LARGEST == 2**32 - 256
    env.close()


def test_a_compiler_that_hangs(sources: Path) -> None:
    env = MLGOEviction([sources / "pressure.c"], decision_timeout=0.7)
    _, info = env.reset()
    assert env._compiler is not None
    group = env._compiler.pid
    os.kill(compiler_of(group), signal.SIGSTOP)
    action = int(info["action_mask"].argmax())
    _, reward, terminated, truncated, info = env.step(action)
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert "sent no request for" in info["timeout"]
    assert_gone(group)


def test_a_compiler_that_is_killed(sources: Path) -> None:
    env = MLGOEviction([sources / "pressure.c"])
    _, info = env.reset()
    assert env._compiler is not None
    os.kill(compiler_of(env._compiler.pid), signal.SIGKILL)
    action = int(info["action_mask"].argmax())
    with pytest.raises(mlbridge.CompilerFailed, match="signal 9"):
        env.step(action)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(action)
    env.reset()
    env.close()


def test_modules_by_name(sources: Path) -> None:
    paths = [str(sources / f"{name}.c") for name in ("calls", "nothing")]
    env = MLGOInliner(paths)
    _, info = env.reset(options={"module": paths[0]})
    assert info["module"] == paths[0]
    with pytest.raises(mlbridge.InvalidArgument, match="nothing to decide"):
        env.reset(options={"module": paths[1]})
    with pytest.raises(mlbridge.InvalidArgument, match="not one of the modules"):
        env.reset(options={"module": "other.c"})
    with pytest.raises(mlbridge.InvalidArgument, match="nothing to decide"):
        MLGOInliner([paths[1]]).reset()


def test_bitcode_in_llc(sources: Path) -> None:
    source, module = sources / "pressure.c", str(sources / "pressure.bc")
    run_program([CLANG, "-O2", "-emit-llvm", "-c", source, "-o", module], check=True)
    command = [LLC, "-O2", "-filetype=obj", "{module}", "-o", "-"]
    env = MLGOEviction([module], command=command)
    _, info = env.reset()
    _, last = finish(env, info)
    assert last["text_size"] > 100


def test_wrong_arguments(sources: Path) -> None:
    module = str(sources / "calls.c")
    for modules, command, says in (
        ([], None, "expected modules"),
        ([module], [CLANG, "-c"], "expected {module} in the command"),
        ([module], [CLANG, "-O0", "-c", "{module}", "-o", "-"], "use -O1 or higher"),
    ):
        with pytest.raises(mlbridge.InvalidArgument, match=says):
            MLGOInliner(modules, command=command)
    broken = sources / "broken.c"
    broken.write_text("int")
    with pytest.raises(mlbridge.CompilerFailed, match=r"broken\.c"):
        MLGOInliner([broken]).reset()
    assembly = [CLANG, "-O2", "-S", "{module}", "-o", "-"]
    env = MLGOInliner([module], command=assembly)
    _, info = env.reset()
    with pytest.raises(mlbridge.Malformed, match=r"calls\.c: expected an ELF object"):
        finish(env, info)


def test_code_that_is_no_elf() -> None:
    for code in (b"", b"\x7fELF", b"\x7fELF" + bytes(60)):
        with pytest.raises(mlbridge.Malformed, match="expected an ELF object"):
            text_size(code, "x.c")


def test_many_at_once(sources: Path) -> None:
    envs = gymnasium.make_vec(
        "mlbridge/MLGOInliner-v0",
        num_envs=2,
        vectorization_mode="async",
        modules=[str(sources / "calls.c")],
    )
    envs.reset(seed=1)
    ended = 0
    for _ in range(8):
        _, rewards, terminated, _, _ = envs.step(envs.action_space.sample())
        assert rewards.shape == (2,)
        ended += int(terminated.sum())
    assert ended >= 2
    envs.close()
