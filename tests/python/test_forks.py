# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that fork: a child leaves alone what its parent has, and has its own.

Children of `in_child` end by os._exit; the programs LEAVES, ENDS and STOCK by
SystemExit.
"""

import multiprocessing
import os
import signal
import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import aot_models
import mlbridge
from mlbridge import create_model_runner, serving
from programs import (
    PATIENCE,
    SCHEMES,
    Started,
    in_threads,
    needs_grpc,
    run_python,
    until,
)


def in_child(body: Callable[[], None]) -> None:
    """Runs the body in a forked child, whose exceptions are failures of this test."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            body()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert wait_for(child) == 0


def wait_for(child: int) -> int:
    """How a child ends, which must not take for ever."""
    status: list[int] = []

    def has_ended() -> bool:
        pid, found = os.waitpid(child, os.WNOHANG)
        status.append(found)
        return bool(pid)

    try:
        until(has_ended, "the child hangs")
    except AssertionError:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    return os.waitstatus_to_exitcode(status[-1])


def run(program: str, *arguments: str) -> str:
    """What a program of its own says, which forks and ends well."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = run_python(program, *arguments, env=environment)
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout


# Runners


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "mlp.onnx"
    onnx.save(aot_models.MODELS["mlp"](), path)
    return path


@pytest.mark.parametrize("scheme", ["pipe", "shm"])
def test_a_runner_that_a_thread_of_the_parent_uses(name: str, scheme: str) -> None:
    """That thread is not in the child, and uses nothing there."""
    asked = threading.Event()

    def policy(features: mlbridge.Features) -> int:
        if features["x"] == 0:
            asked.set()
            time.sleep(1)
        return int(features["x"])

    with (
        serving(policy, f"pipe:{name}"),
        create_model_runner(f"{scheme}:{name}?timeout=20s") as runner,
        ThreadPoolExecutor() as executor,
    ):

        def ask(x: int) -> Any:
            return runner.evaluate({"x": x}, int)

        reply = executor.submit(ask, 0)
        assert asked.wait(PATIENCE)
        with pytest.raises(mlbridge.InvalidArgument, match="by another thread"):
            ask(1)

        def body() -> None:
            assert ask(5) == 5
            replies: list[int] = []
            for _ in range(2):
                in_threads(lambda _: replies.append(ask(6)), 1)
            assert replies == [6, 6]
            runner.close()

        in_child(body)
        assert reply.result(PATIENCE) == 0
        assert ask(2) == 2


ONNX = """
import os, sys, threading, time
import numpy as np, mlbridge

def ask():
    with mlbridge.create_model_runner(sys.argv[1]) as runner:
        return runner.evaluate({"x": np.ones((1, 300), np.float32)})["logits"]

before = ask()
stopped = False
def loop():
    while not stopped:
        ask()

threads = [threading.Thread(target=loop) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(40):
    child = os.fork()
    if child == 0:
        # As multiprocessing ends: ONNX Runtime's own exit handler waits for a thread
        # that the child has not.
        os._exit(7 if np.array_equal(ask(), before) else 1)
    until, pid = time.monotonic() + 5, 0
    while not pid and time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.001)
    if not pid:
        os.kill(child, 9)
        os.waitpid(child, 0)
        print("a child hangs")
    elif os.waitstatus_to_exitcode(status) != 7:
        print("a child fails")
stopped = True
for thread in threads:
    thread.join()
"""


def test_a_model_in_this_process(model: Path) -> None:
    """A child loads the model itself: other threads may have locked the parent's."""
    assert run(ONNX, f"onnx:{model}") == ""


ECHO = "import sys, mlbridge; mlbridge.serve(lambda f: f['x'], sys.argv[1])"


@pytest.mark.parametrize("scheme", ["pipe", "shm"])
def test_runners_of_multiprocessing(name: str, scheme: str) -> None:
    """Four children and their parent ask the same server by the same runner."""
    with (
        serving(lambda f: f["x"] * 2, f"pipe:{name}"),
        create_model_runner(f"{scheme}:{name}?timeout=20s") as runner,
    ):
        assert runner.evaluate({"x": 1}, int) == 2

        def ask(first: int) -> None:
            for x in range(first, first + 50):
                assert runner.evaluate({"x": x}, int) == 2 * x

        context = multiprocessing.get_context("fork")
        children = [
            context.Process(target=ask, args=(1000 * number,)) for number in (1, 2, 3)
        ]
        for child in children:
            child.start()
        ask(0)
        for child in children:
            child.join(PATIENCE)
            assert child.exitcode == 0


