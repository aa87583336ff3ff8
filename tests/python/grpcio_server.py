# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A server that uses grpcio only."""

from collections.abc import Iterator, Mapping
from concurrent import futures
from contextlib import contextmanager
from typing import Any

import pytest

grpc = pytest.importorskip("grpc", reason="grpcio is not installed")


@contextmanager
def grpcio_server(service: str, methods: Mapping[str, Any]) -> Iterator[str]:
    """Serves the methods' handlers on a free port. Yields the address."""
    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(service, methods),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"grpc://127.0.0.1:{port}"
    finally:
        server.stop(0).wait()
