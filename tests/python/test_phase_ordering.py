# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plug-in's phase-ordering environment: sizes, rewards, caches, errors."""

import json
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
from mlbridge.envs import CompilerEnv
from mlbridge.envs.machine_code import text_size
from phase_ordering import PARTS, PLUGIN, actions, bitcode, code_of, environment, take
from programs import run_program, run_python
from stock_llvm import needs_llvm

pytestmark = [
    needs_llvm,
    pytest.mark.skipif(not PLUGIN.exists(), reason="needs scripts/build release"),
]


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> str:
    return bitcode(tmp_path_factory.mktemp("programs"))


def clang(option: str) -> str:
    return run_program(["clang-22", option], check=True).stdout.strip()


def test_the_committed_files_are_what_the_script_makes(tmp_path: Path) -> None:
    script = PARTS / "action_spaces/derive.py"
    subprocess.run([sys.executable, script, tmp_path], check=True)
    committed = (PARTS / "search/changes.json").read_text()
    spaces = {name: actions(name) for name in ("oz", "odg", "passes")}
    version = clang("-dumpversion")
    for described in (json.loads(committed), *spaces.values()):
        if version not in described["description"]:
            pytest.skip(f"they were made with another LLVM than {version}")
    assert (tmp_path / "changes.json").read_text() == committed
    for (name, space), count in zip(spaces.items(), (15, 25, 71), strict=True):
        assert json.loads((tmp_path / f"{name}.json").read_text()) == space
        assert len(space["actions"]) == count
        assert len({json.dumps(a) for a in space["actions"]}) == count


@pytest.mark.parametrize("spec", ["pipe", "shm", "pipe:?serdes=json"])
def test_sizes_are_those_of_stock_tools(spec: str, module: str, tmp_path: Path) -> None:
    with environment(spec=spec, count=15) as env:
        _, first = env.reset(options={"module": module})
        assert first["oz_text_size"] == code_of(module, tmp_path)
        assert first["text_size"] == code_of(module, tmp_path, actions()["prologue"])
        _, _, info = take(env, module, *range(15))
    for length in 3, 15:
        expected = code_of(module, tmp_path, pipeline_of("oz", length))
        assert info["text_sizes"][length - 1] == expected
    # Together, the actions are almost the pipeline of -Oz.
    assert info["text_size"] == pytest.approx(info["oz_text_size"], rel=0.2)


def pipeline_of(space: str, length: int) -> str:
    """Returns the pipeline of the first actions of a space, in order."""
    pipelines = [a["pipeline"] for a in actions(space)["actions"][:length]]
    return ",".join([actions(space)["prologue"], *pipelines])


@pytest.mark.parametrize("space", ["odg", "passes"])
def test_the_other_spaces(space: str, module: str, tmp_path: Path) -> None:
    count = len(actions(space)["actions"])
    with environment(f"-actions={space}", "-verify", count=count) as env:
        _, _, info = take(env, module, *range(count), steps=count)
    assert info["text_size"] == code_of(module, tmp_path, pipeline_of(space, count))


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
        # A reset runs the actions of its option "sequence".
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
    # The last actions unroll loops and thread jumps, which increases the size.
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
    assert min(best["rewards"]) == 0


def test_caches_and_processes_change_no_number(module: str) -> None:
    generator = random.Random(1)
    sequences = [[generator.randrange(15) for _ in range(15)] for _ in range(4)]
    # Repeat the first sequence, and add a sequence that starts like the second.
    sequences += [sequences[0], sequences[1][:7] + sequences[2][7:]]
    features = (("histogram", 110), ("counts", 12), ("actions", 30), ("step", 1))

    def known(env: CompilerEnv, sequence: list[int]) -> Any:
        observation, reward, info = take(env, module, *sequence)
        timeless = {k: v for k, v in info.items() if not k.endswith("_ms")}
        return {k: v.tolist() for k, v in observation.items()}, reward, timeless

    runs = []
    for options in ((), (), ("-cache=0",), ("-cache=3",), ("-verify",)):
        with environment(*options, count=15, features=features) as env:
            runs.append([known(env, sequence) for sequence in sequences])
    for other in runs[1:]:
        assert other == runs[0]


def test_sizes_do_not_depend_on_what_was_made_before(tmp_path: Path) -> None:
    # Each retained function has its own section, so no padding precedes the function.
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


