# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Serving a policy: how it ends, what it counts, and what becomes of failures."""

import logging
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import mlbridge
from mlbridge import create_model_runner, serve, serving


def ask(name: str, count: int = 1, **features: Any) -> list[Any]:
    with create_model_runner(f"pipe:{name}?timeout=20s&connect=20s") as runner:
        return [runner.evaluate(features or {"x": i}, int) for i in range(count)]


def test_until_so_many_compilers_have_gone(name: str) -> None:
    with ThreadPoolExecutor() as executor:
        served = executor.submit(serve, lambda f: f["x"], f"pipe:{name}", sessions=2)
        assert ask(name, 3) == [0, 1, 2]
        assert not served.done()
        assert ask(name, 2) == [0, 1]
        statistics = served.result(20)
    assert (statistics.sessions, statistics.open, statistics.questions) == (2, 0, 5)
    assert (statistics.deferred, statistics.errors) == (0, 0)
    assert 0 < statistics.policy_microseconds < 1e6
    assert "5 questions of 2 compilers" in str(statistics)


def test_statistics_while_serving(name: str) -> None:
    statistics = mlbridge.Statistics()
    with ThreadPoolExecutor() as executor:
        served = executor.submit(
            serve, lambda f: f["x"], Path(name), sessions=1, statistics=statistics
        )
        with create_model_runner(f"pipe:{name}?timeout=20s") as runner:
            runner.evaluate({"x": 1})
            runner.evaluate({"x": 1})
            assert statistics.questions >= 1
            assert statistics.open == 1
        assert served.result(20) is statistics


def test_timeout(name: str) -> None:
    started = time.monotonic()
    with pytest.raises(mlbridge.Timeout, match=name):
        serve(lambda f: 0, f"pipe:{name}", timeout=0.3)
    with pytest.raises(mlbridge.Timeout, match=name):
        serve(lambda f: 0, f"pipe:{name}", timeout=0.3, sessions=1)
    assert 0.6 <= time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("spec", "kind", "says"),
    [
        ("pipe:", mlbridge.InvalidArgument, "name"),
        ("onnx:model.onnx", mlbridge.Unsupported, "onnx"),
        ("pipe:/tmp/x?color=red", mlbridge.InvalidArgument, "color"),
        ("pipe:/tmp/x?bare=maybe", mlbridge.InvalidArgument, "maybe"),
        ("pipe:/tmp/x?max-message=much", mlbridge.InvalidArgument, "much"),
        ("pipe:/tmp/x?serdes=morse", mlbridge.Error, "morse"),
        ("%", mlbridge.InvalidArgument, "%"),
    ],
)
def test_wrong_specs(spec: str, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        serve(lambda f: 0, spec)


def test_wrong_on_error(name: str) -> None:
    with pytest.raises(ValueError, match="ignore"):
        serve(lambda f: 0, f"pipe:{name}", on_error="ignore")  # type: ignore[arg-type]


def test_a_policy_that_fails(name: str, caplog: pytest.LogCaptureFixture) -> None:
    def policy(features: mlbridge.Features) -> int:
        if features["x"] == 1:
            raise KeyError("callee")
        return 7

    with (
        serving(policy, f"pipe:{name}") as served,
        create_model_runner(f"pipe:{name}?timeout=20s") as runner,
    ):
        assert runner.evaluate({"x": 0}, int) == 7
        for _ in range(3):
            with pytest.raises(mlbridge.ModelError, match="KeyError: 'callee'"):
                runner.evaluate({"x": 1}, int)
        assert runner.evaluate({"x": 2}, int) == 7
    assert served.statistics.errors == 3
    assert served.statistics.questions == 5
    failures = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(failures) == 3
    assert all(record.name == "mlbridge" for record in failures)
    assert str(os.getpid()) in failures[0].getMessage()
    # The traceback is told once.
    assert [bool(record.exc_info) for record in failures] == [True, False, False]


def test_a_policy_whose_failure_ends_serving(name: str) -> None:
    def policy(features: mlbridge.Features) -> int:
        raise ZeroDivisionError("on purpose")

    with (
        pytest.raises(ZeroDivisionError, match="on purpose"),
        serving(policy, f"pipe:{name}", on_error="raise"),
        pytest.raises(mlbridge.ModelError, match="on purpose"),
    ):
        ask(name)


def test_the_body_of_serving_may_fail(name: str) -> None:
    with pytest.raises(ValueError, match="mine"), serving(lambda f: 0, f"pipe:{name}"):
        raise ValueError("mine")


def test_the_longest_message(name: str) -> None:
    with (
        serving(lambda f: 0, f"pipe:{name}?max-message=64KiB") as served,
        create_model_runner(f"pipe:{name}?timeout=20s") as runner,
    ):
        assert runner.evaluate({"x": [1.0] * 1000}, int) == 0
        with pytest.raises(mlbridge.Error):
            runner.evaluate({"x": [1.0] * 100_000}, int)
        assert runner.evaluate({"x": [1.0] * 1000}, int) == 0
    assert served.statistics.sessions == 2


def test_waiting_leaves_the_interpreter_to_others(name: str) -> None:
    counted = 0
    with (
        mlbridge.PipeCompilerInterface(name, timeout=0.5) as interface,
        ThreadPoolExecutor() as executor,
    ):
        waiting = executor.submit(interface.evaluate)
        while not waiting.done():
            counted += 1
        assert isinstance(waiting.exception(), mlbridge.Timeout)
    assert counted > 10_000


SERVER = """
import sys, mlbridge
print("ready", flush=True)
statistics = mlbridge.serve(lambda f: f["x"], sys.argv[1])
print(statistics.questions, flush=True)
"""


@pytest.mark.parametrize("questions", [0, 3])
@pytest.mark.parametrize(
    ("number", "status", "prints"),
    [(signal.SIGINT, 0, "{questions}\n"), (signal.SIGTERM, 128 + signal.SIGTERM, "")],
)
def test_a_signal_ends_cleanly(
    name: str, questions: int, number: signal.Signals, status: int, prints: str
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, f"pipe:{name}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        while not Path(f"{name}.sock").exists():
            time.sleep(0.01)
        if questions:
            ask(name, questions)
        time.sleep(0.2)
        started = time.monotonic()
        process.send_signal(number)
        assert process.wait(20) == status
        assert time.monotonic() - started < 5
        assert process.stdout.read() == prints.format(questions=questions)
        assert process.stderr.read() == ""
    assert list(Path(name).parent.iterdir()) == []


def test_ctrl_c_in_the_papers_loop(name: str) -> None:
    """There it is raised, and leaving the ``with`` cleans up."""
    code = (
        "import sys, mlbridge\n"
        "with mlbridge.PipeCompilerInterface(sys.argv[1]) as interface:\n"
        "    print('ready', flush=True)\n"
        "    interface.evaluate()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) != 0
        assert "KeyboardInterrupt" in process.stderr.read()
    assert list(Path(name).parent.iterdir()) == []


def test_a_server_takes_over_from_a_killed_one(name: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, f"pipe:{name}"], stdout=subprocess.PIPE
    ) as process:
        while not Path(f"{name}.sock").exists():
            time.sleep(0.01)
        process.kill()
    assert Path(f"{name}.sock").exists()
    with serving(lambda f: 2, f"pipe:{name}"):
        assert ask(name) == [2]
