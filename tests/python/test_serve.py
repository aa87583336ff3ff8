# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Serving a policy: the end, the statistics, and failures of the policy."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlbridge
from mlbridge import create_model_runner, serve, serving
from programs import SCHEMES, Started, asked, asked_at, raising, reply_of, until


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
    found = (statistics.sessions, statistics.open, statistics.requests)
    assert (*found, statistics.deferred, statistics.errors) == (2, 0, 5, 0, 0)
    assert 0 < statistics.policy_microseconds < 1e6
    assert "5 requests of 2 compilers" in str(statistics)


def test_statistics_while_serving(name: str) -> None:
    statistics = mlbridge.Statistics()
    options: Any = {"sessions": 1, "statistics": statistics}
    with ThreadPoolExecutor() as executor:
        served = executor.submit(serve, lambda f: f["x"], Path(name), **options)
        with create_model_runner(f"pipe:{name}?timeout=20s") as runner:
            runner.evaluate({"x": 1})
            runner.evaluate({"x": 1})
            assert statistics.requests >= 1
            assert statistics.open == 1
        assert served.result(20) is statistics


def test_timeout(name: str) -> None:
    started = time.monotonic()
    for sessions in (None, 1):
        with pytest.raises(mlbridge.Timeout, match=name):
            serve(lambda f: 0, f"pipe:{name}", timeout=0.3, sessions=sessions)
    assert 0.6 <= time.monotonic() - started < 5


@pytest.mark.parametrize("at", ["pipe", "shm"])
def test_compilers_choose_how_they_come(name: str, at: str) -> None:
    with serving(lambda f: f["x"] + 1, f"{at}:{name}"):
        for by in ("pipe", "shm"):
            with create_model_runner(f"{by}:{name}?timeout=20s") as runner:
                assert [runner.evaluate({"x": i}, int) for i in range(3)] == [1, 2, 3]
        assert Path(f"{name}.in").exists() == (at == "pipe")


