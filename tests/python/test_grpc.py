# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that are served with gRPC, and their runners, in Python."""

import os
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlbridge
from programs import reply_of, run_python

pytest.importorskip("mlbridge._grpc", reason="this build has no gRPC")


def last(features: mlbridge.Features) -> Any:
    return features["x"][-1]


@pytest.fixture(params=["tcp", "unix"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "grpc://:0" if request.param == "tcp" else f"grpc+unix:{tmp_path}/advisor"


def spec_of(name: str) -> str:
    """Returns the compiler's spec for a listener's name."""
    scheme = "grpc" if name.startswith("//") else "grpc+unix"
    return f"{scheme}:{name}?serdes=bitstream"


@pytest.mark.parametrize("call", ["stream", "unary"])
def test_a_request_and_its_answer(place: str, call: str) -> None:
    with mlbridge.serving(last, place) as served:
        spec = f"{spec_of(served._loop.server.name)}&call={call}"
        with mlbridge.create_model_runner(spec) as runner:
            for length in (1, 500, 50_000):
                x = np.arange(length, dtype=np.float32)
                assert runner.evaluate({"x": x}, np.float32) == length - 1
            with pytest.raises(mlbridge.ModelError, match="IndexError: index -1 is"):
                runner.evaluate({"x": []}, np.float32)
    assert served.statistics.requests == 4


def test_the_papers_loop(place: str) -> None:
    with (
        mlbridge.GRPCCompilerInterface(place, timeout=10) as interface,
        ThreadPoolExecutor(1) as compiler,
    ):

        def ask() -> Any:
            with mlbridge.create_model_runner(spec_of(interface.name)) as runner:
                return [runner.evaluate({"x": np.float32(i)}, float) for i in range(5)]

        asked = compiler.submit(ask)
        for _ in range(5):
            features = interface.evaluate()
            assert interface.pid == os.getpid()
            interface.populate_buffer(float(features["x"]) + 1)
        interface.evaluate("exit")
        assert asked.result(10) == [1, 2, 3, 4, 5]


def test_pipes_and_grpc_at_once(tmp_path: Path) -> None:
    pipe, unix = f"pipe:{tmp_path}/a", f"grpc+unix:{tmp_path}/b"
    with mlbridge.serving(last, [pipe, unix]):
        for spec in (pipe, f"{unix}?serdes=bitstream"):
            assert reply_of(spec, {"x": np.ones(3)}, float) == 1


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(mlbridge.InvalidArgument, match="HOST:PORT"):
        mlbridge.create_model_runner("grpc://nowhere")
    with pytest.raises(mlbridge.InvalidArgument, match="stream or unary"):
        mlbridge.create_model_runner("grpc://a:1?call=both")
    with pytest.raises(mlbridge.InvalidArgument, match="'cert' and 'key' together"):
        mlbridge.create_model_runner("grpc://a:1?cert=a.pem")
    with pytest.raises(mlbridge.InvalidArgument, match="unknown option 'bare'"):
        mlbridge.GRPCCompilerInterface("grpc://:0?bare=no")
    with pytest.raises(mlbridge.OSFailure, match=r"missing\.pem"):
        mlbridge.GRPCCompilerInterface(f"grpc://:0?cert={tmp_path}/missing.pem&key=x")
    with pytest.raises(mlbridge.Timeout, match="refused"):
        reply_of("grpc://127.0.0.1:1?serdes=bitstream&connect=100ms", {"x": 1}, float)


def test_a_decorated_spec_is_one_for_grpc() -> None:
    assert mlbridge.grpc.is_named_in("grpc://a:1")
    assert mlbridge.grpc.is_named_in("record:log.bin|grpc://a:1?call=unary")
    assert mlbridge.grpc.is_named_in("grpc+unix:/tmp/a")
    assert not mlbridge.grpc.is_named_in("pipe:/tmp/grpc:1")
    assert not mlbridge.grpc.is_named_in("record:grpc|pipe:/tmp/a")


@pytest.mark.parametrize(
    ("spec", "worker", "picked"),
    [
        ("grpc://host:50051", 3, "grpc://host:50051"),
        ("grpc://host:50051,50060", 1, "grpc://host:50060"),
        ("grpc://host:50051-50058?call=unary", 7, "grpc://host:50058?call=unary"),
        ("grpc://[::1]:1,5-6", 2, "grpc://[::1]:6"),
        ("grpc+unix:/tmp/a,b", 1, "grpc+unix:/tmp/a,b"),
        ("shm:/tmp/a-1", 1, "shm:/tmp/a-1"),
    ],
)
def test_port_arrays(spec: str, worker: int, picked: str) -> None:
    assert mlbridge.grpc.pick(spec, worker) == picked


def test_port_arrays_that_are_too_short() -> None:
    with pytest.raises(mlbridge.InvalidArgument, match="2 ports, and worker 2"):
        mlbridge.grpc.pick("grpc://host:50051,50060", 2)
    with pytest.raises(mlbridge.InvalidArgument, match="expected ports"):
        mlbridge.grpc.pick("grpc://host:50051,", 0)


COEXISTENCE = """
import sys
import numpy as np

def grpcio():
    import grpc
    from concurrent import futures
    class Handler(grpc.GenericRpcHandler):
        def service(self, details):
            return grpc.unary_unary_rpc_method_handler(lambda text, _: text[::-1])
    server = grpc.server(futures.ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((Handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        assert channel.unary_unary("/a/b")(b"abc", timeout=10) == b"cba"
    server.stop(0).wait()

def torch():
    import torch
    assert torch.nn.Linear(3, 1)(torch.ones(3)).shape == (1,)

def protobuf():
    from google.protobuf import struct_pb2
    struct = struct_pb2.Struct()
    struct["a"] = 1
    assert struct_pb2.Struct.FromString(struct.SerializeToString())["a"] == 1

def ours():
    import mlbridge
    place = "grpc+unix:" + sys.argv[1]
    with mlbridge.serving(lambda f: f["x"][-1], place):
        with mlbridge.create_model_runner(place + "?serdes=bitstream") as runner:
            assert runner.evaluate({"x": np.ones(3)}, float) == 1

for _ in range(2):
    for part in sys.argv[2:]:
        globals()[part]()
"""


@pytest.mark.parametrize("ours_first", [True, False])
def test_beside_others_of_its_kind(tmp_path: Path, ours_first: bool) -> None:
    """All libraries work in one process, although each has its own gRPC or Protobuf."""
    names = {"grpc": "grpcio", "torch": "torch", "google": "protobuf"}
    others = [name for module, name in names.items() if find_spec(module)]
    if not others:
        pytest.skip("neither grpcio nor torch nor protobuf is installed")
    order = ["ours", *others] if ours_first else [*others, "ours"]
    run_python(COEXISTENCE, tmp_path / "advisor", *order, check=True, timeout=120)
