# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What was found for each module, in a file: what was cut short goes on from it.

Each line of JSON is of one module, which may have several. It says what it was found
with: the action space, the compiler, the plug-in, the bytes of the module, and what was
asked. A line of which one of these is another now is left where it is and not used.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from os import SEEK_END
from pathlib import Path
from typing import Any

from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.corpus.manifest import sha256

from .compiler import EpisodeOptions


class Kept:
    """The lines of a file that hold for a compiler and for what it is asked."""

    def __init__(
        self, file: Path | None, options: EpisodeOptions, asked: Mapping[str, Any]
    ) -> None:
        """For lines that follow from what is asked; without a file nothing is kept."""
        self._file = file
        self._with: dict[str, Any] = {}
        if file is None:
            # Nobody reads it, and to ask the compiler takes time.
            return
        space = hashlib.sha256(options.space.to_json().encode()).hexdigest()
        # As it comes back from a file: lists, no tuples.
        self._with = json.loads(
            json.dumps(
                {
                    **asked,
                    "space": space,
                    "compiler": toolchain.compiler_version(),
                    "plugin": sha256(options.plugin_file()),
                }
            )
        )

    def load(self, modules: Sequence[Path]) -> dict[str, dict[str, Any]]:
        """What is known of modules, by their names: of each the last line."""
        return {module: found[-1] for module, found in self.load_all(modules).items()}

    def load_all(self, modules: Sequence[Path]) -> dict[str, list[dict[str, Any]]]:
        """All lines of modules that there are lines of, by the modules' names."""
        lines = self._lines()
        found: dict[str, list[dict[str, Any]]] = {}
        for module in {str(module) for module in modules} & set(lines):
            holds = self._made_with(Path(module))
            for line in lines[module]:
                if line.get("with") == holds and isinstance(line.get("found"), dict):
                    found.setdefault(module, []).append(line["found"])
        return found

    def add(self, module: Path, found: Mapping[str, Any]) -> None:
        """Keeps what was found for a module."""
        if self._file is None:
            return
        entry = {"module": str(module), "with": self._made_with(module), "found": found}
        with self._file.open("ab+") as file:
            # After one that was cut off, too, a line of its own.
            if file.seek(0, SEEK_END) > 0:
                file.seek(-1, SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write(json.dumps(entry).encode() + b"\n")

    def _made_with(self, module: Path) -> dict[str, Any]:
        return {**self._with, "sha256": sha256(module)}

    def _lines(self) -> dict[str, list[dict[str, Any]]]:
        """By module. One that was cut off, of a run that was killed, is none."""
        found: dict[str, list[dict[str, Any]]] = {}
        if self._file is not None and self._file.is_file():
            for text in self._file.read_text(encoding="utf-8").splitlines():
                try:
                    line = json.loads(text)
                    found.setdefault(line["module"], []).append(line)
                except (ValueError, KeyError, TypeError, RecursionError):
                    continue
        return found
