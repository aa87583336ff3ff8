# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Gymnasium environment mlbridge/PhaseOrdering-v0, which runs a stock opt."""

import json
import os
import re
import shlex
import signal
import subprocess
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import mlbridge.envs
from mlbridge.doctor import find_llvm_plugin
from mlbridge.envs.machine_code import text_size
from mlbridge.errors import InvalidArgument, ModelError, OSFailure
from mlbridge_optimizations import corpus
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.phase_ordering.environment.actions import (
    Action,
    ActionSpace,
)
from mlbridge_optimizations.phase_ordering.environment.compiler import (
    EpisodeOptions,
    ModuleFailed,
    SequenceFailed,
    SequenceRunner,
)
from mlbridge_optimizations.phase_ordering.environment.environment import (
    PhaseOrderingEnv,
)
from mlbridge_optimizations.phase_ordering.environment.runners import Runners
from programs import ROOT, needs_grpc

VOCABULARY = ROOT / "tests/lit/Inputs/vocabulary.json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("corpus")
    assert corpus.fetch(into, programs=["bzip2"]).failed == {}
    return into


@pytest.fixture(scope="module")
def huffman(folder: Path) -> Path:
    return folder / "bzip2" / "huffman.c.bc"


def made(**settings: Any) -> Any:
    return gymnasium.make("mlbridge/PhaseOrdering-v0", **settings)


def episode(env: gymnasium.Env[Any, Any], actions: list[int]) -> list[dict[str, Any]]:
    """Returns the info after each action, up to the end of the episode."""
    infos = []
    for action in actions:
        _, _, terminated, truncated, info = env.step(action)
        infos.append(info)
        if terminated or truncated:
            break
    return infos


@pytest.mark.filterwarnings("ignore:.*A Box observation space m")
def test_it_is_an_environment_of_gymnasium(folder: Path) -> None:
    spec = gymnasium.spec("mlbridge/PhaseOrdering-v0")
    assert spec.entry_point == f"{PhaseOrderingEnv.__module__}:PhaseOrderingEnv"
    with made(corpus=folder, max_instructions=2000) as env:
        check_env(env.unwrapped, skip_render_check=True)


def test_an_episode_ends_after_its_steps_and_adds_up(folder: Path) -> None:
    with made(corpus=folder, steps=5, times=True) as env:
        observation, first = env.reset(seed=3)
        assert set(observation) == {"histogram", "counts", "step"}
        total = 0.0
        for step in range(1, 6):
            observation, reward, terminated, truncated, info = env.step(step)
            total += float(reward)
            assert observation["step"] == step
            assert (terminated, truncated) == (step == 5, False)
        gained = (first["text_size"] - info["text_size"]) / info["oz_text_size"]
        assert total == pytest.approx(10 * gained)
        assert info["final_text_size"] == info["text_size"]
        assert {"instructions", "changed", "ir_hash", "step_ms", "emit_ms"} <= set(info)
        with pytest.raises(gymnasium.error.ResetNeeded):
            env.step(0)


def test_stock_oz_is_clang_s_but_for_ties(folder: Path, tmp_path: Path) -> None:
    with SequenceRunner(EpisodeOptions(observation=("step",))) as runner:
        for module in corpus.load(folder).modules():
            stock = runner.run(module, []).oz
            toolchain.compile_bitcode(module, tmp_path / "oz.o", "-Oz")
            clang = text_size((tmp_path / "oz.o").read_bytes(), "oz.o")
            # The plug-in compiles a copy, whose use lists have another order.
            assert stock == pytest.approx(clang, rel=0.01)


def test_sizes_are_those_of_the_object(huffman: Path, tmp_path: Path) -> None:
    sequence = [0, 1, 2, 3, 8]
    options = EpisodeOptions(observation=("step",))
    with SequenceRunner(options) as runner:
        sizes = runner.run(huffman, sequence)
        runner.write(huffman, sequence, tmp_path / "a.o")
    assert text_size((tmp_path / "a.o").read_bytes(), "a.o") == sizes.last
    with SequenceRunner(EpisodeOptions(reward="none")) as runner:
        assert runner.last_size(huffman, sequence, tmp_path / "b.o") == sizes.last
    options.space.of_sequences([sequence], "whole", "").save(tmp_path / "whole.json")
    one = EpisodeOptions(str(tmp_path / "whole.json"), ("step",), steps=1)
    with SequenceRunner(one) as runner:
        assert runner.run(huffman, [0]).last == sizes.last


