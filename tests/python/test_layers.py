# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The folders of lib include, and those of Python import, only what lies below them.

Read from the sources, without a build. A public header belongs to the folder of the
source that has its name and includes it first; one without a source counts as what it
includes. Run as a program, this writes what the folders depend on into
docs/concepts/architecture.md.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = "docs/concepts/architecture.md"

# From bottom to top.
LAYERS = (
    *("Support", "Core", "SerDes", "Transport", "Session", "Server", "Training"),
    *("InProcess", "AOT", "Runners", "Factory", "Protobuf", "ONNX", "TF", "GRPC", "C"),
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


def test_transports_and_serdes_do_not_know_each_other(layers: Layers) -> None:
    assert ("Transport", "SerDes") not in layers.ties
    assert ("SerDes", "Transport") not in layers.ties


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


# Python: one way only, and the bridge knows nobody.

PACKAGES = {
    "mlbridge": ROOT / "python/mlbridge",
    "mlbridge_optimizations": ROOT / "optimizations",
    "mlbridge_benchmarks": ROOT / "benchmarks",
}
"""From the bottom to the top."""

Imports = dict[str, set[str]]


def modules() -> dict[str, Path]:
    """Every module by its name."""
    found = {}
    for package, folder in PACKAGES.items():
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            if "build" not in parts and path.name != "setup.py":
                found[".".join((package, *parts)).removesuffix(".__init__")] = path
    return found


def package_of(path: Path) -> list[str]:
    """That of a module in a file, by its parts."""
    (found,) = (
        [package, *path.relative_to(folder).parent.parts]
        for package, folder in PACKAGES.items()
        if path.is_relative_to(folder)
    )
    return found


def imported(path: Path) -> Iterator[str]:
    """All that is imported anywhere in a file, but for what only types need."""
    tree = ast.parse(path.read_text())
    types = {
        id(inside)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inside in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = package_of(path)
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def graph() -> Imports:
    """What each module imports of ours. A package's __init__ only hands on."""
    known = modules()
    found: Imports = {}
    for name, path in known.items():
        if path.name == "__init__.py":
            continue
        # A module or a package, or a name within one.
        targets = {
            target if target in known else target.rpartition(".")[0]
            for target in imported(path)
            if target.rpartition(".")[2] != "_core"
        }
        found[name] = (targets & set(known)) - {name}
    return found


def by_folder(imports: Imports) -> Imports:
    known = modules()
    found: Imports = {}
    for name, wanted in imports.items():
        own = str(known[name].parent)
        found.setdefault(own, set()).update(str(known[w].parent) for w in wanted)
        found[own].discard(own)
    return found


def assert_one_way(imports: Mapping[str, set[str]]) -> None:
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' <- '.join(error.args[1])}")


def test_no_modules_import_each_other() -> None:
    assert_one_way(graph())


def test_no_folders_import_each_other() -> None:
    assert_one_way(by_folder(graph()))


def test_a_circle_is_found() -> None:
    with pytest.raises(pytest.fail.Exception, match="a circle"):
        assert_one_way({"a": {"b"}, "b": {"a"}})
    # As long as there is something to look at.
    assert len(graph()) > 100
    assert sum(map(len, graph().values())) > 300


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_none_above_it(package: str) -> None:
    order = list(PACKAGES)
    above = order[order.index(package) + 1 :]
    for name, path in modules().items():
        if name.split(".")[0] == package:
            for target in imported(path):
                assert target.split(".")[0] not in above, (name, target)


def test_the_bridge_names_no_optimisation() -> None:
    described = PACKAGES["mlbridge_optimizations"].glob("*/optimization.py")
    names = [path.parent.name for path in described]
    assert "phase_ordering" in names
    pattern = re.compile("|".join(name.replace("_", "[-_ ]?") for name in names), re.I)
    for folder in ("python", "lib", "include"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".pyi", ".cpp", ".h", ".in"):
                assert not pattern.search(path.read_text()), path


if __name__ == "__main__":
    page = ROOT / TABLE
    page.write_text(rewritten(page.read_text(), Layers(ROOT)))
