# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the codec on the golden frames with independent readers.

The readers below follow docs/reference/wire-format.md and use only `json` and `numpy`.
Therefore, the tests fail if the C++ code differs from the document.
"""

import json
import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlbridge
from conftest import assert_same
from mlbridge.codec import deserialize, formats, serialize

GOLDEN = Path(__file__).parent.parent / "golden"
REPLIES_WITHOUT_ADVICE = {"error", "deferred"}
NAMES = sorted(
    path.stem for path in GOLDEN.glob("*.bin") if not path.stem.startswith("bare-")
)
TENSORS = [name for name in NAMES if name not in REPLIES_WITHOUT_ADVICE]

DTYPES = {
    f"{kind}int{8 * size}_t": f"<{kind or 'i'}{size}"
    for kind in ("", "u")
    for size in (1, 2, 4, 8)
} | {"float": "<f4", "double": "<f8", "bool": "?"}
"""Maps types to NumPy dtypes, in the order of Protobuf's enum."""


def read_bitstream(message: bytes) -> dict[str, Any]:
    header, _, body = message.partition(b"\n")
    # The first tensor begins at a 64-byte boundary, counted from the start of the
    # length that precedes the message.
    assert (8 + len(header) + 1) % 64 == 0
    tensors: dict[str, Any] = {}
    sizes = []
    for spec in json.loads(header)["features"]:
        dtype, shape = np.dtype(DTYPES[spec["type"]]), spec["shape"]
        size = int(np.prod(shape)) * dtype.itemsize
        data, body = body[:size], body[size:]
        sizes.append(dtype.itemsize)
        match spec.get("semantics"):
            case "string":
                tensors[spec["name"]] = data.decode()
            case "strings":
                ends = np.cumsum(spec["lengths"], dtype=int).tolist()
                texts = [data[a:b].decode() for a, b in pairwise([0, *ends])]
                tensors[spec["name"]] = texts
                assert len(data) == sum(spec["lengths"])
            case semantics:
                dtype = np.dtype(bool) if semantics else dtype
                tensors[spec["name"]] = np.frombuffer(data, dtype).reshape(shape)
                assert semantics in (None, "bool")
    assert body == b"\n"
    assert sizes == sorted(sizes, reverse=True)
    return tensors


def read_json(message: bytes) -> dict[str, Any]:
    # Convert -0 to a float, because an int has no sign of zero.
    values = json.loads(message, parse_int=lambda x: -0.0 if x == "-0" else int(x))
    types = values.pop("_types", {})
    return {
        key: read_json_value(value, types.get(key)) for key, value in values.items()
    }


def read_json_value(value: Any, declared: Any) -> Any:
    shape = None
    if isinstance(declared, dict):
        declared, shape = declared["type"], declared["shape"]
    if declared == "string":
        return value
    first = value
    while isinstance(first, list) and first:
        first = first[0]
    if declared is None:
        if isinstance(first, str):
            return value
        declared = {bool: "bool", int: "int64_t", float: "double"}[type(first)]
    # NumPy parses the strings "NaN" and "Infinity" as floats.
    array = np.array(value, DTYPES[declared])
    return array if shape is None else array.reshape(shape)


def varint(message: bytes, at: int) -> tuple[int, int]:
    """Returns the value of the varint at an index, and the next index."""
    end = next(i + 1 for i in range(at, len(message)) if message[i] < 0x80)
    return sum((message[i] & 0x7F) << 7 * (i - at) for i in range(at, end)), end


def protobuf_fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yields a message's fields in order: the number, and the value (int or bytes)."""
    at = 0
    while at < len(message):
        tag, at = varint(message, at)
        value: Any
        value, at = varint(message, at)
        if tag & 7 == 2:
            value, at = message[at : at + value], at + value
        yield tag >> 3, value


def read_protobuf(message: bytes) -> dict[str, Any]:
    tensors: dict[str, Any] = {}
    for number, tensor in protobuf_fields(message):
        if number == 15:
            assert not any(tensor)
            continue
        assert number == 1
        name, kind, shape, data = "", "", [], b""
        strings: list[str] = []
        for field, value in protobuf_fields(tensor):
            match field:
                case 1:
                    name = value.decode()
                case 2:
                    kind = [*DTYPES, "string"][value - 1]
                case 3:
                    at = 0
                    while at < len(value):
                        extent, at = varint(value, at)
                        shape.append(extent)
                case 4:
                    data = value
                case 5:
                    strings.append(value.decode())
        if kind == "string":
            tensors[name] = strings if shape else strings[0] if strings else []
            assert not shape or shape == [len(strings)]
        else:
            tensors[name] = np.frombuffer(data, DTYPES[kind]).reshape(shape)
    return tensors


def test_there_are_frames() -> None:
    assert len(NAMES) >= 10
    assert {path.stem for path in GOLDEN.glob("*.json")} >= set(NAMES)


