# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Foreign compilers, which skip the handshake and open NAME.in and NAME.out.

The compiler here only follows docs/reference/wire-format.md. It sends the frames of the
reference implementation.
"""

import errno
import json
import os
import select
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest

import mlbridge
from conftest import assert_same
from programs import PATIENCE, asked, raising, until

Peer = tuple[int, int]


def open_writer(path: str) -> int | None:
    try:
        return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENOENT):
            return None
        raise


@contextmanager
def compiler(name: str) -> Iterator[Peer]:
    """Yields a compiler's descriptors for reading and for writing."""
    with ExitStack() as stack:
        reader = os.open(f"{name}.in", os.O_RDONLY | os.O_NONBLOCK)
        stack.callback(os.close, reader)
        writer = until(lambda: open_writer(f"{name}.out"))
        stack.callback(os.close, writer)
        yield reader, writer


def read_some(reader: int, size: int) -> bytes | None:
    try:
        return os.read(reader, size) or None
    except BlockingIOError:
        return None


def exactly(reader: int, size: int) -> bytes:
    data = b""
    while missing := size - len(data):
        data += until(partial(read_some, reader, missing))
    return data


def send(peer: Peer, message: bytes) -> None:
    os.write(peer[1], struct.pack("<Q", len(message)) + message)


def ask(peer: Peer, message: bytes) -> bytes:
    send(peer, message)
    (size,) = struct.unpack("<Q", exactly(peer[0], 8))
    return exactly(peer[0], size)


def ask_once(name: str, message: bytes) -> bytes:
    with compiler(name) as peer:
        return ask(peer, message)


def is_dropped(name: str, message: bytes) -> bool:
    """True if the model ends a new session instead of answering."""
    with compiler(name) as peer:
        return ends(peer, message)


def ends(peer: Peer, message: bytes) -> bool:
    """True if the model ends the session instead of answering."""
    send(peer, message)
    reader, _ = peer
    # An empty read cannot show that the session ended, because a read is also empty
    # before the model has connected. Therefore, poll for POLLHUP.
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    return poll.poll(PATIENCE * 1000) == [(reader, select.POLLHUP)]


def bitstream(**tensors: np.ndarray[Any, Any]) -> bytes:
    types = {"float32": "float", "float64": "double"}
    features = [
        {
            "name": name,
            "port": 0,
            "type": types.get(tensor.dtype.name, f"{tensor.dtype.name}_t"),
            "shape": list(tensor.shape),
        }
        for name, tensor in tensors.items()
    ]
    body = b"".join(tensor.tobytes() for tensor in tensors.values())
    return json.dumps({"features": features}).encode() + b"\n" + body + b"\n"


def of(x: int) -> bytes:
    return bitstream(x=np.array([x], np.int32))


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (7, struct.pack("<i", 7)),
        (-1, struct.pack("<i", -1)),
        (0.1, struct.pack("<f", 0.1)),
        (True, b"\1"),
        ([1, 2, 3], struct.pack("<3i", 1, 2, 3)),
        ([0.5, 1], struct.pack("<2f", 0.5, 1)),
        (np.int64(7), struct.pack("<q", 7)),
        (np.float64(0.1), struct.pack("<d", 0.1)),
        (np.arange(3, dtype=np.int16), struct.pack("<3h", 0, 1, 2)),
    ],
    ids=repr,
)
def test_answers_in_bytes(name: str, reply: Any, expected: bytes) -> None:
    """Python's numbers become C's int and float. An array keeps its type."""
    with mlbridge.serving(lambda _: reply, f"pipe:{name}"):
        assert ask_once(name, of(1)) == expected


