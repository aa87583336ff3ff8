# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads and writes files of decisions, which the plug-in replays.

``compilers/llvm/Size/SizeDecisions.h`` describes the lines about files. All other lines
are inlining decisions, which stock clang also replays.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from mlbridge.errors import Malformed
from mlbridge.files import replacing

OTHERS = "*"
"""Stands for all files without a line of their own."""
STOCK = "stock"
"""The pipeline of clang -Oz."""

_ABOUT_FILES = ("pipeline '", "file '")
# Names may contain quotes.
_DEFINITION = re.compile(r"pipeline '(.+?)' is (.+)")
_PIPELINE = re.compile(r"file '(.+?)' has pipeline '(.+)'")
_LEAST = re.compile(r"file '(.+?)' outlines sequences of (\d+)")
_WHOLE = re.compile(r"file '(.+?)' does not outline from '(.+)'")


def inlining_line(callee: str, location: str, *, is_inlined: bool) -> str:
    """Returns the line with the decision about a call, without a line break."""
    caller = location.rpartition(" @ ")[2].split(":")[0]
    how = "inlined" if is_inlined else "will not be inlined"
    return f"x: '{callee}' {how} into '{caller}' at callsite {location};"


@dataclass(frozen=True)
class FileDecisions:
    """The decisions about a source file, except inlining."""

    pipeline: str = STOCK  # The name of a pipeline.
    # LLVM's -outliner-benefit-threshold. It is 0 if nothing is outlined.
    least: int = 0
    whole: frozenset[str] = frozenset()  # Functions from which nothing is outlined.


@dataclass(frozen=True)
class Decisions:
    """The decisions about a program."""

    inlining: tuple[str, ...] = ()  # Lines in the form of LLVM's remarks.
    pipelines: Mapping[str, str] = field(default_factory=dict)  # Maps names to passes.
    files: Mapping[str, FileDecisions] = field(default_factory=dict)  # By source file.

    def of(self, source: str) -> FileDecisions:
        """Returns the decisions about a source file, as the plug-in finds them."""
        default = self.files.get(OTHERS, FileDecisions())
        return self.files.get(source, default)

    def with_file(self, source: str, decided: FileDecisions) -> "Decisions":
        """Returns a copy with other decisions about a source file."""
        return replace(self, files={**self.files, source: decided})

    def with_files_of(self, other: "Decisions") -> "Decisions":
        """Returns a copy that also has the decisions of ``other`` about source files.

        The decisions about `OTHERS` stay as they are.
        """
        files = {name: one for name, one in other.files.items() if name != OTHERS}
        return replace(
            self,
            pipelines={**other.pipelines, **self.pipelines},
            files={**self.files, **files},
        )

    @property
    def needs_plugin(self) -> bool:
        """Whether the plug-in is needed to replay the decisions."""
        return any(one != FileDecisions() for one in self.files.values())

    def text(self) -> str:
        """Returns the contents of a file."""
        lines = []
        used = {one.pipeline for one in self.files.values()}
        for name, passes in self.pipelines.items():
            if name in used:
                lines.append(f"pipeline '{name}' is {passes}")
        default = self.files.get(OTHERS, FileDecisions())
        for source, one in self.files.items():
            if one.pipeline != default.pipeline or source == OTHERS:
                lines.append(f"file '{source}' has pipeline '{one.pipeline}'")
            if one.least:
                lines.append(f"file '{source}' outlines sequences of {one.least}")
            for name in sorted(one.whole):
                lines.append(f"file '{source}' does not outline from '{name}'")
        return "".join(f"{line}\n" for line in (*lines, *self.inlining))

    @classmethod
    def parse(cls, text: str) -> "Decisions":
        """Parses the contents of a file. Raises Malformed for a line about files."""
        inlining: list[str] = []
        pipelines: dict[str, str] = {}
        files: dict[str, FileDecisions] = {}
        default = FileDecisions()
        # Names may contain the other line breaks of splitlines().
        for number, line in enumerate(re.split(r"\r?\n", text), 1):
            if not line.startswith(_ABOUT_FILES):
                inlining += [line] if line.strip() else []
                continue
            if found := _DEFINITION.fullmatch(line):
                pipelines[found[1]] = found[2]
                continue
            found = (
                _PIPELINE.fullmatch(line)
                or _LEAST.fullmatch(line)
                or _WHOLE.fullmatch(line)
            )
            if found is None:
                raise Malformed(f"line {number}: unexpected: {line[:200]}")
            source, value = found.groups()
            before = files.get(source, FileDecisions(default.pipeline))
            if found.re is _PIPELINE:
                files[source] = replace(before, pipeline=value)
            elif found.re is _LEAST:
                files[source] = replace(before, least=int(value))
            else:
                files[source] = replace(before, whole=before.whole | {value})
            default = files.get(OTHERS, default)
        return cls(tuple(inlining), pipelines, files)

    @classmethod
    def read(cls, path: Path) -> "Decisions":
        """Reads a file. Raises Malformed."""
        try:
            return cls.parse(path.read_text(encoding="utf-8", errors="surrogateescape"))
        except Malformed as error:
            raise Malformed(f"{path}: {error}") from error

    def save(self, path: Path) -> None:
        """Replaces a file atomically."""
        with replacing(path) as made:
            made.write_text(self.text(), encoding="utf-8", errors="surrogateescape")
