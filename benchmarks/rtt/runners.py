# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runners that are measured, and the two policies that answer their requests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlbridge.interface import (
    BaseCompilerInterface,
    GRPCCompilerInterface,
    PipeCompilerInterface,
    SharedMemoryCompilerInterface,
)
from mlbridge.types import Features, Policy

# A model ends after this time without a request, in case the benchmark was killed.
IDLE_SECONDS = 60.0


@dataclass(frozen=True, eq=False)
class Runner:
    """A runner for a model in another process, and how to measure it."""

    name: str
    spec: str  # The model spec, with the placeholders {path} and {serdes}.
    interface: Callable[[str], BaseCompilerInterface]  # Opens the model's side.
    floor: str  # The floor of the runner's transport.
    serdes: tuple[str, ...]
    # Each placement's floor, and the limit on `echo`'s sweep relative to this floor.
    limits: Mapping[str, tuple[str, float]]
    other_floors: tuple[str, ...] = ()  # Floors that are only shown.
    by_port: bool = False  # True if {path} is a loopback port.
    allocates: bool = False  # True if each message allocates memory.

    @property
    def floors(self) -> tuple[str, ...]:
        """All floors to measure with this runner."""
        limited = (name for name, _ in self.limits.values())
        return (self.floor, *self.other_floors, *limited)


def _grpc(address: str) -> BaseCompilerInterface:
    spec = f"grpc+unix:{address}" if address.startswith("/") else f"grpc://{address}"
    return GRPCCompilerInterface(spec, timeout=IDLE_SECONDS)


def _grpc_runner(call: str, where: str) -> Runner:
    """Returns a gRPC runner for ``stream`` or ``unary``, and ``tcp`` or ``unix``."""
    spec = "grpc+unix:{path}" if where == "unix" else "grpc://{path}"
    floor = f"grpc-{call}-{where}"
    return Runner(
        floor,
        f"{spec}?serdes={{serdes}}&timeout=20s&call={call}",
        _grpc,
        floor,
        ("bitstream",),
        {"one-core": (floor, 1.4), "two-cores": (floor, 1.4)},
        other_floors=(f"{floor}-python",) if find_spec("grpc") else (),
        by_port=where == "tcp",
        allocates=True,
    )


RUNNERS: Mapping[str, Runner] = {
    runner.name: runner
    for runner in (
        Runner(
            "pipe",
            "pipe:{path}?serdes={serdes}&timeout=20s",
            partial(PipeCompilerInterface, timeout=IDLE_SECONDS),
            "pipe",
            ("bitstream", "json"),
            {"one-core": ("pipe", 1.4), "two-cores": ("pipe", 0.45)},
            other_floors=("lent-pipe",),
        ),
        Runner(
            "shm",
            "shm:{path}?serdes={serdes}&timeout=20s",
            partial(SharedMemoryCompilerInterface, timeout=IDLE_SECONDS),
            "futex",
            ("bitstream", "json"),
            {"one-core": ("futex", 1.4), "two-cores": ("pipe", 0.03)},
        ),
        *(
            _grpc_runner(call, where)
            for call in ("stream", "unary")
            for where in ("tcp", "unix")
        ),
    )
}


def kinds() -> dict[str, tuple[str, ...]]:
    """Returns the runners for each value of ``--runner``. ``grpc`` selects four."""
    by_word: dict[str, tuple[str, ...]] = {}
    for name in RUNNERS:
        word = name.partition("-")[0]
        by_word[word] = (*by_word.get(word, ()), name)
    return by_word | {name: (name,) for name in RUNNERS}


def echo(features: Features) -> Any:
    """Returns the last feature. This is the least work that a model can do."""
    return features["x"][-1]


def fully_connected(weights: NDArray[np.float32]) -> Policy:
    """Returns a policy of one fully connected neuron, which copies no features."""

    def fc(features: Features) -> Any:
        x = features["x"]
        return np.dot(weights[: x.shape[0]], x)

    return fc
