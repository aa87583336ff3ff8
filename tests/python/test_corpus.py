# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Real programs as bitcode: made from Debian's sources, run, and compared."""

import json
import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mlbridge import corpus
from mlbridge.cli import app
from mlbridge.corpus import build, recipes, runs, toolchain
from mlbridge.corpus.manifest import sha256
from mlbridge.envs.machine_code import text_size
from mlbridge.errors import InvalidArgument, SchemaMismatch

FULL = pytest.mark.skipif(
    os.environ.get("MLBRIDGE_TEST_FULL") != "1",
    reason="all programs take minutes: MLBRIDGE_TEST_FULL=1",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of bzip2 alone."""
    into = tmp_path_factory.mktemp("corpus")
    fetched = corpus.fetch(into, programs=["bzip2"])
    assert fetched.failed == {}
    assert fetched.made == ["bzip2"]
    return into


def test_bzip2_is_bitcode_file_by_file_and_linked(folder: Path) -> None:
    program = corpus.load(folder).programs["bzip2"]
    assert program.split == "training"
    assert len(program.modules) == 8
    assert sum(m.functions for m in program.modules) == program.linked.functions
    for module in (*program.modules, program.linked):
        assert sha256(folder / module.path) == module.sha256
    assert program.linked.instructions > 10_000


def test_every_function_is_to_be_small(folder: Path) -> None:
    linked = folder / corpus.load(folder).programs["bzip2"].linked.path
    text, _ = toolchain.run(["llvm-dis-22", linked, "-o", "-"])
    groups = set(re.findall(r"^define .*?(#\d+) ", text.decode(), re.MULTILINE))
    assert groups
    for group in groups:
        found = re.search(rf"^attributes {group} = (.*)$", text.decode(), re.MULTILINE)
        assert found is not None
        assert {"minsize", "optsize"} <= set(found[1].split())
        assert "optnone" not in found[1].split()


def test_clang_makes_of_it_what_it_makes_of_the_source(
    folder: Path, tmp_path: Path
) -> None:
    found = corpus.load(folder).programs["bzip2"]
    for module in found.modules:
        mine, stock = tmp_path / "mine.o", tmp_path / "stock.o"
        bitcode = ["-x", "ir", str(folder / module.path)]
        toolchain.run([toolchain.CLANG, "-Oz", "-w", "-c", *bitcode, "-o", mine])
        toolchain.compile_source(found, module, stock, "-Oz")
        sizes = [text_size(path.read_bytes(), path.name) for path in (mine, stock)]
        assert sizes[0] == sizes[1]
        assert bool(sizes[0]) == bool(module.functions)


def test_what_is_there_is_left_alone_and_what_is_not_is_made(folder: Path) -> None:
    assert corpus.fetch(folder, programs=["bzip2"]).made == []
    before = corpus.load(folder).programs["bzip2"]
    (folder / before.modules[3].path).unlink()
    assert corpus.fetch(folder, programs=["bzip2"]).made == ["bzip2"]
    # The same bytes again.
    assert corpus.load(folder).programs["bzip2"] == before


def test_a_package_that_is_not_to_be_had_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = recipes.Recipe("mlbridge-no-such-package", ("*.c",))
    monkeypatch.setitem(recipes.RECIPES, "missing", missing)
    fetched = corpus.fetch(tmp_path, programs=["missing"], packages=tmp_path / "p")
    assert list(fetched.failed) == ["missing"]
    assert fetched.corpus.programs == {}


def test_a_program_that_does_not_compile_is_told_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = recipes.Recipe("bzip2", ("bzip2.c",), flags=("-include", "not-there.h"))
    monkeypatch.setitem(recipes.RECIPES, "broken", broken)
    fetched = corpus.fetch(folder, programs=["broken"])
    assert "not-there.h" in fetched.failed["broken"]
    assert list(fetched.corpus.programs) == ["bzip2"]


def test_the_held_out_programs_are_no_training(tmp_path: Path) -> None:
    splits = {name: corpus.split_of(name) for name in corpus.RECIPES}
    held_out = {name for name, split in splits.items() if split == "held-out"}
    assert held_out == {"sqlite3", "gawk", "cadical", "zstd"}
    with pytest.raises(InvalidArgument, match="no program 'perl'"):
        corpus.fetch(tmp_path, programs=["perl"])


def test_modules_of_a_split(folder: Path) -> None:
    found = corpus.load(folder)
    everything = list(found.modules("training"))
    small = list(found.modules("training", most=1000))
    assert 0 < len(small) < len(everything) <= 8
    with pytest.raises(InvalidArgument, match="no program of the split held-out"):
        list(found.modules("held-out"))
    with pytest.raises(InvalidArgument, match="no split 'test'"):
        list(found.modules("test"))


def test_a_manifest_of_another_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="corpus fetch"):
        corpus.load(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps({"version": 0}))
    with pytest.raises(SchemaMismatch, match="version 1, found 0"):
        corpus.load(tmp_path)


def test_every_program_has_a_run_test() -> None:
    assert set(runs.RUN_TESTS) == set(corpus.RECIPES)


def test_bzip2_does_what_it_did(folder: Path) -> None:
    run = corpus.run_stock(corpus.load(folder), "bzip2", "-Oz")
    assert run.passed, run.problem
    assert run.seconds > 0.3


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("exit 3", "expected status 0, found 3"),
        ("exec cat", "not as expected: packed"),
        ("echo hello", "back is not what in was"),
        ("exec sleep 60", "no end after 2 s"),
    ],
)
def test_a_program_that_does_something_else_is_found_out(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    problem: str,
) -> None:
    found = corpus.load(folder)
    runs.expected_outputs(found, found.programs["bzip2"])
    monkeypatch.setattr(runs, "SECONDS", 2.0)
    wrong = tmp_path / "bzip2"
    wrong.write_text(f"#!/bin/sh\n{script}\n")
    wrong.chmod(0o755)
    (run,) = corpus.run_tests(found, {"bzip2": wrong})
    assert not run.passed
    assert problem in run.problem


def test_csmith_writes_the_same_programs_for_the_same_seed(tmp_path: Path) -> None:
    first = corpus.generate(tmp_path / "a", 2, 1)
    second = corpus.generate(tmp_path / "b", 2, 1)
    digests = [
        {name: p.linked.sha256 for name, p in made.programs.items()}
        for made in (first, second)
    ]
    assert digests[0] == digests[1]
    assert len(digests[0]) == 2
    for name, program in first.programs.items():
        assert program.split == "generated"
        assert corpus.run_stock(first, name, "-O2").passed
    # Nothing to learn from.
    with pytest.raises(InvalidArgument):
        first.select()


def test_the_command_line(folder: Path, tmp_path: Path) -> None:
    invoke = CliRunner().invoke
    listed = invoke(app, ["corpus", "list", "--folder", str(folder)])
    assert listed.exit_code == 0
    assert "held-out" in listed.output
    plot = tmp_path / "sizes.png"
    shown = invoke(
        app, ["corpus", "stats", "--folder", str(folder), "--plot", str(plot)]
    )
    assert shown.exit_code == 0, shown.output
    assert "bzip2" in shown.output
    assert plot.read_bytes().startswith(b"\x89PNG")
    again = invoke(
        app, ["corpus", "fetch", "--folder", str(folder), "--program", "bzip2"]
    )
    assert "0 programs compiled" in again.output


@FULL
def test_all_programs(tmp_path: Path) -> None:
    fetched = corpus.fetch(build.CHECKOUT / "build/corpus")
    assert fetched.failed == {}
    for name in corpus.RECIPES:
        run = corpus.run_stock(fetched.corpus, name, "-O2")
        assert run.passed, run
        assert run.seconds > 0.3, run
