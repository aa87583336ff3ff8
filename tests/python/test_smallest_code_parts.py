# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of decisions about source files, and of the bytes that each part saves."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mlbridge.cli import app
from mlbridge.errors import InvalidArgument, Malformed
from mlbridge_optimizations.corpus.manifest import Module, Program
from mlbridge_optimizations.smallest_code import parts
from mlbridge_optimizations.smallest_code.decisions import (
    OTHERS,
    STOCK,
    Decisions,
    FileDecisions,
)
from mlbridge_optimizations.smallest_code.flags import replay_flags
from mlbridge_optimizations.smallest_code.linking import (
    BuiltProgram,
    Sizes,
    rebuild,
    write_callee_files,
)
from mlbridge_optimizations.smallest_code.pipelines import read_pipelines
from mlbridge_optimizations.smallest_code.searched import CALLEE_FILES, SearchedProgram
from mlbridge_optimizations.smallest_code.settings import CLANG_OZ, THRESHOLDS
from phase_ordering import PLUGIN
from test_smallest_code import HEADER, MAIN, SHAPES, output_of, write_project

# Repeats code that LLVM's outliner finds.
REPEATS = """
extern "C" int printf(const char *, ...);
__attribute__((noinline)) static void say(const char *Word) { printf("%s ", Word); }
#define STORE P[0] = 11; P[1] = 12; P[2] = 13; P[3] = 14; P[4] = 15;
void repeatOne(volatile int *P) { say("a"); STORE say("b"); }
void repeatTwo(volatile int *P) { say("c"); STORE say("d"); say("e"); }
void repeatThree(volatile int *P) { say("f"); say("g"); STORE say("h"); }
"""
DECLARED = "".join(
    f"void {name}(volatile int *);\n"
    for name in ("repeatOne", "repeatTwo", "repeatThree")
)
CALLS = "int P[5]; repeatOne(P); repeatTwo(P); repeatThree(P);\n"
SPACE = {
    "actions": {
        "name": "small",
        "description": "two pipelines",
        "prologue": "always-inline",
        "actions": [
            {"name": "nothing", "pipeline": "globaldce"},
            {"name": "twice", "pipeline": "default<Oz>,default<Oz>"},
        ],
    },
    "sequences": [[0], [1]],
    "ratios": [1, 1],
    "length": 1,
}


def test_decisions_survive_a_file(tmp_path: Path) -> None:
    decisions = Decisions(
        ("x: 'f' inlined into 'g' at callsite g:3:7;",),
        {"short": "globaldce", "unused": "dce"},
        {OTHERS: FileDecisions("short")},
    )
    decisions = decisions.with_file("a.c", FileDecisions(STOCK, 4, frozenset("fg")))
    decisions = decisions.with_file("b.c", FileDecisions("short", 1))
    path = tmp_path / "decisions.txt"
    decisions.save(path)
    found = Decisions.read(path)
    assert found.files == decisions.files
    assert found.inlining == decisions.inlining
    assert found.pipelines == {"short": "globaldce"}
    assert found.of("other.c") == FileDecisions("short")
    assert found.needs_plugin
    assert not Decisions(decisions.inlining).needs_plugin
    path.write_text("\nfile 'a.c' grows\n")
    with pytest.raises(Malformed, match=r"decisions\.txt: line 2: unexpected: file"):
        Decisions.read(path)


def small_program(folder: Path) -> Program:
    """Writes a program whose code each part makes smaller."""
    root = folder / "source"
    root.mkdir()
    main = MAIN.replace("int main", f"{DECLARED}int main").replace(
        "  Stack<long> Longs;", f"{CALLS}  Stack<long> Longs;"
    )
    files = {"shapes.h": HEADER, "shapes.cpp": SHAPES, "main.cpp": main}
    for name, text in {**files, "repeats.cpp": REPEATS}.items():
        (root / name).write_text(text)
    modules = tuple(
        Module("", name, 1, 1, "") for name in ("main.cpp", "shapes.cpp", "repeats.cpp")
    )
    return Program(
        *("shapes", "test", "1", "training", ("",) * 5, (), str(root)),
        *(modules, modules[0], "key"),
    )


def test_c_sources_of_a_cpp_program(tmp_path: Path) -> None:
    """They are not compiled as C++, which would reject them."""
    program = small_program(tmp_path)
    text = "int *none(void) { return (void *)0; }\n"
    Path(program.root, "none.c").write_text(text)
    modules = (*program.modules, replace(program.modules[0], source="none.c"))
    program = replace(program, modules=modules)
    built = BuiltProgram.of_corpus(program, tmp_path / "parts")
    assert {unit.command[-1] for unit in built.build.units} == {
        module.source for module in modules
    }
    assert output_of(built.link.output)


