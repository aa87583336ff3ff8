# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that fork: a child does not affect its parent's runners and servers.

Children of `in_child` end with os._exit, and other programs' children with SystemExit.
"""

import gc
import multiprocessing
import os
import signal
import subprocess
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import aot_models
import mlbridge
from mlbridge import create_model_runner, serving
from mlbridge.files import OwnFolder
from programs import PATIENCE, Started, in_threads, needs_grpc, run_python, until


def in_child(body: Callable[[], None]) -> None:
    """Runs the body in a forked child. Fails the test if the body raises or hangs."""
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
    try:
        ended = until(lambda: wait_for(child), "the child hangs")
    except AssertionError:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    assert ended == (child, 0)


def wait_for(child: int) -> tuple[int, int] | None:
    """Returns a child's pid and wait status, or None if the child has not ended."""
    ended = os.waitpid(child, os.WNOHANG)
    return ended if ended[0] else None


def run(program: str, *arguments: str | Path) -> str:
    """Runs a forking program, which must print no errors. Returns its output."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = run_python(program, *arguments, env=environment)
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout


@pytest.mark.parametrize("scheme", ["pipe", "shm"])
def test_a_runner_that_a_thread_of_the_parent_uses(name: str, scheme: str) -> None:
    """The child may use the runner, because the child lacks that thread."""
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
        # End like multiprocessing, because ONNX Runtime's exit handler would wait for a
        # thread that the child lacks.
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


def test_a_model_in_this_process(tmp_path: Path) -> None:
    """A child loads the model again, because threads may hold the parent's locks."""
    onnx.save(aot_models.mlp(), tmp_path / "mlp.onnx")
    assert run(ONNX, f"onnx:{tmp_path}/mlp.onnx") == ""


@pytest.mark.parametrize("scheme", ["pipe", "shm"])
def test_runners_of_multiprocessing(name: str, scheme: str) -> None:
    """Three children and their parent send requests with one runner to one server."""
    with (
        serving(lambda f: f["x"] * 2, f"pipe:{name}"),
        create_model_runner(f"{scheme}:{name}?timeout=20s") as runner,
    ):
        assert runner.evaluate({"x": 1}, int) == 2

        def ask(first: int) -> None:
            for x in range(first, first + 50):
                assert runner.evaluate({"x": x}, int) == 2 * x

        context = multiprocessing.get_context("fork")
        children = [context.Process(target=ask, args=(1000 * n,)) for n in (1, 2, 3)]
        for child in children:
            child.start()
        ask(0)
        for child in children:
            child.join(PATIENCE)
            assert child.exitcode == 0


@needs_grpc
def test_grpc_says_that_it_does_not_work_in_a_child(name: str) -> None:
    spec = f"grpc+unix:{name}"
    echo = "import sys, mlbridge; mlbridge.serve(lambda f: f['x'], sys.argv[1])"
    with Started(echo, spec) as server:
        with create_model_runner(f"{spec}?timeout=20s&connect=20s") as runner:
            assert runner.evaluate({"x": 1}, int) == 1

            def body() -> None:
                with pytest.raises(mlbridge.Unsupported, match="forked"):
                    runner.evaluate({"x": 1}, int)
                runner.close()

            in_child(body)
            assert runner.evaluate({"x": 2}, int) == 2
        server.terminate()


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


@pytest.mark.parametrize(
    "scheme", ["pipe", pytest.param("grpc+unix", marks=needs_grpc)]
)
def test_a_child_that_leaves_serving(name: str, scheme: str) -> None:
    """The child does not wait for threads that only the parent has."""
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
        with context.Pool(2) as pool:      # Ends its workers by SIGTERM.
            return sum(pool.map(work, [1, 2]))
    if features["how"] == "handler":
        with context.Pool(1) as pool:
            default = pool.apply(signal.getsignal, [signal.SIGTERM])
        return int(default is signal.SIG_DFL)
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


SIGNALLED = -signal.SIGTERM


@pytest.mark.parametrize(
    ("how", "reply"),
    [
        ("pool", 6),
        ("handler", 1),
        ("SIGTERM", SIGNALLED),
        ("at once", SIGNALLED),
        ("SIGINT", 1),
    ],
)
def test_a_policy_that_forks(name: str, how: str, reply: int) -> None:
    """Signals that shut the server down end the policy's children."""
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


@pytest.fixture
def envs() -> Any:
    pytest.importorskip("gymnasium", reason="needs scripts/make-venv train")
    import compilers

    return compilers


@pytest.mark.parametrize("spec", ["pipe", "shm"])
def test_an_environment(envs: Any, spec: str) -> None:
    """A child starts its own compiler on its first reset."""
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
    """A child keeps the parent's socket, to which the compiler connects later."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with envs.compiler_env("pipe") as env:
        env.launch()

        def body() -> None:
            env.close()
            del env._session
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
@pytest.mark.parametrize("spec", ["pipe", "shm"])
def test_a_child_that_ends(envs: Any, spec: str, when: str) -> None:
    run(ENDS, spec, when)


def test_a_vector_of_environments(envs: Any) -> None:
    from mlbridge.envs import make_vec

    vector = make_vec(2, [envs.PROGRAM], "shm", **envs.COUNT_SPACES)
    actions = np.zeros(2, np.int64)
    vector.reset()
    vector.step(actions)

    def body() -> None:
        vector.reset()
        assert list(vector.step(actions)[0]["count"]) == [1, 1]
        vector.close()

    in_child(body)
    assert list(vector.step(actions)[0]["count"]) == [2, 2]
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


def test_a_compile_by_stock_llvm(sources: Path) -> None:
    assert int(run(STOCK, sources / "calls.c", sources / "a.o")) > 0


def test_folders_of_ones_own(leaves_nothing: Path) -> None:
    folder = OwnFolder("mlbridge-test-")
    assert folder.path.parent == leaves_nothing
    in_child(folder.close)
    assert folder.path.is_dir()
    folder.close()
    folder.close()
    assert list(leaves_nothing.iterdir()) == []
    forgotten = OwnFolder("mlbridge-test-")
    path = forgotten.path
    del forgotten
    assert not path.exists()
