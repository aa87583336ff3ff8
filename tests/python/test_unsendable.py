# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Answers that cannot be sent: the compiler is told why, and its session goes on."""

import os
import struct
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlbridge
from mlbridge import _core, create_model_runner, serving
from programs import IS_FULL, TRANSPORTS, at, place, until

FORMATS = [known.name for known in _core.formats()]
WAYS = [
    (spec, serdes)
    for spec in TRANSPORTS
    for serdes in FORMATS
    if IS_FULL or spec == "pipe:{}" or serdes == "bitstream"
]
"""Every transport and every SerDes; each with each where time does not count."""
LIMIT = 1 << 16

TOO_LONG = np.zeros(LIMIT, np.float32)
UNSENDABLE: dict[str, tuple[Any, str]] = {
    "a bool of 2": (np.array([1, 2], np.uint8).view(bool), r"bool|0 or 1"),
    "a bool of 255": (np.array(255, np.uint8).view(bool), r"bool|0 or 1"),
    "too long": (TOO_LONG, "max-message"),
    "too long, strings": (["a" * LIMIT, "b"], "max-message"),
    "no UTF-8": ("\udcff", "UTF-8"),
    "one of two": ({"a": 1.5, "b": np.array(2, np.uint8).view(bool)}, r"bool|0 or 1"),
}


def limited(spec: str, name: str) -> str:
    return f"{place(spec, name)}?max-message={LIMIT}"


@pytest.mark.parametrize("what", UNSENDABLE)
@pytest.mark.parametrize(("spec", "serdes"), WAYS)
def test_the_compiler_is_told_why(
    name: str, spec: str, serdes: str, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    reply, says = UNSENDABLE[what]
    compiler = at(spec, name, serdes=serdes, timeout="20s")
    with (
        serving(lambda f: reply if f["x"] == 1 else 7, limited(spec, name)) as served,
        create_model_runner(compiler) as runner,
        create_model_runner(compiler) as other,
    ):
        assert other.evaluate({"x": 0}) == 7
        for _ in range(3):
            with pytest.raises(mlbridge.ModelError, match=says):
                runner.evaluate({"x": 1})
            assert runner.evaluate({"x": 0}) == 7
            assert other.evaluate({"x": 0}) == 7
    assert served.statistics.sessions == 2, "no session has ended by that"
    assert served.statistics.errors == 3
    assert says.partition("|")[0] in caplog.text


@pytest.mark.parametrize("what", UNSENDABLE)
def test_the_loop_goes_on(name: str, what: str) -> None:
    reply, says = UNSENDABLE[what]
    with (
        mlbridge.PipeCompilerInterface(name, timeout=20, max_message=LIMIT) as model,
        create_model_runner(f"pipe:{name}?timeout=20s") as runner,
        ThreadPoolExecutor(1) as compiler,
    ):
        asked = compiler.submit(runner.evaluate, {"x": 1})
        assert model.evaluate()["x"] == 1
        model.populate_buffer(reply)
        kinds = mlbridge.SchemaMismatch, mlbridge.InvalidArgument
        with pytest.raises(kinds, match=says) as caught:
            model.evaluate()
        assert (caught.value.session, caught.value.pid) == (1, os.getpid())
        assert not caught.value.session_ended
        with pytest.raises(mlbridge.ModelError, match=says):
            asked.result(20)
        asked = compiler.submit(runner.evaluate, {"x": 2})
        assert model.evaluate()["x"] == 2
        assert model.session == 1
        model.populate_buffer(7)
        model.evaluate(mode="exit")
        assert asked.result(20) == 7


@pytest.mark.parametrize("spec", TRANSPORTS)
def test_a_long_explanation(name: str, spec: str) -> None:
    """What does not fit is left out; the compiler gets the beginning."""

    def policy(features: mlbridge.Features) -> int:
        if features["x"] == 1:
            raise ValueError("because " + "ü" * LIMIT)
        if features["x"] == 2:
            raise mlbridge.Deferred("rather " + "ü" * LIMIT)
        return 7

    with (
        serving(policy, limited(spec, name)) as served,
        create_model_runner(at(spec, name, timeout="20s")) as runner,
    ):
        with pytest.raises(mlbridge.ModelError, match="ValueError: because üüü"):
            runner.evaluate({"x": 1})
        with pytest.raises(mlbridge.Deferred, match="rather üüü"):
            runner.evaluate({"x": 2})
        assert runner.evaluate({"x": 0}) == 7
    statistics = served.statistics
    assert (statistics.sessions, statistics.errors, statistics.deferred) == (1, 1, 1)


def test_answers_of_a_batch(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Each that cannot be sent counts, and the others are sent."""
    together = threading.Barrier(4)

    @mlbridge.batched
    def policy(requests: Sequence[mlbridge.Features]) -> list[Any]:
        return [TOO_LONG if q["x"] % 2 else int(q["x"]) for q in requests]

    def ask(x: int) -> Any:
        with create_model_runner(f"pipe:{name}?timeout=20s") as runner:
            replies = []
            for _ in range(5):
                together.wait(20)
                try:
                    replies.append(runner.evaluate({"x": x}))
                except mlbridge.ModelError as error:
                    replies.append(str(error))
            return replies

    with (
        serving(
            policy, f"pipe:{name}?max-message={LIMIT}", max_batch=4, max_delay=0.2
        ) as served,
        ThreadPoolExecutor(4) as compilers,
    ):
        replies = list(compilers.map(ask, range(4)))
    assert replies[::2] == [[0] * 5, [2] * 5]
    assert all("max-message" in reply for each in replies[1::2] for reply in each)
    assert (served.statistics.sessions, served.statistics.errors) == (4, 10)
    assert served.statistics.batch_size > 1
    assert len([r for r in caplog.records if r.exc_info]) == 1


FOREIGN = [("json", True), ("bitstream", False)]


@pytest.mark.parametrize(("serdes", "is_told"), FOREIGN)
def test_a_foreign_compiler(name: str, serdes: str, is_told: bool) -> None:
    """One that speaks the bitstream has no place for a reason: its session ends."""
    request = b'{"x":1}'
    if serdes == "bitstream":
        header = b'{"features":[{"name":"x","port":0,"type":"int64_t","shape":[]}]}'
        request = header + b"\n" + struct.pack("<q", 1) + b"\n"
    with serving(
        lambda _: TOO_LONG, f"pipe:{name}?max-message={LIMIT}&serdes={serdes}"
    ) as served:
        with bare_compiler(name) as (read, write):
            os.write(write, struct.pack("<Q", len(request)) + request)
            reply = os.read(read, LIMIT)
        if is_told:
            assert b"max-message" in reply
            assert b"_error" in reply
        else:
            assert reply == b""
    assert served.statistics.errors == 1


@contextmanager
def bare_compiler(name: str) -> Iterator[tuple[int, int]]:
    """The ends of a foreign compiler: NAME.in to read, then NAME.out to write."""
    until(Path(f"{name}.in").exists)
    read = os.open(f"{name}.in", os.O_RDONLY)
    write = os.open(f"{name}.out", os.O_WRONLY)
    try:
        yield read, write
    finally:
        os.close(read)
        os.close(write)