@pytest.mark.parametrize("observation", ["histogram", "histogram,step,actions"])
def test_observations_by_name_and_in_a_row(huffman: Path, observation: str) -> None:
    names = observation.split(",")
    seen: list[Any] = []
    for flat in (False, True):
        with made(modules=[huffman], observation=observation, flat=flat) as env:
            env.reset(seed=1)
            found, *_ = env.step(4)
            assert env.observation_space.contains(found)
            seen.append(found)
    # A row has the features in the order of the option, not of their names.
    row = [seen[0]] if len(names) == 1 else [seen[0][name] for name in names]
    np.testing.assert_array_equal(np.concatenate(row), seen[1])


def test_the_embedding_is_what_the_plugin_prints(huffman: Path, tmp_path: Path) -> None:
    plugin = find_llvm_plugin()
    assert plugin is not None, "scripts/build release"
    seen, state = [], tmp_path / "state.bc"
    observed = {"observation": "embedding,counts", "vocabulary": VOCABULARY}
    with made(modules=[huffman], **observed, reward="none", steps=3) as env:
        for observation in (env.reset()[0], env.step(0)[0], env.step(4)[0]):
            assert env.observation_space.contains(observation)
            seen.append(observation["embedding"])
    for taken, embedding in enumerate(seen):
        pipeline = ActionSpace.load("oz").pipeline([0, 4][:taken])
        toolchain.run([toolchain.OPT, f"-passes={pipeline}", huffman, "-o", state])
        _, said = toolchain.run(
            [
                *(toolchain.OPT, f"-load-pass-plugin={plugin}", "-disable-output"),
                f"-mlbridge-ir2vec-vocabulary={VOCABULARY}",
                *("-passes=print<mlbridge-ir2vec>", state),
            ]
        )
        module = re.search(r"^ *module, .*?\[ (.*?) \]", said.decode(), re.M)
        assert module is not None, said.decode()[:1000]
        expected = np.array(module[1].split(), float)
        np.testing.assert_allclose(embedding, expected, rtol=1e-4)
    assert not np.array_equal(*seen[:2])


@pytest.mark.parametrize(("space", "count"), [("odg", 25), ("passes", 71)])
def test_the_other_action_spaces(huffman: Path, space: str, count: int) -> None:
    options = {"observation": "actions,step", "steps": count, "render_mode": "ansi"}
    with made(modules=[huffman], action=space, **options) as env:
        assert env.action_space.n == count
        env.reset()
        infos = episode(env, list(range(count))[::-1])
        assert len(infos) == count
        assert not any("error" in info for info in infos)
        assert infos[-1]["final_text_size"] == infos[-1]["text_size"] > 0
        shown = env.render()
        names = [action.name for action in ActionSpace.load(space).actions]
        assert all(name.split()[0][:10] in shown for name in names)


GRPC = pytest.param("grpc", marks=needs_grpc)


@needs_grpc
def test_by_grpc_it_is_the_same(huffman: Path) -> None:
    found = []
    options = {"observation": "histogram,counts,actions", "steps": 4}
    for spec in ("shm", "grpc"):
        with made(modules=[huffman], spec=spec, **options) as env:
            found.append([env.reset(seed=1), *(env.step(a) for a in (0, 3, 7, 1))])
    for local, remote in zip(*found, strict=True):
        assert local[1:] == remote[1:]
        for name, feature in local[0].items():
            np.testing.assert_array_equal(feature, remote[0][name])
    assert found[1][-1][2]


def test_the_same_seed_draws_the_same_modules(folder: Path) -> None:
    drawn = []
    for seed in (5, 5, 6):
        with PhaseOrderingEnv(folder, "step", reward="none") as env:
            infos = [env.reset(seed=seed)[1], *(env.reset()[1] for _ in range(9))]
            drawn.append([info["module"] for info in infos])
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) > 1


