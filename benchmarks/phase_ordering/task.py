# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The modules, models and servers of the phase-ordering benchmarks."""

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mlbridge import grpc
from mlbridge.errors import InvalidArgument, Unsupported
from mlbridge_benchmarks.common.flows import IN_PROCESS, in_process_spec
from mlbridge_benchmarks.common.processes import Server, listening
from mlbridge_benchmarks.common.savedmodel import TF_AOT
from mlbridge_optimizations.corpus import manifest
from mlbridge_optimizations.phase_ordering.environment.compiler import EpisodeOptions
from mlbridge_optimizations.phase_ordering.model.model import Model

# Limits on the number of instructions of a module.
FEWEST, MOST = 300, 6000
SEEN = ("embedding", "actions")  # The observation of random policies.


@dataclass(frozen=True)
class Sample:
    """The modules to compile, each with its number of instructions."""

    files: dict[Path, int]

    @classmethod
    def draw(
        cls, corpus: Path, count: int, seed: int, most: int | None = MOST
    ) -> "Sample":
        """Draws `count` modules from both splits. If `count` is 0, draws all."""
        files = manifest.load(corpus.resolve()).files(None, most=most)
        found = {path: size for path, size in files.items() if size >= FEWEST}
        if len(found) < max(count, 1):
            raise InvalidArgument(
                f"{corpus} has {len(found)} modules of {FEWEST} instructions or more"
                f"{f' and {most} at most' if most else ''}, fewer than "
                f"{max(count, 1)}: reduce --modules, or download more by `mlbridge "
                "corpus fetch`"
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
    """A model, and the compiler's options for the model's task."""

    model: Path  # The .onnx file.
    compiler: EpisodeOptions  # The task, which a served model does not store.

    def options(self, spec: str) -> list[str]:
        """Returns the plug-in's options for opt. For clang, add ``-mllvm`` to each."""
        model = f"-mlbridge-phase-ordering={spec}"
        more = ["-mlbridge-on-error=fatal", "-mlbridge-print-statistics"]
        return [model, *self.compiler.task_flags(), *more]

    def names(self, sequence: Sequence[int]) -> str:
        """Returns the actions' names in the format of the plug-in's statistics."""
        actions = self.compiler.space.actions
        return " ".join(actions[action].name for action in sequence)


def prepare(
    folder: Path, model: Path | None, options: EpisodeOptions, seed: int
) -> Deployed:
    """Prepares the model. By default, it is a network with random weights."""
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
    """Returns the arguments of a `PhaseOrderingEnv` with the same task."""
    same = ("observation", "reward", "steps", "stop", "vocabulary", "plugin")
    told = {name: getattr(options, name) for name in same}
    return {**told, "action": options.actions, "spec": spec}


def in_process_specs(
    names: Sequence[str], deployed: Deployed, folder: Path
) -> dict[str, str]:
    """Returns the specs of the in-process runners. See `in_process_spec`."""
    return {
        name: in_process_spec(name, deployed.model, folder)
        for name in names
        if name in (*IN_PROCESS, TF_AOT)
    }


def need_grpc(spec: str) -> None:
    """If the spec uses gRPC, checks that this build has gRPC."""
    if not grpc.is_named_in(spec):
        return
    try:
        grpc.schemes()
    except Unsupported as missing:
        raise Unsupported(f"{missing}; --flow NAME measures the others") from None


def served(model: Path, spec: str) -> AbstractContextManager[Server]:
    """Starts `mlbridge serve` with a model. See `listening`."""
    command = [sys.executable, "-m", "mlbridge", "serve", str(model), "--at", spec]
    return listening(spec, command)
