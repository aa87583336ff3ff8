# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Gymnasium environment mlbridge/SmallestCode-v0, and its training."""

import json
import os
import signal
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import onnx
import pytest

pytest.importorskip("stable_baselines3", reason="needs scripts/make-venv train")

from gymnasium.utils.env_checker import check_env

import mlbridge.envs  # noqa: F401 (registers the environment)
from mlbridge.errors import InvalidArgument, Malformed, SchemaMismatch
from mlbridge_optimizations.corpus.toolchain import CLANG, UNOPTIMISED, run
from mlbridge_optimizations.smallest_code.environment import SmallestCodeEnv
from mlbridge_optimizations.smallest_code.search import Progress, search
from mlbridge_optimizations.smallest_code.searched import SearchedProgram
from phase_ordering import PLUGIN
from programs import SCHEMES, Started, run_cli, status_of, until
from test_smallest_code import write_project

Policy = Callable[[dict[str, Any], dict[str, Any]], int]
"""Maps an observation and an info to an action."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> SearchedProgram:
    """A program after a search with a time limit of 0."""
    project = tmp_path_factory.mktemp("shapes")
    write_project(project)
    folder = project / "search"
    run_cli(
        *("search", "smallest-code", "--seconds", 0, "--plugin", PLUGIN),
        *("--folder", folder, "--out", project / "none.txt"),
        *("--", "make", "-s", "-C", project, "shapes"),
    )
    return SearchedProgram.open(folder)


def made(program: SearchedProgram, **settings: Any) -> SmallestCodeEnv:
    return SmallestCodeEnv([program.folder], plugin=PLUGIN, **settings)


def as_llvm(observation: dict[str, Any], info: dict[str, Any]) -> int:
    return int(info["default"])


def reversing(number: int) -> Policy:
    """Returns a policy that differs from LLVM in one decision."""
    steps = count()

    def policy(observation: dict[str, Any], info: dict[str, Any]) -> int:
        return int(info["default"]) ^ (next(steps) == number)

    return policy


def play(
    env: SmallestCodeEnv, policy: Policy = as_llvm
) -> tuple[float, dict[str, Any], list[dict[str, Any]]]:
    """Plays an episode. Returns the return, the last info and all earlier infos."""
    observation, info = env.reset()
    infos, total, is_over = [], 0.0, False
    while not is_over:
        infos.append(info)
        action = policy(observation, info)
        observation, reward, terminated, truncated, info = env.step(action)
        total += reward
        is_over = terminated or truncated
        assert is_over or reward == 0
    assert terminated
    assert not any(value.any() for value in observation.values())
    return total, info, infos


def trials(program: SearchedProgram, folder: Path, decision: str) -> Progress:
    """Returns a search's sizes, with LLVM's decisions and with one other decision."""
    start, out = folder / "start.txt", folder / "out.txt"
    start.write_text(decision)
    found = search(program.module, out, plugin=PLUGIN, seconds=0, start=start)
    assert found is not None
    return found


def test_it_is_an_environment_of_gymnasium(program: SearchedProgram) -> None:
    spec = gymnasium.spec("mlbridge/SmallestCode-v0")
    assert spec.entry_point == f"{SmallestCodeEnv.__module__}:SmallestCodeEnv"
    settings: dict[str, Any] = {"programs": [program.module], "plugin": PLUGIN}
    with gymnasium.make("mlbridge/SmallestCode-v0", **settings) as env:
        check_env(env.unwrapped, skip_render_check=True)
    with closing(
        gymnasium.make_vec("mlbridge/SmallestCode-v0", num_envs=2, **settings)
    ) as envs:
        observations, _ = envs.reset(seed=1)
        assert observations["callee_uses"].shape == (2, 1)
        envs.step(envs.action_space.sample())


@pytest.mark.parametrize("spec", SCHEMES)
def test_llvms_decisions_give_the_stock_size(
    program: SearchedProgram, spec: str
) -> None:
    def policy(observation: dict[str, Any], info: dict[str, Any]) -> int:
        assert env.observation_space.contains(observation)
        assert observation["inlining_default"] == info["default"]
        # The linker keeps one of two copies of this function.
        if info["callee"] == "_ZNK5StackIdE3sumEv":
            files.append(int(observation["callee_files"][0]))
        return as_llvm(observation, info)

    files: list[int] = []
    with closing(made(program, spec=spec.partition("+")[0])) as env:
        for _ in range(2):
            total, info, infos = play(env, policy)
            assert total == 0
            assert info["text_size"] == info["stock_text_size"]
            assert info["credits"] == [0.0] * len(infos)
            assert info["decisions"] == len(infos)
        # An abandoned episode does not affect the next episode.
        env.reset()
        env.step(1 - int(infos[0]["default"]))
        assert play(env)[0] == 0
    assert set(files) == {2}


def test_a_reversed_decision_has_the_size_of_its_trial(
    program: SearchedProgram, tmp_path: Path
) -> None:
    with closing(made(program)) as env:
        _, stock, sites = play(env)
        sizes = []
        for number, site in enumerate(sites):
            total, info, _ = play(env, reversing(number))
            saved = stock["text_size"] - info["text_size"]
            assert total == pytest.approx(saved / stock["text_size"])
            # Only this decision has an effect.
            assert set(np.flatnonzero(info["credits"])) <= {number}
            credit = info["credits"][number]
            sizes.append((info["text_size"], number, credit, site))
    size, _, credit, site = min(sizes, key=lambda one: one[:2])
    assert size < stock["text_size"]
    assert credit > 0
    how = "will not be inlined" if site["default"] else "inlined"
    line = (
        f"x: '{site['callee']}' {how} into '{site['caller']}' at callsite"
        f" {site['location']};\n"
    )
    found = trials(program, tmp_path, line)
    assert (found.stock, found.best) == (stock["text_size"], size)


def test_mistakes_are_explained(program: SearchedProgram, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="expected programs, found none"):
        SmallestCodeEnv([], plugin=PLUGIN)
    with pytest.raises(InvalidArgument, match="absent: expected a module of bitcode"):
        SmallestCodeEnv([tmp_path / "absent"], plugin=PLUGIN)
    with pytest.raises(InvalidArgument, match=r"has no search\.json"):
        SmallestCodeEnv([tmp_path], plugin=PLUGIN)
    broken = tmp_path / "broken.bc"
    broken.write_text("nonsense")
    bare = tmp_path / "bare.bc"
    options = [*UNOPTIMISED, "-x", "c", "-emit-llvm", "-c", "-", "-o", str(bare)]
    run([CLANG, *options], text="int main(void) { return 0; }\n")
    programs = [broken, bare, program.folder]
    with closing(SmallestCodeEnv(programs, plugin=PLUGIN)) as env:
        with pytest.raises(Malformed, match=r"broken\.bc': expected LLVM IR"):
            env.reset(options={"program": broken})
        with pytest.raises(InvalidArgument, match=r"found none; compile with -Rpass"):
            env.reset(options={"program": bare})
        for wrong in ({"program": "other"}, {"module": "x"}):
            with pytest.raises(InvalidArgument, match="expected the option 'program'"):
                env.reset(options=wrong)
        for action, problem in ((2, InvalidArgument), (0.5, SchemaMismatch)):
            env.reset(options={"program": program.folder})
            with pytest.raises(problem, match=r"action.* expected"):
                env.step(action)
        assert env.starts == 1
        counts = program.callee_files.read_text()
        program.callee_files.write_text("none f\n")
        try:
            with pytest.raises(Malformed, match=r"callee-files\.txt: line 1: expected"):
                env.reset(options={"program": program.folder})
        finally:
            program.callee_files.write_text(counts)


def test_a_compiler_that_dies_truncates_the_episode(program: SearchedProgram) -> None:
    with closing(made(program)) as env:
        env.reset()
        assert env.pid is not None
        os.kill(env.pid, signal.SIGKILL)
        _, reward, terminated, truncated, info = env.step(0)
        assert (reward, terminated, truncated) == (-1.0, False, True)
        assert info["error"].startswith("PeerClosed: ")
        assert "signal 9" in info["error"] or "SIGKILL" in info["error"]
        assert play(env)[0] == 0
        assert env.starts == 2


def test_a_trainer_that_dies_ends_the_compiler(program: SearchedProgram) -> None:
    code = """
