# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The calls of a program: their features, and decisions about them.

The features are logged file by file, because a compiler with a model sees one file at a
time. The changes of size come from the search of the whole program.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mlbridge.errors import InvalidArgument
from mlbridge.log import read_log

from .decisions import inlining_line

LLVM_DECISION = "inlining_default"
"""The feature with LLVM's own decision."""

Key = tuple[str, str]
"""A call: the callee, and the location in the form of a file of decisions."""


@dataclass(frozen=True)
class Calls:
    """The calls of a program with the decisions of a policy, n rows of d features.

    A function in a header has the same calls in each file that includes the header, so
    several rows have the same key. The weights of these rows sum to 1.

    Attributes:
        names: the names of the features.
        features: int64 [n, d].
        decisions: whether the policy inlines the call, bool [n].
        keys: the calls.
        gains: the bytes by which inlining the call shrinks the linked program, float64
            [n]. Negative if the program grows. NaN if the search has not tried the
            call.
        weights: float64 [n].
    """

    names: tuple[str, ...]
    features: NDArray[np.int64]
    decisions: NDArray[np.bool_]
    keys: tuple[Key, ...]
    gains: NDArray[np.float64]
    weights: NDArray[np.float64]

    def column(self, name: str) -> NDArray[np.int64]:
        """Returns a feature of all calls, int64 [n]."""
        return self.features[:, self.names.index(name)]

    @property
    def differ(self) -> NDArray[np.bool_]:
        """Returns for each call whether the policy differs from LLVM, bool [n]."""
        differ: NDArray[np.bool_] = self.decisions != (self.column(LLVM_DECISION) != 0)
        return differ

    @staticmethod
    def join(parts: "Sequence[Calls]") -> "Calls":
        """Returns the calls of all parts. Raises InvalidArgument if features differ."""
        if len({part.names for part in parts}) != 1:
            raise InvalidArgument(
                "expected logs with the same features: log them again"
            )
        return Calls(
            parts[0].names,
            np.concatenate([part.features for part in parts]),
            np.concatenate([part.decisions for part in parts]),
            tuple(key for part in parts for key in part.keys),
            np.concatenate([part.gains for part in parts]),
            np.concatenate([part.weights for part in parts]),
        )


def gains_of(flips: Path) -> dict[Key, float]:
    """Returns the bytes by which inlining each call shrinks the program.

    ``flips`` is the file of a search. If a trial reversed several decisions, their
    calls share the change of size equally. A call that was tried several times has the
    mean of its gains. Without a file, the result is empty.
    """
    found: defaultdict[Key, list[float]] = defaultdict(list)
    if not flips.is_file():
        return {}
    with flips.open(encoding="utf-8") as file:
        for flip in map(json.loads, file):
            for site in flip["sites"]:
                gain = -flip["change"] / len(flip["sites"])
                found[site["callee"], site["location"]].append(
                    gain if site["decision"] else -gain
                )
    return {key: float(np.mean(gains)) for key, gains in found.items()}


def read_calls(logs: Iterable[Path], gains: Mapping[Key, float]) -> Calls:
    """Reads logs whose contexts name the calls.

    Raises InvalidArgument if the logs contain no calls or have different features.
    """
    parts = [_read_log(log, gains) for log in logs if log.stat().st_size]
    if not parts:
        raise InvalidArgument("no call was logged: the program inlines nothing")
    calls = Calls.join(parts)
    counts = Counter(calls.keys)
    return replace(calls, weights=np.array([1 / counts[key] for key in calls.keys]))


def _read_log(log: Path, gains: Mapping[Key, float]) -> Calls:
    """Reads the calls of one log, each with the weight 1."""
    found = read_log(log).as_arrays()
    keys = []
    for context in found.contexts:
        # A context ends with the callee, a line break and the location.
        before, _, location = context.rpartition("\n")
        keys.append((before.rpartition(":")[2], location))
    return Calls(
        tuple(found.features),
        np.column_stack([*found.features.values()]).astype(np.int64),
        found.advice.reshape(-1) != 0,
        tuple(keys),
        np.array([gains.get(key, np.nan) for key in keys]),
        np.ones(len(keys)),
    )


def write_decisions(calls: Calls, path: Path) -> int:
    """Writes the decisions that differ from LLVM's, and returns their number.

    A search can start with the file, and clang can replay it. A call has the same
    decision in all files: the most frequent decision of its rows. Calls in which no row
    differs from LLVM's decision are left out.
    """
    chosen: dict[Key, Counter[bool]] = defaultdict(Counter)
    for key, decision in zip(calls.keys, calls.decisions, strict=True):
        if key[1]:
            chosen[key][bool(decision)] += 1
    changed = {calls.keys[row] for row in np.flatnonzero(calls.differ)}
    lines = []
    for key in sorted(changed & chosen.keys()):
        callee, location = key
        decision = chosen[key].most_common(1)[0][0]
        lines.append(inlining_line(callee, location, is_inlined=decision))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(lines)