@needs_grpc
def test_grpc_says_that_it_does_not_work_in_a_child(name: str) -> None:
    spec = f"grpc+unix:{name}"
    with Started(ECHO, spec) as server:
        with create_model_runner(f"{spec}?timeout=20s&connect=20s") as runner:
            assert runner.evaluate({"x": 1}, int) == 1

            def body() -> None:
                with pytest.raises(mlbridge.Unsupported, match="forked"):
                    runner.evaluate({"x": 1}, int)
                runner.close()

            in_child(body)
            assert runner.evaluate({"x": 2}, int) == 2
        server.terminate()


# Servers


def test_a_child_does_not_serve_its_parents_compilers(name: str) -> None:
    with (
        mlbridge.PipeCompilerInterface(name, timeout=PATIENCE) as interface,
        create_model_runner(f"pipe:{name}?timeout=20s") as runner,
        ThreadPoolExecutor() as executor,
    ):

        def body() -> None:
            with pytest.raises(mlbridge.InvalidArgument, match="was forked"):
                interface.evaluate()
            with pytest.raises(mlbridge.InvalidArgument, match="was forked"):
                interface.evaluate(mode="exit")
            interface.close()
            with (
                mlbridge.PipeCompilerInterface(f"{name}2", timeout=0.1) as own,
                pytest.raises(mlbridge.Timeout),
            ):
                own.evaluate()

        in_child(body)
        assert Path(f"{name}.sock").exists()
        with serving(lambda f: f["x"], f"pipe:{name}3"):
            pass
        reply = executor.submit(runner.evaluate, {"x": 7})
        interface.populate_buffer(interface.evaluate()["x"])
        interface.evaluate(mode="exit")
        assert reply.result(PATIENCE) == 7


LEAVES = """
import os, sys, mlbridge
place = sys.argv[1]
with mlbridge.serving(lambda f: f["x"], place) as served:
    with mlbridge.create_model_runner(place) as runner:
        assert runner.evaluate({"x": 7}, int) == 7
        runner.close()
        child = os.fork()
        if child == 0:
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    with mlbridge.create_model_runner(place) as runner:
        assert runner.evaluate({"x": 8}, int) == 8
"""


@pytest.mark.parametrize("scheme", ["pipe", SCHEMES[-1]])
def test_a_child_that_leaves_serving(name: str, scheme: str) -> None:
    """It has none of the threads that would have to be waited for."""
    run(LEAVES, f"{scheme}:{name}")


POOL = """
import multiprocessing, os, signal, sys, time, mlbridge

def work(x):
    return 2 * x

def wait():
    time.sleep(60)

def policy(features):
    context = multiprocessing.get_context("fork")
    if features["how"] == "pool":
        with context.Pool(2) as pool:      # ends its workers by SIGTERM
            return sum(pool.map(work, [1, 2]))
    if features["how"] == "at once":
        children = []
        for _ in range(20):
            child = os.fork()
            if child == 0:
                time.sleep(1)
                os._exit(3)
            os.kill(child, signal.SIGTERM)
            children.append(child)
        ends = {os.waitstatus_to_exitcode(os.waitpid(c, 0)[1]) for c in children}
        return ends.pop() if len(ends) == 1 else 0
    worker = context.Process(target=wait)
    worker.start()
    time.sleep(0.1)
    os.kill(worker.pid, getattr(signal, features["how"]))
    worker.join(10)
    return worker.exitcode

mlbridge.serve(policy, sys.argv[1], sessions=1)
print("served")
"""


@pytest.mark.parametrize(
    ("how", "answer"),
    [
        ("pool", 6),
        ("SIGTERM", -signal.SIGTERM),
        ("at once", -signal.SIGTERM),
        ("SIGINT", 1),
    ],
)
def test_a_policy_that_forks(name: str, how: str, reply: int) -> None:
    """Its children end by the signals that would end the server in order."""
    with (
        Started(POOL, f"pipe:{name}", stderr=subprocess.DEVNULL) as server,
        create_model_runner(f"pipe:{name}?timeout=20s&connect=20s") as runner,
    ):
        try:
            assert runner.evaluate({"how": how}, int) == reply
            runner.close()
            assert server.communicate(timeout=PATIENCE)[0] == "served\n"
        finally:
            server.kill()


# Environments


