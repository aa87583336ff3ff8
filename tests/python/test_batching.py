# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batches: one model for many compilers, and failures within a batch."""

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlbridge import Features, ModelError, ModelRunner, SchemaMismatch, serve, serving
from mlbridge.batching import batched, stack
from mlbridge.errors import InvalidArgument
from mlbridge.listeners import open_listeners
from programs import Started, in_threads, raising, reply_of, until

COMPILERS = 8


class Crowd:
    """Threads that send requests at the same time, each with its own runner."""

    def __init__(self, specs: Sequence[str]) -> None:
        self.replies: list[list[Any]] = [[] for _ in specs]
        self._barrier = threading.Barrier(len(specs))
        self._specs = specs

    def ask(self, requests: Sequence[Features], rounds: int = 1) -> None:
        """Makes each thread send its request `rounds` times. Stores the results."""
        in_threads(lambda i: self._ask(i, requests[i], rounds), len(self._specs))

    def _ask(self, index: int, request: Features, rounds: int) -> None:
        with ModelRunner(self._specs[index]) as runner:
            # Connect every runner first.
            runner.evaluate({"x": 0}, int)
            self._barrier.wait(30)
            for _ in range(rounds):
                try:
                    reply: Any = runner.evaluate(request, int)
                except Exception as failure:
                    reply = failure
                self.replies[index].append(reply)


def specs(name: str, count: int = COMPILERS) -> list[str]:
    return [f"{('pipe', 'shm')[i % 2]}:{name}" for i in range(count)]


@pytest.mark.parametrize(("most", "delay"), [(COMPILERS, 0.5), (3, 0.01)])
def test_requests_that_wait_together_are_answered_together(
    name: str, most: int, delay: float
) -> None:
    sizes: list[int] = []

    @batched
    def double(requests: Sequence[Features]) -> Any:
        sizes.append(len(requests))
        doubled = 2 * stack(requests)["x"]
        return doubled if most == COMPILERS else [int(x) for x in doubled]

    crowd = Crowd(specs(name))
    with serving(double, f"pipe:{name}", max_batch=most, max_delay=delay) as served:
        crowd.ask([{"x": i} for i in range(COMPILERS)], rounds=20)
    assert crowd.replies == [[2 * i] * 20 for i in range(COMPILERS)]
    assert max(sizes) <= most
    assert most < COMPILERS or max(sizes) == COMPILERS
    assert sum(sizes) == served.statistics.requests == 21 * COMPILERS
    assert served.statistics.batches == len(sizes)
    assert served.statistics.batch_size == sum(sizes) / len(sizes)


def test_a_function_of_one_request_is_never_given_more(name: str) -> None:
    crowd = Crowd(specs(name))
    with serving(lambda f: f["x"] + 1, f"pipe:{name}", max_batch=32, max_delay=1.0):
        started = time.monotonic()
        crowd.ask([{"x": i} for i in range(COMPILERS)], rounds=3)
        # The server must not wait for more requests either.
        assert time.monotonic() - started < 5
    assert crowd.replies == [[i + 1] * 3 for i in range(COMPILERS)]


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"x": np.zeros(3, np.int64)}, "ValueError"),
        ({"x": "text"}, "text"),
        ({"y": 1}, "KeyError: 'x'; the request has 1 feature, for example 'y'"),
    ],
)
def test_a_liar_fails_alone(name: str, wrong: Features, expected: str) -> None:
    @batched
    def policy(requests: Sequence[Features]) -> Any:
        if any(q["x"] == "text" for q in requests if isinstance(q["x"], str)):
            raise TypeError("a text is no number")
        rows = stack(requests)["x"]
        if rows.ndim != 1:
            raise ValueError("vectors are not expected")
        return rows + 1

    requests: list[Features] = [{"x": i} for i in range(COMPILERS)]
    requests[3] = wrong
    crowd = Crowd(specs(name))
    with serving(policy, f"pipe:{name}", max_batch=COMPILERS, max_delay=0.5) as served:
        crowd.ask(requests)
    for index, (reply,) in enumerate(crowd.replies):
        if index == 3:
            assert isinstance(reply, ModelError)
            assert expected in str(reply)
        else:
            assert reply == index + 1
    assert served.statistics.errors == 1


@pytest.mark.parametrize("replies", [[], [1], [1] * 99])
def test_a_wrong_number_of_answers_is_a_failure(name: str, replies: list[int]) -> None:
    @batched
    def policy(requests: Sequence[Features]) -> Any:
        return replies if requests[0]["x"] else [0] * len(requests)

    crowd = Crowd(specs(name, 2))
    with serving(policy, f"pipe:{name}", max_batch=2, max_delay=0.5):
        crowd.ask([{"x": 1}, {"x": 1}])
    for (reply,) in crowd.replies:
        # After the batch fails, the policy gets each request alone. One reply is
        # then right.
        if len(replies) == 1:
            assert reply == 1
        else:
            assert isinstance(reply, ModelError)
            assert f"{len(replies)} replies to 1 requests" in str(reply)


def test_a_single_request_is_asked_once(name: str) -> None:
    calls: list[int] = []

    @batched
    def policy(requests: Sequence[Features]) -> Any:
        calls.append(len(requests))
        raise ValueError("no")

    with (
        serving(policy, f"pipe:{name}", max_batch=8),
        pytest.raises(ModelError, match="no"),
    ):
        reply_of(f"pipe:{name}", {"x": 1}, int)
    assert calls == [1]


