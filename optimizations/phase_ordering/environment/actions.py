# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Action spaces: JSON files that list the actions of a policy on a module."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mlbridge.errors import InvalidArgument, Malformed, SchemaMismatch
from mlbridge.files import replacing

# The folder of the action spaces that the plug-in contains.
BUILT_IN = Path(__file__).resolve().parents[1] / "action_spaces"

Order = tuple[int, ...]  # A sequence of actions, as indices.
NOTHING = "no-op-module"  # The pipeline of an action that does nothing.


@dataclass(frozen=True)
class Action:
    """One action, which runs a pipeline for ``opt -passes=``."""

    name: str
    pipeline: str


@dataclass(frozen=True)
class ActionSpace:
    """The actions of a policy."""

    name: str
    description: str
    prologue: str  # The passes that run before the first action, as a pipeline.
    actions: tuple[Action, ...]

    @classmethod
    def load(cls, name_or_file: str | os.PathLike[str]) -> "ActionSpace":
        """Reads the space with this name, such as ``oz``, or from this file.

        Raises InvalidArgument if it does not exist.
        """
        known = BUILT_IN / f"{os.fspath(name_or_file)}.json"
        path = known if known.is_file() else Path(name_or_file)
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise InvalidArgument(
                f"action space '{os.fspath(name_or_file)}': expected "
                f"{', '.join(sorted(p.stem for p in BUILT_IN.glob('*.json')))} or a "
                f"file: {error.strerror}"
            ) from None
        return cls.parse(text, str(path))

    @classmethod
    def parse(cls, text: str, source: str) -> "ActionSpace":
        """Reads JSON. Raises Malformed or SchemaMismatch that names `source`."""
        try:
            root: Any = json.loads(text)
            actions = tuple(Action(a["name"], a["pipeline"]) for a in root["actions"])
            description = root.get("description", "")
            found = cls(root["name"], description, root["prologue"], actions)
        except (ValueError, RecursionError) as error:
            raise Malformed(f"{source}: expected JSON: {error}") from error
        except (KeyError, TypeError, AttributeError) as error:
            raise SchemaMismatch(
                f'{source}: expected {{"name", "prologue", "actions": [{{"name", '
                f'"pipeline"}}]}}: {error!r}'
            ) from error
        if not actions:
            raise SchemaMismatch(f"{source}: an action space without an action")
        return found

    def to_json(self) -> str:
        """Returns JSON that `parse` can read."""
        return json.dumps(asdict(self), indent=1)

    def save(self, path: Path) -> None:
        """Writes the space to a file. An existing file is replaced atomically."""
        with replacing(path) as temporary:
            temporary.write_text(self.to_json() + "\n", encoding="utf-8")

    def pipeline(self, sequence: Sequence[int]) -> str:
        """Returns a pipeline that runs the `prologue` and a sequence of actions."""
        return ",".join(part for part in (self.prologue, self.joined(sequence)) if part)

    def joined(self, sequence: Sequence[int]) -> str:
        """Returns a pipeline that runs a sequence of actions.

        The pipeline lacks the passes that run before the first action (`prologue`).
        """
        return ",".join(self.actions[action].pipeline for action in sequence)

    def of_sequences(
        self, sequences: Sequence[Sequence[int]], name: str, description: str
    ) -> "ActionSpace":
        """Returns a space in which each action runs one sequence of this space."""
        actions = []
        for number, sequence in enumerate(sequences):
            label = "-".join(map(str, sequence)) or "nothing"
            joined = self.joined(sequence) or NOTHING
            actions.append(Action(f"{number}: {label}", joined))
        return ActionSpace(name, description, self.prologue, tuple(actions))
