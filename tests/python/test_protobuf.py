# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Protobuf: our codec compared with the official package, and users' own messages."""

import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlbridge
from conftest import as_array, assert_same
from mlbridge import codec, create_model_runner, protobuf, serving
from programs import run_python

FORMATS = {known.name for known in codec.formats()}

pytestmark = pytest.mark.skipif(
    "protobuf" not in FORMATS, reason="built without Protobuf"
)


@pytest.fixture
def pb2(generated: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The Python module of features.proto."""
    monkeypatch.syspath_prepend(str(generated))
    return importlib.import_module("features_pb2")


def test_the_official_package_reads_ours(generic: Any) -> None:
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
    message = codec.serialize(
        {"matrix": matrix, "name": "main", "names": ["a", "b"], "hot": True}, "protobuf"
    )
    read = generic.Observation.FromString(message)
    tensors = {tensor.name: tensor for tensor in read.tensors}
    assert list(tensors) == ["matrix", "name", "names", "hot"]
    assert tensors["matrix"].type == generic.Tensor.FLOAT
    assert list(tensors["matrix"].shape) == [2, 3]
    assert tensors["matrix"].data == matrix.tobytes()
    assert list(tensors["name"].strings) == ["main"]
    assert list(tensors["names"].strings) == ["a", "b"]
    assert tensors["hot"].data == b"\x01"


def test_ours_reads_the_official_package(generic: Any) -> None:
    tensor = generic.Tensor
    message = generic.Advice(
        tensors=[
            tensor(name="index", ints=[3]),
            tensor(name="scores", floats=[0.25, 0.5]),
            tensor(name="matrix", doubles=[1, 2, 3, 4], shape=[2, 2]),
            tensor(name="small", type=tensor.UINT8, ints=[1, 2]),
            tensor(name="flags", bools=[True, False]),
            tensor(name="why", strings=["because"]),
            tensor(name="raw", type=tensor.INT16, data=b"\x01\x00\x02\x00"),
        ]
    ).SerializeToString()
    found = codec.deserialize(message, "protobuf")
    assert_same(found["index"], np.array(3, np.int64))
    assert_same(found["scores"], np.array([0.25, 0.5], np.float32))
    assert_same(found["matrix"], np.array([[1, 2], [3, 4]], np.float64))
    assert_same(found["small"], np.array([1, 2], np.uint8))
    assert_same(found["flags"], np.array([True, False]))
    assert found["why"] == "because"
    assert_same(found["raw"], np.array([1, 2], np.int16))


@pytest.mark.parametrize(
    ("name", "kind"),
    [("_error", mlbridge.ModelError), ("_deferred", mlbridge.Deferred)],
)
def test_replies_that_are_no_advice(
    generic: Any, name: str, kind: type[mlbridge.Error]
) -> None:
    advice = generic.Advice(tensors=[generic.Tensor(name=name, strings=["why"])])
    with pytest.raises(kind, match="why"):
        codec.deserialize(advice.SerializeToString(), "protobuf")


# User-defined messages


@contextmanager
def asked_in(
    messages: Any, policy: mlbridge.Policy, name: str, theirs: Any = None
) -> Iterator[tuple[mlbridge.Serving, mlbridge.ModelRunner]]:
    """Serves a policy with `messages`. Yields the server and a runner.

    The runner sends messages of `theirs`, by default of `messages`.
    """
    theirs = theirs or messages
    spec = f"pipe:{name}?serdes={theirs.name}&timeout=20s"
    with (
        serving(policy, f"pipe:{name}", formats=[messages]) as served,
        create_model_runner(spec, formats=[theirs]) as runner,
    ):
        yield served, runner


def features() -> dict[str, Any]:
    """Returns a value for each field of test.Features except the optional field."""
    return {
        "callee_size": np.int32(-12),
        "count": 1 << 40,
        "mask": np.uint32(7),
        "hash": np.uint64(2**64 - 1),
        "weight": np.float32(0.5),
        "cost": 0.1,
        "hot": True,
        "callee": "main",
        "blob": np.array([0, 255], np.uint8),
        "opcode": np.int32(7),
        "delta": np.int32(-3),
        "address": -4,
        "word": np.uint32(5),
        "sizes": np.array([1, -2], np.int32),
        "deltas": np.array([-1, 1]),
        "hashes": np.array([1, 2], np.uint64),
        "embedding": np.array([0.5, -1.5], np.float32),
        "costs": np.array([0.5]),
        "flags": np.array([True, False]),
        "names": ["a", "", "é"],
        "opcodes": np.array([0, 7], np.int32),
        "unpacked": np.array([1.5], np.float32),
    }


def test_own_messages_from_end_to_end(name: str, pb2: Any) -> None:
    messages = protobuf.messages(pb2.Features, pb2.Decision)
    assert messages.name == "protobuf:test.Features/test.Decision"
    seen: dict[str, Any] = {}

    def policy(asked: mlbridge.Features) -> dict[str, Any]:
        seen.update(
            {k: v.copy() if hasattr(v, "copy") else v for k, v in asked.items()}
        )
        assert isinstance(asked["embedding"], np.ndarray)
        assert not asked["embedding"].flags.owndata
        return {"inline": bool(asked["hot"]), "scores": 2 * asked["embedding"]}

    with serving(policy, f"pipe:{name}", formats=[messages]):
        for at in ("pipe", "shm"):
            spec = f"{at}:{name}?serdes={messages.name}&timeout=20s"
            with create_model_runner(spec, formats=[messages]) as runner:
                for _ in range(2):
                    advice = runner.evaluate(features())
                    assert_same(advice["inline"], np.array(True))
                    assert_same(advice["scores"], np.array([1, -3], np.float32))
    assert_same(seen, {name: as_array(value) for name, value in features().items()})


def test_own_messages_are_those_of_protoc(pb2: Any) -> None:
    messages = protobuf.messages(pb2.Features, pb2.Decision)
    read = pb2.Features.FromString(codec.serialize(features(), messages))
    assert read.callee_size == -12
    assert list(read.names) == ["a", "", "é"]
    assert list(read.embedding) == [0.5, -1.5]
    assert not read.HasField("hint")
    found = codec.deserialize(read.SerializeToString(), messages)
    assert_same(found["deltas"], np.array([-1, 1]))
    # The reply has another message type than the request.
    reply = codec.serialize(
        {"inline": True, "scores": np.ones(2, np.float32)}, messages, side="model"
    )
    assert pb2.Decision.FromString(reply).inline
    assert codec.deserialize(reply, messages, side="compiler")["inline"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"callee_size": "big"}, r"feature 'callee_size': field 'callee_size' of "
         r"message test\.Features is int32, found string"),
        ({"callee_size": 2**31}, "int32, found int64_t with a value that does not fit"),
        ({"embedding": np.ones((2, 2), np.float32)}, r"found float\[2,2\]"),
        ({"colour": 1}, "feature 'colour': message test.Features has no field"),
        ({"hot": None}, "field 'hot' of message test.Features has no feature"),
    ],
)  # fmt: skip
def test_mismatches(pb2: Any, changes: dict[str, Any], says: str) -> None:
    tensors = {k: v for k, v in (features() | changes).items() if v is not None}
    with pytest.raises(mlbridge.SchemaMismatch, match=says):
        codec.serialize(tensors, protobuf.messages(pb2.Features, pb2.Decision))


def test_a_reply_that_does_not_fit(name: str, pb2: Any) -> None:
    messages = protobuf.messages(pb2.Decision, pb2.Decision)
    request = {"inline": True, "scores": np.ones(1, np.float32)}
    with asked_in(messages, lambda f: {"inline": True}, name) as (served, runner):
        for _ in range(2):
            with pytest.raises(mlbridge.ModelError, match=r"field 'scores'.*Decision"):
                runner.evaluate(request)
    assert served.statistics.sessions == 1


def test_a_failure_and_a_deferral(name: str, pb2: Any) -> None:
    messages = protobuf.messages(pb2.Decision, pb2.Decision)

    def policy(asked: mlbridge.Features) -> None:
        if asked["inline"]:
            raise ValueError("no weights")

    with asked_in(messages, policy, name) as (_, runner):
        for _ in range(2):
            with pytest.raises(mlbridge.ModelError, match="no weights"):
                runner.evaluate({"inline": True, "scores": np.ones(1, np.float32)})
            with pytest.raises(mlbridge.Deferred):
                runner.evaluate({"inline": False, "scores": np.ones(1, np.float32)})


def test_two_sides_with_other_messages_refuse_each_other(name: str, pb2: Any) -> None:
    ours = protobuf.messages(pb2.Decision, pb2.Decision)
    theirs = protobuf.messages(pb2.Features, pb2.Decision)
    with (
        asked_in(ours, lambda f: 0, name, theirs) as (_, runner),
        pytest.raises(mlbridge.Error, match=rf"known: .*{ours.name}"),
    ):
        runner.evaluate({})


def test_descriptors_without_the_package(generated: Path) -> None:
    described, decision = generated / "features.desc", "test.Decision"
    messages = protobuf.messages_from(described, decision, decision)
    assert codec.deserialize(b"\x08\x01", messages)["inline"]
    with pytest.raises(mlbridge.InvalidArgument, match=r"no message test\.Nothing"):
        protobuf.messages_from(described, "test.Nothing", decision)
    with pytest.raises(mlbridge.InvalidArgument, match="FileDescriptorSet"):
        protobuf.messages_from(b"\xff", "test.Features", decision)


def test_messages_that_cannot_be_used(pb2: Any, graph_pb2: Any) -> None:
    with pytest.raises(mlbridge.Unsupported, match=r"test\.ListOfBytes .*list of byt"):
        protobuf.messages(pb2.ListOfBytes, pb2.Decision)
    with pytest.raises(mlbridge.Unsupported, match="contains itself"):
        protobuf.messages(graph_pb2.Recursive, pb2.Decision)


# Messages in messages


@pytest.fixture
def graph_pb2(generated: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The Python module of graph.proto."""
    monkeypatch.syspath_prepend(str(generated))
    return importlib.import_module("graph_pb2")


def graph() -> dict[str, Any]:
    """Returns an interference graph: the triangle 0-1-2, and the edge 2-3."""
    count = 4
    return {
        "num_registers": 2,
        "target": "GENERAL",
        "max_splits": 1,
        "graph.function": "main",
        "graph.nodes[].id": np.arange(count),
        "graph.nodes[].weight": np.linspace(1, 4, count),
        "graph.nodes[].kind": ["GENERAL"] * 3 + ["VECTOR"],
        "graph.nodes[].name": list("abcd"),
        "graph.nodes[].neighbours": [1, 2, 0, 2, 0, 1, 3, 2],
        "graph.nodes[].neighbours[]": [2, 2, 3, 1],
        "graph.nodes[].uses[]": [1, 0, 2, 0],
        "graph.nodes[].uses[].block": [5, 6, 7],
        "graph.nodes[].range.begin": np.zeros(count, np.int64),
        "graph.nodes[].range.end": np.full(count, 9),
        "graph.nodes[].embedding": np.ones((count, 3), np.float32),
        "graph.nodes[].mask": np.zeros((count, 2), np.uint8),
        "graph.nodes[].aliases": ["alias"],
        "graph.nodes[].aliases[]": [0, 0, 0, 1],
        "graph.costs[].key": ["a", "d"],
        "graph.costs[].value": [1.0, 2.0],
        "graph.classes": ["GENERAL", "VECTOR"],
        "graph.digest": np.array([1], np.uint8),
        "blocks[].key": np.array([5, 6], np.int32),
        "blocks[].value.begin": [0, 1],
        "blocks[].value.end": [1, 2],
        "marks[]": 0,
    }


def colour(asked: mlbridge.Features) -> dict[str, Any]:
    """Colours an interference graph greedily. Spills when no register is free."""
    ends = np.cumsum(asked["graph.nodes[].neighbours[]"])
    neighbours = np.split(asked["graph.nodes[].neighbours"], ends[:-1])
    colours: list[int | None] = []
    for near in neighbours:
        taken = {colours[i] for i in near if i < len(colours)}
        free = set(range(int(asked["num_registers"]))) - taken
        colours.append(min(free, default=None))
    spilled = np.array([c is None for c in colours])
    nowhere = np.zeros(len(colours), np.int64)
    return {
        "assignments[].colour": np.array([c or 0 for c in colours], np.int32),
        "assignments[].colour?": ~spilled,
        "assignments[].spill?": spilled,
        "assignments[].split?": np.zeros(len(colours), bool),
        "assignments[].split.begin": nowhere,
        "assignments[].split.end": nowhere,
        "statistics[].key": ["spilled"],
        "statistics[].value": [int(spilled.sum())],
        "busiest": "GENERAL",
    }


def test_an_interference_graph_both_ways(name: str, graph_pb2: Any) -> None:
    messages = protobuf.messages(graph_pb2.GraphFeatures, graph_pb2.Colouring)
    with serving(colour, f"pipe:{name}", formats=[messages]):
        for at in ("pipe", "shm"):
            spec = f"{at}:{name}?serdes={messages.name}&timeout=20s"
            with create_model_runner(spec, formats=[messages]) as runner:
                advice = runner.evaluate(graph())
    assert_same(advice["assignments[].colour"], np.array([0, 1, 0, 0], np.int32))
    assert_same(advice["assignments[].spill?"], np.array([False, False, True, False]))
    assert advice["statistics[].key"] == ["spilled"]
    assert_same(advice["statistics[].value"], np.array([1], np.int32))


def test_nested_messages_are_those_of_protoc(graph_pb2: Any) -> None:
    messages = protobuf.messages(graph_pb2.GraphFeatures, graph_pb2.Colouring)
    sent = codec.serialize(graph(), messages)
    read = graph_pb2.GraphFeatures.FromString(sent)
    assert [list(node.neighbours) for node in read.graph.nodes][2:] == [[0, 1, 3], [2]]
    assert read.graph.nodes[3].kind == graph_pb2.VECTOR
    assert list(read.graph.nodes[1].embedding) == [1, 1, 1]
    assert dict(read.graph.costs) == {"a": 1.0, "d": 2.0}
    assert read.WhichOneof("limit") == "max_splits"
    found = codec.deserialize(read.SerializeToString(), messages)
    assert_same(found["graph.nodes[].embedding"], np.ones(12, np.float32))
    assert_same(found["graph.nodes[].embedding[]"], np.full(4, 3))
    assert_same(found["graph.nodes[].preferred?"], np.zeros(4, bool))
    assert "budget.begin" not in found
    # The values that were read can be written again.
    assert graph_pb2.GraphFeatures.FromString(codec.serialize(found, messages)) == read


def test_a_nested_mismatch(graph_pb2: Any) -> None:
    messages = protobuf.messages(graph_pb2.GraphFeatures, graph_pb2.Colouring)
    wrong = graph() | {"graph.nodes[].weight": np.ones(3)}
    with pytest.raises(mlbridge.SchemaMismatch, match=r"expected 4 messages .*found 3"):
        codec.serialize(wrong, messages)


# Other copies of Protobuf in the same process

TOGETHER = """
import importlib, sys
import numpy as np
from mlbridge import codec

def ours():
    sent = {"x": np.arange(5.0), "names": ["a", "b"]}
    found = codec.deserialize(codec.serialize(sent, "protobuf"), "protobuf")
    assert (found["x"] == sent["x"]).all() and found["names"] == sent["names"]

first, *modules = sys.argv[1:]
if first == "ours first":
    ours()
for module in modules:
    importlib.import_module(module)
ours()
from google.protobuf import struct_pb2
theirs = struct_pb2.Struct()
theirs["a"] = 1
assert struct_pb2.Struct.FromString(theirs.SerializeToString())["a"] == 1
ours()
"""


@pytest.mark.parametrize("first", ["ours first", "theirs first"])
@pytest.mark.parametrize("module", ["google.protobuf", "grpc", "torch", "tensorflow"])
def test_other_copies_in_the_process(first: str, module: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed: pip install {module} in .venv")
    run_python(TOGETHER, first, module, timeout=120, check=True)


def test_the_library_is_loaded_when_it_is_needed() -> None:
    program = """
import mlbridge
from mlbridge import codec
loaded = lambda: "libprotobuf" in open("/proc/self/maps").read()
codec.serialize({"x": 1}, "json")
assert not loaded()
codec.serialize({"x": 1}, "protobuf")
assert loaded()
"""
    run_python(program, check=True)
