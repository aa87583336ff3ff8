# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each folder of lib, each compiler and each Python package uses only lower layers.

Reads the sources and needs no build. A public header belongs to the folder of the
source that has the header's name and includes it first. A header without such a source
is replaced by the headers that it includes. Run as a program, this file writes each
folder's dependencies to docs/concepts/architecture.md.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = "docs/concepts/architecture.md"

# From the lowest to the highest layer.
LAYERS = (
    *("Support", "Core", "SerDes", "Transport", "Session", "Server", "Training"),
    *("InProcess", "AOT", "Runners", "Factory", "Protobuf", "ONNX", "TF", "GRPC", "C"),
)

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
ROW = re.compile(r"^(\| `lib/(\w+)` \|.*\| )([^|]*)( \|)$", re.MULTILINE)


class Layers:
    """The includes between the folders of lib."""

    def __init__(self, root: Path) -> None:
        self.lib = root / "lib"
        self.public = root / "include"
        sources = sorted(p for p in self.lib.rglob("*") if p.suffix in {".h", ".cpp"})
        self.folder = {p: p.relative_to(self.lib).parts[0] for p in sources}
        for path in sources:
            own = self.public / next(iter(INCLUDE.findall(path.read_text())), "")
            if own.stem == path.stem and own.exists():
                self.folder[own] = self.folder[path]
        # Maps pairs of folders, the includer first, to "FILE includes HEADER".
        self.ties: dict[tuple[str, str], list[str]] = {}
        for path, folder in self.folder.items():
            for name, target in self.reached(path, {path}):
                if target != folder:
                    tie = f"{path.relative_to(root)} includes {name}"
                    self.ties.setdefault((folder, target), []).append(tie)

    def reached(self, path: Path, seen: set[Path]) -> list[tuple[str, str]]:
        """Returns the headers that `path` includes, and their folders."""
        found = []
        for name in INCLUDE.findall(path.read_text()):
            for header in (self.lib / name, self.public / name):
                if header in self.folder:
                    found.append((name, self.folder[header]))
                elif header.exists() and header not in seen:
                    seen.add(header)
                    found += [(name, f) for _, f in self.reached(header, seen)]
        return found

    def upward(self) -> list[str]:
        """Returns the includes of higher folders by files in lower folders.

        Any cycle of folders contains such an include.
        """
        return [
            tie
            for (folder, target), ties in self.ties.items()
            if LAYERS.index(folder) < LAYERS.index(target)
            for tie in ties
        ]


def rewritten(text: str, layers: Layers) -> str:
    """Returns a page with the dependencies of each folder in its table."""

    def row(match: re.Match[str]) -> str:
        named = [part.strip() for part in match[3].split(",")]
        outside = [n for n in named if n not in LAYERS and n != "nothing"]
        below = [f for f in LAYERS if (match[2], f) in layers.ties]
        return match[1] + (", ".join(below + outside) or "nothing") + match[4]

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


