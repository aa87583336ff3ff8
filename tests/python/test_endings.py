# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An interpreter that exits while its threads are in the library."""

import time

import pytest

import mlbridge
from mlbridge import serving
from programs import SCHEMES, run_python

SERVE_SCHEMES = [SCHEMES[0], SCHEMES[-1]]

PROGRAM = """
import sys, threading, time
import mlbridge

where, name = sys.argv[1], sys.argv[2]
begun = threading.Event()

def in_thread(function):
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread

{body}
"""
"""The interpreter exits after the body."""

SERVE = """
in_thread(lambda: mlbridge.serve(lambda f: f["x"], where))
with mlbridge.create_model_runner(where) as runner:
    assert runner.evaluate({"x": 7}, int) == 7
"""
SERVERS = {
    "serve": SERVE,
    "serving that is not ended": """
context = mlbridge.serving(lambda f: f["x"], where)
context.__enter__()
""",
    "the paper's loop": """
def loop():
    make = mlbridge.PipeCompilerInterface
    if where.startswith("grpc"):
        make = mlbridge.GRPCCompilerInterface
    with make(where.removeprefix("pipe:")) as interface:
        for features in interface:
            interface.populate_buffer(features["x"])

in_thread(loop)
runner = mlbridge.create_model_runner(where)
assert runner.evaluate({"x": 7}, int) == 7
""",
    "many": """
for i in range(8):
    spec = f"{where}{i}" if i else where
    in_thread(lambda: mlbridge.serve(lambda f: f["x"], spec))
    with mlbridge.create_model_runner(spec) as runner:
        assert runner.evaluate({"x": 7}, int) == 7
""",
    "an end that takes time": """
class Slow:
    def __del__(self):
        sleep(0.5)

slow, sleep = Slow(), time.sleep
"""
    + SERVE,
}

COMPUTES = """
def policy(features):
    begun.set()
    time.sleep(60)

in_thread(lambda: mlbridge.serve(policy, where))
runner = mlbridge.create_model_runner(where)
in_thread(lambda: runner.evaluate({"x": 1}))
begun.wait()
"""

RUNNERS = {
    "while it waits for a server": """
runner = mlbridge.create_model_runner(where + "no?connect=inf")
in_thread(lambda: runner.evaluate({"x": 1}))
time.sleep(0.3)
""",
    "while the model thinks": """
runner = mlbridge.create_model_runner(where + "?timeout=inf")
assert runner.evaluate({"slow": False}, int) == 1
in_thread(lambda: runner.evaluate({"slow": True}))
time.sleep(0.3)
""",
}


def run(scheme: str, name: str, body: str) -> float:
    """Returns the program's duration in seconds. The program must print no errors."""
    started = time.monotonic()
    program = PROGRAM.replace("{body}", body)
    done = run_python(program, f"{scheme}:{name}", name, timeout=20)
    assert (done.stderr, done.returncode) == ("", 0)
    return time.monotonic() - started


@pytest.mark.parametrize("what", SERVERS)
@pytest.mark.parametrize("scheme", SERVE_SCHEMES)
def test_a_thread_that_serves(name: str, scheme: str, what: str) -> None:
    """The fixture `name` checks that no file is left."""
    assert run(scheme, name, SERVERS[what]) < 10


@pytest.mark.parametrize("scheme", SERVE_SCHEMES)
def test_a_policy_that_computes(
    tmp_path_factory: pytest.TempPathFactory, scheme: str
) -> None:
    """The interpreter exits although the policy cannot be stopped."""
    name = str(tmp_path_factory.mktemp("m") / "model")
    assert run(scheme, name, COMPUTES) < 10


@pytest.mark.parametrize("what", RUNNERS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_thread_that_asks(name: str, scheme: str, what: str) -> None:
    def policy(features: mlbridge.Features) -> int:
        if features["slow"]:
            time.sleep(3)
        return 1

    with serving(policy, f"{scheme}:{name}"):
        assert run(scheme, name, RUNNERS[what]) < 10


@pytest.mark.parametrize(
    "start",
    [
        "threading.Thread(target=wait, daemon=True).start()",
        "threading.Thread(target=wait, args=(runner,), daemon=True).start()",
        "_thread.start_new_thread(wait, ())",
    ],
)
def test_a_thread_that_is_not_in_the_library(name: str, start: str) -> None:
    """The thread and its objects outlive the interpreter."""
    body = "import _thread\nwait = lambda *_: (begun.set(), time.sleep(60))\n"
    body += f"runner = mlbridge.create_model_runner('none')\n{start}\nbegun.wait()\n"
    assert run("pipe", name, body) < 10


def test_a_leak_is_reported() -> None:
    """Without reports, the tests above could not find leaks."""
    leak = (
        "import ctypes, mlbridge\n"
        "runner = mlbridge.create_model_runner('none')\n"
        "ctypes.pythonapi.Py_IncRef(ctypes.py_object(runner._runner))\n"
    )
    done = run_python(leak, timeout=20, check=True)
    assert "nanobind: leaked 1 instances" in done.stderr
