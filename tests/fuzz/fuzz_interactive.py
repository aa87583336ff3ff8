# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parses arbitrary bytes as LLVM's interactive channel, all at once and in pieces.

An input's first byte selects LLVM's advisor and the smallest length of the pieces. The
length of the pieces must not change the requests or the error (Malformed or
SchemaMismatch). The requests must not be larger than the input.
"""

import os
from dataclasses import dataclass, field

import numpy as np

from fuzzing import fuzz, require, require_printable
from mlbridge import log
from mlbridge.errors import Malformed, SchemaMismatch
from mlbridge.interactive import advisors, channel

_MOST = 1 << 15
"""The number of bytes to read from an input. A pipe can hold this many."""


@dataclass
class _Conversation:
    """The requests, contexts and error of a decoder."""

    requests: list[tuple[str, int, dict[str, bytes]]] = field(default_factory=list)
    contexts: list[str] = field(default_factory=list)
    has_rest: bool = False
    error: str = ""


def check(data: bytes) -> None:
    """Raises if a property does not hold for these bytes."""
    kind = data[0] if data else 0
    # Without an advisor (None), any header is accepted.
    readers = [None, advisors.Inliner(True), advisors.Eviction(), advisors.Priority()]
    advisor = readers[kind % 4]
    text = data[1:_MOST]
    whole = _read(text, _MOST, advisor)
    # Use at most 16 pieces, because each piece needs several system calls.
    pieces = _read(text, max(1 + kind // 4, len(text) // 16), advisor)
    require(whole == pieces, "pieces make no difference", (whole, pieces))
    size = sum(len(v) for _, _, q in whole.requests for v in q.values())
    shortest = len(b'{"observation":0}\n\n')
    require(size + shortest * len(whole.requests) <= len(text), "requests take bytes")


def _read(text: bytes, piece: int, advisor: advisors.Advisor | None) -> _Conversation:
    """Returns the conversation in a text that arrives in pieces of `piece` bytes."""
    found = _Conversation()
    reader, writer = os.pipe2(os.O_NONBLOCK)
    accept = advisor.check if advisor else lambda header: None
    decoder = channel.Decoder("opt", reader, accept)
    try:
        for start in range(0, len(text), piece):
            os.write(writer, text[start : start + piece])
            while decoder.receive():
                while decoder.advance():
                    _add_request(found, decoder, advisor)
        found.has_rest = decoder.has_rest
    except (Malformed, SchemaMismatch) as error:
        require_printable(error)
        # The rest of the message may quote bytes that have not arrived, so do not
        # compare it.
        found.error = f"{type(error).__name__}: {str(error).partition(', found ')[0]}"
    finally:
        os.close(reader)
        os.close(writer)
    found.contexts = decoder.contexts
    return found


def _add_request(
    found: _Conversation, decoder: channel.Decoder, advisor: advisors.Advisor | None
) -> None:
    features = decoder.features
    require(type(decoder.index) is int and decoder.index >= 0, "an index is a number")
    values = {}
    for name, value in features.items():
        assert isinstance(value, np.ndarray), f"broken: {name} is an array"
        values[name] = value.tobytes()
    found.requests.append((decoder.context, decoder.index, values))
    if advisor is None:
        return
    # encode() must refuse an illegal reply.
    try:
        reply = advisor.encode(0, features)
    except SchemaMismatch as error:
        require(isinstance(advisor, advisors.Eviction), "0 is legal", error)
    else:
        require(len(reply) == advisor.advice.nbytes, "an answer has its size", reply)
        if isinstance(advisor, advisors.Eviction):
            mask = features["mask"]
            assert isinstance(mask, np.ndarray)
            require(mask[0, 0], "only what may be evicted is", mask)


if __name__ == "__main__":
    fuzz(check, log, channel, advisors)
