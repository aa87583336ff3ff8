# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The phase-ordering environment: sizes, rewards, caches, determinism, errors."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="needs scripts/make-venv train")

from gymnasium import spaces

import mlbridge
from compilers import wait_until_gone
from mlbridge.envs.machine_code import text_size
from phase_ordering import (
    PARTS,
    PLUGIN,
    actions,
    bitcode,
    code_of,
    environment,
    run,
    take,
)
from programs import run_program, run_python
from stock_llvm import needs_llvm

pytestmark = [
    needs_llvm,
    pytest.mark.skipif(not PLUGIN.exists(), reason="needs scripts/build release"),
]

IN_ORDER = tuple(range(15))


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> str:
    return bitcode(tmp_path_factory.mktemp("programs"))


def known(info: dict[str, Any]) -> dict[str, Any]:
    """What of an info is no matter of time."""
    return {k: v for k, v in info.items() if not k.endswith("_ms")}


def test_the_committed_actions_are_what_the_script_makes(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, str(PARTS / "derive.py"), str(tmp_path)],
        check=True,
    )
    version = run("clang-22", "-dumpversion").strip()
    for name, count in ("oz", 15), ("odg", 25), ("passes", 71):
        space = actions(name)
        if version not in space["description"]:
            pytest.skip(f"they are of another LLVM than {version}")
        assert json.loads((tmp_path / f"{name}.json").read_text()) == space
        assert len(space["actions"]) == count
        assert len({json.dumps(a) for a in space["actions"]}) == count


def test_the_committed_changes_are_what_the_script_makes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(PARTS / "derive.py"), tmp_path], check=True)
    committed = (PARTS / "search/changes.json").read_text()
    version = run("clang-22", "-dumpversion").strip()
    if version not in json.loads(committed)["description"]:
        pytest.skip(f"they are of another LLVM than {version}")
    assert (tmp_path / "changes.json").read_text() == committed


@pytest.mark.parametrize("spec", ["pipe", "shm", "pipe:?serdes=json"])
def test_sizes_are_those_of_stock_tools(spec: str, module: str, tmp_path: Path) -> None:
    space = actions()
    with environment(spec=spec, count=15) as env:
        _, first = env.reset(options={"module": module})
        assert first["oz_text_size"] == code_of(module, tmp_path)
        assert first["text_size"] == code_of(module, tmp_path, space["prologue"])
        _, _, info = take(env, module, *IN_ORDER)
    for length in 3, 15:
        pipelines = [a["pipeline"] for a in space["actions"][:length]]
        pipeline = ",".join([space["prologue"], *pipelines])
        assert info["text_sizes"][length - 1] == code_of(module, tmp_path, pipeline)
    # The pieces of -Oz are -Oz, nearly.
    assert info["text_size"] == pytest.approx(info["oz_text_size"], rel=0.2)


@pytest.mark.parametrize("space", ["odg", "passes"])
def test_the_other_spaces(space: str, module: str, tmp_path: Path) -> None:
    count = len(actions(space)["actions"])
    options = (f"-actions={space}", "-verify")
    with environment(*options, count=count) as env:
        _, _, info = take(env, module, *range(count), steps=count)
    pipelines = [a["pipeline"] for a in actions(space)["actions"]]
    pipeline = ",".join([actions(space)["prologue"], *pipelines])
    assert info["text_size"] == code_of(module, tmp_path, pipeline)


def test_a_step_of_many_actions_is_as_many_steps(module: str) -> None:
    sequence = [0, 8, 2, 6, 8, 13]
    with environment() as one, environment(count=6) as many:
        one.reset(options={"module": module})
        steps = [one.step(np.array([a])) for a in sequence]
        observation, reward, info = take(many, module, *sequence)
        np.testing.assert_array_equal(observation["counts"], steps[-1][0]["counts"])
        assert reward == pytest.approx(sum(s[1] for s in steps))
        assert info["rewards"] == pytest.approx([s[1] for s in steps])
        assert info["text_sizes"] == [s[4]["text_size"] for s in steps]
        assert info["ir_hash"] == steps[-1][4]["ir_hash"]
        # As options of a reset, they have been taken, too.
        observation, info = many.reset(options={"module": module, "sequence": sequence})
        assert info["text_sizes"] == [s[4]["text_size"] for s in steps]
        assert (info["step"], info["sequence"]) == (6, sequence)


