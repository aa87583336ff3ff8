# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The peers of a round trip. Each peer is a process on one core.

    python -m mlbridge_benchmarks.rtt.peers CORE WHAT ARGUMENT...

Each peer imports only the modules that it needs, so that floors stay minimal.
"""

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import suppress
from pathlib import Path
from time import perf_counter_ns
from typing import Any


def floor(modules: str, kind: str, *descriptors: str) -> None:
    """Runs the model's side of a floor, ``pipe READ WRITE`` or ``futex MEMORY``.

    READ, WRITE and MEMORY are file descriptors. The folder ``modules`` has the module
    rtt_floor, whose loop runs until the client ends.
    """
    sys.path.insert(0, modules)
    serve = getattr(importlib.import_module("rtt_floor"), f"serve_{kind}")
    serve(*map(int, descriptors))


def model(runner: str, path: str, policy: str, folder: str) -> None:
    """Runs the model's side of a runner: the paper's loop and a policy.

    The folder contains the workload. The loop ends after a minute without a request.
    """
    from mlbridge.errors import Timeout

    from .runners import RUNNERS, echo, fully_connected
    from .workload import Workload

    weights = Workload.load(Path(folder)).weights
    decide = echo if policy == "echo" else fully_connected(weights)
    with RUNNERS[runner].interface(path) as interface, suppress(Timeout):
        for features in interface:
            interface.populate_buffer(decide(features))


def grpc_floor(address: str) -> None:
    """Runs the model's side of the gRPC floor until it is terminated.

    The floor is the fastest round trip with plain gRPC, without this library. The code
    is what a user would write in Python: grpcio with messages of bytes.
    """
    grpc = importlib.import_module("grpc")

    def reply(request: bytes) -> bytes:
        return request[-5:-1]

    def unary(request: bytes, context: Any) -> bytes:
        return reply(request)

    def stream(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        return map(reply, requests)

    handlers = {
        "stream": grpc.stream_stream_rpc_method_handler(stream),
        "unary": grpc.unary_unary_rpc_method_handler(unary),
    }
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    floors = grpc.method_handlers_generic_handler("floor.Floor", handlers)
    server.add_generic_rpc_handlers((floors,))
    server.add_insecure_port(address)
    server.start()
    server.wait_for_termination()


def baseline(what: str, folder: str) -> None:
    """Times Python code without a transport, in the same sweeps as rtt-client.

    ``dot`` is the policy `fc` without a bridge. ``stdlib`` is a JSON round trip with
    json.dumps of a list and json.loads to an array. Each line on stdin starts a sweep,
    and a line on stdout is the result, as for rtt-client.
    """
    import numpy as np

    from .runners import fully_connected
    from .workload import Workload

    work = Workload.load(Path(folder))
    fc = fully_connected(work.weights)
    ways: dict[str, Callable[[Any], Any]] = {
        "dot": lambda x: fc({"x": x}),
        "stdlib": lambda x: np.array(
            json.loads(json.dumps(x.tolist())), dtype=np.float32
        )[-1],
    }
    do = ways[what]
    vectors = [work.features[:length] for length in work.lengths]
    for _ in sys.stdin:
        for _ in range(50):
            do(vectors[0])
        microseconds, replies = [], []
        for x in vectors:
            started = perf_counter_ns()
            reply = do(x)
            microseconds.append((perf_counter_ns() - started) / 1e3)
            replies.append(float(reply))
        print(json.dumps({"us": microseconds, "answers": replies}), flush=True)


PEERS = {each.__name__: each for each in (floor, model, grpc_floor, baseline)}

if __name__ == "__main__":
    os.sched_setaffinity(0, {int(sys.argv[1])})
    PEERS[sys.argv[2]](*sys.argv[3:])
