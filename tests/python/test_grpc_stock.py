# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stock gRPC peers, by grpcio and the published .proto alone."""

import importlib
import subprocess
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest

from mlbridge import ModelError, create_model_runner, serving
from mlbridge import grpc as ours

grpc = pytest.importorskip("grpc", reason="grpcio is not installed")
pytest.importorskip("google.protobuf", reason="protobuf is not installed")
pytest.importorskip("mlbridge._grpc", reason="this build has no gRPC")
pytest.importorskip("mlbridge._format_protobuf", reason="this build has no Protobuf")

PROTO = Path(__file__).parents[2] / "include/MLCompilerBridge/mlcompilerbridge.proto"
SERVICE = "/mlcompilerbridge.MLCompilerBridge"


class Messages:
    """The classes of the published messages."""

    def __init__(self, folder: Path) -> None:
        descriptor_pb2, descriptor_pool, message_factory = (
            importlib.import_module(f"google.protobuf.{name}")
            for name in ("descriptor_pb2", "descriptor_pool", "message_factory")
        )
        protoc = which("protoc")
        if protoc is None:
            pytest.skip("protoc is not installed")
        described = folder / "service.pb"
        subprocess.run(
            [protoc, f"-I{PROTO.parent}", f"--descriptor_set_out={described}", PROTO],
            check=True,
        )
        files = descriptor_pb2.FileDescriptorSet.FromString(described.read_bytes())
        pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            pool.Add(file)

        def get(name: str) -> Any:
            found = pool.FindMessageTypeByName(f"mlcompilerbridge.{name}")
            return message_factory.GetMessageClass(found)

        self.observation, self.advice = get("Observation"), get("Advice")
        self.tensor = get("Tensor")


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> Messages:
    return Messages(tmp_path_factory.mktemp("proto"))


def test_a_stock_client_asks_our_model(tmp_path: Path, messages: Messages) -> None:
    place = f"{tmp_path}/advisor"
    request = messages.observation(
        tensors=[messages.tensor(name="x", floats=[0.5, 1.5, 2.5])]
    )
    codec = {
        "request_serializer": messages.observation.SerializeToString,
        "response_deserializer": messages.advice.FromString,
    }
    with (
        serving(lambda f: np.float32(f["x"].sum()), f"grpc+unix:{place}"),
        grpc.insecure_channel(f"unix:{place}") as channel,
    ):
        unary = channel.unary_unary(f"{SERVICE}/getAdvice", **codec)
        stream = channel.stream_stream(f"{SERVICE}/session", **codec)
        replies = [unary(request, timeout=10) for _ in range(3)]
        replies += list(stream(iter([request] * 3), timeout=10))
    for reply in replies:
        (out,) = reply.tensors
        assert out.name == "out"
        assert np.frombuffer(out.data, np.float32)[0] == 4.5
    assert len(replies) == 6


@pytest.fixture
def stock_server(messages: Messages) -> Iterator[str]:
    """A model as its author would write it: doubles x, and raises below zero."""

    def advise(request: Any, context: Any = None) -> Any:
        (x,) = request.tensors
        value = np.frombuffer(x.data, np.float64)[0]
        if value < 0:
            raise ValueError("below zero")
        return messages.advice(
            tensors=[messages.tensor(name="out", doubles=[2 * value])]
        )

    def session(requests: Iterator[Any], context: Any) -> Iterator[Any]:
        return map(advise, requests)

    codec = {
        "request_deserializer": messages.observation.FromString,
        "response_serializer": messages.advice.SerializeToString,
    }
    handlers = {
        "getAdvice": grpc.unary_unary_rpc_method_handler(advise, **codec),
        "session": grpc.stream_stream_rpc_method_handler(session, **codec),
    }
    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(SERVICE[1:], handlers),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"grpc://127.0.0.1:{port}"
    server.stop(0).wait()


@pytest.mark.parametrize("call", ["stream", "unary"])
def test_our_compiler_asks_a_stock_model(stock_server: str, call: str) -> None:
    # Protobuf is what is spoken unless the spec says otherwise.
    with create_model_runner(f"{stock_server}?call={call}") as runner:
        for value in (0.5, 1.5, 2.5):
            assert runner.evaluate({"x": value}, float) == 2 * value
        with pytest.raises(ModelError, match="below zero"):
            runner.evaluate({"x": -1.0}, float)
        assert runner.evaluate({"x": 3.0}, float) == 6


def test_the_service_is_what_is_published() -> None:
    text = PROTO.read_text()
    for method in ("getAdvice", "getObservation", "session", "training"):
        assert f"rpc {method}(" in text
    assert ours.is_named_in("grpc://a:1")