def test_the_reward_is_the_relative_change(module: str) -> None:
    with environment(count=3) as env:
        _, first = env.reset(options={"module": module})
        _, reward, _, _, info = env.step(np.array([0, 1, 2]))
    gain = 10 * (first["text_size"] - info["text_size"]) / info["oz_text_size"]
    assert reward == pytest.approx(gain)
    options = ("-reward=instructions:2,text-size:0,mca-cycles:5", "-reference=initial")
    with environment(*options, count=3) as env:
        _, first = env.reset(options={"module": module})
        _, reward, _, _, info = env.step(np.array([0, 1, 2]))
    gain = 2 * (1 - info["instructions"] / first["instructions"])
    gain += 5 * (1 - info["mca_cycles"] / first["mca_cycles"])
    assert reward == pytest.approx(gain)
    assert info["mca_cycles"] > 0
    assert info["text_size"] > 0


def test_without_a_reward_nothing_is_emitted(module: str) -> None:
    with environment("-reward=none", count=3) as env:
        _, reward, info = take(env, module, 0, 1, 2)
        assert reward == 0
        assert info["emit_ms"] == 0
        assert "text_size" not in info
        assert "oz_text_size" not in info
        with pytest.raises(mlbridge.InvalidArgument, match="'final': \"best\" needs"):
            env.reset(options={"module": module, "final": "best"})


def test_the_best_state_is_restored(module: str, tmp_path: Path) -> None:
    # Loops are unrolled and jumps threaded at the end, which costs size.
    sequence = (0, 1, 2, 3, 8, 11, 7, 7, 4, 13, 0, 9, 5, 12, 6)
    outputs = {kind: tmp_path / f"{kind}.o" for kind in ("last", "best")}
    with environment(count=15) as env:
        _, first = env.reset(options={"module": module})
        found = {
            kind: take(env, module, *sequence, final=kind, output=str(output))
            for kind, output in outputs.items()
        }
    sizes = found["last"][2]["text_sizes"]
    expected = {"last": sizes[-1], "best": min(sizes)}
    assert expected["best"] < expected["last"], "no test of anything"
    for kind, (_, reward, info) in found.items():
        assert info["final_text_size"] == expected[kind]
        assert text_size(outputs[kind].read_bytes(), kind) == expected[kind]
        gain = 10 * (first["text_size"] - expected[kind]) / info["oz_text_size"]
        assert reward == pytest.approx(gain)
    best = found["best"][2]
    assert best["final_step"] == best["best_step"] == sizes.index(min(sizes)) + 1
    assert min(found["best"][2]["rewards"]) == 0


def test_caches_and_processes_change_no_number(module: str) -> None:
    generator = random.Random(1)
    sequences = [[generator.randrange(15) for _ in range(15)] for _ in range(4)]
    # Others in between, and a sequence that leaves the last one half way.
    sequences += [sequences[0], sequences[1][:7] + sequences[2][7:]]
    features = (("histogram", 110), ("counts", 12), ("actions", 30), ("step", 1))
    runs = []
    for options in ((), (), ("-cache=0",), ("-cache=3",), ("-verify",)):
        with environment(*options, count=15, features=features) as env:
            runs.append([take(env, module, *s) for s in sequences])
    for other in runs[1:]:
        for (o1, r1, i1), (o2, r2, i2) in zip(runs[0], other, strict=True):
            assert r1 == r2
            assert known(i1) == known(i2)
            for name in o1:
                np.testing.assert_array_equal(o1[name], o2[name])


def test_sizes_do_not_depend_on_what_was_made_before(tmp_path: Path) -> None:
    # What is retained has a section of its own, and so no padding before it.
    source = "".join(
        f"__attribute__((aligned(32){', used, retain' if i % 3 == 0 else ''})) "
        f"int f{i}(int x) {{ return x * {i + 3} + (x >> {i % 7}); }}\n"
        for i in range(24)
    )
    kept = bitcode(tmp_path, source, "kept")
    draw = random.Random(0)
    sequences = [[i] for i in range(15)]
    sequences += [draw.choices(range(15), k=draw.randrange(1, 16)) for _ in range(15)]
    found = []
    for order in sequences, sequences[::-1]:
        with environment("-cache=0") as env:
            infos = [
                env.reset(options={"module": kept, "sequence": sequence})[1]
                for sequence in order
            ]
        found.append([info["text_size"] for info in infos])
    assert found[0] == found[1][::-1]


def test_cycles_of_a_function_with_two_names_count_once(tmp_path: Path) -> None:
    source = "int f(int x) { return x * x / 3; }\n"
    alias = 'int g(int) __attribute__((alias("f")));\n'
    modules = bitcode(tmp_path, source, "one"), bitcode(tmp_path, source + alias, "two")
    options = ("-reward=mca-cycles", "-mca-cpu=skylake")
    with environment(*options) as env:
        one, two = (env.reset(options={"module": m})[1]["mca_cycles"] for m in modules)
    assert one == two > 0


