# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A policy that drives the compiler from outside, through Gymnasium.

This corresponds to figure 6 of the bridge's paper, which compares a policy in its
training environment with the same policy inside the compiler.
"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium

from mlbridge.errors import ModelError
from mlbridge.onnx import load_onnx
from mlbridge_benchmarks.common.processes import cpu_seconds_of, own_cpu_seconds
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.phase_ordering.environment.environment import (
    PhaseOrderingEnv,
)

from .compile_time import STOCK, Compiled, Flow
from .task import Deployed, environment_of

GYM, KEPT, REWARDED = "Gymnasium", "Gymnasium, kept", "Gymnasium, rewards"
# A program that warms up a compiler but is not measured.
_TRIFLE = "int main(void) { return 0; }\n"
OUTSIDE = (GYM, KEPT, REWARDED)
FLOWS = (*OUTSIDE, "onnx", "aot", STOCK)


class GymFlow(Flow):
    """A flow that steps an environment. The model runs in this process."""

    def __init__(
        self, deployed: Deployed, modules: list[Path], *, rewarded: bool, kept: bool
    ) -> None:
        """Starts no process yet.

        If ``rewarded``, each step measures the code size, as in training. If ``kept``,
        one compiler compiles all modules. Otherwise, each module has its own compiler.
        """
        self._deployed = deployed
        reward = "text-size:10" if rewarded else "none"
        told = environment_of(deployed.compiler, "shm")
        self._told = {**told, "reward": reward, "modules": modules}
        self._kept = kept
        self._env: gymnasium.Env[Any, Any] | None = None

    def __enter__(self) -> "GymFlow":
        start = time.perf_counter()
        self._policy = load_onnx(self._deployed.model)
        self.renew()
        self.start_seconds = time.perf_counter() - start
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def renew(self) -> None:
        """Replaces the compiler of a flow that keeps its compiler.

        The old compiler has cached the modules, which would make the next round faster.
        Waits for the new compiler's first reply, so that the compiler does not start
        while other flows are timed.
        """
        self._close()
        if not self._kept:
            return
        self._env = self._make()
        with tempfile.TemporaryDirectory(prefix="mlb") as folder:
            source, trifle = Path(folder, "trifle.c"), Path(folder, "trifle.bc")
            source.write_text(_TRIFLE)
            command = [toolchain.CLANG, *toolchain.UNOPTIMISED, "-emit-llvm"]
            toolchain.run([*command, "-c", source, "-o", trifle])
            self._env.reset(options={"module": str(trifle)})

    def compile(self, module: Path, to: Path) -> Compiled:
        """Plays an episode. At its end, the compiler writes the object."""
        start, before = time.perf_counter(), self._cpu_seconds()
        env = self._env or self._make()
        try:
            sequence = self._play(env, module, to)
        finally:
            if not self._kept:
                _compiler(env).close()
        seconds = time.perf_counter() - start
        names = self._deployed.names(sequence)
        return Compiled(seconds, self._cpu_seconds() - before, names)

    def _make(self) -> gymnasium.Env[Any, Any]:
        env = gymnasium.make("mlbridge/PhaseOrdering-v0", **self._told)
        _compiler(env).launch()
        return env

    def _close(self) -> None:
        if self._env is not None:
            _compiler(self._env).close()
        self._env = None

    def _play(
        self, env: gymnasium.Env[Any, Any], module: Path, to: Path
    ) -> Sequence[int]:
        observation, info = env.reset(
            options={"module": str(module), "output": str(to)}
        )
        over = False
        while not over:
            if not isinstance(observation, dict):
                observation = {self._deployed.compiler.observation[0]: observation}
            (reply,) = self._policy([observation])
            observation, _, over, truncated, info = env.step(int(reply))
            if truncated:
                raise ModelError(f"{module}: {info['error']}")
        sequence: Sequence[int] = info["sequence"]
        return sequence

    def _cpu_seconds(self) -> float:
        """Returns the CPU time of this process, its ended children and the compiler."""
        pid = _compiler(self._env).pid if self._env else None
        return own_cpu_seconds() + (cpu_seconds_of(pid) if pid else 0.0)


def flows(
    names: Sequence[str], deployed: Deployed, modules: list[Path]
) -> dict[str, GymFlow]:
    """Returns the flows through Gymnasium, by name."""
    return {
        name: GymFlow(deployed, modules, rewarded=name == REWARDED, kept=name != GYM)
        for name in OUTSIDE
        if name in names
    }


def _compiler(env: gymnasium.Env[Any, Any]) -> PhaseOrderingEnv:
    found = env.unwrapped
    assert isinstance(found, PhaseOrderingEnv)
    return found
