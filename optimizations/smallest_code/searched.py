# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A searched program: its build and its decisions, in the folder of the search."""

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from mlbridge.errors import InvalidArgument, Malformed
from mlbridge.files import spec_of
from mlbridge_optimizations.corpus.manifest import sha256
from mlbridge_optimizations.corpus.toolchain import plugin_flags
from mlbridge_optimizations.corpus.user_build import read_build

from .calls import Calls, Key, gains_of, read_calls
from .flags import FEATURES
from .linking import BuiltProgram, Sizes, rebuild, write_callee_files

SEARCH = "search.json"
DECISIONS = "decisions.txt"
FLIPS = "flips.jsonl"
CALLEE_FILES = "callee-files.txt"


@dataclass(frozen=True)
class SearchedProgram(BuiltProgram):
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
    def open(cls, folder: Path) -> "SearchedProgram":
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
        build = read_build(folder)
        outputs = [one.output for one in build.links if one.output.name == name]
        lost = [] if any(path.is_file() for path in outputs) else outputs
        for one, code in inputs.items():
            if not Path(one).is_file() or sha256(Path(one)) != code:
                lost.append(Path(one))
        if lost:
            raise InvalidArgument(
                f"{lost[0]} has changed since the search in {folder}, or does not exist"
                " any more: search again (with --resume --seconds 0 to keep the"
                " decisions)"
            )
        link = build.program(name)
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
            options += [f"inliner-callee-files={self.callee_files}", *FEATURES]
            flags = plugin_flags(plugin, *options)
            sizes = rebuild(self.build, self.link, flags, folder / self.name, jobs)
            return read_calls(sorted(folder.glob("*.log")), gains), sizes


def open_all(folders: Iterable[Path]) -> list[SearchedProgram]:
    """Reads folders as `SearchedProgram.open` does.

    Also raises InvalidArgument for duplicates, because a program could otherwise be in
    training and in validation.
    """
    programs = [SearchedProgram.open(folder) for folder in folders]
    counts = Counter(program.folder for program in programs)
    folder, count = counts.most_common(1)[0]
    if count > 1:
        raise InvalidArgument(f"{folder} is named {count} times, expected once")
    return programs