def test_features_in_bytes(name: str) -> None:
    sent: dict[str, np.ndarray[Any, Any]] = {
        "size": np.array([12], np.int64),
        # This tensor makes `weights` unaligned. Foreign compilers do not sort tensors
        # by size.
        "flag": np.array([3], np.int8),
        "weights": np.arange(6, dtype=np.float32).reshape(2, 3),
    }
    seen: list[mlbridge.Features] = []

    def policy(features: mlbridge.Features) -> float:
        seen.append({key: value.copy() for key, value in features.items()})
        return float(features["weights"].sum())

    with mlbridge.serving(policy, f"pipe:{name}"), compiler(name) as peer:
        for _ in range(3):
            assert ask(peer, bitstream(**sent)) == struct.pack("<f", 15)
    for features in seen:
        assert list(features) == list(sent)
        assert_same(features, sent)


@pytest.mark.parametrize("returned", [7, 0.5, True, [1, 2]])
def test_json(name: str, returned: Any) -> None:
    def policy(features: mlbridge.Features) -> Any:
        assert features["size"] == 12
        assert_same(features["weights"], np.array([0.5, 1.5]))
        return returned

    with mlbridge.serving(policy, f"pipe:{name}?serdes=json", on_error="raise"):
        reply = ask_once(name, b'{"size": 12, "weights": [0.5, 1.5]}')
        assert json.loads(reply) == {"out": returned}


def test_what_the_model_knows_of_them(name: str) -> None:
    with (
        mlbridge.PipeCompilerInterface(name, timeout=20) as interface,
        ThreadPoolExecutor() as executor,
    ):
        message = bitstream(x=np.array([1.5], np.float32))
        reply = executor.submit(ask_once, name, message)
        assert_same(interface.evaluate()["x"], np.array([1.5], np.float32))
        assert (interface.pid, interface.advice_type) == (0, "")
        with pytest.raises(mlbridge.SchemaMismatch, match="int32_t"):
            interface.populate_buffer(2**40)
        interface.populate_buffer(2)
        interface.evaluate(mode="exit")
        assert reply.result(20) == struct.pack("<i", 2)


def test_one_after_another_and_beside_our_own(name: str) -> None:
    with asked(lambda f: f["x"] + 1, name) as (served, runner):
        for i in range(5):
            with compiler(name) as peer:
                assert ask(peer, of(i)) == struct.pack("<i", i + 1)
                assert runner.evaluate({"x": i}, int) == i + 1
    assert served.statistics.sessions == 6


def test_no_answer_reaches_the_next_compiler(name: str) -> None:
    """If a compiler dies while the model computes, the reply is discarded."""
    begun, gone = threading.Event(), threading.Event()

    def policy(features: mlbridge.Features) -> Any:
        begun.set()
        assert gone.wait(20)
        return features["x"]

    with mlbridge.serving(policy, f"pipe:{name}"):
        with compiler(name) as peer:
            send(peer, of(1))
            assert begun.wait(20)
        with ThreadPoolExecutor() as executor:
            reply = executor.submit(ask_once, name, of(2))
            time.sleep(0.2)
            gone.set()
            assert reply.result(20) == struct.pack("<i", 2)


def fails(kind: type[Exception], text: str) -> mlbridge.Policy:
    return raising(lambda _: kind(text))


# Policies whose results a compiler in bare mode cannot receive, and the log's text.
DEFERRALS: dict[str, tuple[mlbridge.Policy, str]] = {
    "None": (lambda _: None, "answered None"),
    "Deferred": (fails(mlbridge.Deferred, "not \udcff me"), r"not \udcff me"),
}
FAILURES: dict[str, tuple[mlbridge.Policy, str]] = {
    "raises": (fails(ValueError, "no weights"), "no weights"),
    "raises half a character": (fails(ValueError, "no \ud800"), "no \ud800"),
    "two outputs": (lambda _: {"a": 1, "b": 2}, "2 tensors"),
    "strings": (lambda _: ["a", "b"], "lengths"),
    "no UTF-8": (lambda _: "\udcff", "UTF-8"),
    "too long": (lambda _: bytes(100_000).decode(), "max-message"),
}


