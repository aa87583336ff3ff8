# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The processes of a round trip: compilers, models, floors, baselines."""

import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from mlbridge_benchmarks.common.processes import Placement, Worker, started

from .runners import Runner

PIPE_BYTES = 1 << 20

# Of the futex floor's memory: more than the longest question takes.
FLOOR_BYTES = 8 << 20


@dataclass(frozen=True)
class Workers:
    """Starts processes in the cores of a placement; they end with the stack."""

    placement: Placement
    build: Path  # Where rtt-client and the module rtt_floor were built.
    folder: Path  # Where the workload is, and whatever else needs a place.
    fresh: bool  # Whether a client writes its features anew before each trip.
    stack: ExitStack

    def _start(
        self, command: Sequence[str | Path], descriptors: Sequence[int] = ()
    ) -> "subprocess.Popen[bytes]":
        return self.stack.enter_context(started(command, descriptors))

    def _peer(
        self, what: str, *arguments: str | Path, descriptors: Sequence[int] = ()
    ) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "mlbridge_benchmarks.rtt.peers"]
        core = str(self.placement.model)
        return self._start([*command, core, what, *arguments], descriptors)

    def _client(self, name: str, spec: str, descriptors: Sequence[int] = ()) -> Worker:
        features, lengths = self.folder / "features.f32", self.folder / "lengths"
        command: list[str | Path] = [
            self.build / "rtt-client",
            str(self.placement.client),
            features,
            lengths.read_text(),
            "fresh" if self.fresh else "kept",
            spec,
        ]
        return Worker(name, self._start(command, descriptors))

    def runner(self, runner: Runner, serdes: str, policy: str) -> Worker:
        """A compiler that asks a model through a runner."""
        name = f"{runner.name} {serdes} {policy}"
        path = self._address(name, by_port=runner.by_port)
        self._peer("model", runner.name, path, policy, self.folder)
        return self._client(name, runner.spec.format(path=path, serdes=serdes))

    def floor(self, name: str) -> Worker:
        """A raw floor, by its name.

        "pipe", "lent-pipe", which copies less, "futex", or "grpc-CALL-WHERE", whose
        server is in C++ too unless "-python" is behind it.
        """
        if name.startswith("grpc-"):
            return self._grpc_floor(name)
        return self._futex_floor() if name == "futex" else self._pipe_floor(name)

    def _address(self, name: str, *, by_port: bool) -> str:
        """Where a model may listen: a port that is free now, or a path."""
        if not by_port:
            return str(self.folder / name.replace(" ", "-"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return f"127.0.0.1:{probe.getsockname()[1]}"

    def _grpc_floor(self, name: str) -> Worker:
        _, call, where, *python = name.split("-")
        place = self._address(name, by_port=where == "tcp")
        address = place if where == "tcp" else f"unix:{place}"
        if python:
            self._peer("grpc_floor", address)
        else:
            core = str(self.placement.model)
            self._start((self.build / "grpc-floor-server", core, address))
        return self._client(f"raw {name} floor", f"floor:grpc-{call}:{address}")

    def _futex_floor(self) -> Worker:
        memory = os.memfd_create("rtt-floor")
        try:
            os.ftruncate(memory, FLOOR_BYTES)
            self._peer("floor", self.build, "futex", str(memory), descriptors=(memory,))
            return self._client("raw futex floor", f"floor:futex:{memory}", (memory,))
        finally:
            os.close(memory)

    def _pipe_floor(self, name: str) -> Worker:
        model_read, client_write = os.pipe()
        client_read, model_write = os.pipe()
        try:
            for descriptor in (model_read, client_read):
                # Refused past a limit, which holds for the runner's pipes as well.
                with suppress(PermissionError):
                    fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            ends = model_read, model_write
            self._peer("floor", self.build, "pipe", *map(str, ends), descriptors=ends)
            return self._client(
                f"raw {name} floor",
                f"floor:{name}:{client_read},{client_write}",
                (client_read, client_write),
            )
        finally:
            for descriptor in (model_read, client_write, client_read, model_write):
                os.close(descriptor)

    def baseline(self, what: str) -> Worker:
        """What Python does alone: "dot" or "stdlib"."""
        return Worker(what, self._peer("baseline", what, self.folder))