def write_files(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_an_include_of_what_is_above_is_found(tmp_path: Path) -> None:
    files = {
        "lib/Core/Tensor.cpp": '#include "MLCompilerBridge/Tensor.h"\n',
        "lib/Core/Shape.h": '#include "Runners/Log.h"\n',
        "lib/Runners/Log.h": '#include "Core/Shape.h"\n',
        "lib/Support/Files.h": '#include "MLCompilerBridge/Alone.h"\n',
        "include/MLCompilerBridge/Alone.h": '#include "MLCompilerBridge/Tensor.h"\n',
        "include/MLCompilerBridge/Tensor.h": "#include <string>\n",
    }
    write_files(tmp_path, files)
    assert sorted(Layers(tmp_path).upward()) == [
        "lib/Core/Shape.h includes Runners/Log.h",
        "lib/Support/Files.h includes MLCompilerBridge/Alone.h",
    ]


def strays(root: Path) -> list[str]:
    """Returns compilers' includes of private headers and of each other's headers."""
    found = []
    for compiler in sorted((root / "compilers").iterdir()):
        others = [root / "lib", root / "python", root / "compilers"]
        others += [one for one in others[-1].iterdir() if one != compiler]
        for path in (
            p for p in compiler.rglob("*") if p.suffix in {".h", ".c", ".cpp"}
        ):
            for name in INCLUDE.findall(path.read_text()):
                own = any(
                    (folder / name).exists() for folder in (path.parent, compiler)
                )
                if ".." in name or (
                    not own and any((o / name).exists() for o in others)
                ):
                    found.append(f"{path.relative_to(root)} includes {name}")
    return found


def test_compilers_include_only_public_headers() -> None:
    assert strays(ROOT) == []


def test_an_include_of_another_compiler_is_found(tmp_path: Path) -> None:
    files = {
        "compilers/a/Own.h": '#include "MLCompilerBridge/Error.h"\n',
        "compilers/a/Plugin.cpp": '#include "Own.h"\n#include "Core/Tensor.h"\n',
        "compilers/b/Other.h": '#include "../a/Own.h"\n',
        "compilers/b/Part/Pass.cpp": '#include "Other.h"\n#include "Own.h"\n',
        "include/MLCompilerBridge/Error.h": "",
        "lib/Core/Tensor.h": "",
    }
    write_files(tmp_path, files)
    assert sorted(strays(tmp_path)) == [
        "compilers/a/Plugin.cpp includes Core/Tensor.h",
        "compilers/b/Other.h includes ../a/Own.h",
        "compilers/b/Part/Pass.cpp includes Own.h",
    ]


OPTIMISATIONS = {"Inliner", "LoopDistribution", "PhaseOrdering", "RegAlloc", "Size"}
"""The folders of compilers/llvm that are optimisations. All other folders are below."""
COMBINED = {("Size", "Inliner"), ("Size", "PhaseOrdering")}
"""Pairs of optimisations. The first decides together with the second."""


def folders(compiler: Path) -> dict[str, set[str]]:
    """Maps each folder of a compiler to the other folders that it includes."""
    found: dict[str, set[str]] = {}
    for path in compiler.rglob("*"):
        if path.suffix in {".h", ".c", ".cpp"}:
            parts = path.relative_to(compiler).parts
            # A plug-in's entry point is above the folders.
            own = parts[0] if len(parts) > 1 else path.name
            named = INCLUDE.findall(path.read_text())
            others = {
                Path(name).parts[0]
                for name in named
                if "/" in name and (compiler / name).exists()
            }
            found.setdefault(own, set()).update(others - {own})
    return found


@pytest.mark.parametrize("compiler", sorted((ROOT / "compilers").glob("*/")))
def test_no_folders_of_a_compiler_include_each_other(compiler: Path) -> None:
    TopologicalSorter(folders(compiler)).prepare()


def test_optimisations_of_llvm_are_separate() -> None:
    ties = {
        (a, b)
        for a, targets in folders(ROOT / "compilers/llvm").items()
        for b in targets
    }
    assert not {a for a, _ in ties} & {"Support"}
    assert {
        (a, b) for a, b in ties if b in OPTIMISATIONS and a != "Plugin.cpp"
    } == COMBINED


PACKAGES = {
    "mlbridge": ROOT / "python/mlbridge",
    "mlbridge_optimizations": ROOT / "optimizations",
    "mlbridge_benchmarks": ROOT / "benchmarks",
}
"""The Python packages and their folders, from bottom to top."""

Imports = dict[str, set[str]]


@cache
def modules() -> dict[str, Path]:
    found = {}
    for package, folder in PACKAGES.items():
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            if "build" not in parts and path.name != "setup.py":
                found[".".join((package, *parts)).removesuffix(".__init__")] = path
    return found


def imported(name: str, *, types: bool = False) -> Iterator[str]:
    """Yields the names that a module imports.

    With `types`, also yields the names that it imports under TYPE_CHECKING.
    """
    path = modules()[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    tree = ast.parse(path.read_text())
    skipped = {
        id(inside)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inside in ast.walk(node)
        if not types
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package)
            yield from (f"{module}.{alias.name}" for alias in node.names)


@cache
def graph(*, types: bool = False) -> Imports:
    """Maps each of our modules to the modules of ours that it imports.

    Leaves out each __init__, which only re-exports.
    """
    known = modules()
    found: Imports = {}
    for name, path in known.items():
        if path.name == "__init__.py":
            continue
        # Each target is a module, a package, or a name in a module.
        targets = {
            target if target in known else target.rpartition(".")[0]
            for target in imported(name, types=types)
            if target.rpartition(".")[2] != "_core"
        }
        found[name] = (targets & set(known)) - {name}
    return found


@pytest.mark.parametrize("types", [False, True])
def test_no_modules_import_each_other(types: bool) -> None:
    # Raises CycleError, which names the cycle.
    TopologicalSorter(graph(types=types)).prepare()


def test_no_folders_import_each_other() -> None:
    folder = {name: str(path.parent) for name, path in modules().items()}
    # A program is above its folder, because no module imports it.
    folder["mlbridge.__main__"] = "mlbridge.__main__"
    imports: Imports = {}
    for name, targets in graph().items():
        others = {folder[target] for target in targets} - {folder[name]}
        imports.setdefault(folder[name], set()).update(others)
    TopologicalSorter(imports).prepare()


def test_the_graph_is_not_empty() -> None:
    assert len(graph()) > 100
    assert sum(map(len, graph().values())) > 300


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_none_above_it(package: str) -> None:
    order = list(PACKAGES)
    above = order[order.index(package) + 1 :]
    for name in modules():
        if name.split(".")[0] == package:
            for target in imported(name):
                assert target.split(".")[0] not in above, (name, target)


SHARED = {"commands", "corpus", "evaluation", "training"}
"""The folders that all optimisations use."""
DEMO = "inlining"
"""The optimisation that has no commands, but only `make demo`."""


def described() -> set[str]:
    files = PACKAGES["mlbridge_optimizations"].glob("*/optimization.py")
    return {path.parent.name for path in files}


def test_each_optimisation_is_described() -> None:
    packages = PACKAGES["mlbridge_optimizations"].glob("*/__init__.py")
    folders = {path.parent.name for path in packages}
    assert "phase_ordering" in folders
    assert folders - SHARED - {DEMO} == described()


def test_the_bridge_names_no_optimisation() -> None:
    # The demo is not in this list, because LLVM's features also contain the word
    # "inlining".
    names = described()
    pattern = re.compile("|".join(name.replace("_", "[-_ ]?") for name in names), re.I)
    for folder in ("python", "lib", "include"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".pyi", ".cpp", ".h", ".in"):
                assert not pattern.search(path.read_text()), path


if __name__ == "__main__":
    page = ROOT / TABLE
    page.write_text(rewritten(page.read_text(), Layers(ROOT)))
