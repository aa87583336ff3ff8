# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of `mlbridge search smallest-code`: a build, the search and the replay."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from mlbridge.cli import app
from mlbridge.errors import CompilerFailed, InvalidArgument, Timeout
from mlbridge_optimizations.corpus.user_build import (
    Build,
    run_build,
)
from mlbridge_optimizations.smallest_code.calls import write_decisions
from mlbridge_optimizations.smallest_code.evaluate import compare
from mlbridge_optimizations.smallest_code.flags import model_flags, replay_flags
from mlbridge_optimizations.smallest_code.imitation import train, write
from mlbridge_optimizations.smallest_code.linking import Sizes, rebuild_from_source
from mlbridge_optimizations.smallest_code.rule import (
    ONE_USE,
    TERMS,
    InliningRule,
    RuleTemplate,
    write_rule,
)
from mlbridge_optimizations.smallest_code.search import search
from mlbridge_optimizations.smallest_code.searched import FLIPS, SearchedProgram
from mlbridge_optimizations.smallest_code.settings import CLANG_OZ, ImitationOptions
from phase_ordering import PLUGIN
from programs import CLI, PATIENCE, STACK, Started, running, until

HEADER = f"""{STACK}double area(double Size);
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
library:
\t$(CXX) -shared -fPIC -o one.so shapes.cpp
second: library
\t$(CXX) -shared -fPIC -o two.so shapes.cpp
nothing:
\ttrue
fails:
\t$(CXX) -c absent.cpp
"""


