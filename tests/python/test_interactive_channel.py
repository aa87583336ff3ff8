# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoding of LLVM's interactive channel, including bytes that LLVM never writes."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import assert_same
from mlbridge import Malformed, SchemaMismatch
from mlbridge.interactive.advisors import Advisor, Eviction, Inliner, Priority
from mlbridge.interactive.channel import MAX_LINE, MAX_OBSERVATION, Decoder, Header

SIZE = {"name": "size", "type": "int64_t", "port": 0, "shape": [1]}
WEIGHTS = {"name": "weights", "type": "float", "port": 0, "shape": [1, 3]}
ADVICE = {"name": "inlining_decision", "type": "int64_t", "port": 0, "shape": [1]}


def header(*features: Any, advice: Any = ADVICE) -> bytes:
    value = {"features": list(features) or [SIZE, WEIGHTS], "advice": advice}
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def observation(index: int, size: int) -> bytes:
    data = np.array([size], "<i8").tobytes() + np.arange(3, dtype="<f4").tobytes()
    return b'{"observation":%d}\n%b\n' % (index, data)


class Peer:
    """Writes to a decoder, at most as many bytes as fit in its pipe at once."""

    def __init__(self, on_header: Callable[[Header], None] = lambda _: None) -> None:
        reader, self.writer = os.pipe2(os.O_NONBLOCK)
        self.fds = reader, self.writer
        self.decoder = Decoder("llc", reader, on_header)

    def write(self, data: bytes, piece: int = 1 << 16) -> list[dict[str, Any]]:
        """Writes the data in pieces. Returns copies of all requests in the data."""
        requests = []
        while data:
            written = os.write(self.writer, data[:piece])
            data = data[written:]
            while self.decoder.receive():
                while self.decoder.advance():
                    features = self.decoder.features
                    requests.append({k: v.copy() for k, v in features.items()})
        return requests

    def close(self) -> None:
        for fd in self.fds:
            os.close(fd)


@pytest.fixture
def peer() -> Iterator[Peer]:
    with closing(Peer()) as peer:
        yield peer


def test_a_conversation(peer: Peer) -> None:
    text = (
        header()
        + b'{"context":"main"}\n{"context":"f \\u2603"}\n'
        + observation(0, 5)
        + observation(1, 0x0A0A0A0A)
        + b'{"context":"empty"}\n'
    )
    first, second = peer.write(text)
    assert_same(first["size"], np.array([5], np.int64))
    assert_same(first["weights"], np.array([[0, 1, 2]], np.float32))
    assert_same(second["size"], np.array([0x0A0A0A0A], np.int64))
    assert (peer.decoder.contexts, peer.decoder.index) == (["main", "f ☃", "empty"], 1)
    assert not peer.decoder.has_rest


@pytest.mark.parametrize("piece", [1, 7, 100])
def test_in_pieces(peer: Peer, piece: int) -> None:
    text = header() + b"".join(observation(i, i) for i in range(50))
    assert [q["size"][0] for q in peer.write(text, piece)] == list(range(50))


def test_a_request_takes_no_new_memory(peer: Peer) -> None:
    peer.write(header() + observation(0, 1))
    arrays = dict(peer.decoder.features)
    peer.write(observation(1, 2))
    assert arrays["size"][0] == 2
    assert all(peer.decoder.features[name] is arrays[name] for name in arrays)
    with pytest.raises(ValueError, match="read-only"):
        arrays["size"][0] = 3


def test_json_with_spaces(peer: Peer) -> None:
    peer.write(header())
    text = observation(3, 9).replace(b'{"observation":3}', b'{ "observation" : 3 }')
    assert len(peer.write(text, piece=5)) == 1
    assert peer.decoder.index == 3


def test_observations_larger_than_the_buffer(peer: Peer) -> None:
    big = {"name": "embedding", "type": "float", "port": 0, "shape": [1 << 18]}
    value = np.arange(1 << 18, dtype=np.float32)
    text = header(big) + 3 * (b'{"observation":0}\n' + value.tobytes() + b"\n")
    requests = peer.write(text)
    assert_same(np.stack([q["embedding"] for q in requests]), np.stack([value] * 3))


def test_a_second_process_says_its_own(peer: Peer) -> None:
    assert len(peer.write(header() + observation(0, 1))) == 1
    (request,) = peer.write(header(SIZE) + b'{"observation":0}\n' + bytes(8) + b"\n")
    assert list(request) == ["size"]


def spec(**changes: Any) -> dict[str, Any]:
    return {**SIZE, **changes}