def test_stop_ends_an_episode(huffman: Path) -> None:
    with made(modules=[huffman], stop=True, render_mode="ansi") as env:
        env.reset()
        assert env.action_space.n == 16
        infos = episode(env, [0, 15, 3])
        assert len(infos) == 2
        assert infos[-1]["sequence"] == [0]
        shown = env.render()
        for text in ("attributes", "stop", f"{infos[0]['text_size']:,}"):
            assert text in shown


def test_best_is_by_the_best_state(huffman: Path) -> None:
    with PhaseOrderingEnv(modules=[huffman], steps=6, final="best") as env:
        env.reset()
        infos = episode(env, [0, 1, 2, 12, 12, 12])
        assert infos[-1]["final_text_size"] == min(info["text_size"] for info in infos)


def share(info: dict[str, Any], measure: str) -> float:
    return float(info[measure] / info[f"oz_{measure}"])


@pytest.mark.parametrize("final", ["last", "best"])
@pytest.mark.parametrize("sequence", [[], [0, 1, 2, 3], [2, 12, 12, 12, 12, 12]])
@pytest.mark.parametrize(
    "weights",
    [{"text_size": 10.0}, {"text_size": 10.0, "mca_cycles": 0.5, "instructions": 1.0}],
)
def test_a_return_may_be_relative_to_oz(
    huffman: Path, final: str, sequence: list[int], weights: dict[str, float]
) -> None:
    totals: dict[str, float] = {}
    # The default weight of a measure is 1.
    named = (name if w == 1 else f"{name}:{w}" for name, w in weights.items())
    reward = ",".join(named).replace("_", "-")
    options = {"observation": "step", "reward": reward, "steps": 6, "final": final}
    for baseline in ("start", "oz"):
        with made(modules=[huffman], baseline=baseline, **options) as env:
            states = [env.reset()[1]]
            # The best state may precede the episode, which starts after the actions of
            # `sequence`.
            states += episode(env, sequence)
            env.reset(options={"sequence": sequence})
            totals[baseline], is_over = 0.0, False
            while not is_over:
                _, step, is_over, _, info = env.step(4)
                totals[baseline] += step
                states.append(info)
    values = [
        sum(w * (1 - share(state, name)) for name, w in weights.items())
        for state in states
    ]
    begun = values[len(sequence)]
    end = values[-1] if len(sequence) < 6 else begun
    if final == "best":
        begun, end = max(values[: len(sequence) + 1]), max(values)
    assert totals["start"] == pytest.approx(end - begun)
    assert totals["oz"] == pytest.approx(end)
    assert totals["oz"] != pytest.approx(totals["start"])


@pytest.mark.parametrize("name", ["poset-rl", "poset-rl-weighted"])
def test_the_reward_of_poset_rl(huffman: Path, name: str) -> None:
    cycles = "mca_cycles" if name == "poset-rl" else "weighted_cycles"
    with made(modules=[huffman], reward=name, steps=4) as env:
        before = first = env.reset()[1]
        saved = first["text_size"] - first["oz_text_size"]
        was = first[f"oz_{cycles}"]
        is_clipped = []
        for action in (0, 1, 12, 12):
            _, reward, _, _, info = env.step(action)
            size = (before["text_size"] - info["text_size"]) / saved
            saving = (was - info[cycles]) / info[f"oz_{cycles}"]
            expected = 10 * np.clip(size, -0.2, 0.2) + 5 * np.clip(saving, -0.2, 0.2)
            assert reward == pytest.approx(expected)
            is_clipped.append(abs(size) > 0.2)
            before, was = info, info[cycles]
        assert set(is_clipped) == {True, False}


def test_failing_at_once_is_worth_oz(huffman: Path, crashing: EpisodeOptions) -> None:
    options = {"action": crashing.actions, "steps": 2, "baseline": "oz"}
    with made(modules=[huffman], **options) as env:
        env.reset()
        _, reward, terminated, truncated, info = env.step(1)
        assert "error" in info
        assert (reward, terminated, truncated) == (0, False, True)
        _, begun = env.reset()
        _, reward, _, _, info = env.step(0)
        assert reward == pytest.approx(10 * (1 - share(begun, "text_size")))