import sys, time
from mlbridge_optimizations.smallest_code.environment import SmallestCodeEnv

env = SmallestCodeEnv([sys.argv[1]], plugin=sys.argv[2])
env.reset()
print(env.pid, flush=True)
time.sleep(60)
"""
    with Started(code, program.folder, PLUGIN) as trainer:
        pid = int(trainer.stdout.readline())
        trainer.kill()
        until(lambda: status_of(pid)[1:2] in ([], ["Z"]), "the compiler still runs")


@pytest.mark.parametrize("algo", ["ppo", "ars"])
def test_a_trained_model_decides_in_the_compiler(
    program: SearchedProgram, tmp_path: Path, algo: str
) -> None:
    out = tmp_path / algo
    common = [program.folder, "--plugin", PLUGIN]
    run_cli(
        *("train", "smallest-code-policy", *common, "--out", out, "--algo", algo),
        *("--steps", 128, "--rollout", 64, "--hidden", 16),
    )
    saved = json.loads((out / "settings.json").read_text())
    assert saved["gamma"] == 1
    model = onnx.load(out / "model.onnx")
    assert [output.name for output in model.graph.output] == ["inlining_decision"]
    # The plug-in sends the same features as in the training of searched decisions.
    calls = program.record(f"onnx:{out / 'model.onnx'}", PLUGIN, 2)
    assert {one.name for one in model.graph.input} == set(calls.names)
    if algo == "ppo":
        evaluate = ["evaluate", "smallest-code-policy", out, *common]
        run_cli(*evaluate, "--episodes", 2, "--json", tmp_path / "found.json")
        found = json.loads((tmp_path / "found.json").read_text())
        assert found["episodes"]["LLVM"] == [1.0, 1.0]
        assert found["episodes"]["always"][0] != 1
