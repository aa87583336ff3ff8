# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The paper's loop with real pipes and shared memory. Runners act as compilers."""

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import CompilerInterface
import mlbridge
from conftest import assert_same
from mlbridge import PipeCompilerInterface, create_model_runner
from programs import reply_of

Ask = Callable[..., Future[Any]]

both = pytest.mark.parametrize("serdes", ["bitstream", "json"])


@pytest.fixture
def in_thread() -> Iterator[Ask]:
    with ThreadPoolExecutor() as executor:
        yield executor.submit


def replies_of(spec: str, requests: Iterable[Any], *how: Any, **more: Any) -> list[Any]:
    """Returns one runner's replies to several requests."""
    with create_model_runner(spec) as runner:
        return [runner.evaluate(request, *how, **more) for request in requests]


def spec(name: str, serdes: str = "bitstream") -> str:
    return f"pipe:{name}?serdes={serdes}&timeout=20s&connect=20s"


@both
def test_the_papers_loop(name: str, serdes: str, in_thread: Ask) -> None:
    requests = [{"x": np.full(i, i, np.float32), "i": i} for i in range(1, 50)]
    with PipeCompilerInterface(name, serdes, timeout=20) as interface:
        replies = in_thread(replies_of, spec(name, serdes), requests, "float")
        for i in range(1, 50):
            features = interface.evaluate()
            assert_same(features["x"], np.full(i, i, np.float32))
            assert_same(features["i"], np.array(i))
            interface.populate_buffer(features["x"].sum())
        assert interface.evaluate(mode="exit") is None
        assert replies.result(20) == [i * i for i in range(1, 50)]


@both
def test_kinds_of_features_and_outputs(name: str, serdes: str, in_thread: Ask) -> None:
    values = {
        "bool": np.array(True),
        "bools": np.array([True, False]),
        "matrix": np.arange(6, dtype=np.int16).reshape(2, 3),
        "nothing": np.zeros((0, 4), np.float32),
        "large": np.array([2**63], np.uint64),
        "text": "naïve ☃",
        "texts": ["", "a", "ß"],
        "nan": np.array([np.nan, np.inf, -0.0]),
    }

    with PipeCompilerInterface(name, timeout=20) as interface:
        reply = in_thread(reply_of, spec(name, serdes), values)
        features = interface.evaluate()
        assert_same(features, values)
        interface.populate_buffer(features)
        interface.evaluate(mode="exit")
        assert_same(reply.result(20), values)


@both
def test_shared_memory(name: str, serdes: str, in_thread: Ask) -> None:
    # The third and the last array are larger than the initial segment.
    lengths = [1, 1000, 1_000_000, 10, 3_000_000]
    requests = [{"x": np.full(n, n, np.float32)} for n in lengths]
    shm = f"shm:{name}?serdes={serdes}&timeout=20s"
    kept = []
    with mlbridge.SharedMemoryCompilerInterface(name, timeout=20) as interface:
        replies = in_thread(replies_of, shm, requests, "float", many=True)
        for n in lengths:
            features = interface.evaluate()
            assert_same(features["x"], np.full(n, n, np.float32))
            kept.append(features["x"])
            interface.populate_buffer(features["x"] + 1)
        interface.evaluate(mode="exit")
        for n, reply in zip(lengths, replies.result(20), strict=True):
            assert_same(np.asarray(reply, np.float32), np.full(n, n + 1, np.float32))
    # The views stay valid after the session ends.
    assert_same(kept[-1], np.full(lengths[-1], lengths[-1], np.float32))
    assert all(np.isfinite(view).all() for view in kept)


def test_the_compiler_may_come_first(name: str, in_thread: Ask) -> None:
    reply = in_thread(reply_of, spec(name), {"x": 1}, int)
    with PipeCompilerInterface(name, timeout=20) as interface:
        interface.evaluate()
        interface.populate_buffer(42)
        interface.evaluate(mode="exit")
        assert reply.result(20) == 42


def test_iterating(name: str, in_thread: Ask) -> None:
    with PipeCompilerInterface(name, timeout=20) as interface:
        replies = in_thread(replies_of, spec(name), [{"x": i} for i in range(5)], int)
        for features in interface:
            interface.populate_buffer(features["x"])
            if features["x"] == 4:
                interface.evaluate(mode="exit")
                break
        assert replies.result(20) == [0, 1, 2, 3, 4]


def test_who_asks(name: str, in_thread: Ask) -> None:
    with PipeCompilerInterface(name, timeout=20) as interface:
        assert interface.session == 0
        for session in (1, 2):
            reply = in_thread(reply_of, spec(name), {"x": 1}, bool)
            interface.evaluate()
            assert (interface.session, interface.pid) == (session, os.getpid())
            assert interface.advice_type == "bool"
            interface.populate_buffer(True)
            interface.evaluate(mode="exit")
            assert reply.result(20) is True
        assert name in repr(interface)


def test_timeout(name: str) -> None:
    with PipeCompilerInterface(name, timeout=0.15) as interface:
        with pytest.raises(mlbridge.Timeout, match=name) as caught:
            interface.evaluate()
        assert isinstance(caught.value, TimeoutError)
        interface.timeout = 0
        with pytest.raises(mlbridge.Timeout):
            interface.evaluate()


def test_files_are_private_and_go_away(name: str) -> None:
    with PipeCompilerInterface(name):
        paths = [Path(f"{name}.{end}") for end in ("sock", "in", "out")]
        assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [0o600] * 3
        assert stat.S_ISSOCK(paths[0].stat().st_mode)
        assert all(stat.S_ISFIFO(path.stat().st_mode) for path in paths[1:])
    assert not any(path.exists() for path in paths)