@pytest.mark.parametrize(("kept", "again"), [(1, True), (2, False), (None, False)])
def test_the_compiler_remembers_so_many_programs(
    folder: Path, kept: int | None, again: bool
) -> None:
    two = [folder / "bzip2" / name for name in ("huffman.c.bc", "compress.c.bc")]
    options = {"observation": "step", "kept_programs": kept, "times": True}
    with made(modules=two, **options) as env:
        is_emitted = []
        for module in (*two, *two):
            env.reset(options={"module": str(module)})
            is_emitted.append(env.step(0)[4]["emit_ms"] > 0)
    assert is_emitted == [True, True, again, again]


def test_several_at_once(folder: Path) -> None:
    vector = gymnasium.make_vec(
        "mlbridge/PhaseOrdering-v0", num_envs=2, corpus=folder, steps=3
    )
    with closing(vector) as envs:
        observations, _ = envs.reset(seed=1)
        assert observations["histogram"].shape == (2, 110)
        for _ in range(3):
            _, rewards, over, _, infos = envs.step(np.array([0, 1]))
        assert rewards.shape == (2,)
        assert over.all()
        assert (infos["oz_text_size"] > 0).all()


@pytest.mark.parametrize("spec", ["pipe", "shm", GRPC])
def test_a_compiler_that_dies_costs_one_episode(
    huffman: Path, spec: str, caplog: pytest.LogCaptureFixture
) -> None:
    with PhaseOrderingEnv(modules=[huffman], spec=spec, failure_reward=-1.0) as env:
        env.reset()
        env.step(0)
        assert env.pid is not None
        os.kill(env.pid, signal.SIGKILL)
        _, reward, terminated, truncated, info = env.step(3)
        assert (reward, terminated, truncated) == (-1.0, False, True)
        assert info["sequence"] == [0, 3]
        assert "PeerClosed" in info["error"]
        assert info["reproducer"] in caplog.text
        # The reproducer runs on the same module, here without a crash.
        words = ["bash", "-c", f"set -o pipefail; {info['reproducer']}"]
        subprocess.run(words, check=True, capture_output=True, timeout=60)
        assert str(huffman) in shlex.split(info["reproducer"])
        env.reset()
        assert episode(env, [0])[0]["text_size"] > 0
        assert env.starts == 2


def test_a_sequence_on_which_a_compiler_dies_says_how_to_see_it(huffman: Path) -> None:
    with SequenceRunner(EpisodeOptions(observation=("step",))) as runner:
        expected = runner.run(huffman, [0, 1])
        runner.reset(huffman)
        assert runner.pid is not None
        os.kill(runner.pid, signal.SIGKILL)
        with pytest.raises(ModelError, match="to see it alone: opt-22"):
            runner.step(huffman, [0, 1])
        assert runner.run(huffman, [0, 1]) == expected


@pytest.fixture
def crashing(tmp_path: Path) -> EpisodeOptions:
    """The first action does nothing, and the second action crashes the compiler."""
    passes = {"nothing": "no-op-module", "crash": "trigger-crash-module"}
    actions = tuple(Action(*each) for each in passes.items())
    ActionSpace("crashing", "", "", actions).save(tmp_path / "crashing.json")
    return EpisodeOptions(str(tmp_path / "crashing.json"), ("step",), "text-size", 4)


def test_sequences_that_crash_cost_themselves_only(
    huffman: Path, crashing: EpisodeOptions
) -> None:
    with SequenceRunner(crashing) as runner:
        expected = runner.run(huffman, [0])
        for number in range(5):
            with pytest.raises(SequenceFailed, match="to see it alone: opt-22") as it:
                runner.run(huffman, [0] * number + [1])
            assert it.value.kind == "crash"
            assert it.value.pipeline.endswith("trigger-crash-module")
        assert runner.run(huffman, [0]) == expected


def test_a_crash_of_many_steps_says_all_that_was_taken(
    huffman: Path, crashing: EpisodeOptions
) -> None:
    with SequenceRunner(crashing) as runner:
        runner.reset(huffman)
        runner.step(huffman, [0])
        with pytest.raises(SequenceFailed) as caught:
            runner.step(huffman, [1])
    assert caught.value.pipeline == "no-op-module,trigger-crash-module"


def test_a_time_out_is_no_crash(huffman: Path, crashing: EpisodeOptions) -> None:
    with SequenceRunner(crashing, timeout=3.0) as runner:
        runner.reset(huffman)
        assert runner.pid is not None
        os.kill(runner.pid, signal.SIGSTOP)
        with pytest.raises(SequenceFailed) as caught:
            runner.step(huffman, [0])
        assert caught.value.kind == "timeout"
        assert runner.run(huffman, [0]).last > 0