def test_a_dict_is_no_list_of_answers(name: str) -> None:
    policy = batched(lambda requests: {"out": [1]})  # type: ignore[arg-type, return-value]
    with (
        serving(policy, f"pipe:{name}"),
        pytest.raises(ModelError, match=r"returns a list or an array.* found dict"),
    ):
        reply_of(f"pipe:{name}", {"x": 1}, int)


def test_a_batched_policy_refuses_one_request() -> None:
    policy = batched(lambda requests: [0] * len(requests))
    with pytest.raises(InvalidArgument, match="a list of requests, found a dict"):
        policy({"x": 1})  # type: ignore[arg-type]


def test_an_unknown_feature_names_similar_features(name: str) -> None:
    features = {f"count of {i}": i for i in range(20)} | {"callee_size": 3, "z": 1}
    with (
        serving(lambda f: f["calee_size"], f"pipe:{name}"),
        pytest.raises(ModelError) as raised,
    ):
        reply_of(f"pipe:{name}", features, int)
    says = "KeyError: 'calee_size'; the request has 22 features, for example 'callee_"
    assert says in str(raised.value)
    assert str(raised.value).count("count of") <= 4


def test_a_model_that_has_failed_keeps_nobody_waiting(name: str) -> None:
    policy = raising(lambda _: ValueError("no"))

    def ask() -> None:
        with serving(policy, f"pipe:{name}", on_error="raise"):
            with pytest.raises(ModelError):
                reply_of(f"pipe:{name}?timeout=20s", {"x": 1}, int)
            until(lambda: not Path(f"{name}.sock").exists())

    with pytest.raises(ValueError, match="no"):
        ask()


def test_one_model_at_several_places(tmp_path: Path) -> None:
    first, second = str(tmp_path / "a"), str(tmp_path / "b")
    places = [f"pipe:{first}", f"shm:{first}", f"shm:{second}"]
    with serving(lambda f: f["x"] + 1, places) as served:
        for spec in places:
            assert reply_of(spec, {"x": 41}, int) == 42
        # Only a pipe's listener accepts compilers in bare mode.
        assert Path(f"{first}.in").exists()
        assert not Path(f"{second}.in").exists()
    assert served.statistics.sessions == 3
    assert list(tmp_path.iterdir()) == []


def test_places_that_contradict_each_other(name: str) -> None:
    for first, second in (
        (f"pipe:{name}?serdes=json", f"pipe:{name}"),
        (f"pipe:{name}", f"shm:{name}?max-message=1MiB"),
    ):
        with pytest.raises(InvalidArgument, match="contradicts another address"):
            open_listeners([first, second])
    with pytest.raises(InvalidArgument, match="expected an address"):
        serve(lambda f: 1, [])


@pytest.mark.parametrize(
    ("size", "delay"), [(0, 0.0), (1, -1.0), (2, 15.0), (2, float("inf"))]
)
def test_impossible_batches(name: str, size: int, delay: float) -> None:
    expected = "expected max_batch >= 1 and a max_delay from 0"
    with pytest.raises(ValueError, match=expected):
        serve(lambda f: 1, f"pipe:{name}", max_batch=size, max_delay=delay)
    assert not Path(f"{name}.sock").exists()


def test_stack() -> None:
    requests: list[Features] = [
        {"n": np.array(i), "v": np.full((2, 3), i, np.float32), "name": f"f{i}"}
        for i in range(4)
    ]
    stacked = stack(requests)
    np.testing.assert_array_equal(stacked["n"], np.arange(4))
    assert (stacked["v"].shape, stacked["v"].dtype) == ((4, 2, 3), np.float32)
    assert stacked["name"] == ["f0", "f1", "f2", "f3"]
    requests[2]["v"] = np.zeros((3, 2), np.float32)
    with pytest.raises(SchemaMismatch, match=r"feature 'v' .* \(2, 3\) .* \(3, 2\)"):
        stack(requests)
    del requests[2]["v"]
    with pytest.raises(SchemaMismatch, match=r"\['v'\]"):
        stack(requests)


SLOW_SERVER = """
import sys, time, mlbridge
def slow(features):
    print("asked", flush=True)
    time.sleep(1)
    return 7
print(mlbridge.serve(slow, sys.argv[1]).requests, flush=True)
"""


@contextmanager
def thinking(name: str, seconds: int) -> Iterator[tuple[Started, Future[Any]]]:
    """Yields a server that computes a reply for some seconds, and the reply."""
    server = SLOW_SERVER.replace("sleep(1)", f"sleep({seconds})")
    with (
        Started(server, f"pipe:{name}", stderr=None) as process,
        ThreadPoolExecutor() as executor,
    ):
        reply = executor.submit(reply_of, f"pipe:{name}", {"x": 1}, int)
        assert process.stdout.readline() == "asked\n"
        yield process, reply


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_request_at_hand_is_answered(name: str, number: signal.Signals) -> None:
    with thinking(name, 1) as (process, reply):
        process.send_signal(number)
        assert reply.result(20) == 7
        process.wait(20)


def test_a_second_signal_does_not_wait(name: str) -> None:
    with thinking(name, 60) as (process, reply):
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        process.wait(20)
        assert time.monotonic() - started < 10
        with pytest.raises(Exception, match="ended or closed"):
            reply.result(20)
