# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bitcode of real programs: built from Debian's sources, run, and compared."""

import json
import os
import re
import signal
import threading
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from mlbridge.envs.machine_code import text_size
from mlbridge.errors import (
    CompilerFailed,
    InvalidArgument,
    Malformed,
    SchemaMismatch,
)
from mlbridge_optimizations import corpus
from mlbridge_optimizations.corpus import csmith, recipes, runs, sources, toolchain
from mlbridge_optimizations.corpus.build import compile_module
from mlbridge_optimizations.corpus.manifest import Module, Program, sha256
from programs import FULL, IS_FULL, ROOT, run_cli, shell_script, status_of, until

NOTHING = Module("", "", 0, 0, "")

pytestmark = pytest.mark.usefixtures("quick_runs")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of one program, bzip2."""
    into = tmp_path_factory.mktemp("corpus")
    fetched = corpus.fetch(into, programs=["bzip2"])
    assert (fetched.failed, fetched.made) == ({}, ["bzip2"])
    return into


def test_bzip2_is_bitcode_file_by_file_and_linked(folder: Path) -> None:
    program = corpus.load(folder).programs["bzip2"]
    assert (program.split, len(program.modules)) == ("training", 8)
    assert sum(m.functions for m in program.modules) == program.linked.functions
    for module in (*program.modules, program.linked):
        assert sha256(folder / module.path) == module.sha256
    assert program.linked.instructions > 10_000


def test_every_function_is_to_be_small(folder: Path) -> None:
    linked = folder / corpus.load(folder).programs["bzip2"].linked.path
    printed, _ = toolchain.run(["llvm-dis-22", linked, "-o", "-"])
    text = printed.decode()
    attributes = dict(re.findall(r"^attributes (#\d+) = (.*)$", text, re.MULTILINE))
    groups = set(re.findall(r"^define .*?(#\d+) ", text, re.MULTILINE))
    assert groups
    for group in groups:
        assert {"minsize", "optsize"} <= set(attributes[group].split())
        assert "optnone" not in attributes[group].split()


def test_clang_makes_of_it_the_same_object(folder: Path, tmp_path: Path) -> None:
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
    assert corpus.load(folder).programs["bzip2"] == before


def test_a_package_that_cannot_be_downloaded_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = recipes.Recipe("mlbridge-no-such-package", ("*.c",))
    monkeypatch.setitem(recipes.RECIPES, "missing", missing)
    fetched = corpus.fetch(tmp_path, programs=["missing"], packages=tmp_path / "p")
    assert list(fetched.failed) == ["missing"]
    assert "status 1" in fetched.failed["missing"]
    assert "mlbridge-no-such-package" in fetched.failed["missing"]
    assert fetched.corpus.programs == {}


def test_a_script_is_ended_with_all_that_it_has_started(tmp_path: Path) -> None:
    hangs = "echo begun\nsleep 600 & echo $! > child\necho the reason >&2\nwait"
    shell_script(tmp_path / "hang", hangs)
    printed: list[str] = []
    command = ["sh", "-c", f"cd {tmp_path} && exec ./hang"]
    said = sources.run_script(command, printed.append, 2.0)
    assert printed == ["begun\n"]
    assert said == "the reason\nno end after 2 s"
    child = int((tmp_path / "child").read_text())
    until(lambda: has_ended(child))
    assert sources.run_script(["true"], printed.append, 60.0) == ""
    assert sources.run_script(["false"], printed.append, 60.0) == "status 1"


def has_ended(process: int) -> bool:
    """Returns whether a process has ended, even if it has not been reaped."""
    status = status_of(process)
    return not status or status[1] in "ZX"


def test_a_program_that_does_not_compile_is_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = recipes.Recipe("bzip2", ("bzip2.c",), flags=("-include", "not-there.h"))
    monkeypatch.setitem(recipes.RECIPES, "broken", broken)
    fetched = corpus.fetch(folder, programs=["broken"])
    assert "not-there.h" in fetched.failed["broken"]
    assert list(fetched.corpus.programs) == ["bzip2"]


def test_the_held_out_programs_are_no_training(tmp_path: Path) -> None:
    held_out = {
        split: {n for n in corpus.RECIPES if corpus.split_of(n) == split}
        for split in recipes.HELD_OUT
    }
    assert held_out == {
        "held-out": {"sqlite3", "gawk", "cadical", "zstd"},
        "held-out-allocation": {"duktape", "fasttext", "wavpack", "zpaq"},
        "held-out-poset-rl": {"cppunit", "lcms2", "libexif", "libonig"},
        "held-out-size": {
            "capnproto",
            "giflib",
            "jansson",
            "libyaml",
            "marisa",
            "mpclib3",
            "muparser",
            "uchardet",
        },
    }
    assert set(runs.RUN_TESTS) == set(corpus.RECIPES)
    with pytest.raises(InvalidArgument, match="no program 'perl'"):
        corpus.fetch(tmp_path, programs=["perl"])


def test_programs_for_code_size_are_no_other_training() -> None:
    def program(name: str) -> Program:
        split = corpus.split_of(name)
        return Program(name, name, "1", split, (), (), "", (), NOTHING, "")

    found = corpus.Corpus(Path(), "clang", {n: program(n) for n in corpus.RECIPES})
    chosen = {each.name for each in found.select(recipes.SIZE)}
    only = {name for name in chosen if corpus.split_of(name) == recipes.SIZE}
    # Two programs also belong to other splits.
    assert chosen - only == {"cadical", "minisat"}
    assert only & {each.name for each in found.select()} == set()
    assert corpus.split_of("cadical") == "held-out"


def test_a_driver_is_compiled_with_its_library() -> None:
    for name, about in recipes.PROGRAMS.items():
        if "drivers" not in about:
            continue
        recipe = recipes.RECIPES[name]
        assert recipe.root == "{made}"
        assert f"{name}.cpp" in recipe.sources
        assert recipe.commands[0] == ("ln", "-s", "{tree}", "tree")
        for driver in recipes.words(about["drivers"]):
            assert recipe.headers[driver] == (recipes.DRIVERS / driver).read_text()


def test_what_a_held_out_program_has_too_is_not_trained_on() -> None:
    def module(source: str) -> Module:
        return Module(f"lz4/{source}.bc", source, 1, 10, "")

    modules = (module("lib/lz4.c"), module("lib/xxhash.c"))
    program = Program(
        "lz4", "lz4", "1", "training", (), (), "", modules, module("linked"), ""
    )
    found = corpus.Corpus(Path("c"), "clang", {"lz4": program})
    assert list(found.modules("training")) == [Path("c/lz4/lib/lz4.c.bc")]
    # The recipes list every shared file.
    for name, shared in recipes.SHARED.items():
        patterns = recipes.RECIPES[name].sources
        assert all(any(fnmatch(s, p) for p in patterns) for s in shared)


def test_programs_by_name_and_by_split(folder: Path) -> None:
    found = corpus.load(folder)
    assert [p.name for p in found.select("held-out", only=["bzip2"])] == ["bzip2"]
    with pytest.raises(InvalidArgument, match="split training but bzip2"):
        found.select("training", without=["bzip2"])
    for unknown in ({"only": ["perl"]}, {"without": ["perl"]}):
        with pytest.raises(InvalidArgument, match="no program 'perl'"):
            found.select(None, **unknown)
    small = list(found.modules("training", most=1000))
    assert 0 < len(small) < len(list(found.modules("training"))) <= 8
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
    (tmp_path / "manifest.json").unlink()
    os.mkfifo(tmp_path / "manifest.json")
    with pytest.raises(InvalidArgument, match="found a FIFO"):
        corpus.load(tmp_path)


@pytest.fixture
def ready(folder: Path) -> corpus.Corpus:
    """The corpus of bzip2, with the outputs that its run test expects."""
    found = corpus.load(folder)
    runs.expected_outputs(found, found.programs["bzip2"])
    return found


def test_bzip2_does_what_it_did(folder: Path) -> None:
    run = corpus.run_stock(corpus.load(folder), "bzip2", "-Oz")
    assert run.passed, run.problem
    assert run.seconds > (0.3 if IS_FULL else 0.02)


def test_expected_outputs_are_those_of_the_own_test(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, other = runs.tests_digest(["bzip2"]), {"test": {"make": "", "steps": "x"}}
    monkeypatch.setattr(runs, "PROGRAMS", {**recipes.PROGRAMS, "zlib": other})
    assert runs.tests_digest(["bzip2"]) == before
    monkeypatch.setattr(runs, "PROGRAMS", {**recipes.PROGRAMS, "bzip2": other})
    assert runs.tests_digest(["bzip2"]) != before


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("exit 3", "expected status 0, found 3"),
        ("exec cat", "not as expected: packed"),
        ("echo hello", "back is not what in was"),
        ("exec sleep 60", "no end after 2 s"),
        ("exec cat /dev/zero", f"expected status 0, found -{signal.SIGXFSZ:d}"),
    ],
)
def test_a_program_that_does_something_else_is_found_out(
    ready: corpus.Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    problem: str,
) -> None:
    monkeypatch.setattr(runs, "SECONDS", 2.0)
    monkeypatch.setattr(runs, "LARGEST", 32 << 20)
    wrong = shell_script(tmp_path / "bzip2", script)
    (run,) = corpus.run_tests(ready, {"bzip2": wrong})
    assert not run.passed
    assert problem in run.problem


def test_ctrl_c_ends_the_program(ready: corpus.Corpus, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    waits = f"echo $$ > {pid}.new\nmv {pid}.new {pid}\nsleep 60"
    program = shell_script(tmp_path / "bzip2", waits)

    def interrupt() -> None:
        until(pid.exists)
        # The program must run, not merely start.
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        corpus.run_tests(ready, {"bzip2": program})
    thread.join()
    process = int(pid.read_text())
    until(lambda: has_ended(process))


def test_csmith_writes_the_same_programs_for_the_same_seed(tmp_path: Path) -> None:
    count = 2 if IS_FULL else 1
    first, second = (corpus.generate(tmp_path / into, count, 1) for into in "ab")
    assert len(first.programs) == count == len(second.programs)
    for name, program in first.programs.items():
        assert program.linked.sha256 == second.programs[name].linked.sha256
        assert program.split == "generated"
        assert corpus.run_stock(first, name, "-O2").passed
    # Generated programs are not for training.
    with pytest.raises(InvalidArgument):
        first.select()


def test_csmith_takes_another_seed_for_one_that_does_not_compile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(name: str, *rest: Any) -> Module:
        if name == "csmith-2":
            rest = (rest[0], (*rest[1], "-include", "not-there.h"), *rest[2:])
        return compile_module(name, *rest)

    monkeypatch.setattr(csmith, "compile_module", failing)
    made = corpus.generate(tmp_path, 2, 1, jobs=1)
    assert "csmith-2" not in made.programs
    assert len(made.programs) == 2


def test_the_command_line(folder: Path, tmp_path: Path) -> None:
    plot = tmp_path / "sizes.png"
    assert "held-out" in run_cli("corpus", "list", "--folder", folder)
    assert "bzip2" in run_cli("corpus", "stats", "--folder", folder, "--plot", plot)
    assert plot.read_bytes().startswith(b"\x89PNG")
    again = run_cli("corpus", "fetch", "--folder", folder, "--program", "bzip2")
    assert "0 programs compiled" in again


@FULL
def test_all_programs(tmp_path: Path) -> None:
    fetched = corpus.fetch(ROOT / "build/corpus")
    assert fetched.failed == {}
    for name in corpus.RECIPES:
        run = corpus.run_stock(fetched.corpus, name, "-O2")
        assert run.passed, run
        assert run.seconds > 0.3, "too short to be measured"


@FULL
@pytest.mark.parametrize(
    "name",
    sorted(
        recipes.SIZE_ONLY
        | recipes.ALSO[recipes.SIZE]
        | recipes.HELD_OUT["held-out-poset-rl"]
        | recipes.HELD_OUT["held-out-size"]
    ),
)
def test_a_run_test_covers_half_of_the_functions(name: str, tmp_path: Path) -> None:
    fetched = corpus.fetch(ROOT / "build/corpus", programs=[name])
    assert fetched.failed == {}
    program = fetched.corpus.programs[name]
    # %m merges the profiles of all steps.
    profile = f"-fprofile-instr-generate={tmp_path}/%m.profraw"
    flags = [profile, "-fcoverage-mapping"]
    toolchain.executable(program, tmp_path / name, "-O1", flags, [profile])
    made = tmp_path / "made"
    made.mkdir()
    test = runs.test_of(program)
    test.make(made)
    runs.run_steps(test, program, tmp_path / name, made)
    merged = tmp_path / "merged"
    profiles = tmp_path.glob("*.profraw")
    toolchain.run(["llvm-profdata-22", "merge", "-o", merged, *profiles])
    profile = f"-instr-profile={merged}"
    export = ["llvm-cov-22", "export", "-summary-only", profile, str(tmp_path / name)]
    (found,) = json.loads(toolchain.run(export)[0])["data"]
    # If there are drivers, count only the library, which is behind the link `tree`.
    is_all = "drivers" not in recipes.PROGRAMS[name]
    functions = [
        file["summary"]["functions"]
        for file in found["files"]
        if is_all or "tree" in Path(file["filename"]).parts
    ]
    covered, count = (sum(f[key] for f in functions) for key in ("covered", "count"))
    assert covered >= count / 2 > 0


COUNT = """
#include <stdio.h>
int count(FILE *f) {
  int n = 0, c, in = 0;
  while ((c = getc(f)) != EOF)
    if (c == ' ' || c == 10) in = 0;
    else if (!in) in = 1, n++;
  printf(GREETING, n);
  return n;
}
"""
MAIN = """
#include <math.h>
#include <stdio.h>
#include "sums.h"
int count(FILE *);
int main(int number, char **arguments) {
  int words = count(stdin);
  printf("%d %.0f", sum(words * BASE), sqrt(words));
  FILE *log = fopen("log", "w");
  fputs(arguments[1], log);
  fclose(log);
  return 3;
}
"""
OWN_FILES = {
    "main.c": MAIN,
    "count.c": COUNT,
    "other.c": "int main(void) { return 0; }\n",
    "include/sums.h": "int sum(int);\n",
    "lib/sum.c": '#include "sums.h"\nint sum(int n) { return n * n; }\n',
    # The linker leaves this member out, because nothing calls it.
    "lib/unused.c": "int missing(void);\nint unused(void) { return missing(); }\n",
    "text": "some words in a file\n",
    "Makefile": r"""
