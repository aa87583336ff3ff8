# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A searched program: its build, its decisions, and the features of its calls.

The features are logged file by file, because a compiler with a model sees one file at a
time. The decisions and the changes of size come from the search of the whole program.
"""

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from mlbridge.errors import InvalidArgument, Malformed
from mlbridge.files import spec_of
from mlbridge.log import read_log
from mlbridge_optimizations.corpus.manifest import sha256
from mlbridge_optimizations.corpus.toolchain import plugin_flags
from mlbridge_optimizations.corpus.user_build import read

from .linking import BuiltProgram, Sizes, rebuild, write_callee_files

SEARCH = "search.json"
DECISIONS = "decisions.txt"
FLIPS = "flips.jsonl"
CALLEE_FILES = "callee-files.txt"
FLAGS = ("inliner-include-linkage", "inliner-include-default")
"""The plug-in's options that add the features on which models are trained."""
DEFAULT = "inlining_default"

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
        differ: NDArray[np.bool_] = self.decisions != (self.column(DEFAULT) != 0)
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


@dataclass(frozen=True)
class Searched(BuiltProgram):
    """A program, and the folder with the records of its build and its search."""

    @property
    def flips(self) -> Path:
        """The file of the trials: the reversed decisions and the changes of size."""
        return self.folder / FLIPS

    @property
    def decisions(self) -> Path:
        """The file of the decisions that the search has found."""
        return self.folder / DECISIONS

    @property
    def callee_files(self) -> Path:
        """The file with the number of objects that define each function."""
        return self.folder / CALLEE_FILES

    @classmethod
    def open(cls, folder: Path) -> "Searched":
        """Reads a folder. Raises InvalidArgument if no search wrote it."""
        path = folder / SEARCH
        if not path.is_file():
            raise InvalidArgument(
                f"{folder} has no {SEARCH}: search a program with `mlbridge search"
                f" smallest-code --folder {folder} -- BUILD`"
            )
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
            name, inputs = str(about["program"]), dict(about.get("inputs", {}))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Malformed(f"{path}: expected a search: {error!r}") from error
        build = read(folder)
        link = build.program(name)
        for one, code in inputs.items():
            if not Path(one).is_file() or sha256(Path(one)) != code:
                raise InvalidArgument(
                    f"{one} has changed since the search in {folder}, or does not"
                    " exist any more: search again"
                )
        return cls(folder.resolve(), build, link)

    def save(self, decisions: Path) -> None:
        """Makes the folder of a build readable with `open`."""
        shutil.copyfile(decisions, self.decisions)
        write_callee_files(self.link, self.callee_files)
        inputs = {str(path): sha256(path) for path in self.link.inputs()}
        about = json.dumps({"program": self.name, "inputs": inputs})
        (self.folder / SEARCH).write_text(about + "\n", encoding="utf-8")

    def record(self, spec: str, plugin: Path, jobs: int) -> Calls:
        """Compiles with a policy, and returns its decisions. See `compile`."""
        return self.compile(spec, plugin, jobs, gains_of(self.flips))[0]

    def compile(
        self, spec: str, plugin: Path, jobs: int, gains: Mapping[Key, float]
    ) -> tuple[Calls, Sizes]:
        """Compiles with a policy. Returns its decisions, and the linked sizes.

        ``spec`` is the end of a model spec: ``none``, ``decisions:FILE``, or a model.
        ``gains`` has the calls' `Calls.gains`.
        """
        with TemporaryDirectory(prefix="mlbridge-calls-") as name:
            folder = Path(name)
            log = spec_of("record", folder / "{module}.log")
            log = log.replace("%7B", "{").replace("%7D", "}")
            options = [f"inliner={log}|{spec}", "inliner-name-calls", "on-error=fatal"]
            options += [f"inliner-callee-files={self.callee_files}", *FLAGS]
            flags = plugin_flags(plugin, *options)
            sizes = rebuild(self.build, self.link, flags, folder / self.name, jobs)
            return read_calls(sorted(folder.glob("*.log")), gains), sizes


def open_all(folders: Iterable[Path]) -> list[Searched]:
    """Reads folders. Raises InvalidArgument as `Searched.open`, or for duplicates.

    Otherwise, a program could be in training and validation.
    """
    programs = [Searched.open(folder) for folder in folders]
    counts = Counter(program.folder for program in programs)
    folder, count = counts.most_common(1)[0]
    if count > 1:
        raise InvalidArgument(f"{folder} is named {count} times, expected once")
    return programs


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


def model_flags(spec: str, plugin: Path, callee_files: Path) -> list[str]:
    """Returns clang's flags for a model of inlining."""
    options = (f"inliner={spec}", f"inliner-callee-files={callee_files}")
    return plugin_flags(plugin, *options, "on-error=fatal", *FLAGS)


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
        caller = location.rpartition(" @ ")[2].split(":")[0]
        how = "inlined" if decision else "will not be inlined"
        lines.append(f"x: '{callee}' {how} into '{caller}' at callsite {location};\n")
    path.write_text("".join(lines), encoding="utf-8")
    return len(lines)