def write_project(folder: Path) -> None:
    """Writes a C++ project with an archive."""
    files = {"shapes.h": HEADER, "shapes.cpp": SHAPES, "main.cpp": MAIN}
    for name, text in {**files, "Makefile": MAKEFILE}.items():
        (folder / name).write_text(text)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A C++ project with an archive. It is the current folder."""
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def built(target: str) -> Build:
    """Builds a target of the project."""
    return run_build(["make", "-s", target], Path("records"))


def output_of(program: Path) -> str:
    """Runs a program and returns its output."""
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def test_a_build_is_searched_and_replayed(project: Path) -> None:
    """With the decisions, stock clang makes a smaller program with the same output."""
    command = ["search", "smallest-code", "--seconds", "3", "--plugin", str(PLUGIN)]
    result = CliRunner().invoke(app, [*command, "--", "make", "-s", "shapes"])
    assert result.exit_code == 0, result.output
    assert "-cgscc-inline-replay=" in result.output
    assert "' inlined into '" in Path("decisions.txt").read_text()
    found, stock = project / "build/smallest-code/shapes", project / "shapes"
    assert output_of(found) == output_of(stock)
    assert Sizes.of(found).text < Sizes.of(stock).text


def test_a_terminated_search_ends_opt(project: Path) -> None:
    words = ["search", "smallest-code", "--plugin", str(PLUGIN), "--"]
    with Started(CLI, *words, "make", "-s", "shapes") as process:
        module = str(project / "build/smallest-code/program.bc")
        (opt,) = until(lambda: running(f"-disable-output\0{module}"))
        try:
            # Python does not end a child if a signal arrives while it starts the child.
            until((project / "build/smallest-code" / FLIPS).exists)
            # Stop opt, so that it cannot end by itself.
            os.kill(opt, signal.SIGSTOP)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE)
            assert not running(module)
        finally:
            if running(module):
                os.kill(opt, signal.SIGKILL)
    assert process.returncode == 128 + signal.SIGTERM


def test_a_silent_opt_is_ended(tmp_path: Path) -> None:
    module = tmp_path / "program.bc"
    os.mkfifo(module)  # Nobody writes to it, so opt waits.
    to = tmp_path / "out.txt"
    with pytest.raises(Timeout, match=r"no output for 1 s from: .*program\.bc"):
        search(module, to, plugin=PLUGIN, seconds=1, quiet_seconds=1)
    assert not running(str(module))


def test_sources_on_the_linkers_command_line(project: Path) -> None:
    """A search can be resumed. The resumed search has no time for more trials."""
    build = built("both")
    link = build.program("other")
    build.link_bitcode(link, project / "program.bc")
    names = [project / name for name in ("first.txt", "again.txt")]
    last = search(project / "program.bc", names[0], plugin=PLUGIN, seconds=1)
    assert last is not None
    assert last.best < last.stock
    again = search(
        project / "program.bc", names[1], plugin=PLUGIN, seconds=0, start=names[0]
    )
    assert again is not None
    assert again.best == last.best
    flags = replay_flags(names[0])
    assert not any("plugin" in flag for flag in flags)
    sizes = rebuild_from_source(build, link, flags, project / "replayed", jobs=2)
    assert sizes.text < Sizes.of(project / "other").text
    assert output_of(project / "replayed") == output_of(project / "other")


def searched(target: str, program: str) -> SearchedProgram:
    """Builds and searches a program of the project."""
    folder = Path(f"{program}-search").resolve()
    build = run_build(["make", "-s", target], folder)
    link = build.program(program)
    build.link_bitcode(link, folder / "program.bc")
    decisions, flips = folder / "found.txt", folder / FLIPS
    search(folder / "program.bc", decisions, plugin=PLUGIN, seconds=1, flips=flips)
    SearchedProgram(folder, build, link).save(decisions)
    return SearchedProgram.open(folder)


def test_searches_teach_a_model(project: Path) -> None:
    """Replayed decisions are logged with gains, and a model learns them."""
    program = searched("both", "other")
    calls = program.record(f"decisions:{program.decisions}", PLUGIN, 2)
    assert calls.differ.any()
    assert np.isfinite(calls.gains).any()
    merged = calls.column("callee_is_merged") != 0
    local = calls.column("callee_is_local") != 0
    assert merged.any()
    assert local.any()
    assert not (merged & local).any()
    assert np.isclose(calls.weights.sum(), len(set(calls.keys)))
    # Only functions of the header are in both objects.
    files = calls.column("callee_files")
    assert files[merged].max() == 2
    assert files[~merged].max() == 1
    # The decisions of a log replay the logged compilation.
    count = write_decisions(calls, project / "logged.txt")
    again = program.record(f"decisions:{project / 'logged.txt'}", PLUGIN, 2)
    assert count == len({calls.keys[row] for row in np.flatnonzero(calls.differ)})
    assert again.keys == calls.keys
    assert (again.decisions == calls.decisions).all()
    # The plug-in decides as the network does.
    network = train([calls], ImitationOptions(epochs=5, min_weight=0.1))
    write(network, project / "model.onnx", calls, seed=1)
    asked = program.record(f"onnx:{project / 'model.onnx'}", PLUGIN, 2)
    with torch.no_grad():
        logits = network(torch.from_numpy(asked.features).float()).numpy()
    assert ((logits > 0) == asked.decisions).all()
    rule = project / "rule.onnx"
    write_rule(ONE_USE, rule, calls)
    flags = model_flags(f"onnx:{rule}", PLUGIN, program.callee_files)
    sizes = compare(program, {CLANG_OZ: [], "rule": flags}, jobs=2)
    assert sizes.sizes[CLANG_OZ] == Sizes.of(program.link.output)
    assert sizes.ratio("rule") != 1


def test_rule(project: Path) -> None:
    """Evolution changes the weights, and the compiler decides as the rule does."""
    validation = searched("shapes", "shapes").folder
    folder = searched("both", "other").folder
    options = ["--generations", "2", "--population", "4", "--plugin", str(PLUGIN)]
    command = ["train", "smallest-code-rule", str(folder), *options, "--every", "1"]
    out = ["--validation-folder", str(validation), "--out", "a.onnx"]
    result = CliRunner().invoke(app, [*command, *out])
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert re.search(r"0\.\d{4} with this rule, 0\.\d{4} with the", said)
    assert Path("a.png").is_file()
    rows = [json.loads(line) for line in Path("a.jsonl").read_text().splitlines()]
    assert [row["number"] for row in rows] == [0, 1]
    assert all(row["best"] <= row["ratio"] and row["validation"] for row in rows)
    weights = np.array(rows[-1]["weights"])
    assert len(weights) == len(TERMS)
    assert (weights != ONE_USE).all()
    program = SearchedProgram.open(folder)
    calls = program.record(f"onnx:{Path('a.onnx').resolve()}", PLUGIN, 2)
    rule = InliningRule(calls.names, weights)
    decisions = rule(torch.from_numpy(calls.features).float())["inlining_decision"]
    # The file of weights is rounded, so decide only where the rule is certain.
    assert (decisions.numpy() == calls.decisions).mean() > 0.95
    template = RuleTemplate(project, calls)
    template.write(weights, project / "again.onnx")
    again = program.record(f"onnx:{project / 'again.onnx'}", PLUGIN, 2)
    assert (again.decisions == calls.decisions).mean() > 0.95


def test_the_best_of_several_policies_is_imitated(project: Path) -> None:
    """The network of an iteration is a policy of the next iteration."""
    folder = searched("both", "other").folder
    before = Path(folder, FLIPS).read_text()
    options = ["--seconds", "1", "--epochs", "40", "--plugin", str(PLUGIN)]
    command = ["train", "smallest-code-imitation", str(folder), *options]
    result = CliRunner().invoke(app, [*command, "--out", "a.onnx"])
    assert result.exit_code == 0, result.output
    first, second = map(json.loads, Path("a.jsonl").read_text().splitlines())
    assert first["policies"] == ["builtin:smallest_code"]
    assert first["searched"] < first["best"] < 1
    assert second["best"] == min(first["best"], first["network"])
    assert second["policies"][0] in (*first["policies"], "network 0")
    # The command leaves the results of the search as they are.
    assert Path(folder, FLIPS).read_text() == before
    program = SearchedProgram.open(folder)
    model = f"onnx:{Path('a.onnx').resolve()}"
    flags = model_flags(model, PLUGIN, program.callee_files)
    sizes = compare(program, {CLANG_OZ: [], "model": flags}, jobs=2)
    networks = first["network"], second["network"]
    assert sizes.ratio("model") == pytest.approx(min(networks))


def test_commands_train_and_evaluate(project: Path) -> None:
    folders = [str(searched("shapes", "shapes").folder)]
    folders.append(str(searched("both", "other").folder))
    common = [*folders, "--epochs", "3", "--plugin", str(PLUGIN)]
    result = CliRunner().invoke(
        app, ["train", "smallest-code", *common, "--out", "a.onnx"]
    )
    assert result.exit_code == 0, result.output
    options = ["--json", "sizes.json"]
    result = CliRunner().invoke(app, ["evaluate", "smallest-code", *common, *options])
    assert result.exit_code == 0, result.output
    assert "geometric mean" in result.output
    sizes = json.loads(Path("sizes.json").read_text())
    assert set(sizes) == {"shapes", "other"}
    assert all(one["search"]["text"] < one[CLANG_OZ]["text"] for one in sizes.values())
    result = CliRunner().invoke(
        app, ["evaluate", "smallest-code", *common, "--model", "a.onnx"]
    )
    assert "--model a.onnx: expected a model spec" in str(result.exception)
    result = CliRunner().invoke(app, ["train", "smallest-code", str(project / "empty")])
    assert "has no search.json: search a program with" in str(result.exception)


def test_a_shared_library_needs_no_name(project: Path) -> None:
    library = built("library").program(None)
    assert (library.output.name, library.is_shared) == ("one.so", True)
    two = built("second")
    with pytest.raises(InvalidArgument, match=r"linked one\.so, two\.so; name a"):
        two.program(None)
    assert two.program("two.so").output.name == "two.so"


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
    build.link_bitcode(link, project / "program.bc")
    with pytest.raises(CompilerFailed, match=r"bad\.txt: line 1: expected"):
        search(
            project / "program.bc",
            project / "out.txt",
            plugin=PLUGIN,
            seconds=1,
            start=project / "bad.txt",
        )
