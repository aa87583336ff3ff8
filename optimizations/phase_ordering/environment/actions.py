# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Action spaces: what a policy may do to a module. Data, in files."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mlbridge.errors import InvalidArgument, Malformed, SchemaMismatch

# The spaces that the plug-in has in itself, as files.
BUILT_IN = Path(__file__).resolve().parents[1] / "action_spaces"

Order = tuple[int, ...]  # Actions, one after another, by their numbers.
NOTHING = "no-op-module"  # The pipeline of an action that does nothing.


@dataclass(frozen=True)
class Action:
    """One thing that may be done: a pipeline, as for ``opt -passes=``."""

    name: str
    pipeline: str


@dataclass(frozen=True)
class ActionSpace:
    """What may be done."""

    name: str  # Of the space.
    description: str  # In words.
    prologue: str  # The pipeline that always runs first, whatever is done.
    actions: tuple[Action, ...]  # By their numbers.

    @classmethod
    def load(cls, name_or_file: str | os.PathLike[str]) -> "ActionSpace":
        """The space of that name (``oz``, ``odg``, ``passes``), or of that file.

        Raises:
            InvalidArgument: there is none.
            Malformed, SchemaMismatch: the file is something else.
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
        """A space from its JSON; ``source`` is its name in errors.

        Raises:
            Malformed: it is no JSON.
            SchemaMismatch: it is another kind of JSON.
        """
        try:
            root: Any = json.loads(text)
            actions = tuple(Action(a["name"], a["pipeline"]) for a in root["actions"])
            found = cls(
                root["name"], root.get("description", ""), root["prologue"], actions
            )
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
        """The form in which it is read."""
        return json.dumps(asdict(self), indent=1)

    def save(self, path: Path) -> None:
        """Writes it to a file, all of it or nothing."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_text(self.to_json() + "\n", encoding="utf-8")
        temporary.replace(path)

    def pipeline(self, sequence: Sequence[int]) -> str:
        """What runs in all for a sequence: the prologue, and then each action.

        ``opt -passes=`` that does the same to a module as the environment.
        """
        return ",".join(part for part in (self.prologue, self.joined(sequence)) if part)

    def joined(self, sequence: Sequence[int]) -> str:
        """A sequence as one pipeline, without the prologue."""
        return ",".join(self.actions[action].pipeline for action in sequence)

    def of_sequences(
        self, sequences: Sequence[Sequence[int]], name: str, description: str
    ) -> "ActionSpace":
        """A space whose actions are whole sequences of this one's."""
        actions = []
        for number, sequence in enumerate(sequences):
            label = "-".join(map(str, sequence)) or "nothing"
            joined = self.joined(sequence) or NOTHING
            actions.append(Action(f"{number}: {label}", joined))
        return ActionSpace(name, description, self.prologue, tuple(actions))


# LLVM's own pipeline, where it is to be one of the choices.
STOCK = Action("stock -Oz", "default<Oz>")
