# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of `mlbridge explain smallest-code`: its figures in the text and the page."""

import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("jinja2", reason="needs scripts/make-venv dev")

from mlbridge.cli import app
from mlbridge.errors import InvalidArgument
from mlbridge_optimizations.corpus.user_build import run_build
from mlbridge_optimizations.smallest_code.explain import (
    Function,
    Pair,
    pair_functions,
    read_map,
    read_remarks,
)
from mlbridge_optimizations.smallest_code.linking import Sizes
from mlbridge_optimizations.smallest_code.searched import SearchedProgram
from phase_ordering import PLUGIN
from programs import STACK
from test_smallest_code_parts import CALLS, DECLARED, REPEATS

MAIN = f"""
#include "stack.h"
extern "C" int printf(const char *, ...);
{DECLARED}
static long helper(const Stack<long> &S) {{ return S.sum() * 2 + S.Count; }}
int main(int Count, char **) {{
  {CALLS}
  Stack<long> Longs;
  for (int I = 0; I < 10; ++I)
    Longs.push(I * Count);
  Longs.push(helper(Longs));
  printf("%ld\\n", helper(Longs));
}}
"""
MAKEFILE = """
program: main.o librepeats.a
\t$(CXX) main.o -L. -lrepeats -o $@
librepeats.a: repeats.o
\tar rcs $@ $^
"""
MORE, LESS = "Calls inlined more often with flags", "Calls inlined more often by clang"
THRESHOLD = "-mllvm -inline-threshold=60 -mllvm -enable-machine-outliner=always"
COMPILED = Path("build/smallest-code-explained/compiled")

Rows = list[list[str]]


class Page(HTMLParser):
    """The tables of a page by title. Each row is a list of cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, Rows] = {}
        self.links: list[str] = []
        self._tag = ""
        self._rows: Rows = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [f"{key}={value}" for key, value in attrs if key in _LINKS]
        self._tag = tag
        if tag == "tr":
            self._rows.append([])

    def handle_data(self, data: str) -> None:
        if self._tag == "h2" and data.strip():
            self._rows = self.tables.setdefault(data, [])
        elif self._tag in ("td", "button") and data.strip():
            self._rows[-1].append(data.strip())

    def rows(self, title: str) -> Rows:
        """Returns the rows, without the header, of a table.

        The table's title begins with `title`.
        """
        return next(t[1:] for name, t in self.tables.items() if name.startswith(title))


_LINKS = ("src", "href")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A C++ project with two files. It is the current folder."""
    files = {"stack.h": STACK, "main.cpp": MAIN, "repeats.cpp": REPEATS}
    for name, text in {**files, "Makefile": MAKEFILE}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def explain(*words: str) -> tuple[str, Page]:
    """Runs the command, and returns its output and page."""
    command = ["explain", "smallest-code", "--plugin", str(PLUGIN), *words]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    return result.output, Page(Path("explained.html").read_text())


def symbols(program: Path) -> dict[str, int]:
    """Returns the sizes of a program's functions by name in C++."""
    said = subprocess.check_output(
        ["llvm-nm-22", "--print-size", "--demangle", program], text=True
    )
    found = re.findall(r"^\S+ (\w+) [TtWw] (.*)$", said, re.MULTILINE)
    return {name: int(size, 16) for size, name in found if int(size, 16)}


def test_flags_are_compared(project: Path) -> None:
    """The page has the sizes of llvm-nm, and the calls and outlined functions."""
    said, page = explain("--flags", THRESHOLD, "--", "make", "-s", "program")
    assert page.links == []
    programs = [COMPILED / way / "program" for way in ("stock", "flags")]
    sizes = [Sizes.of(program) for program in programs]
    assert sizes[0] == Sizes.of(project / "program")
    texts = [str(size.text) for size in sizes]
    assert page.rows("Program")[0][:3] == [".text", *texts]
    assert re.search(rf"\.text +│ +{texts[0]} +│ +{texts[1]} ", said)
    functions = {row[0]: row[2:4] for row in page.rows("Functions")}
    before, after = map(symbols, programs)
    assert "OUTLINED_FUNCTION_0" in after
    assert functions == {
        name: [str(one.get(name, 0)) for one in (before, after)]
        for name in {**before, **after}
    }
    files = {row[0]: row[1:4] for row in page.rows("Files")}
    for file, names in {
        "main.cpp": {"main", "helper(Stack<long> const&)", "Stack<long>::sum() const"},
        "repeats.cpp": {name for name in after if "repeat" in name or "say" in name}
        | {"OUTLINED_FUNCTION_0"},
    }.items():
        for column, one in enumerate((before, after)):
            total = sum(size for name, size in one.items() if name in names)
            assert files[file][column] == str(total)
    # Padding between files belongs to no file.
    assert 0 <= sizes[1].text - sum(int(row[1]) for row in files.values()) < 64
    calls = {(row[0], row[1]): row[3:6] for row in page.rows(MORE)}
    call = calls["Stack<long>::sum() const", "helper(Stack<long> const&)"]
    assert call[:2] == ["0", "1"]
    assert "too costly to inline (cost=" in call[2]
    assert not any(title.startswith(LESS) for title in page.tables)
    outlined = page.rows("Outlined functions")
    assert [row[:3] for row in outlined] == [
        ["with flags", "OUTLINED_FUNCTION_0", "repeats.cpp"]
    ]
    assert outlined[0][3] == str(after["OUTLINED_FUNCTION_0"])
    assert outlined[0][5].count("repeats.cpp:") == 3


