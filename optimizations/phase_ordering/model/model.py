# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a trained model of phase ordering, which chooses sequences for a module."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlbridge.errors import SchemaMismatch
from mlbridge.onnx import open_session
from mlbridge.printable import names
from mlbridge_optimizations.corpus.manifest import sha256

from ..environment.actions import ActionSpace, Order
from ..environment.compiler import (
    FEATURES,
    ModuleFailed,
    SequenceFailed,
    SequenceRunner,
)

# The metadata key with which a model stores its `Task`.
KEY = "mlbridge.phase-ordering"


@dataclass(frozen=True)
class Task:
    """The actions and observations of a model, which are stored in its metadata."""

    actions: ActionSpace
    steps: int  # The maximum number of actions.
    stop: bool  # Whether there is an extra action that ends the episode.
    observation: tuple[str, ...]  # The names of the features.
    # If it is not 0, the model scores states, not actions. Then this number of actions
    # is tried, and the action whose resulting state has the best score is chosen.
    lookahead: int = 0

    def to_json(self) -> str:
        """Returns the task as text for the metadata."""
        return json.dumps(
            {
                "actions": asdict(self.actions),
                "steps": self.steps,
                "stop": self.stop,
                "lookahead": self.lookahead,
                "observation": ",".join(self.observation),
                # During training, the compiler uses these defaults of embeddings.
                "embedding": {"kind": "symbolic", "normalization": "per-instruction"},
            }
        )

    @classmethod
    def parse(cls, text: str, source: str) -> "Task":
        """Reads text of `to_json`. Raises SchemaMismatch that names ``source``."""
        try:
            root: Any = json.loads(text)
            space = root["actions"]
            actions = (
                ActionSpace.load(space)
                if isinstance(space, str)
                else ActionSpace.parse(json.dumps(space), source)
            )
            names = tuple(str(root["observation"]).split(","))
            steps, ahead = int(root["steps"]), int(root.get("lookahead", 0))
            return cls(actions, steps, bool(root.get("stop")), names, ahead)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise SchemaMismatch(
                f"{source}: expected the model's task in '{KEY}': {error!r}"
            ) from error


class Model:
    """An .onnx file that returns one score per action. The highest score is best."""

    def __init__(self, path: Path) -> None:
        """Loads an .onnx file, as `open_session` does.

        Raises SchemaMismatch if the metadata are not a task.
        """
        self.path = path
        self._session = open_session(str(path))
        about: dict[str, str] = self._session.get_modelmeta().custom_metadata_map
        if KEY not in about or "mlbridge.decide" not in about:
            raise SchemaMismatch(
                f"{path}: expected a model that `mlbridge train phase-ordering` made, "
                f"whose metadata have '{KEY}'; found {names(about) or 'none'}"
            )
        self.task = Task.parse(about[KEY], str(path))
        self._output = about["mlbridge.decide"].partition(":")[2]
        self.features = tuple(entry.name for entry in self._session.get_inputs())
        if unknown := set(self.features) - set(FEATURES):
            raise SchemaMismatch(
                f"{path}: expected features of {', '.join(FEATURES)}, found"
                f" {', '.join(sorted(unknown))}"
            )
        try:
            self.vocabulary = json.loads(about.get("mlbridge.vocabulary", "null"))
        except (ValueError, RecursionError) as error:
            raise SchemaMismatch(
                f"{path}: expected JSON in 'mlbridge.vocabulary': {error}"
            ) from error
        self.digest = sha256(path)

    def scores(self, features: dict[str, Any]) -> NDArray[np.float64]:
        """Returns a score per action, [actions], or for `lookahead` one score, [1]."""
        inputs = {name: features[name][None] for name in self.features}
        (found,) = self._session.run([self._output], inputs)
        return np.asarray(found[0], np.float64)

    def choices(
        self, runner: SequenceRunner, module: Path, count: int, seed: int
    ) -> list[Order | SequenceFailed]:
        """Returns `count` sequences. The first one is the model's choice.

        If episodes have one action, the other sequences have the next highest scores.
        Otherwise they are sampled. A failed sequence is replaced by its error.
        """
        if self.task.lookahead:
            best = self._look_ahead(runner, module)
            others = range(len(self.task.actions.actions))
            ahead = [best, *(action for action in others if action != best)]
            return [(action,) for action in ahead[:count]]
        if self.task.steps == 1:
            outcome = runner.reset(module)
            order = np.argsort(-self.scores(outcome.features), kind="stable")
            return [self._taken((int(action),)) for action in order[:count]]
        draw = np.random.default_rng([seed, *module.name.encode()])
        found: list[Order | SequenceFailed] = []
        for number in range(count):
            try:
                found.append(self._rollout(runner, module, draw if number else None))
            except ModuleFailed:
                raise
            except SequenceFailed as error:
                found.append(error)
        return found

    def _look_ahead(self, runner: SequenceRunner, module: Path) -> int:
        """Returns the action with the best result. Raises if all actions fail."""
        values: dict[int, float] = {}
        failures: list[SequenceFailed] = []
        for action in range(self.task.lookahead):
            runner.reset(module)
            try:
                outcome = runner.step(module, [action])
                values[action] = float(self.scores(outcome.features)[0])
            except SequenceFailed as error:
                failures.append(error)
        if not values:
            raise failures[0]
        return max(values, key=lambda action: (values[action], -action))

    def _rollout(
        self, runner: SequenceRunner, module: Path, draw: np.random.Generator | None
    ) -> Order:
        outcome = runner.reset(module)
        taken: list[int] = []
        while not outcome.terminated and len(taken) < self.task.steps:
            scores = self.scores(outcome.features)
            action = int(np.argmax(scores))
            if draw is not None:
                weights = np.exp(scores - scores.max())
                action = int(draw.choice(len(scores), p=weights / weights.sum()))
            taken.append(action)
            outcome = runner.step(module, [action])
        return self._taken(tuple(taken))

    def _taken(self, sequence: Order) -> Order:
        """Removes the action that ends the episode."""
        return tuple(a for a in sequence if a < len(self.task.actions.actions))