def test_what_is_known_is_not_emitted_again(module: str) -> None:
    with environment(count=3) as env:
        assert take(env, module, 0, 1, 2)[2]["emit_ms"] > 0
        again = take(env, module, 0, 1, 2)[2]
        assert (again["emit_ms"], again["step_ms"]) == (0, 0)


def test_programs_are_kept_and_changes_are_read(module: str, tmp_path: Path) -> None:
    other = bitcode(tmp_path, "int f(int x) { return x * x + 3; }", "other")
    with environment("-programs=1", count=3) as env:
        sizes = [take(env, m, 0, 1, 2)[2]["text_size"] for m in (module, other, module)]
        assert sizes[0] == sizes[2] != sizes[1]
        bitcode(tmp_path, "int f(int x) { return x; }", "other")
        assert take(env, other, 0, 1, 2)[2]["text_size"] < sizes[1]


def test_what_must_be_inlined_is_inlined_before_the_first_action(module: str) -> None:
    with environment() as env:
        _, first = env.reset(options={"module": module})
    # Seven functions, of which `mix` is gone.
    assert Path(module).with_suffix(".c").read_text().count("always_inline") == 1
    with environment("-reward=none") as env:
        observation, _ = env.reset(options={"module": module})
        assert observation["counts"][0] == 6
    assert first["text_size"] > first["oz_text_size"]


def test_the_features(module: str, tmp_path: Path) -> None:
    features = (("histogram", 110), ("counts", 12), ("actions", 32), ("step", 1))
    space = {
        "name": "mine",
        "actions": actions()["actions"] + [{"name": "nothing", "pipeline": ""}],
    }
    (tmp_path / "mine.json").write_text(json.dumps(space))
    with environment(f"-actions={tmp_path / 'mine.json'}", features=features) as env:
        observation, _ = env.reset(options={"module": module})
        assert observation["step"] == 0
        assert not observation["actions"].any()
        counts = observation["counts"]
        # Without a prologue, the function that must be inlined is still there.
        assert counts[:2].tolist() == [7, 3]
        assert counts[10] == observation["histogram"][:68].sum()
        for action in 0, 15, 15:
            observation, _, _, _, info = env.step(np.array([action]))
        assert observation["step"] == 3
        taken = np.zeros(32)
        taken[[0, 15, 16 + 15]] = 1, 2, 1
        np.testing.assert_array_equal(observation["actions"], taken)
        assert info["changed"] is False


def test_stop_ends_an_episode(module: str) -> None:
    with environment("-stop", count=3) as env:
        env.reset(options={"module": module})
        _, _, terminated, truncated, info = env.step(np.array([0, 15, 3]))
        assert (terminated, truncated) == (True, False)
        assert (info["sequence"], info["final_step"]) == ([0], 1)


def test_the_limit_ends_an_episode(module: str) -> None:
    with environment("-steps=2") as env:
        env.reset(options={"module": module})
        assert env.step(np.array([0]))[2:4] == (False, False)
        assert env.step(np.array([0]))[2:4] == (True, False)
        env.reset(options={"module": module, "steps": 1})
        assert env.step(np.array([0]))[2:4] == (True, False)


