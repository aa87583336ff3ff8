# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A file that stores results for modules, so that interrupted work can continue.

Each line is JSON with one result for one module. The line also has the action space,
the compiler, the plug-in, the module's hash and the request. If one of these has
changed, the line is ignored. A module may have several lines.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from os import SEEK_END
from pathlib import Path
from typing import Any

from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.corpus.manifest import sha256

from .compiler import EpisodeOptions


class Kept:
    """The results in a file that are valid for a compiler and a request."""

    def __init__(
        self, file: Path | None, options: EpisodeOptions, asked: Mapping[str, Any]
    ) -> None:
        """Stores the request, ``asked``. Without a file, no results are stored."""
        self._file = file
        self._with: dict[str, Any] = {}
        if file is not None:
            space = hashlib.sha256(options.space.to_json().encode()).hexdigest()
            by = {"space": space, "compiler": toolchain.compiler_version()}
            plugin = sha256(options.plugin_file())
            # Convert tuples to lists, because they are compared with lists from a file.
            self._with = json.loads(json.dumps({**asked, **by, "plugin": plugin}))

    def load(self, modules: Sequence[Path]) -> dict[str, dict[str, Any]]:
        """Returns the last valid result of each module."""
        return {module: found[-1] for module, found in self.load_all(modules).items()}

    def load_all(self, modules: Sequence[Path]) -> dict[str, list[dict[str, Any]]]:
        """Returns all valid results of each module that has one."""
        lines: dict[str, list[dict[str, Any]]] = {}
        file = self._file
        texts = file.read_bytes() if file is not None and file.is_file() else b""
        for text in texts.splitlines():
            # Ignore incomplete lines, which a killed run may have left.
            with suppress(ValueError, KeyError, TypeError, RecursionError):
                line = json.loads(text)
                lines.setdefault(line["module"], []).append(line)
        found: dict[str, list[dict[str, Any]]] = {}
        for module in {str(module) for module in modules} & set(lines):
            holds = self._made_with(Path(module))
            for line in lines[module]:
                if line.get("with") == holds and isinstance(line.get("found"), dict):
                    found.setdefault(module, []).append(line["found"])
        return found

    def add(self, module: Path, found: Mapping[str, Any]) -> None:
        """Adds a result for a module."""
        if self._file is None:
            return
        entry = {"module": str(module), "with": self._made_with(module), "found": found}
        with self._file.open("ab+") as file:
            # Begin a new line if the last line is incomplete.
            if file.seek(0, SEEK_END) > 0:
                file.seek(-1, SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write(json.dumps(entry).encode() + b"\n")

    def _made_with(self, module: Path) -> dict[str, Any]:
        return {**self._with, "sha256": sha256(module)}
