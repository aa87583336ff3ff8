# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An experiment: an optimisation, its environment's settings and training settings."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlbridge.errors import InvalidArgument, Malformed, Unsupported
from mlbridge_optimizations.optimization import Optimization, guarded, of_agent
from mlbridge_optimizations.training.curve import Curve
from mlbridge_optimizations.training.settings import TrainingSettings

if TYPE_CHECKING:
    from torch import nn

_MAY_CHANGE = ("out", "steps", "every", "compilers", "device")
"""The settings that may differ when a training is resumed."""


@dataclass(frozen=True)
class Experiment:
    """The settings of a training. They are saved as settings.json in its folder."""

    optimization: Optimization[Any]
    environment: Any  # An instance of the optimisation's settings.
    settings: TrainingSettings

    @property
    def file(self) -> Path:
        """The file of the settings."""
        return self.settings.out / "settings.json"

    def make_env(self, worker: int = 0) -> Any:
        """Makes one environment. Its compiler starts at the first reset."""
        env = self.optimization.environment(self.environment, worker)
        if self.settings.compilers:
            if not hasattr(env.unwrapped, "use_compiler_at"):
                raise InvalidArgument(
                    f"--compilers: expected an environment whose compiler serves an"
                    f" Environment, found the {type(env).__name__} of"
                    f" '{self.optimization.name}'"
                )
            env.unwrapped.use_compiler_at(self.settings.addresses[worker])
        return env

    def networks(
        self, observations: Any, actions: Any, agent: str = ""
    ) -> "tuple[Callable[[Any], nn.Module] | None, Callable[[], nn.Module] | None]":
        """Returns functions that make the optimisation's encoder and network, or None.

        A checkpoint stores these two functions and the weights, but not the whole
        `Optimization`. Raises InvalidArgument if the observations need an encoder or a
        network that the optimisation lacks, or if the algorithm cannot train the
        network. Raises Unsupported if a policy with these actions cannot be exported.
        """
        self._check(actions)
        by, name = self.optimization, self.optimization.name
        encode, make = of_agent(by.encoder, agent), of_agent(by.network, agent)
        environment, spaces = self.environment, (observations, actions)
        encoder = encode and partial(
            guarded, f"encoder of '{name}'", encode, environment
        )
        whole = make and partial(
            guarded, f"network of '{name}'", make, environment, *spaces
        )
        if whole is not None and whole() is None:
            whole = None
        if whole is not None and self.settings.algo in ("dqn", "ars"):
            raise InvalidArgument(
                f"'{name}' has a network of its own, with logits and values: use --algo"
                f" ppo, a2c or appo, not {self.settings.algo}"
            )
        if encoder is None and whole is None:
            self._check_observations(observations)
        return encoder, whole

    def _check_observations(self, space: Any) -> None:
        """Refuses observations that the algorithms' own networks cannot process."""
        from gymnasium import spaces

        needs = "it needs an encoder or a network of its own"
        if hasattr(space, "extents"):
            raise InvalidArgument(
                f"'{self.optimization.name}' has observations of changing size: {needs}"
            )
        parts = space.spaces if isinstance(space, spaces.Dict) else {"": space}
        for name, part in parts.items():
            if isinstance(part, spaces.Box) and part.shape == ():
                raise InvalidArgument(
                    f"'{self.optimization.name}' has an observation {name!r} of shape"
                    f" (): make it (1,), and send a list of one number (in C++:"
                    f" `const float Value[] = {{X}};`), or {needs}"
                )

    def _check(self, actions: Any) -> None:
        """Refuses actions that `mlbridge.export` would refuse after the training."""
        from gymnasium import spaces

        algo, engine = self.settings.algo, self.settings.engine
        known = (spaces.Discrete, spaces.MultiDiscrete)[: 1 if algo == "ars" else 2]
        if (engine == "rllib" or algo == "ars") and not isinstance(actions, known):
            raise Unsupported(
                f"'{self.optimization.name}' has actions {actions}, and {algo} of"
                f" {engine} can export only {' or '.join(k.__name__ for k in known)}:"
                " change them, or train with --engine sb3 --algo ppo or a2c"
            )

    def changed(self, **settings: Any) -> "Experiment":
        """Returns a copy with other settings."""
        return replace(self, settings=replace(self.settings, **settings))

    def models(self) -> list[Path]:
        """Returns the models of a finished training in the folder."""
        return sorted(self.settings.out.glob("*.onnx"))

    def curve(self, done: int = 0) -> Curve:
        """Returns the curve with the episodes of the first `done` steps."""
        curve = Curve(metric=self.optimization.metric)
        if done:
            curve.load(self.settings.out / "curve.csv", done)
        curve.log_to(self.settings.out / "tensorboard")
        return curve

    def save(self) -> None:
        """Writes the settings to the file, so that `check` can read them."""
        self.settings.out.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self._as_json(), indent=1)
        self.file.write_text(text + "\n", encoding="utf-8")

    def as_begun(self, names: Sequence[str]) -> "Experiment":
        """Returns a copy in which the settings in `names` have the folder's values.

        Raises InvalidArgument if the folder has no file of settings, and Malformed if
        this file is damaged.
        """
        saved = self._load()
        try:
            return self.changed(
                **{name: saved[name] for name in names if name in saved}
            )
        except (AttributeError, TypeError, ValueError) as error:
            raise Malformed(f"{self.file}: {error}") from error

    def check(self) -> None:
        """Raises InvalidArgument unless the folder's training has the same settings."""
        saved, asked = self._load(), self._as_json()
        other = [
            f"{name}: {saved.get(name)!r} then, {asked[name]!r} now"
            for name in asked
            if name not in _MAY_CHANGE and saved.get(name) != asked[name]
        ]
        if other:
            raise InvalidArgument(
                f"the training in {self.settings.out} can only be resumed with the"
                f" settings with which it began: {'; '.join(other)}"
            )

    def _load(self) -> dict[str, Any]:
        try:
            saved = json.loads(self.file.read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidArgument(
                f"there is no {self.file} to resume from: {error.strerror}"
            ) from None
        except (ValueError, RecursionError) as error:
            raise Malformed(f"{self.file}: expected JSON: {error}") from None
        if not isinstance(saved, dict):
            raise Malformed(f"{self.file}: expected an object, found {saved!r:.40}")
        return saved

    def _as_json(self) -> dict[str, Any]:
        values = {
            **asdict(self.settings),
            "learning_rate": self.settings.rate,
            "optimization": self.optimization.name,
            "environment": asdict(self.environment),
        }
        found: dict[str, Any] = json.loads(json.dumps(values, default=str))
        return found


@dataclass(frozen=True)
class Learned:
    """The results of a training."""

    policies: Mapping[str, Any]  # Policies by file name: `MODEL`, or an agent's label.
    curve: Curve