CFLAGS = -O2 -g -Wall -Werror -MMD
count: main.o count.o lib/libsums.a other
	$(CC) main.o count.o -Llib -lsums -lm -o $@
other: other.c
	$(CC) $(CFLAGS) other.c -o $@
main.o: main.c
	$(CC) $(CFLAGS) -Iinclude -DBASE=10 -c main.c
count.o: count.c
	$(CC) $(CFLAGS) '-DGREETING="words: %d\n"' -c count.c
lib/libsums.a:
	cd lib && $(CC) $(CFLAGS) -I../include -c sum.c unused.c
	ar rcs $@ lib/sum.o lib/unused.o
""",
}
OWN_RUN = ("--run", "hello <{tree}/text =3", "--output", "log")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The folder of a user's own program."""
    for name, text in OWN_FILES.items():
        path = tmp_path / "own" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "own"


def test_a_users_program_joins_by_its_build(own: Path, tmp_path: Path) -> None:
    into = ("--source", own, "--folder", tmp_path / "corpus")
    build = ("--build", "make -s CC={cc}", "--binary", "count")
    said = run_cli("corpus", "add", "mine", *into, *build, *OWN_RUN)
    assert "mine: 3 modules" in said
    found = corpus.load(tmp_path / "corpus")
    mine = found.programs["mine"]
    assert {m.source for m in mine.modules} == {"main.c", "count.c", "lib/sum.c"}
    flags = {module.source: module.flags for module in mine.modules}
    assert flags["main.c"] == ("-I", str(own / "include"), "-DBASE=10")
    assert found.select("training") == [mine]
    assert len(list(found.modules())) == 3
    assert "mine" in run_cli("corpus", "run", "--folder", found.folder)
    wrong = shell_script(tmp_path / "wrong", 'echo "words: 5"; exit 3')
    (run,) = corpus.run_tests(found, {"mine": wrong})
    assert run.problem == "not as expected: log, out"


