# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A core set: a few sequences. For each module, at least one of them is good."""

import json
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from mlbridge.errors import InvalidArgument, Malformed, SchemaMismatch

from ..environment.actions import ActionSpace, Order


@dataclass(frozen=True)
class CoreSet:
    """A core set, in the order in which `Table.greedy` has chosen the sequences."""

    actions: ActionSpace
    sequences: tuple[Order, ...]
    # Item k - 1 is the geomean of size / -Oz with the best of the first k sequences.
    ratios: tuple[float, ...]
    length: int  # The length of the random sequences in an evaluation.
    # The action space of the random sequences. The default is `actions`, but a core set
    # of whole pipelines needs another space.
    random: str | None = None

    @property
    def drawn_from(self) -> ActionSpace:
        """The action space of random sequences. Raises InvalidArgument if unknown."""
        return self.actions if self.random is None else ActionSpace.load(self.random)

    def save(self, path: Path) -> None:
        """Writes the core set as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "CoreSet":
        """Reads a core set. Raises InvalidArgument, Malformed or SchemaMismatch."""
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
