# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Register allocation: random policies, and the environments.

Random register allocation must not change the programs' outputs.

Tests one program. With MLBRIDGE_TEST_FULL=1, tests Debian's programs with a million
decisions.
"""

import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="needs scripts/make-venv train")

import mlbridge
from mlbridge import (
    CompilerFailed,
    InvalidArgument,
    Malformed,
    ModelError,
    PeerClosed,
    SchemaMismatch,
)
from mlbridge_optimizations import corpus as corpora
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.evaluation import executions
from mlbridge_optimizations.register_allocation import (
    environment,
    evaluate,
    evolve,
    fuzz,
    headroom,
    imitation,
    vocabulary,
)
from mlbridge_optimizations.register_allocation.functions import SMALLEST, Costs
from mlbridge_optimizations.register_allocation.imitation import Decisions
from mlbridge_optimizations.register_allocation.networks import (
    NETWORKS,
    EvictionNetwork,
)
from mlbridge_optimizations.register_allocation.settings import (
    Evolution,
    ImitationOptions,
    VocabularyOptions,
)
from programs import BUILD, FULL, ROOT, run_cli
from test_outputs import OVERFLOW, small_corpus

PLUGIN = BUILD / "lib/MLBridgeLLVM.so"
PRESSURE = (ROOT / "tests/lit/Inputs/pressure.c").read_text()
pytestmark = pytest.mark.skipif(
    not PLUGIN.exists(), reason="needs scripts/build release"
)


def test_random_policies(tmp_path: Path) -> None:
    # Some rounds use LLVM's allocator, which is wrong for asm goto, so avoid asm goto.
    corpus = small_corpus(tmp_path, pressure=f"#define NO_ASM\n{PRESSURE}")
    programs = list(corpus.programs.values())
    rounds = list(fuzz.fuzz(corpus, programs, PLUGIN, 10_000, jobs=2))
    assert [one.problem for one in rounds if one.problem] == []
    assert [one.seed for one in rounds] == list(range(len(rounds)))
    assert sum(one.decisions for one in rounds) >= 10_000
    for name in ("evicted", "split", "spilled"):
        assert sum(getattr(one, name) for one in rounds) > 100, name
    again = list(fuzz.fuzz(corpus, programs, PLUGIN, 1, seed=rounds[-1].seed))
    assert again == rounds[-1:]


def test_a_wrong_program_is_found(tmp_path: Path) -> None:
    corpus = small_corpus(tmp_path, overflow=OVERFLOW)
    programs = list(corpus.programs.values())
    (found,) = fuzz.fuzz(corpus, programs, PLUGIN, 1)
    assert "not as expected: out" in found.problem
    # The command compiles the file in the same way as the round.
    words = shlex.split(found.command.partition(" && ")[2])
    words[-1] = str(tmp_path / "again.o")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=True)
    assert f"{found.decisions} decisions".encode() in done.stderr
    (failed,) = fuzz.fuzz(corpus, programs, tmp_path / "no.so", 0)
    assert "no.so" in failed.problem


@FULL
def test_a_million_decisions(tmp_path: Path) -> None:
    folder, out = tmp_path / "corpus", tmp_path / "rounds.jsonl"
    assert not corpora.fetch(folder, programs=["bzip2", "lua", "lz4"]).failed
    command = [sys.executable, "-m", fuzz.__name__, "--out", str(out)]
    command += ["--corpus", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    rounds = [json.loads(line) for line in out.read_text().splitlines()]
    assert sum(one["decisions"] for one in rounds) >= 1_000_000


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the bitcode of one small program."""
    folder = tmp_path_factory.mktemp("functions")
    source = folder / "pressure.c"
    source.write_text(f"#define NO_ASM\n{PRESSURE}")
    command = ["clang-22", "-O2", "-fPIC", "-emit-llvm", "-c", str(source)]
    subprocess.run([*command, "-o", str(folder / "a.bc")], check=True)
    return folder


