# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The benchmarks of phase ordering. No test depends on the measured times."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="needs scripts/make-venv train")
pytest.importorskip("onnxscript", reason="needs scripts/make-venv train")
pytest.importorskip("emx_onnx_cgen", reason="needs the extra compile")

import mlbridge
from bench_build import measured
from mlbridge_benchmarks.common import processes, savedmodel
from mlbridge_benchmarks.common.flows import SERVED
from mlbridge_benchmarks.common.options import find_plugin, find_vocabulary
from mlbridge_benchmarks.common.processes import started
from mlbridge_benchmarks.phase_ordering import compile_time, training
from mlbridge_benchmarks.phase_ordering import task as phase_ordering
from mlbridge_benchmarks.phase_ordering.command import need_packages
from mlbridge_benchmarks.phase_ordering.compile_time import Compiled, Flow
from mlbridge_benchmarks.phase_ordering.gym_flow import GymFlow
from mlbridge_benchmarks.phase_ordering.original import OriginalTools
from mlbridge_benchmarks.phase_ordering.task import SEEN, Sample, prepare
from mlbridge_benchmarks.phase_ordering.training import Episode, Played
from mlbridge_optimizations.corpus import manifest, toolchain
from mlbridge_optimizations.phase_ordering.environment.compiler import EpisodeOptions
from mlbridge_optimizations.phase_ordering.environment.environment import (
    PhaseOrderingEnv,
)
from phase_ordering import PROGRAM, bitcode
from programs import CLI, FULL, IS_FULL, Started, until
from stock_llvm import children

STEPS = 3
COUNT = 2 if IS_FULL else 1
"""The number of modules and of rounds of each benchmark."""


@pytest.fixture(scope="module")
def vocabulary() -> Path:
    try:
        find_plugin(None)
        return find_vocabulary(None)
    except mlbridge.OSFailure as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module", autouse=True)
def tools() -> None:
    for tool in ("clang-22", "opt-22", "llvm-ir2vec-22"):
        if not shutil.which(tool):
            pytest.skip(f"no {tool} here")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of two modules, large enough for a sample."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "demo").mkdir()
    modules = []
    for name, copies in (("small", 2), ("large", 3)):
        # Each copy renames its functions.
        own = re.compile(r"\b(mix|step|make|run|kind|depth|longest|State)\b")
        source = "".join(own.sub(rf"\g<1>{n}", PROGRAM) for n in range(copies))
        path = Path(bitcode(folder / "demo", source, name))
        functions, instructions = toolchain.size_of(path)
        modules.append(
            manifest.Module(f"demo/{name}.bc", f"{name}.c", functions, instructions, "")
        )
    program = manifest.Program(
        "demo", "", "", "training", (), (), "", tuple(modules), modules[0], ""
    )
    manifest.Corpus(folder, "", {"demo": program}).save()
    return folder