@pytest.mark.parametrize("serves", [*DEFERRALS, *FAILURES])
def test_what_they_cannot_be_told(
    name: str, serves: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The failure ends only the session of the compiler in bare mode."""
    reply, says = (DEFERRALS | FAILURES)[serves]

    def policy(features: mlbridge.Features) -> Any:
        return 7 if features["x"] == 1 else reply(features)

    with asked(policy, name, "?max-message=64KiB") as (served, runner):
        for session in (1, 3):
            with compiler(name) as peer:
                assert ask(peer, of(1)) == struct.pack("<i", 7)
                assert ends(peer, of(0))
            assert runner.evaluate({"x": 1}, int) == 7
            logged = [record.getMessage() for record in caplog.records]
            # Each end of a session is logged. A policy's failure is logged once.
            assert len(logged) == (2 if serves in FAILURES and session == 1 else 1)
            (ended,) = [text for text in logged if text.startswith("a session ended: ")]
            assert says.encode(errors="backslashreplace").decode() in ended
            assert all(f"session {session}" in text for text in logged)
            caplog.clear()
    assert served.statistics.deferred == (2 if serves in DEFERRALS else 0)
    assert served.statistics.errors == (2 if serves in FAILURES else 0)


@pytest.mark.parametrize("serves", DEFERRALS)
def test_a_deferral_is_no_failure(name: str, serves: str) -> None:
    policy, _ = DEFERRALS[serves]
    with mlbridge.serving(policy, f"pipe:{name}", on_error="raise") as served:
        for _ in range(2):
            assert is_dropped(name, of(1))
    assert served.statistics.deferred == 2


@pytest.mark.parametrize(
    ("serves", "kind"),
    [
        ("raises", ValueError),
        ("raises half a character", ValueError),
        ("two outputs", mlbridge.Unsupported),
        ("no UTF-8", mlbridge.InvalidArgument),
    ],
)
def test_a_failure_ends_serving(name: str, serves: str, kind: type[Exception]) -> None:
    """`serving` raises the policy's error even if its text is not valid UTF-8."""
    policy, _ = FAILURES[serves]
    with (
        pytest.raises(kind) as caught,
        mlbridge.serving(policy, f"pipe:{name}", on_error="raise"),
    ):
        assert is_dropped(name, of(1))
    if serves == "two outputs":
        assert isinstance(caught.value, mlbridge.Error)
        assert (caught.value.session, caught.value.pid) == (1, 0)


def test_a_failure_in_the_loop(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Neither an error nor two outputs can be sent to a foreign compiler.

    The server logs the error. It raises an exception for the outputs.
    """
    with (
        mlbridge.PipeCompilerInterface(name, timeout=20) as interface,
        ThreadPoolExecutor() as executor,
    ):
        dropped = executor.submit(is_dropped, name, of(1))
        interface.evaluate()
        interface.populate_error("no \udcff")
        interface.evaluate(mode="exit")
        assert dropped.result(20)
        assert r"no \udcff" in caplog.text
        dropped = executor.submit(is_dropped, name, of(1))
        interface.evaluate()
        interface.populate_buffer({"a": 1, "b": 2})
        with pytest.raises(mlbridge.Unsupported, match="session 2") as caught:
            interface.evaluate()
        assert (caught.value.session, caught.value.pid) == (2, 0)
        assert caught.value.session_ended
        assert dropped.result(20)
        assert len(caplog.records) == 1


def test_a_shape_that_is_too_large(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """The shape has no elements, but NumPy cannot hold its other extents."""
    message = bitstream(x=np.zeros((0, 4))).replace(
        b"[0, 4]", b"[0, 4611686018427387904]"
    )
    with asked(lambda _: 7, name) as (served, runner):
        assert is_dropped(name, message)
        assert runner.evaluate({"x": 1}, int) == 7
    assert "session 1" in caplog.text
    assert served.statistics.requests == 2