def by_weight(agent: str, observation: dict[str, np.ndarray]) -> int:
    """Chooses the heaviest range, and the first free register or else greedy."""
    first = int(observation["action_mask"].argmax())
    if agent != "colour":
        return first
    free = (
        observation["colours"][:, 0] * observation["action_mask"][: environment.COLOURS]
    )
    return int(free.argmax()) if free.any() else environment.LEAVE


@pytest.mark.parametrize("spec", ["shm", "pipe", "grpc"])
def test_dialogue(functions: Path, spec: str) -> None:
    spaces = environment.observation_spaces()

    def episodes(env: environment.DialogueEnv) -> list[tuple[str, float]]:
        found = []
        for _ in range(4):
            seen, _ = env.reset()
            over, agents = False, set()
            while not over:
                ((agent, observation),) = seen.items()
                assert spaces[agent].contains(observation)
                agents.add(agent)
                action = by_weight(agent, observation)
                seen, rewards, terminated, _, infos = env.step({agent: action})
                over = terminated["__all__"]
            # All agents that have acted receive the reward.
            assert set(rewards) == agents
            (info,) = infos.values()
            (reward,) = set(rewards.values())
            expected = np.clip(np.log(info["greedy"] / info["cost"]), -1, 1)
            assert reward == pytest.approx(expected, abs=1e-3)
            found.append((info["function"], reward))
        return found

    with closing(environment.DialogueEnv(functions, plugin=PLUGIN, spec=spec)) as env:
        first = episodes(env)
        # An abandoned episode does not affect the next episode.
        seen, _ = env.reset()
        ((agent, observation),) = seen.items()
        env.step({agent: by_weight(agent, observation)})
        assert len(episodes(env)) == 4
    with closing(environment.DialogueEnv(functions, plugin=PLUGIN, spec=spec)) as env:
        assert episodes(env) == first


def test_illegal_actions_end_the_episode(functions: Path) -> None:
    with closing(environment.DialogueEnv(functions, plugin=PLUGIN)) as env:
        seen, _ = env.reset()
        ((agent, observation),) = seen.items()
        while observation["action_mask"].all():
            action = by_weight(agent, observation)
            ((agent, observation),) = env.step({agent: action})[0].items()
        masked = int(observation["action_mask"].argmin())
        _, rewards, terminated, truncated, infos = env.step({agent: masked})
        assert terminated["__all__"] or truncated["__all__"]
        assert set(rewards.values()) == {-1.0}
        assert "expected a choice whose 'action_mask' is 1" in str(infos)
        env.reset()


def test_question(functions: Path) -> None:
    with closing(environment.QuestionEnv(functions, plugin=PLUGIN, repeats=2)) as env:
        functions_seen = []
        for episode in range(6):
            observation, _ = env.reset()
            count = len(observation["ranges"])
            assert observation["ranges"].shape == (count, environment.RANGE_COLUMNS)
            assert observation["spill_weights"].shape == (count,)
            pairs = observation["interferences"]
            assert (pairs[:, 0] < pairs[:, 1]).all()
            assert pairs.max() < count
            weights = np.minimum(observation["spill_weights"], 1e30)
            spill = np.full(count, 1.0 if episode % 2 else -1.0, np.float32)
            action = {"priority": weights, "value": weights, "spill": spill}
            action["split"] = np.zeros(count, np.float32)
            # A function that is left to greedy has greedy's cost.
            is_left = episode in (2, 3)
            action["leave"] = np.full(count, float(is_left), np.float32)
            _, reward, terminated, _, info = env.step(action)
            assert terminated
            assert -1 <= reward <= 1
            assert reward == 0 or not is_left
            functions_seen.append(info["function"])
        assert functions_seen[::2] == functions_seen[1::2]
        assert len(set(functions_seen)) > 1
        env.reset()
        with pytest.raises(SchemaMismatch, match="one for each live range"):
            env.step({**action, "priority": np.zeros(1, np.float32)})


def write_counts(functions: Path, folder: Path) -> Path:
    """Writes a vocabulary that counts an instruction's opcode and virtual registers."""
    triplets = vocabulary.triplets_of(sorted(functions.glob("*.bc")), PLUGIN)
    counts = {
        name: np.array([name.startswith("Opcode"), name.startswith("VirtReg")], float)
        for head, _, tail in triplets
        for name in (head, tail)
    }
    file = folder / "counts.json"
    vocabulary.write(counts, file)
    return file


