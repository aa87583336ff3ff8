# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training: an optimisation, what is said of its environment, and how it learns."""

import fcntl
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mlbridge.errors import InvalidArgument, Malformed, Unsupported
from mlbridge_optimizations.optimization import Optimization, of_agent
from mlbridge_optimizations.training.curve import Curve
from mlbridge_optimizations.training.settings import TrainingSettings

if TYPE_CHECKING:
    from torch import nn

MODEL = "model"
"""The file of the one agent that there is; several have files of their labels."""

_MAY_CHANGE = ("out", "steps", "every")
"""Settings that a training may go on with others of."""


@dataclass(frozen=True)
class Experiment:
    """What is to be learned, and how. Its folder keeps that in settings.json.

    Attributes:
        optimization: whose decision it is.
        environment: an instance of the optimisation's settings.
        settings: how it is learned.
    """

    optimization: Optimization[Any]
    environment: Any
    settings: TrainingSettings

    def make_env(self, worker: int = 0) -> Any:
        """One environment; nothing is started yet."""
        return self.optimization.make_env(self.environment, worker)

    def networks(
        self, observations: Any, actions: Any, agent: str = ""
    ) -> "tuple[Callable[[Any], nn.Module] | None, Callable[[], nn.Module] | None]":
        """The optimisation's own encoder and whole network, where it has them.

        Only these are saved with the network, and not what else is described.

        Raises:
            InvalidArgument: the observations need one of them.
            Unsupported: a policy of such actions could not be exported.
        """
        self._check(actions)
        by = self.optimization
        encode, make = of_agent(by.encoder, agent), of_agent(by.network, agent)
        encoder = partial(encode, self.environment) if encode else None
        whole = partial(make, self.environment, observations, actions) if make else None
        if whole is not None and whole() is None:
            whole = None
        if whole is not None and self.settings.algo in ("dqn", "ars"):
            raise InvalidArgument(
                f"'{by.name}' has a network of its own, which has logits and values:"
                f" --algo ppo, a2c or appo, not {self.settings.algo}"
            )
        if encoder is None and whole is None and hasattr(observations, "extents"):
            raise InvalidArgument(
                f"'{by.name}' has observations of changing size: it needs an encoder"
                " or a network of its own"
            )
        return encoder, whole

    def _check(self, actions: Any) -> None:
        """Refuses now what `mlbridge.export` would refuse after all the learning."""
        from gymnasium import spaces

        algo, engine = self.settings.algo, self.settings.engine
        known = (spaces.Discrete, spaces.MultiDiscrete)[: 1 if algo == "ars" else 2]
        if (engine == "rllib" or algo == "ars") and not isinstance(actions, known):
            raise Unsupported(
                f"'{self.optimization.name}' has actions {actions}, and {algo} of"
                f" {engine} makes a model of {' or '.join(k.__name__ for k in known)}"
                " only: change them, or learn by --engine sb3 --algo ppo or a2c"
            )

    def changed(self, **settings: Any) -> "Experiment":
        """The same but for these settings."""
        return replace(self, settings=replace(self.settings, **settings))

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Keeps the folder for one training at a time, while the body runs.

        Raises:
            InvalidArgument: another process writes to it.
        """
        out = self.settings.out
        out.mkdir(parents=True, exist_ok=True)
        with (out / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InvalidArgument(
                    f"another training writes to {out}: name another folder (--out)"
                ) from None
            yield

    def save(self) -> None:
        """Keeps the settings, for `check` and whoever wonders."""
        self.settings.out.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self._as_json(), indent=1)
        path = self.settings.out / "settings.json"
        path.write_text(text + "\n", encoding="utf-8")

    def as_begun(self, names: Sequence[str]) -> "Experiment":
        """The same, but for settings that are those of the training begun there.

        Raises:
            InvalidArgument: none was begun.
        """
        saved = self._load()
        return self.changed(**{name: saved[name] for name in names if name in saved})

    def check(self) -> None:
        """Compares the settings with those of the training begun in the folder.

        Raises:
            InvalidArgument: none was begun, or with other settings.
        """
        saved, asked = self._load(), self._as_json()
        other = [
            f"{name}: {saved.get(name)!r} then, {asked[name]!r} now"
            for name in asked
            if name not in _MAY_CHANGE and saved.get(name) != asked[name]
        ]
        if other:
            raise InvalidArgument(
                f"the training in {self.settings.out} was begun with other settings,"
                f" and goes on with the same ones only: {'; '.join(other)}"
            )

    def _load(self) -> dict[str, Any]:
        path = self.settings.out / "settings.json"
        try:
            saved = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InvalidArgument(
                f"there is no {path} to go on from: {error}"
            ) from None
        if not isinstance(saved, dict):
            raise Malformed(f"{path}: expected an object, found {saved!r:.40}")
        return saved

    def _as_json(self) -> dict[str, Any]:
        about = {
            "optimization": self.optimization.name,
            "environment": asdict(self.environment),
        }
        told = {**asdict(self.settings), **about}
        found: dict[str, Any] = json.loads(json.dumps(told, default=str))
        return found


@dataclass(frozen=True)
class Learned:
    """What came of a training.

    Attributes:
        policies: for `mlbridge.export.export`, by their files' names: `MODEL`, or the
            agents' labels.
        curve: of its episodes.
        options: of the export, by its framework.
    """

    policies: Mapping[str, Any]
    curve: Curve
    options: dict[str, Any] = field(default_factory=dict)
