# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of `mlbridge search size`: a user's build, the search and the replay."""

import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mlbridge.cli import app
from mlbridge.errors import CompilerFailed, InvalidArgument
from mlbridge_optimizations.smallest_code.build import Build, link_units, run_build
from mlbridge_optimizations.smallest_code.search import Sizes, replay, search
from phase_ordering import PLUGIN

HEADER = """
template <typename T> struct Stack {
  T Items[16];
  int Count = 0;
  void push(T Item) { if (Count < 16) Items[Count++] = Item; }
  T sum() const { T S{}; for (int I = 0; I < Count; ++I) S += Items[I]; return S; }
};
double area(double Size);
"""
SHAPES = """
#include "shapes.h"
static double helper(double X) { return X * X * 3; }
double area(double Size) {
  Stack<double> Parts;
  Parts.push(helper(Size));
  Parts.push(helper(Size + 1));
  return Parts.sum();
}
"""
MAIN = """
#include "shapes.h"
extern "C" int printf(const char *, ...);
static long helper(const Stack<long> &S) { return S.sum() * 2 + S.Count; }
int main(int Count, char **) {
  Stack<long> Longs;
  Stack<double> Areas;
  for (int I = 0; I < 10; ++I) {
    Longs.push(I * Count);
    Areas.push(area(I));
  }
  Longs.push(helper(Longs));
  printf("%ld %f\\n", helper(Longs), Areas.sum());
}
"""
MAKEFILE = """
CXXFLAGS = -O2 -MMD
shapes: main.o libshapes.a
\t$(CXX) main.o -L. -lshapes -o $@
libshapes.a: shapes.o
\tar rcs $@ $^
both: shapes
\t$(CXX) -o other main.cpp shapes.cpp
nothing:
\ttrue
fails:
\t$(CXX) -c absent.cpp
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A C++ project with an archive. It is the current folder."""
    files = {"shapes.h": HEADER, "shapes.cpp": SHAPES, "main.cpp": MAIN}
    for name, text in {**files, "Makefile": MAKEFILE}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def built(target: str) -> Build:
    """Builds a target of the project."""
    return run_build(["make", "-s", target], Path("records"))


def output_of(program: Path) -> str:
    """Runs a program and returns its output."""
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def test_a_build_is_searched_and_replayed(project: Path) -> None:
    """Stock clang makes a smaller program with the decisions, which prints the same."""
    command = ["search", "size", "--seconds", "3", "--plugin", str(PLUGIN)]
    result = CliRunner().invoke(app, [*command, "--", "make", "-s", "shapes"])
    assert result.exit_code == 0, result.output
    assert "-cgscc-inline-replay=" in result.output
    assert "' inlined into '" in Path("decisions.txt").read_text()
    found, stock = project / "build/size/shapes", project / "shapes"
    assert output_of(found) == output_of(stock)
    assert Sizes.of(found).text < Sizes.of(stock).text


def test_sources_on_the_linkers_command_line(project: Path) -> None:
    """A search can be resumed, here without time for more."""
    build = built("both")
    link = build.program("other")
    link_units(build.units_of(link), project / "program.bc")
    names = [project / name for name in ("first.txt", "again.txt")]
    last = search(project / "program.bc", names[0], plugin=PLUGIN, seconds=1)
    assert last is not None
    assert last.best < last.stock
    again = search(
        project / "program.bc", names[1], plugin=PLUGIN, seconds=0, start=names[0]
    )
    assert again is not None
    assert again.best == last.best
    sizes = replay(build, link, names[0], project / "replayed", jobs=2)
    assert sizes.text < Sizes.of(project / "other").text
    assert output_of(project / "replayed") == output_of(project / "other")


def test_mistakes_are_explained(project: Path) -> None:
    with pytest.raises(InvalidArgument, match="compiled nothing: start it from"):
        built("nothing")
    with pytest.raises(CompilerFailed, match="status 2 from: make -s fails"):
        built("fails")
    build = built("both")
    with pytest.raises(InvalidArgument, match="linked other, shapes; name a program"):
        build.program(None)
    with pytest.raises(InvalidArgument, match="expected one program absent"):
        build.program("absent")
    (project / "bad.txt").write_text("nonsense\n")
    link = build.program("shapes")
    link_units(build.units_of(link), project / "program.bc")
    with pytest.raises(CompilerFailed, match=r"bad\.txt: line 1: expected"):
        search(
            project / "program.bc",
            project / "out.txt",
            plugin=PLUGIN,
            seconds=1,
            start=project / "bad.txt",
        )