def test_vectors_of_instructions(
    functions: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    triplets = vocabulary.triplets_of(sorted(functions.glob("*.bc")), PLUGIN)
    names = {part for head, _, tail in triplets for part in (head, tail)}
    assert {"Opcode_ADD", "Operand_Immediate", "VirtReg_GR64"} <= names
    assert any(name.startswith("PhyReg_") for name in names)
    assert {head.partition("_")[0] for head, _, _ in triplets} == {"Opcode"}
    file = write_counts(functions, tmp_path)
    questions = environment.QuestionEnv(
        functions, plugin=PLUGIN, vocabulary=file, dimension=2
    )
    with closing(questions) as env:
        seen, _ = env.reset()
        ends, vectors = seen["instruction_ends"], seen["instructions"]
        assert len(ends) == len(seen["ranges"])
        assert (np.diff(ends, prepend=0) > 0).all()
        assert vectors.shape == (ends[-1], 2)
        assert (vectors[:, 0] == 1).all()
        assert (vectors[:, 1] >= 1).all()
        assert (vectors[:, 1] > 1).any()
    for wrong, why in (("{}", "expected the objects 'Opcodes'"), ("{", "Expected")):
        file.write_text(wrong)
        bad = environment.QuestionEnv(functions, plugin=PLUGIN, vocabulary=file)
        with closing(bad) as env, pytest.raises(PeerClosed, match="exited with 1"):
            env.reset()
        assert why in capfd.readouterr().err


def test_vectors_and_names_in_a_dialogue(functions: Path, tmp_path: Path) -> None:
    file = write_counts(functions, tmp_path)
    words: dict[str, Any] = {"plugin": PLUGIN, "vocabulary": file, "dimension": 2}
    with closing(environment.QuestionEnv(functions, **words)) as env:
        asked, names = env.reset()
    assert Path(names["file"]).name == "pressure.c"
    vectors = np.split(asked["instructions"], asked["instruction_ends"])
    of_range = {
        row.tobytes(): own for row, own in zip(asked["ranges"], vectors, strict=False)
    }
    spaces = environment.observation_spaces(2)
    statuses: list[str] = []
    found = 0
    with closing(environment.DialogueEnv(functions, **words)) as env:
        seen, infos = env.reset()
        over = False
        while not over:
            ((agent, observation),) = seen.items()
            (info,) = infos.values()
            assert spaces[agent].contains(observation)
            assert info["function"] == names["function"]
            assert info["file"] == names["file"]
            statuses.append(info["status"])
            ends = observation["instruction_ends"]
            assert len(observation["instructions"]) == ends[-1]
            rows = observation["ranges" if agent == "node" else "range"]
            each = np.split(observation["instructions"], ends)
            for row, own in zip(np.atleast_2d(rows), each, strict=False):
                if (same := of_range.get(row.tobytes())) is not None:
                    np.testing.assert_array_equal(own, same)
                    found += 1
                # Only rows of live ranges have instructions.
                assert row.any() == bool(len(own))
            action = 1 if agent == "task" else by_weight(agent, observation)
            seen, _, terminated, _, infos = env.step({agent: action})
            over = terminated["__all__"]
    assert found > len(of_range)
    assert statuses[0] == "none"
    assert {"assigned", "split", "left"} <= set(statuses)


def test_names_in_llc(functions: Path, tmp_path: Path) -> None:
    asked: list[tuple[str, ...]] = []

    def policy(features: Mapping[str, Any]) -> int:
        parts = ("_agent", "function", "file", "status")
        asked.append(tuple(str(features[part]) for part in parts))
        return by_weight(asked[-1][0], dict(features))

    (module,) = functions.glob("*.bc")
    command = ["llc-22", "-O2", "-filetype=obj", f"-load={PLUGIN}", str(module)]
    command += ["-mlbridge-regalloc-form=dialogue", "-mlbridge-print-statistics"]
    with mlbridge.serving(policy, f"shm:{tmp_path}/names"):
        command += [f"-mlbridge-regalloc=shm:{tmp_path}/names", "-o", os.devnull]
        done = subprocess.run(command, capture_output=True, check=True, text=True)
    assert f"requests={len(asked)} deferred=0 failed=0" in done.stderr
    assert {Path(file).name for _, _, file, _ in asked} == {"pressure.c"}
    assert {"main", "integers"} <= {function for _, function, _, _ in asked}
    firsts = {one[1]: one for one in reversed(asked)}
    assert {one[3] for one in firsts.values()} == {"none"}
    assert {"assigned", "left"} <= {one[3] for one in asked}


def cycles_of_across(functions: Path, folder: Path) -> int:
    """Returns the cycles of greedy's code for `across`, a function of one block."""
    (module,) = functions.glob("*.bc")
    assembly = folder / "a.s"
    command = ["llc-22", "-O2", "-relocation-model=pic", str(module), "-o"]
    subprocess.run([*command, str(assembly)], check=True)
    text = assembly.read_text().partition("\nacross:")[2].partition(".cfi_endproc")[0]
    lines = [line for line in text.splitlines() if re.match(r"\t[a-z]", line)]
    code = [line for line in lines if not re.match(r"\t(call|ret)", line)]
    done = subprocess.run(
        ["llvm-mca-22", "-mcpu=x86-64", "-iterations=1", "-noalias=false"],
        input="\n".join(code),
        capture_output=True,
        check=True,
        text=True,
    )
    (found,) = re.findall(r"^Total Cycles: +(\d+)", done.stdout, re.MULTILINE)
    return int(found) + 10 * sum(line.startswith("\tcall") for line in lines)


def test_rewards_of_cycles(functions: Path, tmp_path: Path) -> None:
    found: dict[str, list[dict[str, Any]]] = {}
    for reward in environment.REWARDS:
        questions = environment.QuestionEnv(
            functions, plugin=PLUGIN, repeats=3, reward=reward
        )
        infos = found[reward] = []
        with closing(questions) as env:
            for leave, spill in 3 * ((0.0, 1.0), (0.0, 1.0), (1.0, 0.0)):
                seen, _ = env.reset()
                none = np.zeros(len(seen["ranges"]), np.float32)
                # Allocate the lightest range first, which spills the other ranges.
                action = {"priority": -np.minimum(seen["spill_weights"], 1e30)}
                action |= {"value": none, "split": none}
                action |= {"leave": none + leave, "spill": none + spill}
                _, value, _, _, info = env.step(action)
                ratio = np.log(info["greedy"] / info["cost"])
                assert value == pytest.approx(np.clip(ratio, -1, 1), abs=1e-3)
                infos.append(info)
    costs, cycles = found["cost"], found["cycles"]
    assert [one["function"] for one in costs] == [one["function"] for one in cycles]
    for infos in (costs, cycles):
        assert infos[::3] == infos[1::3]
        assert all(one["cost"] == one["greedy"] for one in infos[2::3])
        ratios = {one["function"]: one["cost"] / one["greedy"] for one in infos[::3]}
        assert set(ratios) == {"main", "integers", "across"}
        assert min(ratios.values()) >= 1
        assert min(ratios["integers"], ratios["across"]) > 1.2
    greedy = {one["function"]: one["greedy"] for one in cycles}
    assert greedy["across"] == cycles_of_across(functions, tmp_path)
    with closing(
        environment.DialogueEnv(functions, plugin=PLUGIN, reward="cycles")
    ) as env:
        for _ in range(2):
            seen, _ = env.reset()
            over = False
            while not over:
                ((agent, observation),) = seen.items()
                choice = environment.LEAVE
                if agent != "colour":
                    choice = by_weight(agent, observation)
                seen, rewards, ends, _, last = env.step({agent: choice})
                over = ends["__all__"]
            (info,) = last.values()
            assert set(rewards.values()) == {0.0}
            assert info["cost"] == info["greedy"] > 0
            assert info["greedy"] == greedy[info["function"]]


def test_cycles_of_a_cpu_without_a_model(
    functions: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = functions / "pressure.c"
    command = ["clang-22", "-O2", "-fPIC", "-march=k8", "-emit-llvm", "-c", str(source)]
    subprocess.run([*command, "-o", str(tmp_path / "a.bc")], check=True)
    bad = environment.QuestionEnv(tmp_path, plugin=PLUGIN, reward="cycles")
    with closing(bad) as env, pytest.raises(PeerClosed, match="exited with 1"):
        env.reset()
    assert "LLVM has no scheduling model for it" in capfd.readouterr().err
    with pytest.raises(InvalidArgument, match="expected cost or cycles, found 'x'"):
        environment.QuestionEnv(tmp_path, plugin=PLUGIN, reward="x")


def test_a_vocabulary_is_trained(functions: Path, tmp_path: Path) -> None:
    triplets = vocabulary.triplets_of(sorted(functions.glob("*.bc")), PLUGIN)
    options = VocabularyOptions(dimension=16, epochs=30)
    runs = [list(vocabulary.train(triplets, options)) for _ in range(2)]
    for (one, ours), (other, theirs) in zip(*runs, strict=True):
        assert one == other
        for name, vector in ours.items():
            np.testing.assert_array_equal(vector, theirs[name])
    first, last = runs[0][0][0], runs[0][-1][0]
    assert last.loss < first.loss
    assert last.hits > first.hits
    file = tmp_path / "vocabulary.json"
    vocabulary.write(runs[0][-1][1], file)
    written = json.loads(file.read_text())
    assert list(written) == list(vocabulary.SECTIONS.values())
    assert len(written["Opcodes"]["ADD"]) == 16


def test_a_question_range_by_range(functions: Path) -> None:
    questions = environment.QuestionEnv(functions, plugin=PLUGIN)
    with closing(environment.RangeEnv(questions)) as env:
        for choice in (1, 3):  # Choose greedy, and then spills.
            seen, _ = env.reset()
            steps = 0
            done = False
            while not done:
                assert env.observation_space.contains(seen)
                seen, reward, done, truncated, info = env.step(choice)
                steps += 1
                assert not truncated
                assert done or (reward == 0 and not info)
            assert steps > 10
            assert info["greedy"] > 0
            assert (reward == 0) == (choice == 1)


def test_a_policy_by_a2c_in_llc(functions: Path, tmp_path: Path) -> None:
    out = tmp_path / "a2c"
    words = ["--form", "question", "--engine", "sb3", "--algo", "a2c"]
    words += ["--steps", "64", "--functions", str(functions), "--plugin", str(PLUGIN)]
    run_cli("train", "register-allocation", *words, "--out", str(out))
    for module in functions.glob("*.bc"):
        command = ["llc-22", "-O2", "-filetype=obj", "-verify-machineinstrs"]
        command += [f"-load={PLUGIN}", "-mlbridge-print-statistics"]
        command += [f"-mlbridge-regalloc=onnx:{out}/model.onnx", str(module)]
        done = subprocess.run(
            [*command, "-o", "/dev/null"], capture_output=True, check=True, text=True
        )
        assert " failed=0 " in done.stderr
        assert " requests=0 " not in done.stderr
    found = tmp_path / "episodes.json"
    options = ["--functions", str(functions), "--plugin", str(PLUGIN)]
    options += ["--form", "question", "--episodes", "2", "--json", str(found)]
    run_cli("evaluate", "register-allocation", str(out / "model.onnx"), *options)
    episodes = json.loads(found.read_text())["episodes"]
    assert set(episodes) == {"model", "weight", "free", "at random"}
    for ratios in episodes.values():
        assert all(math.exp(-1) <= ratio <= math.e for ratio in ratios)


def test_environment_without_functions(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="expected bitcode files, found none"):
        environment.DialogueEnv(tmp_path, plugin=PLUGIN)


@pytest.mark.parametrize("kind", NETWORKS)
def test_evolution(functions: Path, kind: str) -> None:
    options = Evolution(generations=2, population=4, sample=1, every=2)
    network = NETWORKS[kind]()
    files = sorted(functions.glob("*.bc"))
    runs = [
        list(evolve.evolve(network, files, files, PLUGIN, options)) for _ in range(2)
    ]
    for (first, mean), (second, again) in zip(*runs, strict=True):
        assert first.functions == 3
        assert (first.loss, first.validation) == (second.loss, second.validation)
        np.testing.assert_array_equal(mean, again)
    losses = [generation.loss for generation, _ in runs[0]]
    assert losses[0] != losses[1], "the candidates make no difference"
    # Check the loss of the heuristic with which the network starts.
    start, _ = evolve.losses(network, [network.start], files, PLUGIN, 1)
    limit = 0.5 if kind == "dialogue-alone" else 0.3
    assert start == [0.0] if kind == "allocator" else abs(start[0]) < limit


def test_imitation(functions: Path, tmp_path: Path) -> None:
    files = sorted(functions.glob("*.bc"))
    logs = imitation.record(files[0], PLUGIN, imitation.STOCK, tmp_path)
    assert logs
    for decisions, cost in logs.values():
        count = len(decisions.chosen)
        assert cost > 0
        assert decisions.columns.shape == (count, 33, 20)
        assert decisions.masks[np.arange(count), decisions.chosen].all()
    # A policy that is never better than LLVM is not imitated.
    first = NETWORKS["eviction"]()
    bad = first.write(tmp_path / "bad", -first.start)
    found, shares = imitation.best_decisions(files, PLUGIN, [imitation.STOCK, bad])
    assert sum(shares) == pytest.approx(1)
    assert shares[0] > shares[1]
    alone, _ = imitation.best_decisions(files, PLUGIN, [bad])
    assert len(alone.chosen) > 10
    options = ImitationOptions(iterations=2, epochs=60)
    network = EvictionNetwork()
    weights, agreement = imitation.imitate(network, alone, options)
    before = imitation.scores_of(network, network.start, alone).argmax(1)
    assert agreement > (before == alone.chosen).mean() + 0.2
    assert found.masks.shape[1] == 33
    spec = network.write(tmp_path / "imitated", weights)
    again = imitation.record(files[0], PLUGIN, spec, tmp_path)
    every = Decisions.join([decisions for decisions, _ in again.values()])
    scores = imitation.scores_of(network, weights, every)
    np.testing.assert_array_equal(scores.argmax(1), every.chosen)
    # The model can be the start of an evolution.
    network.load(tmp_path / "imitated.onnx")
    np.testing.assert_allclose(network.start, weights, rtol=1e-6)
    with pytest.raises(InvalidArgument, match="expected weights 'linear' of shape"):
        NETWORKS["priority"]().load(tmp_path / "imitated.onnx")
    (tmp_path / "wrong.onnx").write_text("garbage")
    with pytest.raises(Malformed, match="expected an ONNX model"):
        network.load(tmp_path / "wrong.onnx")
    # If the model is missing, there are no decisions to record.
    with pytest.raises(CompilerFailed, match=r"no\.onnx"):
        imitation.record(files[0], PLUGIN, "onnx:no.onnx", tmp_path)
    runs = [
        list(imitation.train(files, files, PLUGIN, [], options, tmp_path))
        for _ in range(2)
    ]
    for (one, ours), (other, theirs) in zip(*runs, strict=True):
        assert one == other
        np.testing.assert_array_equal(ours, theirs)
    assert [len(one.shares) for one, _ in runs[0]] == [1, 2]


def test_comparison(tmp_path: Path) -> None:
    corpus = small_corpus(tmp_path, pressure=f"#define NO_ASM\n{PRESSURE}")
    rows = {
        "greedy": "",
        "weight": "-mlbridge-regalloc-policy=weight",
        "best of 5": "-mlbridge-regalloc-search=5",
    }
    programs = list(corpus.programs.values())
    found = evaluate.measure(programs, rows, PLUGIN)
    greedy = found["greedy"]["pressure"]
    compared = {row: evaluate.compare(greedy, found[row]["pressure"]) for row in rows}
    same = evaluate.Compared(1, 1, (1, 1), 1, 1, 1, 1, worse=0, functions=4)
    assert compared["greedy"] == same
    assert compared["weight"].cost > 1
    assert compared["weight"].worse > 0
    best = compared["best of 5"]
    assert best.worse == 0
    assert best.cost < 1
    low, high = best.interval
    assert low < best.cost < high <= 1
    # Greedy's code does not stand for the code of a model that cannot be loaded.
    for option in ("eviction=", "regalloc-search=2 -mlbridge-regalloc-try=eviction="):
        missing = {"model": f"-mlbridge-{option}onnx:none.onnx"}
        with pytest.raises(CompilerFailed, match=r"none\.onnx"):
            evaluate.measure(programs, missing, PLUGIN)


def costs(greedy: float, model: float | None) -> Costs:
    return Costs("m", "f", {"greedy": greedy, "model": model}, {})


def test_losses() -> None:
    assert evolve.loss_of([], "model") == 0
    assert evolve.loss_of([costs(0, 5)], "model") == 0, "the function was not searched"
    assert evolve.loss_of([costs(3, 3), costs(100, 100)], "model") == 0
    hot, cold = costs(100, 200), costs(1, 1)
    share = evolve.SHARE_OF_SUM
    expected = math.log(2) / 2 + share * math.log(201 / 101)
    assert evolve.loss_of([hot, cold], "model") == pytest.approx(expected)
    # A function adds at most LIMIT to the loss. A failed trial adds LIMIT.
    assert evolve.loss_of([costs(1, 1000)], "model") == pytest.approx(
        evolve.LIMIT + share * math.log(1000)
    )
    failed = evolve.loss_of([costs(1, None)], "model")
    assert failed == pytest.approx(evolve.LIMIT * (1 + share))
    # Costs below SMALLEST count as equal.
    assert evolve.loss_of([costs(SMALLEST / 2, 0)], "model") == 0


def test_headroom(functions: Path) -> None:
    files = headroom.draw_modules(sorted(functions.glob("*.bc")), seed=1)
    basic = headroom.costs_by_basic(files, PLUGIN)
    found = headroom.search(files, PLUGIN, 14, jobs=2)
    assert len(found) == 3
    assert set(found) <= set(basic)
    for name, tried in found.items():
        assert tried.shape == (15,)
        assert (tried >= SMALLEST).all()
        assert len(set(tried)) > 1, f"all policies have the same cost in {name}"
    again = headroom.search(files, PLUGIN, 14)
    for name, tried in found.items():
        np.testing.assert_array_equal(tried, again[name])


def test_the_best_of_several_networks() -> None:
    tried = {("m", "f"): np.array([4.0, 8, 2, 1]), ("m", "g"): np.array([1.0, 2, 1, 3])}
    best = headroom.best_of(tried, (1, 2, 3))
    np.testing.assert_allclose(np.exp(best[1]), [1, 1])
    np.testing.assert_allclose(np.exp(best[2]), [0.5, 1])
    np.testing.assert_allclose(np.exp(best[3]), [0.25, 1])


def test_executions(tmp_path: Path) -> None:
    corpus = small_corpus(tmp_path, pressure=f"#define NO_ASM\n{PRESSURE}")
    programs = list(corpus.programs.values())
    flags = toolchain.plugin_flags(PLUGIN, "regalloc-policy=weight")
    rows = {"greedy": ["-O2"], "weight": ["-O2", *flags]}
    steps = []
    found = executions.execute(
        *(corpus, programs, rows),
        rounds=1,
        counts=shutil.which("valgrind") is not None,
        jobs=2,
        advance=lambda: steps.append(1),
    )["pressure"]
    assert len(steps) == 4
    if shutil.which("valgrind"):
        same = found["greedy"]
        assert (same.instructions, same.reads, same.writes) == (1, 1, 1)
        weight = found["weight"]
        assert weight.instructions != 1
        assert 0.5 < weight.reads < 2
    # A wrong output of a program ends the command without a result.
    wrong = small_corpus(tmp_path / "wrong", overflow=OVERFLOW)
    with pytest.raises(ModelError, match="overflow: not as expected: out"):
        executions.execute(
            *(wrong, list(wrong.programs.values()), {"greedy": ["-O2"]}),
            rounds=1,
            counts=False,
            jobs=1,
            advance=lambda: None,
        )
