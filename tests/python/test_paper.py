# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands and tests that docs/reference/paper.md names exist."""

import ast
import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from commands import check_command
from mlbridge_benchmarks.report.parts import NAMES
from programs import ROOT

PAGE = ROOT / "docs/reference/paper.md"
FOLDERS = ("unit", "conformance", "faults", "capi", "tensorflow", "training")
TEST = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\((\w+), (\w+)\)", re.M)
LIT = "build/release/tests/lit"


def rows() -> list[tuple[int, list[str]]]:
    """Returns the cells of each row that is no heading, with its line number."""
    found = []
    for number, line in enumerate(PAGE.read_text().splitlines(), 1):
        if line.startswith("| ") and not re.match(r"\| (---|in the paper) ", line):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            found.append((number, cells))
    return found


ROWS = rows()


@cache
def compiled_tests() -> list[str]:
    """Returns the names of the tests in C++, as CTest lists them."""
    return [
        f"{suite}.{name}"
        for folder in FOLDERS
        for file in sorted((ROOT / "tests" / folder).glob("*.cpp"))
        for suite, name in TEST.findall(file.read_text())
    ]


def check(command: str) -> None:
    """Raises an error unless a command or a test of the page exists."""
    program, *words = shlex.split(command)
    match program:
        case "mlbridge":
            check_command(words)
        case "pytest":
            for word in words:
                file, _, name = word.partition("::")
                tree = ast.parse((ROOT / file).read_text())
                tests = {
                    function.name
                    for function in tree.body
                    if isinstance(function, ast.FunctionDef)
                    and function.name.startswith("test_")
                }
                assert tests, f"no tests in {file}"
                assert not name or name in tests, f"no {name} in {file}"
        case "ctest":
            assert words[:3] == ["--preset", "release", "-R"]
            assert any(re.search(words[3], name) for name in compiled_tests()), command
        case "lit":
            assert words[:2] == [LIT, "--filter"]
            files = (ROOT / "tests/lit").rglob("*.test")
            names = [str(file.relative_to(ROOT / "tests/lit")) for file in files]
            assert any(re.search(words[2], name) for name in names), command
        case _:
            assert program.startswith("scripts/")
            assert (ROOT / program).is_file(), f"no {program}"


def identity(row: tuple[int, list[str]]) -> str:
    return f"line-{row[0]}"


@pytest.mark.parametrize("row", ROWS, ids=identity)
def test_a_row_works_or_says_why_not(row: tuple[int, list[str]]) -> None:
    _, cells = row
    assert len(cells) == 4
    state, _, rest = cells[3].partition(": ")
    assert state in ("works", "not done")
    assert rest
    if state == "works":
        commands = re.findall(r"`([^`]+)`", rest)
        assert commands, "no command"
        assert ", ".join(f"`{command}`" for command in commands) == rest
        for command in commands:
            check(command)


def test_each_table_and_figure_has_a_row() -> None:
    places = {cells[0] for _, cells in ROWS}
    assert {f"Table {n}" for n in range(1, 7)} <= places
    assert {f"Figure 5{letter}" for letter in "abcde"} | {"Figure 6"} <= places
    text = PAGE.read_text()
    parts = set(re.findall(r"bench report --part ([\w-]+)", text))
    # Nothing is measured for Pluto.
    assert parts == set(NAMES) - {"pluto"}


@pytest.mark.parametrize(
    "command",
    [
        "mlbridge bench rtt --runer pipe",
        "mlbridge bench trips",
        "mlbridge bench",
        "mlbridge train phase-ordering --algo",
        "pytest tests/python/test_paper.py::test_nothing",
        "pytest tests/python/test_paper.py::check",
        "pytest tests/python/test_nothing.py::test_nothing",
        "pytest tests/python/commands.py",
        "ctest --preset release -R NoSuchSuite",
        "lit build/release/tests/lit --filter inliner/nothing",
        "scripts/nothing",
    ],
)
def test_what_does_not_exist_is_found(command: str) -> None:
    with pytest.raises((AssertionError, OSError)):
        check(command)


def test_the_page_is_in_the_documentation() -> None:
    name = PAGE.relative_to(ROOT / "docs").with_suffix("")
    assert f"\n{name}\n" in Path(ROOT / "docs/index.md").read_text()