READERS = {"bitstream": read_bitstream, "json": read_json, "protobuf": read_protobuf}
has_protobuf = "protobuf" in {known.name for known in formats()}
needs_protobuf = pytest.mark.skipif(not has_protobuf, reason="built without Protobuf")
PROTOBUF = pytest.param("protobuf", marks=needs_protobuf)


def golden(name: str, serdes: str) -> bytes:
    """Returns a golden file's message, without the length before a bitstream."""
    suffix = {"bitstream": "bin", "json": "json", "protobuf": "pb"}[serdes]
    contents = (GOLDEN / f"{name}.{suffix}").read_bytes()
    if serdes == "bitstream":
        assert int.from_bytes(contents[:8], "little") == len(contents) - 8
        return contents[8:]
    return contents.rstrip(b"\n") if serdes == "json" else contents


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("serdes", ["bitstream", "json", PROTOBUF])
def test_read_and_written(name: str, serdes: str) -> None:
    message = golden(name, serdes)
    expected = READERS[serdes](message)
    found = deserialize(message, serdes)
    assert list(found) == list(expected)
    assert_same(found, expected)
    assert serialize(typed(found), serdes) == message


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("serdes", ["bitstream", PROTOBUF])
def test_json_says_the_same(name: str, serdes: str) -> None:
    found = deserialize(golden(name, serdes), serdes)
    other = deserialize((GOLDEN / f"{name}.json").read_bytes(), "json")
    # A bitstream orders its tensors by element size.
    assert serdes == "bitstream" or list(found) == list(other)
    assert_same(other, found)


def typed(tensors: dict[str, Any]) -> dict[str, Any]:
    """Converts empty lists of strings to arrays, because the lists lack the type."""
    return {
        key: np.array([], str) if isinstance(value, list) and not value else value
        for key, value in tensors.items()
    }


def test_values() -> None:
    """Compares a few literal values, because all readers may have the same error."""
    found = deserialize(golden("scalars", "bitstream"))
    assert_same(found["int64"], np.array(-64, np.int64))
    assert_same(found["uint16"], np.array(16, np.uint16))
    assert_same(found["float"], np.array(0.1, np.float32))
    assert_same(found["true"], np.array(True))
    assert found["string"] == "text"
    found = deserialize((GOLDEN / "text.json").read_bytes(), "json")
    assert found["unicode"] == "naïve 日本語 🌉"
    assert found["names"] == ["", "λ", '"quoted"', "NaN"]


@pytest.mark.parametrize("serdes", ["bitstream", "json", PROTOBUF])
@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("error", mlbridge.ModelError, 'ValueError: no feature "callee"'),
        ("deferred", mlbridge.Deferred, "not seen in training"),
    ],
)
def test_replies_without_advice(
    name: str, kind: type[mlbridge.Error], says: str, serdes: str
) -> None:
    message = golden(name, serdes)
    if serdes == "protobuf":
        assert list(read_protobuf(message).values()) == [says]
    with pytest.raises(kind) as caught:
        deserialize(message, serdes)
    assert str(caught.value) == says


def test_bare_dialects() -> None:
    request = golden("bare-request", "bitstream")
    tensors = {"size": 12, "embedding": np.array([1.5, -2.25], np.float32)}
    assert serialize(tensors, bare="compiler") == request
    found = deserialize(request, bare="model")
    assert_same(found["embedding"], np.array([1.5, -2.25], np.float32))
    assert found["size"] == 12
    reply = golden("bare-reply", "bitstream")
    assert reply == np.float32(1.5).tobytes()
    assert serialize({"out": np.float32(1.5)}, bare="model") == reply
    advice = deserialize(reply, bare="compiler", dtype="float")
    assert_same(np.asarray(advice["out"]).reshape(()), np.array(1.5, np.float32))
    request = golden("bare-request", "json")
    assert serialize(tensors, "json", bare="compiler") == request
    assert deserialize(request, "json", bare="model")["size"] == 12
    reply = golden("bare-reply", "json")
    assert serialize({"out": np.float32(1.5)}, "json", bare="model") == reply


@pytest.mark.parametrize("size", [0, 1, 3, 5, 8])
def test_a_bare_reply_of_another_size_is_refused(size: int) -> None:
    with pytest.raises((mlbridge.Malformed, mlbridge.SchemaMismatch)):
        deserialize(b"\0" * size, bare="compiler", dtype="float")


def test_the_shared_memory() -> None:
    """The layout in docs/reference/wire-format.md."""
    memory = (GOLDEN / "shared-memory.shm").read_bytes()
    magic, version, header, capacity = struct.unpack_from("<8sIIQ", memory, 0)
    assert (magic, version, header, capacity) == (b"MLBridge", 1, 192, 4096)
    sequence, _core, sleeps = *struct.unpack_from("<II", memory, 64), memory[128]
    assert (sequence, sleeps) == (7, 0)
    assert memory[header:] == (GOLDEN / "scalars.bin").read_bytes()
