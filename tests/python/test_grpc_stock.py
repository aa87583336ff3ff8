# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stock gRPC peers that use grpcio and the published .proto only."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpcio_server import grpcio_server
from mlbridge import ModelError, create_model_runner, serving
from programs import ROOT

grpc = pytest.importorskip("grpc", reason="grpcio is not installed")
pytest.importorskip("google.protobuf", reason="protobuf is not installed")
pytest.importorskip("mlbridge._grpc", reason="this build has no gRPC")
pytest.importorskip("mlbridge._format_protobuf", reason="this build has no Protobuf")

PROTO = ROOT / "include/MLCompilerBridge/mlcompilerbridge.proto"
SERVICE = "/mlcompilerbridge.MLCompilerBridge"


def test_a_stock_client_asks_our_model(tmp_path: Path, generic: Any) -> None:
    place = f"{tmp_path}/advisor"
    x = generic.Tensor(name="x", floats=[0.5, 1.5, 2.5])
    request = generic.Observation(tensors=[x])
    codec = {
        "request_serializer": generic.Observation.SerializeToString,
        "response_deserializer": generic.Advice.FromString,
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
def stock_server(generic: Any) -> Iterator[str]:
    """Serves a user's model with grpcio. It doubles x, and raises if x is negative."""

    def advise(request: Any, context: Any = None) -> Any:
        (x,) = request.tensors
        value = np.frombuffer(x.data, np.float64)[0]
        if value < 0:
            raise ValueError("below zero")
        out = generic.Tensor(name="out", doubles=[2 * value])
        return generic.Advice(tensors=[out])

    def session(requests: Iterator[Any], context: Any) -> Iterator[Any]:
        return map(advise, requests)

    codec = {
        "request_deserializer": generic.Observation.FromString,
        "response_serializer": generic.Advice.SerializeToString,
    }
    handlers = {
        "getAdvice": grpc.unary_unary_rpc_method_handler(advise, **codec),
        "session": grpc.stream_stream_rpc_method_handler(session, **codec),
    }
    with grpcio_server(SERVICE[1:], handlers) as address:
        yield address


@pytest.mark.parametrize("call", ["stream", "unary"])
def test_our_compiler_asks_a_stock_model(stock_server: str, call: str) -> None:
    # The default SerDes over gRPC is Protobuf.
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
