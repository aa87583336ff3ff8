# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A trained model of phase ordering, and what it would do to a module."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlbridge.errors import SchemaMismatch
from mlbridge.printable import names
from mlbridge_optimizations.corpus.manifest import sha256

from ..environment.actions import ActionSpace, Order
from ..environment.compiler import (
    FEATURES,
    ModuleFailed,
    SequenceFailed,
    SequenceRunner,
)

# Of the metadata that say what a model is for: docs/phase-ordering.md.
KEY = "mlbridge.phase-ordering"


@dataclass(frozen=True)
class Task:
    """What a model was trained for, as its file says."""

    actions: ActionSpace  # That it chooses from.
    steps: int  # How many it may take.
    stop: bool  # Whether the number after the last action is to stop.
    observation: tuple[str, ...]  # What it sees.
    # It does not choose an action, it values states: of so many of the first actions
    # each is tried, and that of the best outcome taken. 0: it chooses.
    lookahead: int = 0

    def to_json(self) -> str:
        """The value of the metadata."""
        return json.dumps(
            {
                "actions": asdict(self.actions),
                "steps": self.steps,
                "stop": self.stop,
                "lookahead": self.lookahead,
                "observation": ",".join(self.observation),
                # What the compiler of a training does unless it is told otherwise.
                "embedding": {"kind": "symbolic", "normalization": "per-instruction"},
            }
        )

    @classmethod
    def parse(cls, text: str, source: str) -> "Task":
        """What `to_json` made; ``source`` is its name in errors.

        Raises:
            SchemaMismatch: it is something else.
        """
        try:
            root: Any = json.loads(text)
            space = root["actions"]
            actions = (
                ActionSpace.load(space)
                if isinstance(space, str)
                else ActionSpace.parse(json.dumps(space), source)
            )
            names = tuple(str(root["observation"]).split(","))
            return cls(
                actions,
                int(root["steps"]),
                bool(root.get("stop")),
                names,
                int(root.get("lookahead", 0)),
            )
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise SchemaMismatch(
                f"{source}: '{KEY}' does not say what the model is for: {error!r}"
            ) from error


class Model:
    """An .onnx file that scores actions: the highest score is the best action."""

    def __init__(self, path: Path) -> None:
        """Loads a file that `mlbridge train phase-ordering` wrote.

        Raises:
            SchemaMismatch: it is another kind of model.
        """
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.path = path
        self._session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
        about: dict[str, str] = self._session.get_modelmeta().custom_metadata_map
        if KEY not in about or "mlbridge.decide" not in about:
            raise SchemaMismatch(
                f"{path}: expected a model that `mlbridge train phase-ordering` made, "
                f"whose metadata have '{KEY}'; found {names(about) or 'none'}"
            )
        self.task = Task.parse(about[KEY], str(path))
        self._output = about["mlbridge.decide"].partition(":")[2]
        self.features = tuple(entry.name for entry in self._session.get_inputs())
        unknown = set(self.features) - set(FEATURES)
        if unknown:
            raise SchemaMismatch(
                f"{path}: it wants the features {', '.join(sorted(unknown))}; phase "
                f"ordering has {', '.join(FEATURES)}"
            )
        try:
            self.vocabulary = json.loads(about.get("mlbridge.vocabulary", "null"))
        except (ValueError, RecursionError) as error:
            raise SchemaMismatch(
                f"{path}: 'mlbridge.vocabulary' is no JSON: {error}"
            ) from error
        self.digest = sha256(path)

    def scores(self, features: dict[str, Any]) -> NDArray[np.float64]:
        """The score of each action for a module's features, [actions].

        Of a model that looks ahead: the value of the state, [1].
        """
        inputs = {name: features[name][None] for name in self.features}
        (found,) = self._session.run([self._output], inputs)
        return np.asarray(found[0], np.float64)

    def choices(
        self, runner: SequenceRunner, module: Path, count: int, seed: int
    ) -> list[Order | SequenceFailed]:
        """So many sequences to choose from; the first is what it would take alone.

        Where it takes one action only, those of the highest scores; else it draws.
        In the place of one that the compiler did not survive is what befell it.

        Raises:
            ModuleFailed: no compiler gets as far as the first action.
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
        """The action of the best outcome; one that fails has none.

        Raises:
            ModuleFailed: no compiler gets as far as the first action.
            SequenceFailed: each of them fails.
        """
        values: dict[int, float] = {}
        failure: SequenceFailed | None = None
        for action in range(self.task.lookahead):
            runner.reset(module)
            try:
                outcome = runner.step(module, [action])
            except SequenceFailed as error:
                failure = failure or error
            else:
                values[action] = float(self.scores(outcome.features)[0])
        if not values and failure is not None:
            raise failure
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
        """Without the action that only ends the episode."""
        return tuple(a for a in sequence if a < len(self.task.actions.actions))