LIES = {
    "no JSON": (b"#include <stdio.h>\n", "a line of JSON"),
    "no object": (b"[1, 2]\n", "a header"),
    "another object": (b'{"outcome":0}\n', "a header"),
    "no advice": (b'{"features":[]}\n', "a header"),
    "nested": (b"[" * 100_000 + b"\n", "a line of JSON"),
    "a huge number": (b'{"observation":' + b"9" * 10_000 + b" }\n", "a line of JSON"),
    "no end of a line": (b'{"context":"' + b"x" * (MAX_LINE + 1), "no end"),
    "no header": (observation(0, 1), "expected a header, found an observation"),
    "unknown type": (header(spec(type="bfloat16")), "a tensor.*bfloat16"),
    "no shape": (header(spec(shape=None)), "a tensor"),
    "a negative shape": (header(spec(shape=[-1])), "a tensor"),
    "a shape of words": (header(spec(shape=["1"])), "a tensor"),
    "many dimensions": (header(spec(shape=[1] * 33)), "a tensor"),
    "an enormous shape": (header(spec(shape=[1 << 40])), "bytes, found"),
    "a shape of no array": (header(spec(shape=[1 << 40, 1 << 40])), "a tensor"),
    "too much": (header(spec(shape=[MAX_OBSERVATION // 8 + 1])), "bytes, found"),
    "nothing at all": (header(spec(shape=[0])), "bytes, found 0"),
    "a name twice": (header(SIZE, SIZE), "'size' again"),
    "no name": (header(spec(name=3)), "a tensor"),
    "an empty name": (header(spec(name="")), "a tensor"),
    "half a character": (header(spec(name="\ud800")), "a tensor"),
    "half a character's context": (header() + b'{"context":"\\ud800"}\n', "a header"),
    "advice is no tensor": (header(advice=3), "a tensor"),
    "a shorter shape": (
        header(SIZE) + observation(0, 1),
        "newline after 8 bytes of t",
    ),
    "a longer shape": (
        header(spec(shape=[3])) + observation(0, 1) + observation(1, 1),
        "a newline after 24 bytes of tensors",
    ),
    "no number": (header() + b'{"observation":x}\n', "a line of JSON"),
    "a negative number": (header() + b'{"observation":-1}\n', "a header"),
    "a number of 64 bits": (header() + b'{"observation":%d}\n' % (1 << 63), "a header"),
    "a number that is none": (header() + b'{"observation":true}\n', "a header"),
    "a long context": (
        header() + b'{"context":"%b"}\n' % (b"x" * 5000) + b'{"observation":x}\n',
        "a line of JSON",
    ),
    "a context of numbers": (header() + b'{"context":3}\n', "a header"),
}


@pytest.mark.parametrize("lie", LIES)
def test_lies(peer: Peer, lie: str) -> None:
    data, says = LIES[lie]
    with pytest.raises(Malformed, match=f"llc: .*{says}") as caught:
        peer.write(data)
    assert len(str(caught.value)) < 600


def test_a_bad_header_of_a_second_process(peer: Peer) -> None:
    """The error's byte offset is relative to the start of the second header."""
    peer.write(header() + observation(0, 1))
    with pytest.raises(Malformed, match=r"llc: byte 0 of the message: .* a tensor"):
        peer.write(observation(1, 1) + header(3))


def test_what_has_not_arrived_is_not_shown(peer: Peer) -> None:
    """Errors never quote earlier messages, which the buffer still holds."""
    # Use one write, so that the next message overwrites the buffer.
    peer.write(header() + observation(0, 0x41414141) + observation(1, 0x41414141))
    with pytest.raises(Malformed, match=r"found b'x'$"):
        peer.write(observation(2, 0)[:-1] + b"x")


def test_the_time_that_a_header_takes_grows_as_its_names() -> None:
    def seconds(count: int) -> float:
        text = header(
            *(spec(name=f"f{i}", shape=[], type="int8_t") for i in range(count))
        )
        with closing(Peer()) as peer:
            start = time.process_time()
            peer.write(text)
            assert len(peer.decoder.features) == count
            return time.process_time() - start

    few, many = (min(seconds(n) for _ in range(3)) for n in (1_500, 15_000))
    # There are ten times as many names. Comparing all pairs would take 100 times as
    # long.
    assert many < 30 * few


@pytest.mark.parametrize("size", range(1, 120, 7))
def test_truncated(peer: Peer, size: int) -> None:
    """An incomplete message becomes an error only when the compile ends."""
    text = header() + observation(0, 1)
    assert peer.write(text[:-size]) == []
    assert len(peer.write(text[-size:])) == 1


INLINER, EVICTS = Inliner(include_default=True), spec(name="index_to_evict")
FLOAT, TWO = {**ADVICE, "type": "float"}, {**ADVICE, "shape": [2]}


@pytest.mark.parametrize(
    ("advisor", "data", "says"),
    [
        (INLINER, header(), "inlining_default.*found none"),
        (INLINER, header(advice=EVICTS), "found int64.1. 'index_to_evict'"),
        (INLINER, header(advice=FLOAT), "expected int64.*found float32"),
        (INLINER, header(advice=TWO), r"expected int64\[1\].*int64\[2\]"),
        *(
            (Eviction(), header(*mask, WEIGHTS, advice=EVICTS), "mask")
            for mask in ([], [spec(name="mask")], [spec(name="mask", shape=[1, 300])])
        ),
        (Priority(), header(), "'priority'"),
    ],
)
def test_headers_that_an_advisor_refuses(
    advisor: Advisor, data: bytes, says: str
) -> None:
    message = f"{advisor.name} advisor: .*{says}"
    refused = pytest.raises(SchemaMismatch, match=message)
    with closing(Peer(advisor.check)) as peer, refused:
        peer.write(data)


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.sampled_from([lie for lie, _ in LIES.values() if len(lie) < 10_000]),
            st.sampled_from([header(), observation(0, 1), b'{"context":"f"}\n']),
            st.dictionaries(st.text(max_size=3), st.integers()).map(
                lambda value: json.dumps(value).encode() + b"\n"
            ),
        ),
        max_size=8,
    ),
    st.integers(1, 100),
)
def test_whatever_comes_is_read_or_refused(parts: list[bytes], piece: int) -> None:
    with closing(Peer()) as peer, suppress(Malformed, SchemaMismatch):
        peer.write(b"".join(parts), piece)
