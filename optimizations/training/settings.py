# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a training is asked for, and the environment that follows from it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from mlbridge.errors import InvalidArgument
from mlbridge.types import Features
from mlbridge_optimizations.phase_ordering.environment import PhaseOrderingEnv
from mlbridge_optimizations.phase_ordering.network import Normalised

_MAY_CHANGE = ("out", "steps", "every")
"""Settings that a training may go on with others of."""

KEPT_BITCODE = 20_000_000
"""Bytes of bitcode of the modules that a compiler remembers if nothing else is said.

It takes some 80 times as much memory. The training programs of `mlbridge corpus` have
7 MB.
"""

ALGORITHMS = {"sb3": ("ppo", "dqn"), "rllib": ("dqn", "ppo", "appo")}


@dataclass(frozen=True)
class PolicySettings:
    """How a policy is trained.

    Attributes:
        corpus: its folder.
        out: the folder for what comes of it.
        engine: ``sb3`` or ``rllib``.
        algo: one of `ALGORITHMS`.
        workers: compilers at once.
        steps: actions in all.
        seed: of the networks, of exploration, and of the modules that are drawn.
        environment: further settings of `PhaseOrderingEnv`.
        hidden: the layers of the network.
        learning_rate: of the optimiser.
        gamma: how much a reward is worth one action later.
        entropy: how much a policy is rewarded for staying undecided (ppo, appo).
        rollout: actions between two updates, of all workers (ppo, appo).
        every: actions between two checkpoints.
    """

    corpus: Path
    out: Path
    engine: str = "sb3"
    algo: str = "ppo"
    workers: int = 1
    steps: int = 20_000
    seed: int = 0
    environment: Mapping[str, Any] = field(default_factory=dict)
    hidden: tuple[int, ...] = (128, 128)
    learning_rate: float = 5e-4
    gamma: float = 0.99
    entropy: float = 0.01
    rollout: int = 512
    every: int = 5_000

    def __post_init__(self) -> None:
        if self.algo not in ALGORITHMS.get(self.engine, ()):
            known = "; ".join(f"{e}: {', '.join(a)}" for e, a in ALGORITHMS.items())
            raise InvalidArgument(
                f"no algorithm '{self.algo}' of '{self.engine}', only {known}"
            )

    @property
    def title(self) -> str:
        """What is above the plots."""
        return f"{self.algo} of {self.engine}, seed {self.seed}"

    def env_settings(self) -> dict[str, Any]:
        """The arguments of the environment; paths as they hold everywhere."""
        return {"corpus": str(self.corpus.resolve()), **self.environment}

    def make_env(self, worker: int = 0) -> "TrainingEnv":
        """One environment; nothing is started yet."""
        return TrainingEnv(worker=worker, **self.env_settings())

    def changed(self, **settings: Any) -> "PolicySettings":
        """The same but for these."""
        return replace(self, **settings)

    def save(self) -> None:
        """Writes them to ``settings.json``, for `check_saved` and whoever wonders."""
        self.out.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self._as_json(), indent=1)
        (self.out / "settings.json").write_text(text + "\n", encoding="utf-8")

    def as_saved(self, names: Sequence[str]) -> "PolicySettings":
        """These settings, but for some that are those of the training begun there.

        Raises:
            InvalidArgument: none was begun.
        """
        saved = self._saved()
        found = {name: saved[name] for name in names if name in saved}
        if "hidden" in found:
            found["hidden"] = tuple(found["hidden"])
        return self.changed(**found)

    def check_saved(self) -> None:
        """Whether a training that goes on is the one that was begun.

        Raises:
            InvalidArgument: none was begun, or with other settings.
        """
        saved, asked = self._saved(), self._as_json()
        other = [
            f"{name}: {saved.get(name)!r} then, {asked[name]!r} now"
            for name in asked
            if name not in _MAY_CHANGE and saved.get(name) != asked[name]
        ]
        if other:
            raise InvalidArgument(
                f"the training in {self.out} was begun with other settings, and goes on"
                f" with the same ones only: {'; '.join(other)}"
            )

    def _saved(self) -> dict[str, Any]:
        path = self.out / "settings.json"
        try:
            saved: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InvalidArgument(
                f"there is no {path} to go on from: {error}"
            ) from None
        return saved

    def _as_json(self) -> dict[str, Any]:
        told = {**asdict(self), "corpus": self.corpus.resolve()}
        found: dict[str, Any] = json.loads(json.dumps(told, default=str))
        return found


class TrainingEnv(PhaseOrderingEnv):
    """A `PhaseOrderingEnv` whose observations are normalised, in a row.

    Its compiler remembers all modules, or of many as many as make `KEPT_BITCODE`:
    a training comes back to each of them again and again.
    """

    def __init__(self, **settings: Any) -> None:
        """The settings are those of `PhaseOrderingEnv`."""
        super().__init__(flat=True, **settings)
        self.normalised = Normalised(self.options.widths, self.options.steps)
        self.observation_space = spaces.Box(
            -np.inf, np.inf, (self.normalised.out_features,), np.float32
        )
        read: Any = self._read

        def normalise(features: Features) -> tuple[Any, dict[str, Any]]:
            row, rest = read(features)
            with torch.no_grad():
                made = self.normalised(torch.from_numpy(row)[None])
            return made[0].numpy(), rest

        self._read = normalise  # type: ignore[assignment]

    def _kept_by_default(self) -> int:
        files = [file for program in self.programs for file in program]
        size = sum(file.stat().st_size for file in files)
        return max(1, len(files) * KEPT_BITCODE // max(size, KEPT_BITCODE))
