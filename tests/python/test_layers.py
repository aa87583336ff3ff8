# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The folders of lib include only what lies below them.

Read from the sources, without a build. A public header belongs to the folder of the
source that has its name and includes it first; one without a source counts as what it
includes. Run as a program, this writes what the folders depend on into
docs/architecture.md.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = "docs/architecture.md"

# From bottom to top.
LAYERS = (
    "Support",
    "Core",
    "SerDes",
    "Transport",
    "Server",
    "Training",
    "InProcess",
    "AOT",
    "Runners",
    "Factory",
    "Protobuf",
    "ONNX",
    "TF",
    "GRPC",
    "C",
)

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
ROW = re.compile(r"^(\| `lib/(\w+)` \|.*\| )([^|]*)( \|)$", re.MULTILINE)


class Layers:
    """Which folder of lib includes which, and where."""

    def __init__(self, root: Path) -> None:
        self.lib = root / "lib"
        self.public = root / "include"
        sources = sorted(p for p in self.lib.rglob("*") if p.suffix in {".h", ".cpp"})
        self.folder = {p: p.relative_to(self.lib).parts[0] for p in sources}
        for path in sources:
            own = self.public / next(iter(INCLUDE.findall(path.read_text())), "")
            if own.stem == path.stem and own.exists():
                self.folder[own] = self.folder[path]
        # By the two folders, the includes that tie them: "FILE includes HEADER".
        self.ties: dict[tuple[str, str], list[str]] = {}
        for path, folder in self.folder.items():
            for name, target in self.reached(path, {path}):
                if target != folder:
                    tie = f"{path.relative_to(root)} includes {name}"
                    self.ties.setdefault((folder, target), []).append(tie)

    def reached(self, path: Path, seen: set[Path]) -> list[tuple[str, str]]:
        """What `path` includes: each header as it is written, and its folder."""
        found = []
        for name in INCLUDE.findall(path.read_text()):
            header = next(
                (p / name for p in (self.lib, self.public) if (p / name).exists()), None
            )
            if header is None or header in seen:
                continue
            if header in self.folder:
                found.append((name, self.folder[header]))
            else:
                seen.add(header)
                found += [(name, f) for _, f in self.reached(header, seen)]
        return found

    def below(self, folder: str) -> list[str]:
        """What `folder` includes, from bottom to top."""
        return [f for f in LAYERS if (folder, f) in self.ties]

    def upward(self) -> list[str]:
        """The includes of what lies above; a circle has at least one."""
        return [
            tie
            for (folder, target), ties in self.ties.items()
            if LAYERS.index(folder) < LAYERS.index(target)
            for tie in ties
        ]


def rewritten(text: str, layers: Layers) -> str:
    """The table with what each row's folder includes, and the outside libraries."""

    def row(match: re.Match[str]) -> str:
        named = [part.strip() for part in match[3].split(",")]
        outside = [n for n in named if n not in LAYERS and n != "nothing"]
        cell = ", ".join(layers.below(match[2]) + outside) or "nothing"
        return match[1] + cell + match[4]

    return ROW.sub(row, text)


@pytest.fixture(scope="module")
def layers() -> Layers:
    return Layers(ROOT)


def test_each_folder_has_a_layer(layers: Layers) -> None:
    assert set(layers.folder.values()) == set(LAYERS)


def test_includes_point_down(layers: Layers) -> None:
    assert layers.upward() == []


def test_the_table_is_what_the_includes_say(layers: Layers) -> None:
    text = (ROOT / TABLE).read_text()
    assert sorted(row[1] for row in ROW.findall(text)) == sorted(LAYERS)
    assert rewritten(text, layers) == text, f"run {Path(__file__).name} as a program"


def test_an_include_of_what_is_above_is_found(tmp_path: Path) -> None:
    files = {
        "lib/Core/Tensor.cpp": '#include "MLCompilerBridge/Tensor.h"\n',
        "lib/Core/Shape.h": '#include "Runners/Log.h"\n',
        "lib/Runners/Log.h": '#include "Core/Shape.h"\n',
        "lib/Support/Files.h": '#include "MLCompilerBridge/Alone.h"\n',
        "include/MLCompilerBridge/Alone.h": '#include "MLCompilerBridge/Tensor.h"\n',
        "include/MLCompilerBridge/Tensor.h": "#include <string>\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert sorted(Layers(tmp_path).upward()) == [
        "lib/Core/Shape.h includes Runners/Log.h",
        "lib/Support/Files.h includes MLCompilerBridge/Alone.h",
    ]


if __name__ == "__main__":
    page = ROOT / TABLE
    page.write_text(rewritten(page.read_text(), Layers(ROOT)))
