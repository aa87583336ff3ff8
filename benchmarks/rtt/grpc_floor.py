# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model's side of the gRPC floor in Python, as a user would write it.

    python -m mlbridge_benchmarks.rtt.grpc_floor CORE ADDRESS

With grpcio, whose messages are bytes here. Answers until it is ended.
"""

import importlib
import os
import sys
from collections.abc import Iterator
from concurrent import futures
from typing import Any

grpc = importlib.import_module("grpc")


def _answer(question: bytes) -> bytes:
    return question[-5:-1]


class _Floor:
    """What a ``grpc.GenericRpcHandler`` has."""

    def service(self, details: Any) -> Any:
        if details.method == "/floor.Floor/stream":
            return grpc.stream_stream_rpc_method_handler(self._stream)
        return grpc.unary_unary_rpc_method_handler(self._unary)

    def _unary(self, question: bytes, context: Any) -> bytes:
        return _answer(question)

    def _stream(self, questions: Iterator[bytes], context: Any) -> Iterator[bytes]:
        return map(_answer, questions)


def main(core: str, address: str) -> None:
    """Answers until it is ended."""
    os.sched_setaffinity(0, {int(core)})
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    server.add_generic_rpc_handlers((_Floor(),))
    server.add_insecure_port(address)
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main(*sys.argv[1:])