def test_decisions_are_explained(project: Path) -> None:
    """The page shows each file's pipeline from the decisions of a search."""
    folder = project / "searched"
    build = run_build(["make", "-s", "program"], folder)
    decisions = project / "decisions.txt"
    decisions.write_text(
        "pipeline 'twice' is default<Oz>,default<Oz>\n"
        "file 'main.cpp' has pipeline 'twice'\n"
        "file 'repeats.cpp' outlines sequences of 1\n"
        "x: '_Z9repeatTwoPVi' will not be inlined into 'main' at callsite main:1:26;\n"
    )
    SearchedProgram(folder, build, build.program("program")).save(decisions)
    _, page = explain("--search-folder", str(folder), "--rows", "1")
    pipelines = {row[0]: row[4] for row in page.rows("Files")}
    assert pipelines["main.cpp"] == "twice"
    assert pipelines["repeats.cpp"] == "stock"
    assert page.rows("Pipelines") == [["twice", "default<Oz>,default<Oz>"]]
    assert page.rows("Outlined functions")[0][0] == "with flags"
    # This model tries two pipelines, and the record has only the chosen one.
    model = f"-fpass-plugin={PLUGIN} -mllvm -mlbridge-phase-ordering=builtin:"
    flags = f"{model}phase_ordering_oz"
    _, page = explain("--search-folder", str(folder), "--flags", flags)
    pipelines = {row[0]: row[4] for row in page.rows("Files")}
    assert re.fullmatch(r"(\d): \1", pipelines["main.cpp"])
    assert not any(title.startswith((MORE, LESS)) for title in page.tables)


def test_mistakes(project: Path) -> None:
    def fails(*words: str) -> str:
        result = CliRunner().invoke(app, ["explain", "smallest-code", *words])
        assert isinstance(result.exception, InvalidArgument)
        return str(result.exception)

    assert fails() == "expected one of -- COMMAND, --search-folder and --corpus-program"
    flags = fails("--", "make", "-s", "program")
    assert flags == "expected --decisions or --flags"
    quoted = fails("--flags", "-D 'x", "--", "make", "-s", "program")
    assert quoted == "--flags -D 'x: No closing quotation"


def test_names_are_read(tmp_path: Path) -> None:
    """Reads quoted names, places on two lines, and members of archives."""
    record = tmp_path / "a.yaml"
    record.write_text(
        "--- !Missed\nPass:            inline\nName:            TooCostly\n"
        "DebugLoc:        { File: 'a b''s.h', \n     Line: 3, Column: 7 }\n"
        'Function:        "f\\x241"\n'
        "Args:\n  - Callee:          g\n"
        "    DebugLoc:        { File: c.h, Line: 1, Column: 0 }\n"
        "  - String:          ' because '\n  - Reason:          'too ''big'''\n...\n"
    )
    (found,) = read_remarks(record)
    assert (found.function, found.place) == ("f$1", "a b's.h:3:7")
    assert found.values == (
        ("Callee", "g"),
        ("String", " because "),
        ("Reason", "too 'big'"),
    )
    sizes, functions = read_map(
        "     VMA      LMA     Size Align Out     In      Symbol\n"
        "    1700     1700       30    16 .text\n"
        "    1700     1700       20    16         /t (1)/lib.a(b.o):(.text.f)\n"
        "    1700     1700       10     1                 f2\n"
        "    1700     1700       10     1                 f1\n"
        "    1720     1720       10     1         /t/a.o:(.text.g)\n"
        "    1720     1720        0     1                 label\n"
        "    1800     1800       10     1 .data\n"
        "    1800     1800       10     1         /t/a.o:(.data)\n"
    )
    assert sizes == {"b.o": 0x20, "a.o": 0x10}
    assert functions == {("b.o", "f1"): 0x10}


def test_a_merged_function_is_one_function() -> None:
    """A static function in two files counts as two functions."""
    before = {Function("a", "merged"): 4, Function("a", "s"): 1, Function("b", "s"): 2}
    after = {Function("b", "merged"): 5, Function("b", "s"): 3}
    assert pair_functions(before, after) == [
        Pair("a → b", "merged", 4, 5),
        Pair("a", "s", 1, 0),
        Pair("b", "s", 2, 3),
    ]
