# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ctrl-C interrupts every kind of wait of a model runner at once."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from types import FrameType
from typing import Any

import numpy as np
import pytest

import mlbridge
from mlbridge import create_model_runner, serving
from programs import TRANSPORTS, Started, asked_at, at, needs_grpc, place

SOON = 2.0
"""Seconds within which a signal is handled, on a busy machine."""
LATE = 5.0
"""Seconds after which a policy always replies, so that no test hangs."""
DECORATORS = ["", "fallback|", "record:/dev/null|"]

each_transport = pytest.mark.parametrize("spec", TRANSPORTS)


class Gate:
    """A policy that replies to slow requests when `open` is set, or after LATE."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.open = threading.Event()

    def __call__(self, features: mlbridge.Features) -> Any:
        self.asked.set()
        if features["slow"]:
            self.open.wait(LATE)
        return features["x"]


@contextmanager
def signal_after(seconds: float, number: int = signal.SIGINT) -> Iterator[list[float]]:
    """Sends a signal to this process. Yields a list that receives the time."""
    sent: list[float] = []

    def send() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), number)

    timer = threading.Timer(seconds, send)
    timer.start()
    try:
        yield sent
    finally:
        timer.cancel()
        timer.join()


@contextmanager
def interrupted() -> Iterator[None]:
    """Expects that Ctrl-C, sent after 0.3 seconds, ends the body soon."""
    with signal_after(0.3) as sent:
        with pytest.raises(KeyboardInterrupt):
            yield
        assert sent
        assert time.monotonic() - sent[0] < SOON


@contextmanager
def handled(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = signal.signal(signal.SIGUSR1, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


@contextmanager
def gated(
    spec: str, name: str, decorator: str = "", **options: str
) -> Iterator[tuple[Gate, mlbridge.ModelRunner]]:
    gate, compiler = Gate(), decorator + at(spec, name, **options)
    with asked_at(gate, place(spec, name), compiler) as (_, runner):
        yield gate, runner


def ask(runner: mlbridge.ModelRunner, x: int, *, slow: bool = False) -> Any:
    return runner.evaluate({"x": x, "slow": slow}, int)


@pytest.mark.parametrize("decorator", DECORATORS)
@each_transport
def test_while_the_model_thinks(name: str, spec: str, decorator: str) -> None:
    with gated(spec, name, decorator, timeout="inf") as (gate, runner):
        assert ask(runner, 1) == 1
        with interrupted():
            ask(runner, 2, slow=True)
        gate.open.set()
        # The late reply to the interrupted request is not used for this request.
        assert ask(runner, 3) == 3


@each_transport
def test_while_nobody_is_there(name: str, spec: str) -> None:
    with create_model_runner(at(spec, name, connect="inf")) as runner:
        with interrupted():
            ask(runner, 1)
        with serving(Gate(), place(spec, name)):
            assert ask(runner, 2) == 2


SERVER = """
import sys, mlbridge
mlbridge.serve(lambda features: features["x"].size, sys.argv[1])
"""


@each_transport
def test_while_a_server_is_stopped(name: str, spec: str) -> None:
    """The socket stays open, but the server reads nothing."""
    large = np.zeros(8 << 20, np.uint8)
    forever = at(spec, name, timeout="inf", connect="inf")
    with Started(SERVER, place(spec, name)) as server, ExitStack() as stack:
        stack.callback(server.terminate)
        stack.callback(server.send_signal, signal.SIGCONT)
        first = stack.enter_context(create_model_runner(forever))
        second = stack.enter_context(create_model_runner(forever))
        assert first.evaluate({"x": [1.5]}, int) == 1
        server.send_signal(signal.SIGSTOP)
        for runner in (first, second):
            with interrupted():
                runner.evaluate({"x": large}, int)
        server.send_signal(signal.SIGCONT)
        assert first.evaluate({"x": [1.5, 2.5]}, int) == 2
        assert second.evaluate({"x": [1.5]}, int) == 1


@each_transport
def test_a_signal_that_another_thread_gets(name: str, spec: str) -> None:
    """The signal interrupts no system call of the main thread."""

    def send() -> float:
        gate.asked.wait(LATE)
        time.sleep(0.2)
        # Send it to this thread, which does not block signals.
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        return time.monotonic()

    with (
        ThreadPoolExecutor() as executor,
        gated(spec, name, timeout="inf") as (gate, runner),
    ):
        sent = executor.submit(send)
        with pytest.raises(KeyboardInterrupt):
            ask(runner, 1, slow=True)
        assert time.monotonic() - sent.result(LATE) < SOON
        gate.open.set()


@each_transport
def test_a_handler_that_raises_nothing(name: str, spec: str) -> None:
    """The request continues after the handler has run."""
    heard = list[float]()

    def handle(number: int, frame: FrameType | None) -> None:
        heard.append(time.monotonic())
        if len(heard) == 2:
            gate.open.set()

    with (
        handled(handle),
        gated(spec, name, timeout="20s") as (gate, runner),
        signal_after(0.2, signal.SIGUSR1) as first,
        signal_after(0.5, signal.SIGUSR1) as second,
    ):
        assert ask(runner, 7, slow=True) == 7
    assert heard[0] - first[0] < SOON
    assert heard[1] - second[0] < SOON


def test_a_handler_that_asks_by_the_runner_that_it_interrupts(name: str) -> None:
    def handle(number: int, frame: FrameType | None) -> None:
        try:
            ask(runner, 8)
        finally:
            gate.open.set()

    with (
        handled(handle),
        gated("pipe:{}", name, timeout="20s") as (gate, runner),
        signal_after(0.2, signal.SIGUSR1),
        pytest.raises(mlbridge.InvalidArgument, match="a signal handler"),
    ):
        ask(runner, 7, slow=True)


@each_transport
def test_what_a_handler_raises_is_raised(name: str, spec: str) -> None:
    def handle(number: int, frame: FrameType | None) -> None:
        raise ZeroDivisionError

    with (
        handled(handle),
        gated(spec, name, timeout="inf") as (gate, runner),
        signal_after(0.2, signal.SIGUSR1),
    ):
        with pytest.raises(ZeroDivisionError):
            ask(runner, 7, slow=True)
        gate.open.set()
        assert ask(runner, 8) == 8


@each_transport
def test_other_threads_go_on(name: str, spec: str) -> None:
    with (
        gated(spec, name, timeout="20s") as (gate, runner),
        ThreadPoolExecutor() as executor,
    ):
        reply = executor.submit(ask, runner, 5, slow=True)
        with interrupted():
            time.sleep(LATE)
        assert not reply.done()
        gate.open.set()
        assert reply.result(LATE) == 5


@each_transport
def test_deadlines_hold_all_the_same(name: str, spec: str) -> None:
    with gated(spec, name, timeout="300ms") as (gate, runner):
        started = time.monotonic()
        with pytest.raises(mlbridge.Timeout, match="deadline"):
            ask(runner, 7, slow=True)
        assert 0.29 < time.monotonic() - started < 1.0
        gate.open.set()


@needs_grpc
def test_a_trainer_that_connects(name: str) -> None:
    """One attempt to connect may take seconds."""
    channel = mlbridge.grpc.TrainingChannel("grpc://127.0.0.1:1?serdes=bitstream")
    with closing(channel), interrupted():
        channel.connect(LATE, alive=lambda: True)