def test_the_parts_of_a_program(tmp_path: Path) -> None:
    """Each part of a search makes a program smaller. Its output stays the same.

    A repeated search continues from the result.
    """
    core, space = tmp_path / "core.json", tmp_path / "space.json"
    core.write_text(json.dumps(SPACE))
    pipelines = read_pipelines(core, space)
    assert pipelines["nothing"] == "always-inline,globaldce"
    program = small_program(tmp_path)
    built = BuiltProgram.of_corpus(program, tmp_path / "parts")

    def search_all() -> dict[str, int]:
        found = parts.search_parts(
            built, pipelines, space, plugin=PLUGIN, seconds=6, jobs=2
        )
        return {row: size.text for row, size in found.sizes.items() if size}

    sizes = search_all()
    stock = Sizes.of(built.link.output).text
    assert sizes[parts.ALL] < sizes[parts.ORDER] <= sizes[parts.INLINING] < stock
    assert sizes[parts.ALL] == Sizes.of(built.folder / "linked").text
    outputs = {
        subprocess.check_output([path])
        for path in (built.link.output, built.folder / "linked")
    }
    assert len(outputs) == 1
    assert "outlines sequences of" in (built.folder / "stage3.txt").read_text()
    built = BuiltProgram.of_corpus(program, tmp_path / "parts")
    assert search_all() == sizes


def test_rows_of_models_without_a_part(tmp_path: Path) -> None:
    """The random order is never larger than LLVM's order."""
    built = BuiltProgram.of_corpus(small_program(tmp_path), tmp_path / "parts")
    write_callee_files(built.link, built.folder / CALLEE_FILES)
    parts.write_random_order(built)
    flags = parts.stock_rows(PLUGIN, built.folder)
    to = tmp_path / "linked"

    def text(row: str) -> int:
        size = rebuild(built.build, built.link, flags[row], to, jobs=2).text
        assert output_of(to) == output_of(built.link.output)
        return size

    models, stock_order = text(parts.MODELS), text(parts.WITHOUT_ORDER)
    assert text(parts.WITHOUT_INLINING) > models != stock_order
    assert text(parts.WITHOUT_OUTLINER) >= models
    assert text(parts.RANDOM_ORDER) <= stock_order


def test_a_resumed_search_keeps_decisions_about_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clang and the plug-in make the same program from the sources and the bitcode."""
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    lines = (
        "pipeline 'short' is always-inline,globaldce\n"
        "file 'main.cpp' has pipeline 'short'\n"
        "file 'main.cpp' outlines sequences of 1\n"
    )
    Path("decisions.txt").write_text(lines)
    command = ["search", "smallest-code", "--seconds", "0", "--plugin", str(PLUGIN)]
    command += ["--resume", "--", "make", "-s", "shapes"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert Path("decisions.txt").read_text() == lines
    assert "-mlbridge-size=decisions:" in result.output
    program = SearchedProgram.open(Path("build/smallest-code"))
    found = program.folder / program.name
    assert output_of(found) == output_of(program.link.output)
    flags = replay_flags(program.decisions, PLUGIN)
    sizes = rebuild(program.build, program.link, flags, tmp_path / "again", jobs=2)
    assert sizes == Sizes.of(found)
    assert sizes != Sizes.of(program.link.output)


def test_pipelines_of_an_action_space(tmp_path: Path) -> None:
    (tmp_path / "space.json").write_text(json.dumps(SPACE["actions"]))
    made = tmp_path / "made.json"
    assert read_pipelines(tmp_path / "space.json", made)["twice"] == (
        "always-inline,default<Oz>,default<Oz>"
    )
    assert json.loads(made.read_text()) == SPACE["actions"]
    actions = [{"name": "stock", "pipeline": "globaldce"}]
    stock = {"name": "one", "prologue": "", "actions": actions}
    (tmp_path / "stock.json").write_text(json.dumps(stock))
    with pytest.raises(InvalidArgument, match=r"other names than 'stock'"):
        read_pipelines(tmp_path / "stock.json", made)
    (tmp_path / "broken.json").write_text('{"actions": {}}')
    with pytest.raises(Malformed, match=r"broken\.json: expected"):
        read_pipelines(tmp_path / "broken.json", made)


def test_the_best_threshold_is_one_for_all_programs() -> None:
    def sizes(low: int, high: int) -> dict[str, Sizes | None]:
        rows = {f"threshold {n}": Sizes(100, 0) for n in THRESHOLDS}
        rows |= {
            "threshold 0": Sizes(low, 0),
            "threshold 25": Sizes(high, 0),
        }
        return {CLANG_OZ: Sizes(100, 0), **rows}

    assert parts.best_threshold([sizes(90, 80), sizes(90, 99)]) == "threshold 25"
    assert parts.best_threshold([sizes(90, 80), {}]) is None