def test_weighted_cycles_count_loops_and_calls(tmp_path: Path) -> None:
    work = "static {} int g(int x) {{ return (x << 1) ^ x; }}\n"
    loop = (
        "int f(int n) { int s = 0; for (int i = 0; i < n; i++) s += g(i); return s; }"
    )
    recursion = """
        static int odd(int);
        static int even(int n) { return n ? odd(n - 1) : 1; }
        static int odd(int n) { return n ? even(n - 1) : 0; }
        int f(int n) { return even(n); }"""
    sources = {
        "called": work.format("__attribute__((noinline))") + loop,
        "inlined": work.format("__attribute__((always_inline))") + loop,
        "recursion": recursion,
    }
    measures = "text-size,mca-cycles,weighted-cycles"
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for reward in ("text-size,mca-cycles", measures):
        with environment(f"-reward={reward}", "-mca-cpu=skylake") as env:
            found[reward] = {
                name: env.reset(options={"module": bitcode(tmp_path, source, name)})[1]
                for name, source in sources.items()
            }
    weighted = {n: info["weighted_cycles"] for n, info in found[measures].items()}
    # A loop runs several times, and so does a function that the loop calls. Therefore,
    # inlining the function saves cycles.
    for name in ("called", "inlined"):
        assert weighted[name] > 5 * found[measures][name]["mca_cycles"]
    assert weighted["inlined"] < weighted["called"]
    assert weighted["recursion"] > 0
    # The map of the blocks changes no code.
    for infos in zip(*(by.values() for by in found.values()), strict=True):
        for key in ("text_size", "mca_cycles", "oz_text_size"):
            assert len({info[key] for info in infos}) == 1


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
    # Six of seven functions remain. `mix` is inlined.
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
        # Without a prologue, `mix` is not inlined.
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
    invalid = tmp_path / "invalid.ll"
    invalid.write_text("define i32 @f() {\n  %x = add i32 %y, 1\n  ret i32 %x\n}\n")
    foreign = tmp_path / "foreign.ll"
    foreign.write_text('target triple = "pdp11-dec-unix"\n')
    tiny = tmp_path / "tiny.ll"
    tiny.write_text(
        'target triple = "x86_64-pc-linux-gnu"\n!llvm.module.flags = !{!0}\n'
        '!0 = !{i32 1, !"Code Model", i32 0}\n'
    )
    assembly = tmp_path / "assembly.ll"
    assembly.write_text(
        f'target triple = "{clang("-print-target-triple")}"\n'
        'define void @f() {\n  call void asm sideeffect "nonsense", ""()\n'
        "  ret void\n}\n"
    )
    with environment() as env:
        env.reset(options={"module": module})
        pid = env.pid
        valid, wrong = {"module": module}, mlbridge.InvalidArgument
        long = {**valid, "sequence": [0, 1], "steps": 1}
        for options, error, text in (
            ({}, wrong, "found no module"),
            ({"module": 3}, wrong, "the name of a file"),
            ({**valid, "modul": 1}, wrong, "'modul'"),
            ({**valid, "final": "x"}, wrong, '"best"'),
            ({**valid, "steps": 0}, wrong, "above 0"),
            ({**valid, "sequence": [15]}, wrong, "to 14"),
            (long, wrong, "'sequence': expected at most 1 actions"),
            ({"module": str(tmp_path / "no.bc")}, mlbridge.OSFailure, "No such file"),
            ({"module": str(broken)}, mlbridge.Malformed, "expected LLVM IR"),
            ({"module": str(invalid)}, mlbridge.Malformed, "expected LLVM IR"),
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
    path, pipelines = tmp_path / "wrong.json", {"fine": "globaldce", "bad": "gvm"}
    wrong = [{"name": name, "pipeline": text} for name, text in pipelines.items()]
    path.write_text(json.dumps({"name": "wrong", "actions": wrong}))
    text = "action 1 'bad': pipeline 'gvm': unknown pass name 'gvm'"
    test_wrong_options_end_the_compiler(f"-actions={path}", text)


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
def test_a_killed_trainer_leaves_no_compiler(spec: str, module: str, tag: str) -> None:
    text = TRAINER.format(tests=str(Path(__file__).parent), spec=spec, module=module)
    done = run_python(text, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert int(done.stdout) > 0
