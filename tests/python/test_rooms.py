# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which Python folder may import which: one way only, and the bridge knows nobody."""

import ast
import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
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
    known = {n: p for n, p in modules().items() if p.name != "__init__.py"}
    found: Imports = {}
    for name, path in known.items():
        # A module, or a name within one.
        targets = {
            target if target in known else target.rpartition(".")[0]
            for target in imported(path)
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