def test_without_bare_pipes(name: str) -> None:
    with PipeCompilerInterface(name, bare=False):
        assert [path.name for path in Path(name).parent.iterdir()] == ["model.sock"]


def test_a_name_that_is_taken(name: str) -> None:
    with PipeCompilerInterface(name), pytest.raises(mlbridge.Error, match=name):
        PipeCompilerInterface(name)


def test_a_folder_that_is_not_there(name: str) -> None:
    with pytest.raises(mlbridge.OSFailure) as caught:
        PipeCompilerInterface(f"{name}/not/there")
    assert isinstance(caught.value, OSError)
    assert caught.value.code == "System"


def test_no_such_serdes(name: str) -> None:
    with pytest.raises(mlbridge.Error, match="morse"):
        PipeCompilerInterface(name, "morse")


def test_use_after_close(name: str) -> None:
    interface = PipeCompilerInterface(name)
    interface.close()
    interface.close()
    with pytest.raises(mlbridge.InvalidArgument, match="closed"):
        interface.evaluate()
    assert "closed" in repr(interface)


def test_an_answer_without_a_request(name: str) -> None:
    with (
        PipeCompilerInterface(name) as interface,
        pytest.raises(mlbridge.InvalidArgument, match="no request"),
    ):
        interface.populate_buffer(1)


def test_an_unanswered_request_gets_an_error(name: str, in_thread: Ask) -> None:
    with PipeCompilerInterface(name, timeout=20) as interface:
        reply = in_thread(reply_of, spec(name), {"x": 1}, int)
        interface.evaluate()
        interface.timeout = 0.2
        with pytest.raises(mlbridge.Timeout):
            interface.evaluate()
        with pytest.raises(mlbridge.ModelError):
            reply.result(20)


def test_two_threads_cannot_share_an_interface(name: str, in_thread: Ask) -> None:
    with PipeCompilerInterface(name, timeout=0.6) as interface:
        waiting = in_thread(interface.evaluate)
        while waiting.running():
            try:
                interface.timeout = 0.0
                interface.evaluate()
            except mlbridge.InvalidArgument as error:
                assert "another thread" in str(error)
                with pytest.raises(mlbridge.InvalidArgument, match="another thread"):
                    interface.close()
                break
            except mlbridge.Timeout:
                continue
        assert isinstance(waiting.exception(20), mlbridge.Timeout)


COMPILER = """
import sys, mlbridge
runner = mlbridge.create_model_runner(sys.argv[1])
for i in range(int(sys.argv[2])):
    assert runner.evaluate({"x": i}, int) == 2 * i
"""


def test_many_compilers_at_once_and_one_after_another(name: str) -> None:
    command = [sys.executable, "-c", COMPILER, spec(name), "200"]
    with mlbridge.serving(lambda f: 2 * f["x"], f"pipe:{name}") as served:
        for _ in range(3):
            together = [subprocess.Popen(command) for _ in range(4)]
            assert [process.wait(60) for process in together] == [0] * 4
    assert (served.statistics.sessions, served.statistics.requests) == (12, 12 * 200)
    assert served.statistics.errors == 0


def test_a_compiler_that_is_killed_ends_its_own_session_only(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    command = [sys.executable, "-c", COMPILER, spec(name), "10"]
    asked, killed = threading.Event(), threading.Event()

    def policy(features: mlbridge.Features) -> Any:
        if not asked.is_set():
            asked.set()
            assert killed.wait(60)
        return 2 * features["x"]

    with mlbridge.serving(policy, f"pipe:{name}") as served:
        victim = subprocess.Popen(command)
        assert asked.wait(60)
        victim.kill()
        victim.wait()
        killed.set()
        assert subprocess.run(command, timeout=60, check=False).returncode == 0
    assert (served.statistics.sessions, served.statistics.requests) == (2, 11)
    assert "session 1" in caplog.text


def test_the_papers_import_name(name: str, in_thread: Ask) -> None:
    assert issubclass(
        CompilerInterface.PipeCompilerInterface, CompilerInterface.BaseCompilerInterface
    )
    with CompilerInterface.PipeCompilerInterface(
        data_format="bytes", pipe_name=name
    ) as interface:
        reply = in_thread(reply_of, spec(name), {"x": 1}, int)
        interface.reset_pipes()
        assert interface.evaluate() == {"x": 1}
        interface.populate_buffer(3)
        interface.evaluate(mode="exit")
        assert reply.result(20) == 3


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        (("NAME", "json"), {}),
        (("NAME",), {"serdes": "json"}),
        (("json", "NAME"), {}),
        (("json",), {"pipe_name": "NAME"}),
        ((), {"data_format": "bytes", "pipe_name": "NAME", "timeout": 1.0}),
    ],
    ids=str,
)
def test_the_papers_arguments(
    name: str, args: tuple[str, ...], kwargs: dict[str, Any]
) -> None:
    args = tuple(name if arg == "NAME" else arg for arg in args)
    kwargs = {k: name if value == "NAME" else value for k, value in kwargs.items()}
    with CompilerInterface.PipeCompilerInterface(*args, **kwargs) as interface:
        assert interface.name == name


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        (("/tmp/a",), {"pipe_name": "/tmp/b"}),
        (("/tmp/a",), {"serdes": "json", "data_format": "json"}),
        (("json",), {}),
    ],
    ids=str,
)
def test_the_papers_arguments_used_wrongly(
    args: tuple[str, ...], kwargs: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match="PipeCompilerInterface"):
        CompilerInterface.PipeCompilerInterface(*args, **kwargs)