def test_a_module_that_no_compiler_survives(
    huffman: Path, crashing: EpisodeOptions, tmp_path: Path
) -> None:
    space = replace(crashing.space, prologue="trigger-crash-module")
    space.save(tmp_path / "prologue.json")
    options = replace(crashing, actions=str(tmp_path / "prologue.json"))
    with (
        SequenceRunner(options) as runner,
        pytest.raises(ModuleFailed, match="to see it alone"),
    ):
        runner.run(huffman, [0])


def test_a_failure_ends_all_compilers(huffman: Path) -> None:
    options = EpisodeOptions(observation=("step",), reward="none")
    waiting, begun = threading.Event(), []

    def work(runner: SequenceRunner, item: int) -> None:
        begun.append(item)
        runner.reset(huffman)
        if item == 0:
            assert waiting.wait(60)
            raise ValueError("no")
        assert runner.pid is not None
        os.kill(runner.pid, signal.SIGSTOP)
        waiting.set()
        # Without the interruption, this would wait for two minutes.
        with pytest.raises(SequenceFailed):
            runner.step(huffman, [0])
        with pytest.raises(OSFailure, match="no other"):
            runner.reset(huffman)

    started = time.monotonic()
    with Runners(options, 2) as runners, pytest.raises(ValueError, match="no"):
        list(runners.map(work, [0, 1, 2, 3, 4, 5]))
    assert time.monotonic() - started < 60
    assert len(begun) < 6


def test_crashes_in_a_row_end_nothing(huffman: Path, crashing: EpisodeOptions) -> None:
    with PhaseOrderingEnv(modules=[huffman], action=crashing.actions) as env:
        for _ in range(5):
            env.reset()
            assert env.step(1)[3]
        env.reset()
        assert not env.step(0)[3]


def test_a_wrong_command_line_is_raised_at_once(huffman: Path) -> None:
    env = PhaseOrderingEnv(modules=[huffman], reward="speed")
    with env, pytest.raises(mlbridge.PeerClosed):
        env.reset()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "corpus fetch"),
        ({"modules": ["nothing.bc"]}, "there is no module"),
        ({"corpus": "nowhere"}, "no manifest.json"),
        ({"observation": "histogram,colour"}, "found 'colour'"),
        ({"observation": "step,step"}, "found 'step'"),
        ({"action": "nothing"}, "action space 'nothing'"),
        ({"final": "first"}, "expected last or best"),
        ({"baseline": "o3"}, "expected start or oz"),
        ({"baseline": "oz", "reward": "none"}, "nothing beats -Oz"),
        ({"baseline": "oz", "reward": "text-size:ten"}, "found 'text-size:ten'"),
        ({"baseline": "oz", "reward": "speed"}, "found 'speed'"),
        ({"reward": "poset-rl", "baseline": "oz"}, "found last and oz"),
        ({"reward": "poset-rl", "final": "best"}, "found best and start"),
        ({"kept_programs": 0}, "expected 1 or more, found 0"),
    ],
)
def test_what_is_wrong(huffman: Path, settings: dict[str, Any], problem: str) -> None:
    if settings and "modules" not in settings and "corpus" not in settings:
        settings = {"modules": [huffman], **settings}
    with pytest.raises(InvalidArgument, match=problem):
        PhaseOrderingEnv(**settings)


def test_action_spaces(tmp_path: Path, huffman: Path) -> None:
    assert len(ActionSpace.load("oz").actions) == 15
    path = tmp_path / "mine.json"
    actions = [
        {"name": "sroa", "pipeline": "function(sroa)"},
        {"name": "gvn", "pipeline": "function(gvn)"},
    ]
    two = {"name": "two", "prologue": "always-inline", "actions": actions}
    path.write_text(json.dumps(two))
    mine = ActionSpace.load(path)
    assert mine.pipeline([1, 0]) == "always-inline,function(gvn),function(sroa)"
    with PhaseOrderingEnv(modules=[huffman], action=str(path), steps=2) as env:
        env.reset()
        assert len(episode(env, [0, 1])) == 2
