# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the benchmarks of phase ordering have in common: modules, model, servers."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mlbridge import grpc
from mlbridge.errors import Error, InvalidArgument, PeerClosed, Timeout, Unsupported
from mlbridge.files import spec_of
from mlbridge_benchmarks.common.processes import cpu_seconds_of, end_of, started
from mlbridge_optimizations.corpus import manifest
from mlbridge_optimizations.phase_ordering.environment.compiler import EpisodeOptions
from mlbridge_optimizations.phase_ordering.model.model import Model

# Instructions of the modules that are drawn: neither trifles nor giants.
FEWEST, MOST = 300, 6000

SEEN = ("embedding", "actions")  # What the policies of the benchmarks observe.
START_SECONDS = 60.0  # In which a server of a model is there, also on a busy machine.


@dataclass(frozen=True)
class Sample:
    """Modules to measure on, and the instructions of each."""

    files: dict[Path, int]

    @classmethod
    def draw(
        cls, corpus: Path, count: int, seed: int, most: int | None = MOST
    ) -> "Sample":
        """So many modules of both splits of a corpus, or all if it is 0."""
        files = manifest.load(corpus.resolve()).files(None, most=most)
        found = {path: size for path, size in files.items() if size >= FEWEST}
        if len(found) < max(count, 1):
            raise InvalidArgument(
                f"{corpus} has {len(found)} modules of {FEWEST} instructions or more"
                f"{f' and {most} at most' if most else ''}, fewer than "
                f"{max(count, 1)}: --modules asks for less, and `mlbridge corpus "
                "fetch` gets what is not there yet"
            )
        paths = sorted(found)
        order = np.random.default_rng(seed).permutation(len(paths))
        chosen = [paths[i] for i in order[: count or None]]
        return cls({path: found[path] for path in chosen})

    @property
    def modules(self) -> list[Path]:
        """The files, in the order in which they were drawn."""
        return list(self.files)

    def __str__(self) -> str:
        sizes = sorted(self.files.values())
        return (
            f"{len(sizes)} modules of {sizes[0]:,} to {sizes[-1]:,} instructions, "
            f"{sum(sizes):,} in all"
        )


@dataclass(frozen=True)
class Deployed:
    """A model, and what a compiler is told beside its name."""

    model: Path  # The .onnx file.
    # Of a compiler with the same task: a model that is elsewhere cannot say it.
    compiler: EpisodeOptions

    def options(self, spec: str) -> list[str]:
        """LLVM's options for the plug-in, with the model that a spec names.

        They are those of opt; clang wants ``-mllvm`` before each.
        """
        model = f"-mlbridge-phase-ordering={spec}"
        more = ["-mlbridge-on-error=fatal", "-mlbridge-print-statistics"]
        return [model, *self.compiler.task_flags(), *more]

    def names(self, sequence: Sequence[int]) -> str:
        """The actions as the plug-in's statistics have them."""
        actions = self.compiler.space.actions
        return " ".join(actions[action].name for action in sequence)


def prepare(
    folder: Path, model: Path | None, options: EpisodeOptions, seed: int
) -> Deployed:
    """The model to measure with; without one, a network of random weights."""
    if model is None:
        from .policies import write_policy

        model = write_policy(folder / "policy.onnx", options, seed)
    loaded = Model(model.resolve())
    task = loaded.task
    compiler = EpisodeOptions.of(
        task.actions,
        folder / "actions.json",
        task.observation,
        steps=task.steps,
        stop=task.stop,
        vocabulary=options.vocabulary if "embedding" in loaded.features else None,
        plugin=options.plugin_file(),
    )
    return Deployed(loaded.path, compiler)


def environment_of(options: EpisodeOptions, spec: str) -> dict[str, Any]:
    """The arguments of a `PhaseOrderingEnv` with the same task."""
    same = ("observation", "reward", "steps", "stop", "vocabulary", "plugin")
    told = {name: getattr(options, name) for name in same}
    return {**told, "action": options.actions, "spec": spec}


def in_process_specs(
    names: Sequence[str], deployed: Deployed, folder: Path
) -> dict[str, str]:
    """The specs of those runners that need no server; machine code goes to `folder`."""
    specs = {}
    if "onnx" in names:
        specs["onnx"] = spec_of("onnx", deployed.model)
    if "aot" in names:
        from mlbridge.aot import compile_model

        library = folder / "libpolicy.so"
        compile_model(deployed.model, library)
        specs["aot"] = spec_of("aot", library)
    return specs


def need_grpc(spec: str) -> None:
    """Looks for gRPC, if a spec is for it."""
    if not grpc.is_named_in(spec):
        return
    try:
        grpc.schemes()
    except Unsupported as missing:
        raise Unsupported(f"{missing}; --flow NAME measures the others") from None


@dataclass(frozen=True)
class Server:
    """A process that answers with the model; `mlbridge serve`, as anyone has it."""

    process: "subprocess.Popen[bytes]"  # That was started.
    start_seconds: float  # Until compilers could come.

    def cpu_seconds(self) -> float:
        """What it has taken so far."""
        return cpu_seconds_of(self.process.pid)


@contextmanager
def served(model: Path, place: str) -> Iterator[Server]:
    """Starts a server of a model; it does not outlive the body."""
    scheme, _, path = place.partition(":")
    listener = Path(path if scheme.startswith("grpc") else f"{path}.sock")
    start = time.monotonic()
    tool = "from mlbridge.cli import main; main()"
    command = [sys.executable, "-c", tool, "serve", str(model), "--at", place]
    # On our terminal it would draw how it is doing while it is measured.
    with tempfile.TemporaryFile() as said, started(command, stderr=said) as process:

        def ended() -> PeerClosed:
            return PeerClosed(
                f"the server of {place} ended with {process.returncode}: {end_of(said)}"
            )

        while not listener.exists():
            if process.poll() is not None:
                raise ended()
            if time.monotonic() - start > START_SECONDS:
                raise Timeout(f"no server at {place} after {START_SECONDS:g} s")
            time.sleep(0.01)
        try:
            yield Server(process, time.monotonic() - start)
        except Error as failure:
            if process.poll() is not None:
                raise ended() from failure
            raise