def test_a_users_program_joins_by_its_compile_database(
    own: Path, tmp_path: Path
) -> None:
    words = ["cc", "-Iinclude", "-DBASE=3"]
    words += ['-DGREETING="%d"', "-c", "-o", "x.o"]
    sources = ("main.c", "count.c", "other.c", "lib/sum.c")
    entries = [{"directory": str(own), "arguments": [*words, s]} for s in sources]
    database = own / "compile_commands.json"
    database.write_text(json.dumps(entries))

    def add(**changes: Any) -> Program:
        about = {"libraries": ("-lm",), "steps": ("x =3",), "leave_out": ("other.c",)}
        what = corpus.Own("mine", own, database=database, **{**about, **changes})
        return corpus.add(tmp_path / "corpus", what, jobs=1)

    mine = add(split="held-out")
    assert (mine.split, len(mine.modules)) == ("held-out", 3)
    # All sources have the same flags, so the program has these flags.
    assert mine.flags[-1] == '-DGREETING="%d"'
    assert {module.flags for module in mine.modules} == {()}
    assert corpus.run_stock(corpus.load(tmp_path / "corpus"), "mine", "-Oz").passed
    with pytest.raises(CompilerFailed, match="expected status 0, found 3"):
        add(steps=("x",))
    with pytest.raises(CompilerFailed, match="main"):
        add(leave_out=())
    again = ["cc", "-DBASE=4", "-c", "main.c"]
    entries.append({"directory": str(own), "arguments": again})
    database.write_text(json.dumps(entries))
    with pytest.raises(InvalidArgument, match=r"main.c is compiled twice"):
        add()
    with pytest.raises(InvalidArgument, match="found none"):
        add(leave_out=("*",))
    database.write_text("[1]")
    with pytest.raises(Malformed, match="not a compile database"):
        add()


def test_a_users_program_needs_a_name_and_a_build(tmp_path: Path) -> None:
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("bzip2", {}, "use another name"),
        ("linked", {}, "expected a name"),
        ("a/b", {}, "expected a name"),
        ("mine", {}, "--build"),
        ("mine", {"split": "generated"}, "no split 'generated'"),
        ("mine", {"build": "true"}, "compiled nothing"),
    ]
    for name, more, says in wrong:
        with pytest.raises(InvalidArgument, match=says):
            corpus.add(tmp_path, corpus.Own(name, tmp_path, **more))