@pytest.fixture
def envs() -> Any:
    pytest.importorskip("gymnasium", reason="needs scripts/make-venv train")
    import compilers

    return compilers


@contextmanager
def own_tempdir(monkeypatch: pytest.MonkeyPatch, path: Path) -> Iterator[Path]:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(path))
    yield path


SPECS = ["pipe", "shm"]


@pytest.mark.parametrize("spec", SPECS)
def test_an_environment(envs: Any, spec: str) -> None:
    """A child has a compiler of its own, from its first reset on."""
    with envs.compiler_env(spec) as env:
        env.reset(seed=1)
        env.step(0)
        parents = env.pid

        def body() -> None:
            pid = env.pid
            assert pid is None
            with pytest.raises(mlbridge.InvalidArgument, match="reset"):
                env.step(0)
            assert env.reset()[0] == {"count": 0}
            assert env.pid not in (parents, None)
            for count in (1, 2, 3):
                assert env.step(0)[0] == {"count": count}
            env.close()

        in_child(body)
        assert env.pid == parents
        assert env.step(0)[0] == {"count": 2}
        assert env.starts == 1


def test_an_environment_of_which_the_compiler_has_not_come(
    envs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name where it is met is the parent's."""
    with own_tempdir(monkeypatch, tmp_path), envs.compiler_env("pipe") as env:
        env.launch()

        def body() -> None:
            env.close()
            del env._session
            import gc

            gc.collect()

        in_child(body)
        assert env.reset()[0] == {"count": 0}
        assert env.starts == 1


ENDS = """
import os, sys
import gymnasium
from compilers import COUNT, PROGRAM
from mlbridge.envs import CompilerEnv
env = CompilerEnv([PROGRAM], sys.argv[1], observation_space=COUNT,
                  action_space=gymnasium.spaces.Discrete(2))
if sys.argv[2] == "before":
    env.launch()
else:
    env.reset()
child = os.fork()
if child == 0:
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
if sys.argv[2] == "before":
    env.reset()
assert env.step(0)[0] == {"count": 1}
assert env.starts == 1
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("spec", SPECS)
def test_a_child_that_ends(envs: Any, spec: str, when: str) -> None:
    run(ENDS, spec, when)


def test_a_vector_of_environments(envs: Any) -> None:
    from gymnasium import spaces

    from mlbridge.envs import make_vec

    spaces_of = {"observation_space": envs.COUNT, "action_space": spaces.Discrete(3)}
    vector = make_vec(2, [envs.PROGRAM], "shm", **spaces_of)
    vector.reset()
    vector.step(np.zeros(2, np.int64))

    def body() -> None:
        vector.reset()
        assert list(vector.step(np.zeros(2, np.int64))[0]["count"]) == [1, 1]
        vector.close()

    in_child(body)
    assert list(vector.step(np.zeros(2, np.int64))[0]["count"]) == [2, 2]
    vector.close()


STOCK = """
import os, sys, mlbridge
command = ["clang-22", "-Oz", "-c", sys.argv[1], "-o", sys.argv[2]]
with mlbridge.InteractiveCompilerInterface(command, "inliner") as compile:
    compile.evaluate()
    child = os.fork()
    if child == 0:
        for use in (compile.evaluate, lambda: compile.populate_buffer(0)):
            try:
                use()
            except mlbridge.InvalidArgument as error:
                assert "was forked" in str(error), error
            else:
                raise AssertionError
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    compile.populate_buffer(0)
    for features in compile:
        compile.populate_buffer(0)
    print(compile.result.decisions)
"""


def test_a_compile_by_stock_llvm(tmp_path: Path) -> None:
    source = tmp_path / "a.c"
    source.write_text(
        "static int f(int x) { return x * x + 1; }\n"
        "static int g(int x) { return f(x) + f(x + 1); }\n"
        "int h(int x) { return g(x) + g(x + 2) + f(x); }\n"
    )
    assert int(run(STOCK, str(source), str(tmp_path / "a.o"))) > 0


def test_folders_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlbridge.files import OwnFolder

    with own_tempdir(monkeypatch, tmp_path):
        folder = OwnFolder("mlbridge-test-")
        assert folder.path.parent == tmp_path
        in_child(folder.close)
        assert folder.path.is_dir()
        folder.close()
        folder.close()
        assert list(tmp_path.iterdir()) == []
        forgotten = OwnFolder("mlbridge-test-")
        path = forgotten.path
        del forgotten
        assert not path.exists()
