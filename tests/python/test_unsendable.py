# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""If a reply cannot be sent, the compiler gets the reason and may continue."""

import os
import struct
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlbridge
from mlbridge import _core, create_model_runner, serving
from programs import IS_FULL, TRANSPORTS, asked_at, at, place, reply_of, until

FORMATS = [known.name for known in _core.formats()]
WAYS = [
    (spec, serdes)
    for spec in TRANSPORTS
    for serdes in FORMATS
    if IS_FULL or spec == "pipe:{}" or serdes == "bitstream"
]
"""Every transport and every SerDes. In the full run, all combinations of them."""
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
    policy, server = lambda f: reply if f["x"] == 1 else 7, limited(spec, name)
    with (
        asked_at(policy, server, compiler) as (served, runner),
        create_model_runner(compiler) as other,
    ):
        assert other.evaluate({"x": 0}) == 7
        for _ in range(3):
            with pytest.raises(mlbridge.ModelError, match=says):
                runner.evaluate({"x": 1})
            assert runner.evaluate({"x": 0}) == 7
            assert other.evaluate({"x": 0}) == 7
    assert served.statistics.sessions == 2, "no failure has ended a session"
    assert (served.statistics.errors, served.statistics.requests) == (3, 10)
    assert says.partition("|")[0] in caplog.text
    if spec == "pipe:{}":
        assert f"session 2 (process {os.getpid()})" in caplog.text


@pytest.mark.parametrize("what", UNSENDABLE)
def test_an_answer_that_cannot_be_sent_ends_serving(name: str, what: str) -> None:
    reply, says = UNSENDABLE[what]
    kinds = mlbridge.SchemaMismatch, mlbridge.InvalidArgument
    with (
        pytest.raises(kinds, match=says) as caught,
        serving(lambda _: reply, limited("pipe:{}", name), on_error="raise"),
        pytest.raises(mlbridge.Error),
    ):
        reply_of(f"pipe:{name}?timeout=20s", {"x": 1})
    assert (caught.value.session, caught.value.pid) == (1, os.getpid())


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
    """The compiler gets the start of the explanation, up to the size of a message."""

    def policy(features: mlbridge.Features) -> int:
        if features["x"] == 1:
            raise ValueError("because " + "ü" * LIMIT)
        if features["x"] == 2:
            raise mlbridge.Deferred("rather " + "ü" * LIMIT)
        return 7

    compiler = at(spec, name, timeout="20s")
    with asked_at(policy, limited(spec, name), compiler) as (served, runner):
        with pytest.raises(mlbridge.ModelError, match="ValueError: because üüü"):
            runner.evaluate({"x": 1})
        with pytest.raises(mlbridge.Deferred, match="rather üüü"):
            runner.evaluate({"x": 2})
        assert runner.evaluate({"x": 0}) == 7
    statistics = served.statistics
    assert (statistics.sessions, statistics.errors, statistics.deferred) == (1, 1, 1)


def test_answers_of_a_batch(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Each reply that cannot be sent counts as an error. All other replies are sent."""
    together = threading.Barrier(4)

    @mlbridge.batched
    def policy(requests: Sequence[mlbridge.Features]) -> list[Any]:
        return [TOO_LONG if q["x"] % 2 else int(q["x"]) for q in requests]

    def ask(x: int) -> None:
        with create_model_runner(f"pipe:{name}?timeout=20s") as runner:
            for _ in range(5):
                together.wait(20)
                if x % 2:
                    with pytest.raises(mlbridge.ModelError, match="max-message"):
                        runner.evaluate({"x": x})
                else:
                    assert runner.evaluate({"x": x}) == x

    with (
        serving(policy, limited("pipe:{}", name), max_batch=4, max_delay=0.2) as served,
        ThreadPoolExecutor(4) as compilers,
    ):
        list(compilers.map(ask, range(4)))
    assert (served.statistics.sessions, served.statistics.errors) == (4, 10)
    assert served.statistics.batch_size > 1
    assert len([r for r in caplog.records if r.exc_info]) == 1


HEADER = b'{"features":[{"name":"x","port":0,"type":"int64_t","shape":[]}]}\n'
FOREIGN = {"json": b'{"x":1}', "bitstream": HEADER + struct.pack("<q", 1) + b"\n"}


@pytest.mark.parametrize("serdes", FOREIGN)
def test_a_foreign_compiler(name: str, serdes: str) -> None:
    """A reply in the bare bitstream cannot contain a reason, so the session ends."""
    request = FOREIGN[serdes]
    server = f"{limited('pipe:{}', name)}&serdes={serdes}"
    with serving(lambda _: TOO_LONG, server) as served:
        until(Path(f"{name}.in").exists)
        # Connect in this order, because bare mode requires it.
        with (
            Path(f"{name}.in").open("rb", 0) as read,
            Path(f"{name}.out").open("wb", 0) as write,
        ):
            write.write(struct.pack("<Q", len(request)) + request)
            reply = read.read(LIMIT)
        assert (b"max-message" in reply) == (serdes == "json")
        assert (b"_error" in reply) == (serdes == "json")
        assert bool(reply) == (serdes == "json")
    assert served.statistics.errors == 1
