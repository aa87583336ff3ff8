# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A core set: a few sequences that together suit many modules best."""

import json
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from mlbridge.errors import InvalidArgument, Malformed, SchemaMismatch

from ..environment.actions import ActionSpace, Order


@dataclass(frozen=True)
class CoreSet:
    """Sequences of a space, in the order of `Table.greedy`."""

    actions: ActionSpace
    sequences: tuple[Order, ...]
    # Geomeans of size / -Oz over the training programs, by the best of the first k.
    ratios: tuple[float, ...]
    length: int  # Of random sequences to compare with: the longest of the search.
    # The space of random sequences; by default `actions`, but a core set of whole
    # pipelines needs another.
    random: str | None = None

    @property
    def drawn_from(self) -> ActionSpace:
        """The space of random sequences; InvalidArgument for an unknown name."""
        return self.actions if self.random is None else ActionSpace.load(self.random)

    def save(self, path: Path) -> None:
        """Writes the core set as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "CoreSet":
        """Reads a file of `save`; raises InvalidArgument, Malformed, SchemaMismatch."""
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
        for action in chain.from_iterable(found.sequences):
            if not 0 <= action < count:
                raise SchemaMismatch(
                    f"{path}: expected actions 0 to {count - 1} of the space"
                    f" '{found.actions.name}', found {action} in a sequence"
                )
        return found
