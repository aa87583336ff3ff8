# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A core set: the few sequences that together serve many modules best."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mlbridge.errors import InvalidArgument, Malformed, SchemaMismatch

from ..environment.actions import ActionSpace, Order


@dataclass(frozen=True)
class CoreSet:
    """Sequences of a space, in an order that counts."""

    actions: ActionSpace
    # As they were chosen: by `Table.greedy` the first is the best single one, and the
    # first k are the best k that were found.
    sequences: tuple[Order, ...]
    # Geomean of size / -Oz over the training programs, by the best of the first 1, 2,
    # ... of them.
    ratios: tuple[float, ...]
    # Most actions of a sequence of the search that found them; so long are random
    # sequences to compare them with.
    length: int
    # The name of the space that those are drawn from, where that is another one: a core
    # set of whole pipelines has no actions to draw from.
    random: str | None = None

    @property
    def drawn_from(self) -> ActionSpace:
        """The space of random sequences to compare these with.

        Raises:
            InvalidArgument: there is no space of that name.
        """
        return self.actions if self.random is None else ActionSpace.load(self.random)

    def save(self, path: Path) -> None:
        """Writes it as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "CoreSet":
        """What `save` wrote.

        Raises:
            InvalidArgument: there is no such file.
            Malformed: it is something else.
            SchemaMismatch: a sequence has an action that its space has not.
        """
        try:
            root: Any = json.loads(path.read_text(encoding="utf-8"))
            found = cls(
                ActionSpace.parse(json.dumps(root["actions"]), str(path)),
                tuple(tuple(map(int, sequence)) for sequence in root["sequences"]),
                tuple(map(float, root["ratios"])),
                int(root["length"]),
                None if root.get("random") is None else str(root["random"]),
            )
        except OSError as error:
            raise InvalidArgument(f"{path}: {error.strerror}") from None
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise Malformed(f"{path}: expected a core set: {error!r}") from error
        count = len(found.actions.actions)
        for sequence in found.sequences:
            for action in sequence:
                if not 0 <= action < count:
                    raise SchemaMismatch(
                        f"{path}: expected actions 0 to {count - 1} of the space"
                        f" '{found.actions.name}', found {action} in a sequence"
                    )
        return found