def test_a_mistake_costs_one_episode(module: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken.bc"
    broken.write_bytes(Path(module).read_bytes()[:-100])
    wrong = tmp_path / "wrong.ll"
    wrong.write_text("define i32 @f() {\n  %x = add i32 %y, 1\n  ret i32 %x\n}\n")
    foreign = tmp_path / "foreign.ll"
    foreign.write_text('target triple = "pdp11-dec-unix"\n')
    tiny = tmp_path / "tiny.ll"
    tiny.write_text(
        'target triple = "x86_64-pc-linux-gnu"\n!llvm.module.flags = !{!0}\n'
        '!0 = !{i32 1, !"Code Model", i32 0}\n'
    )
    assembly = tmp_path / "assembly.ll"
    assembly.write_text(
        f'target triple = "{run("clang-22", "-print-target-triple").strip()}"\n'
        'define void @f() {\n  call void asm sideeffect "nonsense", ""()\n'
        "  ret void\n}\n"
    )
    with environment() as env:
        env.reset(options={"module": module})
        pid = env.pid
        for options, error, text in (
            ({}, mlbridge.InvalidArgument, "found no module"),
            ({"module": 3}, mlbridge.InvalidArgument, "the name of a file"),
            ({"module": module, "modul": 1}, mlbridge.InvalidArgument, "'modul'"),
            ({"module": module, "final": "x"}, mlbridge.InvalidArgument, '"best"'),
            ({"module": module, "steps": 0}, mlbridge.InvalidArgument, "above 0"),
            ({"module": module, "sequence": [15]}, mlbridge.InvalidArgument, "to 14"),
            (
                {"module": module, "sequence": [0, 1], "steps": 1},
                mlbridge.InvalidArgument,
                "'sequence': expected at most 1 actions",
            ),
            ({"module": str(tmp_path / "no.bc")}, mlbridge.OSFailure, "No such file"),
            ({"module": str(broken)}, mlbridge.Malformed, "expected LLVM IR"),
            ({"module": str(wrong)}, mlbridge.Malformed, "expected LLVM IR"),
            ({"module": str(foreign)}, mlbridge.Unsupported, "pdp11"),
            ({"module": str(tiny)}, mlbridge.Unsupported, "its code model"),
            ({"module": str(assembly)}, mlbridge.Malformed, "nonsense"),
        ):
            with pytest.raises(error, match=text):
                env.reset(options=options)
        for action in -1, 15:
            env.reset(options={"module": module})
            with pytest.raises(mlbridge.InvalidArgument, match="from 0 to 14"):
                env.step(np.array([action]))
        env.reset(options={"module": module})
        assert env.pid == pid
        env.step(np.array([0]))


@pytest.mark.parametrize(
    "space", [spaces.Box(0, 1, (1,), np.float32), spaces.Text(9)], ids=["float", "text"]
)
def test_an_action_is_a_whole_number(space: spaces.Space[Any], module: str) -> None:
    action = np.array([0.5], np.float32) if isinstance(space, spaces.Box) else "first"
    with environment(action_space=space) as env:
        env.reset(options={"module": module})
        with pytest.raises(mlbridge.SchemaMismatch):
            env.step(action)


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("-actions=nothing", "expected oz, odg, passes or a file"),
        ("-actions=/dev/zero", "expected a regular file, found a device"),
        ("-reward=size:3", "expected 'none', or a list of text-size"),
        ("-reward=text-size:x", "found 'text-size:x'"),
        ("-observation=histogram,size", "found 'size'"),
        ("-observation=embedding", "-mlbridge-ir2vec-vocabulary=FILE"),
    ],
)
def test_wrong_options_end_the_compiler(option: str, text: str) -> None:
    done = run_program(
        [
            *("opt-22", f"-load-pass-plugin={PLUGIN}", "-mlbridge-environment=pipe:x"),
            *("-passes=mlbridge-phase-ordering-environment", "-disable-output"),
            *(f"-mlbridge-phase-ordering{option}", "/dev/null"),
        ]
    )
    assert done.returncode == 1
    assert text in done.stderr


def test_a_wrong_pipeline_is_named(tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    wrong = (
        {"name": "fine", "pipeline": "globaldce"},
        {"name": "bad", "pipeline": "gvm"},
    )
    path.write_text(json.dumps({"name": "wrong", "actions": wrong}))
    done = run_program(
        [
            *("opt-22", f"-load-pass-plugin={PLUGIN}", "-mlbridge-environment=pipe:x"),
            *("-passes=mlbridge-phase-ordering-environment", "-disable-output"),
            *(f"-mlbridge-phase-ordering-actions={path}", "/dev/null"),
        ]
    )
    assert done.returncode == 1
    assert "action 1 'bad': pipeline 'gvm': unknown pass name 'gvm'" in done.stderr


@pytest.mark.parametrize("spec", ["pipe", "shm"])
def test_a_killed_compiler_costs_an_episode(spec: str, module: str) -> None:
    with environment(spec=spec) as env:
        env.reset(options={"module": module})
        assert env.pid is not None
        os.kill(env.pid, signal.SIGKILL)
        _, _, terminated, truncated, info = env.step(np.array([0]))
        assert (terminated, truncated) == (False, True)
        assert "PeerClosed" in info["error"]
        env.reset(options={"module": module})
        assert "error" not in env.step(np.array([0]))[4]
        assert env.starts == 2


TRAINER = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from phase_ordering import environment
with environment(spec={spec!r}) as env:
    env.reset(options={{"module": {module!r}}})
    print(env.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("spec", ["pipe", "shm"])
def test_a_killed_trainer_leaves_no_compiler(spec: str, module: str) -> None:
    text = TRAINER.format(tests=str(Path(__file__).parent), spec=spec, module=module)
    tag = f"phase-{os.getpid()}-{spec}"
    done = run_python(text, timeout=120, env={**os.environ, "MLBRIDGE_TEST_TAG": tag})
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert int(done.stdout) > 0
    assert wait_until_gone(tag) == []