@pytest.fixture(scope="module")
def policy(vocabulary: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The network of random weights that the benchmarks use by default."""
    options = EpisodeOptions("oz", SEEN, "none", STEPS, vocabulary=vocabulary)
    return prepare(tmp_path_factory.mktemp("policy"), None, options, seed=1).model


def bench(folder: Path, *arguments: object) -> tuple[str, list[dict[str, Any]]]:
    output, rows = measured(folder, *arguments, plot=True)
    return " ".join(output.split()), rows


@FULL
def test_whole_compiles(corpus: Path, policy: Path, tmp_path: Path) -> None:
    pytest.importorskip("mlbridge._grpc", reason="this build has no gRPC")
    output, rows = bench(
        tmp_path,
        *("compile-time", "--modules", COUNT, "--rounds", COUNT, "--model", policy),
        *("--corpus", corpus),
    )
    assert "the same actions in all flows; the same objects" in output
    flows = [name for name in compile_time.FLOWS if not savedmodel.missing(name)]
    assert [row["flow"] for row in rows] == flows
    for row in rows:
        assert len(row["per_module"]) == COUNT
        assert min(row["seconds"], row["cpu_seconds"]) > 0
        # Served flows start a server. The original flow loads its model.
        starts = row["flow"] in (compile_time.ORIGINAL, *SERVED)
        assert (row["start_seconds"] > 0) == starts
        relation = row.get("of_served")
        assert (relation is not None) == (row["flow"] in compile_time.MODELS_INSIDE)
        assert (
            relation is None or relation["low"] <= relation["cpu"] <= relation["high"]
        )
    assert rows[0]["faster"] == {"total": 1, "geomean": 1, "total_cpu": 1}


def test_by_gymnasium_and_inside(corpus: Path, policy: Path, tmp_path: Path) -> None:
    output, rows = bench(
        tmp_path,
        *("gym", "--modules", COUNT, "--rounds", "1", "--model", policy),
        *("--corpus", corpus),
    )
    assert "the same actions in all flows" in output
    flows = ["Gymnasium", "Gymnasium, kept", "Gymnasium, rewards"]
    assert [row["flow"] for row in rows] == [*flows, "onnx", "aot", "clang -Oz"]
    assert [row["other_objects"] for row in rows] == [0] * 6
    assert all(row["seconds"] > 0 for row in rows)


def test_single_passes_by_a_network_of_random_weights(
    corpus: Path, vocabulary: Path, tmp_path: Path
) -> None:
    """The policy repeats a pass only after it has chosen all passes."""
    output, _ = bench(
        tmp_path,
        *("gym", "--modules", "1", "--rounds", "1", "--steps", "4"),
        *("--corpus", corpus, "--vocabulary", vocabulary, "--flow", "Gymnasium"),
    )
    assert "4 actions at most" in output
    options = EpisodeOptions("oz", SEEN, "none", 20, vocabulary=vocabulary)
    deployed = prepare(tmp_path, None, options, seed=1)
    count = len(deployed.compiler.space.actions)
    (module, _) = Sample.draw(corpus, 2, 0).modules
    with GymFlow(deployed, [module], rewarded=False, kept=True) as flow:
        assert flow._env is not None
        kept = flow._env.unwrapped
        assert isinstance(kept, PhaseOrderingEnv)
        assert kept._session.is_connected, "else it starts while other flows are timed"
        done = flow.compile(module, tmp_path / "module.o")
        assert kept.starts == 1
    taken = done.actions.split()
    assert len(taken) == 20
    assert len(set(taken[:count])) == min(count, 20)


def test_a_service_managers_stop_ends_the_server(
    corpus: Path, policy: Path, tmp_path: Path
) -> None:
    with Started(
        CLI,
        *("bench", "compile-time", "--modules", "2", "--rounds", "1000"),
        *("--model", policy, "--corpus", corpus, "--flow", "shm"),
        *("--plot", tmp_path / "plot.png"),
        stdout=subprocess.DEVNULL,
        cwd=tmp_path,
    ) as process:
        try:
            server = until(lambda: asked_server_of(process), "no compiler connects", 60)
            process.terminate()
            status = process.wait(30)
        finally:
            process.kill()
        is_left = Path(f"/proc/{server}").exists()
        if is_left:
            os.kill(server, signal.SIGKILL)
        assert status == 128 + signal.SIGTERM, process.stderr.read()
    assert not is_left


def asked_server_of(process: Started) -> int | None:
    """Returns the server of a benchmark, or None if the benchmark runs no compiler."""
    assert process.poll() is None
    commands = {}
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    for child in map(int, listed.split()):
        with contextlib.suppress(OSError):
            commands[child] = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
    servers = [child for child, words in commands.items() if b"serve" in words]
    compiles = any(words[0].startswith(b"clang") for words in commands.values())
    return servers[0] if servers and compiles else None


def test_a_hung_or_interrupted_compile_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    before = children()
    command = ["sleep", "60"]
    wait_for = toolchain.wait_for
    with monkeypatch.context() as patch:
        patch.setattr(toolchain, "wait_for", lambda p, what, *_: wait_for(p, what, 0.1))
        with pytest.raises(mlbridge.Timeout, match=r"sleep 60: no end"):
            processes.timed(command)
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        processes.timed(command)
    timer.join()
    assert children() == before


def test_what_a_process_takes_is_all_of_its_threads() -> None:
    """The CPU time includes threads that have ended."""
    script = (
        "import threading, time\n"
        "def work():\n"
        "    while time.thread_time() < 0.2: pass\n"
        "it = threading.Thread(target=work); it.start(); it.join()\n"
        "print('done', flush=True); input()\n"
    )
    with started([sys.executable, "-c", script]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"done\n"
        assert processes.cpu_seconds_of(process.pid) >= 0.2
    with pytest.raises(mlbridge.PeerClosed, match="has ended"):
        processes.cpu_seconds_of(process.pid)


def test_a_server_that_ends_says_why(tmp_path: Path) -> None:
    (tmp_path / "none.onnx").write_bytes(b"none")
    with (
        pytest.raises(mlbridge.PeerClosed, match=r"cannot\W+load"),
        phase_ordering.served(tmp_path / "none.onnx", f"shm:{tmp_path}/model"),
    ):
        pass


def test_a_worker_that_fails_ends_the_others() -> None:
    """The other workers start no further episodes."""
    played = []

    def step(action: int) -> Any:
        played.append(action)
        if action == 0:
            return None, 0.0, False, True, {"error": "it crashed"}
        time.sleep(0.02)
        return None, 0.0, False, False, {"text_size": 1}

    env = SimpleNamespace(reset=lambda **_: None, step=step, close=lambda: None)
    setting: Any = SimpleNamespace(make=lambda flow, modules: env)
    wanted = [Episode(Path(f"{n}.bc"), (n,) * 5) for n in (1, 0, *range(2, 200))]
    with pytest.raises(mlbridge.ModelError, match="it crashed"):
        training.play(setting, "shm", 2, wanted)
    assert len(played) < 20


def test_machine_code_is_only_made_where_it_is_wanted(
    policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_spec(name: str) -> object:
        return None if name == "emx_onnx_cgen" else name

    monkeypatch.setattr(mlbridge.extras, "find_spec", find_spec)
    with pytest.raises(mlbridge.Unsupported, match=r"emx_onnx_cgen.*scripts/make-venv"):
        need_packages("bench gym", None, None)
    need_packages("bench gym", ["onnx"], None)
    deployed = prepare(tmp_path, policy, EpisodeOptions(), seed=0)
    assert list(compile_time.flows(["onnx"], deployed, tmp_path)) == ["onnx"]
    assert not list(tmp_path.glob("*.so"))


def test_a_flow_without_grpc_says_what_to_do(
    policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlbridge._grpc", None)
    deployed = prepare(tmp_path, policy, EpisodeOptions(), seed=0)
    with pytest.raises(mlbridge.Unsupported, match=r"no gRPC.*--flow"):
        compile_time.flows(["shm", "gRPC"], deployed, tmp_path)
    setting = training.Setting(EpisodeOptions(), tmp_path)
    with pytest.raises(mlbridge.Unsupported, match=r"no gRPC.*--flow"):
        setting.make("gRPC", [])


@FULL
def test_training(corpus: Path, vocabulary: Path, tmp_path: Path) -> None:
    pytest.importorskip("mlbridge._grpc", reason="this build has no gRPC")
    output, rows = bench(
        tmp_path,
        *("training", "--modules", COUNT, "--episodes", "1", "--rounds", "1"),
        *("--steps", STEPS, "--iterations", "2", "--iteration-steps", "6"),
        *("--corpus", corpus, "--vocabulary", vocabulary),
        *("--flow", "original", "--flow", "gRPC", "--flow", "shm"),
    )
    assert "the size of the code is the same in all of our flows" in output
    assert [(row["flow"], row["workers"]) for row in rows] == [
        (flow, count) for count in (1, 2) for flow in ("original", "gRPC", "shm")
    ]
    for row in rows:
        assert row["states"] == COUNT * STEPS
        assert row["steps_per_second"] > 0
        first, second = row["iteration_seconds"]
        assert 0 < first < second


def test_the_stock_tools_see_what_the_plugin_sees(
    corpus: Path, vocabulary: Path, tmp_path: Path
) -> None:
    """The original flow uses the same model, so it needs the same features."""
    observation = ("histogram", "embedding", "step", "actions")
    module = corpus / "demo" / "large.bc"
    env = PhaseOrderingEnv(
        modules=[module], observation=observation, reward="none", vocabulary=vocabulary
    )
    options = EpisodeOptions("oz", observation, vocabulary=vocabulary)
    tools = OriginalTools(options, tmp_path)
    state, following = tmp_path / "a.bc", tmp_path / "b.bc"
    with contextlib.closing(env):
        seen: dict[str, Any] = env.reset()[0]
        tools.begin(module, state)
        taken: list[int] = []
        for action in (3, 0, 2, 8):
            found = tools.features(state, taken)
            assert list(found) == list(observation)
            for name in ("histogram", "step", "actions"):
                np.testing.assert_array_equal(found[name], seen[name])
            embedding = seen["embedding"]
            atol = 1e-5 * np.abs(embedding).max()
            np.testing.assert_allclose(found["embedding"], embedding, atol=atol)
            assert found["histogram"].sum() > 100
            taken.append(action)
            tools.act(action, state, following)
            state, following = following, state
            seen = env.step(action)[0]
    with pytest.raises(mlbridge.Unsupported, match="'counts'"):
        OriginalTools(EpisodeOptions(observation=("counts",)), tmp_path)


def test_a_sample_follows_from_its_seed(corpus: Path) -> None:
    both = Sample.draw(corpus, 2, 0)
    assert sorted(path.name for path in both.files) == ["large.bc", "small.bc"]
    assert both == Sample.draw(corpus, 2, 0)
    drawn = {Sample.draw(corpus, 1, seed).modules[0].name for seed in range(9)}
    assert drawn == {"large.bc", "small.bc"}
    says = "300 instructions or more and 6000 at most, fewer than 3"
    with pytest.raises(mlbridge.InvalidArgument, match=says):
        Sample.draw(corpus, 3, 0)


class MadeUp(Flow):
    """A flow that reports the times and actions passed to it.

    The object file that it builds returns `result`.
    """

    def __init__(self, seconds: list[float], actions: str, result: int) -> None:
        self._left = [seconds[0], *seconds]
        self._actions, self._result = actions, result

    def compile(self, module: Path, to: Path) -> Compiled:
        source = to.with_suffix(".c")
        source.write_text(f"int f(void) {{ return {self._result}; }}")
        toolchain.run(["clang-22", "-c", source, "-o", to])
        seconds = self._left.pop(0)
        return Compiled(seconds, seconds / 2, self._actions)


def made_up(tmp_path: Path, **flows: MadeUp) -> compile_time.Results:
    return compile_time.measure(
        Sample({tmp_path / "a.bc": 300}),
        {name.replace("stock", compile_time.STOCK): it for name, it in flows.items()},
        rounds=3,
        folder=tmp_path,
        on_compile=lambda: None,
    )


def test_medians_of_pairs(tmp_path: Path) -> None:
    results = made_up(
        tmp_path,
        original=MadeUp([10, 40, 30], "x y", 1),
        onnx=MadeUp([1, 8, 2], "x y", 2),
        stock=MadeUp([1, 1, 1], "", 3),
    )
    by_flow = {row["flow"]: row for row in compile_time.rows(results)}
    # In the three rounds, onnx is 10, 5 and 15 times as fast as the original flow. The
    # median times are 2 s and 30 s.
    assert by_flow["onnx"]["faster"]["geomean"] == 10
    assert by_flow["onnx"]["faster"]["total"] == 15
    assert by_flow["onnx"]["of_clang"]["total"] == 2
    assert by_flow["original"]["other_objects"] == 1
    (total, mean) = compile_time.bounds(results)
    assert total.holds
    assert mean.found == pytest.approx(0.1)
    assert "by original of 0 of 1 modules" in compile_time.agreement(results)


def test_a_flow_is_compared_with_the_best_server(tmp_path: Path) -> None:
    times = {"shm": [4.0, 8.0, 6.0], "pipe, JSON": [40.0] * 3, "onnx": [3.0, 4.0, 9.0]}
    results = made_up(
        tmp_path, **{name: MadeUp(each, "x", 1) for name, each in times.items()}
    )
    # The ratios to shm are 3/4, 4/8 and 9/6. The mean over one module is their median.
    relation = compile_time.to_served(results, "onnx")
    assert relation is not None
    assert relation.flow == "shm"
    assert [relation.mean, *relation.interval] == pytest.approx([0.75] * 3)
    (bound,) = compile_time.bounds(results)
    assert bound.holds
    assert (bound.subject, bound.against) == ("onnx", "shm")
    by_flow = {row["flow"]: row for row in compile_time.rows(results)}
    assert by_flow["onnx"]["of_served"]["cpu"] == 0.75
    assert "of_served" not in by_flow["shm"]
    alone = made_up(tmp_path, onnx=MadeUp(times["onnx"], "x", 1))
    assert compile_time.to_served(alone, "onnx") is None


def test_flows_that_do_not_agree(tmp_path: Path) -> None:
    times = [1.0] * 3
    with pytest.raises(mlbridge.ModelError, match="same actions"):
        made_up(tmp_path, original=MadeUp(times, "x", 1), onnx=MadeUp(times, "y", 1))
    with pytest.raises(mlbridge.ModelError, match="same object"):
        made_up(tmp_path, shm=MadeUp(times, "x", 1), onnx=MadeUp(times, "x", 2))


def test_steps_a_second() -> None:
    episode = Episode(Path("a.bc"), (1, 2, 3, 4))
    sizes: dict[Episode, tuple[int, ...]] = {episode: (9, 8, 7, 6)}
    results = training.Results(4)
    results.played["original", 1] = [Played(8, sizes, 6), Played(8, sizes, 6)]
    results.played["shm", 1] = [Played(1, sizes, 1), Played(2, sizes, 1)]
    results.played["shm", 2] = [Played(0.5, sizes, 1), Played(1, sizes, 1)]
    assert results.rate("shm", 1) == pytest.approx(4 / 1.5)
    rows = {(row["flow"], row["workers"]): row for row in training.rows(results)}
    assert rows["shm", 1]["faster_than_original"] == 6
    assert rows["shm", 2]["faster_than_one_worker"] == 2
    assert all(bound.holds for bound in training.bounds(results))


def test_other_code_is_noticed() -> None:
    episode = Episode(Path("a.bc"), (1,))
    results = training.Results(1)
    results.played["shm", 1] = [Played(1, {episode: (1000,)})]
    results.played["original", 1] = [Played(1, {episode: (1003,)})]
    training.check(results)
    assert (results.compared, results.different) == (2, 1)
    results.played["gRPC", 1] = [Played(1, {episode: (1003,)})]
    with pytest.raises(mlbridge.ModelError, match="expected code of"):
        training.check(results)