@pytest.mark.parametrize(
    ("spec", "kind", "says"),
    [
        ("pipe:", mlbridge.InvalidArgument, "name"),
        ("shm:", mlbridge.InvalidArgument, "name"),
        ("shm:/tmp/x?bare=yes", mlbridge.InvalidArgument, "bare"),
        ("onnx:model.onnx", mlbridge.Unsupported, "onnx"),
        ("pipe:/tmp/x?color=red", mlbridge.InvalidArgument, "color"),
        ("pipe:/tmp/x?bare=maybe", mlbridge.InvalidArgument, "maybe"),
        ("pipe:/tmp/x?max-message=much", mlbridge.InvalidArgument, "much"),
        ("pipe:/tmp/x?max-sessions=0", mlbridge.InvalidArgument, "1 or more"),
        ("shm:/tmp/x?max-sessions=-1", mlbridge.InvalidArgument, "'-1'"),
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


def sevens(failure: Callable[[], Exception]) -> mlbridge.Policy:
    """Returns a policy that returns 7, but fails if x is 1."""

    def policy(features: mlbridge.Features) -> int:
        if features["x"] == 1:
            raise failure()
        return 7

    return policy


def test_a_policy_that_fails(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with asked(sevens(lambda: KeyError("callee")), name) as (served, runner):
        assert runner.evaluate({"x": 0}, int) == 7
        for _ in range(3):
            with pytest.raises(mlbridge.ModelError, match="KeyError: 'callee'"):
                runner.evaluate({"x": 1}, int)
        assert runner.evaluate({"x": 2}, int) == 7
    assert (served.statistics.errors, served.statistics.requests) == (3, 5)
    first, rest = failures_in(caplog)
    assert str(os.getpid()) in first.getMessage()
    assert (bool(first.exc_info), bool(rest.exc_info)) == (True, False)
    assert "on 2 more requests, 3 in all; the last was" in rest.getMessage()
    assert "KeyError: 'callee'" in rest.getMessage()


def failures_in(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    found = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert all(record.name == "mlbridge" for record in found)
    return found


@pytest.mark.parametrize("is_batched", [False, True])
def test_failures_are_told_of_rarely(
    name: str, is_batched: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has few lines for many failures, because more would flood the log."""
    policy: Any = raising(lambda f: ValueError(f"on request {f['x']}"))
    many = mlbridge.batched(lambda requests: [policy(q) for q in requests])
    with asked(many if is_batched else policy, name) as (served, runner):
        for x in range(346):
            with pytest.raises(mlbridge.ModelError, match=f"on request {x}$"):
                runner.evaluate({"x": x}, int)
    assert served.statistics.errors == 346
    records = failures_in(caplog)
    assert len(records) <= 3, "one with a traceback, one in five seconds, and the total"
    assert records[0].exc_info
    assert "346 in all" in records[-1].getMessage()
    assert "on request 345" in records[-1].getMessage()


def test_each_failure_is_told_of(name: str, caplog: pytest.LogCaptureFixture) -> None:
    def policy(features: mlbridge.Features) -> int:
        if features["x"] % 2:
            raise ValueError("odd")
        return int(1 / features["absent"])

    with asked(policy, name) as (_, runner):
        for x in range(10):
            with pytest.raises(mlbridge.ModelError):
                runner.evaluate({"x": x}, int)
    even, odd, rest = failures_in(caplog)
    for record, says in ((even, "KeyError"), (odd, "odd")):
        assert says in record.getMessage()
        assert record.exc_info
    assert "on 8 more requests, 10 in all" in rest.getMessage()


def test_what_compilers_send_is_not_logged_as_it_is(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A failure may quote megabytes or terminal escape sequences from a compiler."""
    policy = raising(lambda f: ValueError(f"no callee {f['name']}"))
    with asked(policy, name) as (_, runner):
        for text in ("\x1b[2J" * 100_000, "\n\x1b[2J" * 100_000):
            with pytest.raises(mlbridge.ModelError, match="no callee"):
                runner.evaluate({"name": text})
    told = [logging.Formatter().format(record) for record in failures_in(caplog)]
    assert "Traceback" in told[0]
    assert r"no callee \x1b[2J" in told[0]
    for line in told:
        assert "\x1b" not in line
        assert len(line) < 20_000


def test_a_log_that_is_slow(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compilers do not wait for the log."""
    answered = threading.Event()
    in_time: list[bool] = []

    class Slow(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            in_time.append(answered.wait(20))

    policy = raising(lambda _: ValueError("no weights"))
    monkeypatch.setattr(
        logging.getLogger("mlbridge"), "handlers", [Slow(logging.ERROR)]
    )
    spec = f"pipe:{name}?timeout=60s"
    with asked_at(policy, f"pipe:{name}", spec) as (served, runner):
        with pytest.raises(mlbridge.ModelError, match="no weights"):
            runner.evaluate({"x": 1})
        answered.set()
    assert in_time == [True]
    assert served.statistics.errors == 1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_name_that_is_not_utf_8(name: str, scheme: str) -> None:
    """The name may be spelled as os.fsdecode does, or percent-encoded in a spec."""
    odd = name + os.fsdecode(b"\xff\x80")
    place = Path(odd) if scheme == "pipe" else f"{scheme}:{odd}"
    with serving(lambda f: f["x"], place) as served:
        for spelt in (odd, f"{name}%ff%80"):
            with create_model_runner(f"{scheme}:{spelt}?timeout=20s") as runner:
                assert runner.evaluate({"x": 7}, int) == 7
                assert name in repr(runner)
    assert served.statistics.sessions == 2


def test_nobody_comes_to_a_name_that_is_not_utf_8(name: str) -> None:
    with pytest.raises(mlbridge.Timeout) as caught:
        serve(lambda f: 0, f"pipe:{name}\udcff", timeout=0.1)
    assert name in str(caught.value)
    str(caught.value).encode()


def test_a_policy_of_another_type(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """No decision of the policy can be used, so each one counts as an error."""
    with serving(lambda _: "yes", f"pipe:{name}") as served:
        for _ in range(2):
            with create_model_runner(f"pipe:{name}?timeout=20s") as runner:
                for x in range(173):
                    with pytest.raises(mlbridge.ModelError, match="found a str"):
                        runner.evaluate({"x": x}, int)
    statistics = served.statistics
    assert (statistics.requests, statistics.errors) == (346, 346)
    assert "346 failed" in str(statistics)
    assert len(failures_in(caplog)) <= 3


def test_a_policy_that_returns_another_type_now_and_then(name: str) -> None:
    """A mistyped reply is an error only if the compiler cannot use it."""
    with asked(lambda f: f["answer"], name) as (served, runner):
        with pytest.raises(mlbridge.ModelError, match="found a str"):
            runner.evaluate({"answer": "yes"}, int)
        assert runner.evaluate({"answer": 7}, int) == 7
        assert runner.evaluate({"answer": "yes"}, str) == "yes"
        with pytest.raises(mlbridge.SchemaMismatch):
            runner.evaluate({"answer": "yes"}, int)
    assert (served.statistics.errors, served.statistics.mistyped) == (1, 2)
    assert "1 failed" in str(served.statistics)
    assert "2 of another type" in str(served.statistics)


class Mute(Exception):
    """An exception without a text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class MuteDeferral(mlbridge.Deferred):
    __str__ = Mute.__str__


@pytest.mark.parametrize(
    ("failure", "kind", "says"),
    [
        (partial(ValueError, "no \ud800"), mlbridge.ModelError, r"Error: no \\ud800"),
        (Mute, mlbridge.ModelError, "Mute"),
        (partial(mlbridge.Deferred, "no \udcff"), mlbridge.Deferred, r"no \\udcff"),
        (MuteDeferral, mlbridge.Deferred, "MuteDeferral"),
    ],
    ids=["error", "mute error", "deferral", "mute deferral"],
)
def test_a_policy_that_is_hard_to_understand(
    name: str, failure: Callable[[], Exception], kind: type[Exception], says: str
) -> None:
    with asked(sevens(failure), name) as (_, runner):
        with pytest.raises(kind, match=says):
            runner.evaluate({"x": 1}, int)
        assert runner.evaluate({"x": 0}, int) == 7


@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_more_sessions_than_allowed(name: str, scheme: str) -> None:
    with serving(lambda f: 7, f"{scheme}:{name}?max-sessions=2"):
        at = f"{scheme}:{name}?timeout=20s"
        with create_model_runner(at) as first, create_model_runner(at) as second:
            assert first.evaluate({"x": 0}) == 7
            assert second.evaluate({"x": 0}) == 7
            with pytest.raises(mlbridge.Unsupported, match="max-sessions=2"):
                reply_of(at, {"x": 0})
            assert first.evaluate({"x": 0}) == 7


def test_refusals_are_counted_and_told_of_rarely(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with asked(lambda f: 7, name, "?max-sessions=1") as (served, first):
        assert first.evaluate({"x": 0}) == 7
        for _ in range(5):
            with pytest.raises(mlbridge.Unsupported):
                ask(name)
    assert (served.statistics.refused, served.statistics.sessions) == (5, 1)
    assert "5 compilers refused" in str(served.statistics)
    full = "the model side has reached its limit of sessions (max-sessions=1)"
    assert [record.getMessage() for record in caplog.records] == [
        f"refused a compiler: {full}",
        f"refused 4 more compilers, 5 in all: {full}",
    ]


def test_an_answer_that_is_late(name: str, caplog: pytest.LogCaptureFixture) -> None:
    gave_up = threading.Event()
    compiler = f"pipe:{name}?timeout=100ms"
    with asked_at(lambda _: gave_up.wait(20), f"pipe:{name}", compiler) as (_, runner):
        with pytest.raises(mlbridge.Timeout):
            runner.evaluate({"x": 0})
        gave_up.set()
    (record,) = caplog.records
    assert (
        f"compiler {os.getpid()} (session 1) no longer waits for the reply: "
        "it ended, or its `timeout` passed"
    ) in record.getMessage()


SERVER_SHORT_OF_MEMORY = """
import resource, sys
from pathlib import Path
import mlbridge

def policy(features):
    if "limit" in features:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        room = pages * resource.getpagesize() + (32 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
    return len(features["text"])

statistics = mlbridge.serve(policy, sys.argv[1], sessions=1)
assert statistics.errors == 2, statistics
"""


def test_a_request_that_python_cannot_show(name: str) -> None:
    """The server has enough memory for the message, but not for the message as str."""
    long = "a" * (64 << 20)
    with (
        Started(SERVER_SHORT_OF_MEMORY, f"pipe:{name}") as process,
        create_model_runner(f"pipe:{name}?timeout=20s&connect=20s") as runner,
    ):
        assert runner.evaluate({"text": long}, int) == 64 << 20
        assert runner.evaluate({"text": "", "limit": True}, int) == 0
        for _ in range(2):
            with pytest.raises(mlbridge.ModelError, match="MemoryError"):
                runner.evaluate({"text": long}, int)
            assert runner.evaluate({"text": "abc"}, int) == 3
        runner.close()
        assert process.wait(20) == 0
        told = process.stderr.read().splitlines()
    # logging prints to stderr if there is no handler.
    assert len(told) == 2
    assert all("refused: session 1" in line for line in told)


def test_a_policy_whose_failure_ends_serving(name: str) -> None:
    policy = raising(lambda _: ZeroDivisionError("on purpose"))
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
    with asked(lambda f: 0, name, "?max-message=64KiB") as (served, runner):
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


def test_an_interface_is_busy_while_it_makes_an_answer(name: str) -> None:
    """Converting a reply may run Python code, during which other threads run."""
    refused: list[BaseException | None] = []

    class Answer:
        def __array__(self, *_: Any, **__: Any) -> Any:
            for use in (
                lambda: interface.evaluate(mode="exit"),
                lambda: interface.populate_buffer(1),
                lambda: interface.populate_error("no"),
                interface.close,
            ):
                refused.append(executor.submit(use).exception(20))
            return np.array(7)

    with (
        ThreadPoolExecutor() as executor,
        mlbridge.PipeCompilerInterface(name, timeout=20) as interface,
    ):
        reply = executor.submit(ask, name)
        interface.evaluate()
        interface.populate_buffer(Answer())
        interface.evaluate(mode="exit")
        assert reply.result(20) == [7]
    assert [type(error) for error in refused] == [mlbridge.InvalidArgument] * 4
    assert all("another thread" in str(error) for error in refused)


def test_a_runner_is_busy_while_it_asks(name: str) -> None:
    begun, done = threading.Event(), threading.Event()

    def policy(features: mlbridge.Features) -> int:
        begun.set()
        assert done.wait(20)
        return 7

    def set_timeout() -> None:
        runner.timeout = 1

    with asked(policy, name) as (_, runner), ThreadPoolExecutor() as executor:
        reply = executor.submit(runner.evaluate, {"x": 1}, int)
        try:
            assert begun.wait(20)
            for use in (
                lambda: runner.evaluate({"x": 1}),
                lambda: runner.log_outcome("inlined", 1),
                lambda: runner.log_reward(1.0),
                lambda: runner.switch_context("main"),
                lambda: runner.timeout,
                set_timeout,
                runner.close,
            ):
                with pytest.raises(mlbridge.InvalidArgument, match="another thread"):
                    use()
            assert name in repr(runner)
        finally:
            done.set()
        assert reply.result(20) == 7
        assert runner.timeout == 20
    assert name in repr(runner)


SERVER = """
import sys, mlbridge
print("ready", flush=True)
statistics = mlbridge.serve(lambda f: f["x"], sys.argv[1])
print(statistics.requests, flush=True)
"""


@pytest.mark.parametrize("requests", [0, 3])
@pytest.mark.parametrize(
    ("number", "status", "prints"),
    [(signal.SIGINT, 0, "{requests}\n"), (signal.SIGTERM, 128 + signal.SIGTERM, "")],
)
def test_a_signal_ends_cleanly(
    name: str, requests: int, number: signal.Signals, status: int, prints: str
) -> None:
    with Started(SERVER, f"pipe:{name}") as process:
        assert process.stdout.readline() == "ready\n"
        until(Path(f"{name}.sock").exists)
        if requests:
            ask(name, requests)
        time.sleep(0.2)
        started = time.monotonic()
        process.send_signal(number)
        assert process.wait(20) == status
        assert time.monotonic() - started < 5
        assert process.stdout.read() == prints.format(requests=requests)
        assert process.stderr.read() == ""
    assert list(Path(name).parent.iterdir()) == []


SLOW_SERVER = """
import sys, time, mlbridge

def policy(features):
    print("asked", flush=True)
    time.sleep(1)
    return 7

mlbridge.serve(policy, sys.argv[1])
"""


def test_ctrl_c_while_a_policy_computes(name: str) -> None:
    with (
        Started(SLOW_SERVER, f"pipe:{name}") as process,
        ThreadPoolExecutor() as executor,
        create_model_runner(f"pipe:{name}?timeout=20s") as runner,
    ):
        reply = executor.submit(runner.evaluate, {"x": 0}, int)
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGINT)
        assert reply.result(20) == 7
        assert process.wait(20) == 0
        assert process.stderr.read() == (
            "ending after the current request; Ctrl-C again ends at once\n"
        )


def test_ctrl_c_in_the_papers_loop(name: str) -> None:
    """KeyboardInterrupt is raised in the loop, and the end of ``with`` cleans up."""
    code = (
        "import sys, mlbridge\n"
        "with mlbridge.PipeCompilerInterface(sys.argv[1]) as interface:\n"
        "    print('ready', flush=True)\n"
        "    interface.evaluate()\n"
    )
    with Started(code, name) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) != 0
        assert "KeyboardInterrupt" in process.stderr.read()
    assert list(Path(name).parent.iterdir()) == []


def test_a_server_takes_over_from_a_killed_one(name: str) -> None:
    with Started(SERVER, f"pipe:{name}") as process:
        until(Path(f"{name}.sock").exists)
        process.kill()
    assert Path(f"{name}.sock").exists()
    with serving(lambda f: 2, f"pipe:{name}"):
        assert ask(name) == [2]
