# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes training logs byte by byte, for the tests of their readers."""

import json
import struct
from pathlib import Path
from typing import Any

FEATURES: list[dict[str, Any]] = [
    {"name": "size", "port": 0, "type": "int64_t", "shape": [1]},
    {"name": "weights", "port": 0, "type": "float", "shape": [2, 2]},
]
ADVICE = {"name": "inlining_decision", "port": 0, "type": "int64_t", "shape": [1]}
SCORE = {"name": "reward", "port": 0, "type": "float", "shape": [1]}

OBSERVED = [("main", 0, 10, 1), ("helper ☃", 0, 20, 0), ("main", 1, 0x0A0A0A0A, 1)]
"""For each observation: the context, the index in the context, size and decision."""


def header(*, rewards: bool = False, **more: Any) -> bytes:
    """Returns a log's first line, as LLVM writes it."""
    value = {"features": [*FEATURES, ADVICE], **({"score": SCORE} if rewards else {})}
    return json.dumps({**value, **more}, separators=(",", ":")).encode() + b"\n"


def observation(index: int, size: int, decision: int) -> bytes:
    data = struct.pack("<q4fq", size, size, -1.5, 0, size / 2, decision)
    return b'{"observation":%d}\n%b\n' % (index, data)


def outcome(index: int, reward: float) -> bytes:
    return b'{"outcome":%d}\n%b\n' % (index, struct.pack("<f", reward))


def context(name: str) -> bytes:
    return json.dumps({"context": name}).encode() + b"\n"


def write_log(path: Path, *, rewards: bool = False) -> Path:
    """Writes three observations. The third has the same context as the first."""
    parts = [header(rewards=rewards)]
    for name, index, size, decision in OBSERVED:
        parts += [context(name), observation(index, size, decision)]
        if rewards:
            parts.append(outcome(index, size / 4))
    path.write_bytes(b"".join(parts))
    return path
