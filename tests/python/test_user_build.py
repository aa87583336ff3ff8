# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of builds whose programs are searched: odd commands, archives and folders."""

import os
import signal
import stat
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mlbridge.cli import app
from mlbridge.errors import InvalidArgument, Malformed
from mlbridge.files import locked
from mlbridge_optimizations.corpus.archive import objects_of
from mlbridge_optimizations.corpus.toolchain import LLVM_AR, LLVM_NM
from mlbridge_optimizations.corpus.user_build import Build, run_build
from mlbridge_optimizations.smallest_code.decisions import Decisions, FileDecisions
from mlbridge_optimizations.smallest_code.linking import rebuild_from_source
from mlbridge_optimizations.smallest_code.searched import SearchedProgram, open_all
from phase_ordering import PLUGIN
from programs import CLI, PATIENCE, Started, running, until

SOURCES = {
    "shared.h": "#pragma once\n#include <stdio.h>\nint upper(int); int lower(int);\n",
    "main.c": '#include "shared.h"\nint main(void) { printf("%d\\n", upper(3)); }\n',
    "upper.c": '#include "shared.h"\nint upper(int x) { return lower(x) + 1; }\n',
    "a/part.c": '#include "shared.h"\nint lower(int x) { return x * 5; }\n',
    "b/part.c": "int other(int x) { return x; }\n",
    "code.S": ".text\n.globl code\ncode: movl $7, %eax\nret\n"
    '.section .note.GNU-stack,"",@progbits\n',
}
RECORDS = Path("records")
COMPILE = " && ".join(
    f"$CC -I. -c {name} -o {name}.o" for name in ("main.c", "upper.c", "a/part.c")
)
OBJECTS = "main.c.o upper.c.o a/part.c.o"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A C project. It is the current folder."""
    for name, text in SOURCES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def built(line: str, folder: Path = RECORDS) -> Build:
    """Builds with commands of the shell."""
    return run_build(["sh", "-ec", line], folder)


def functions(build: Build) -> set[str]:
    """Returns the functions in the bitcode of the only program."""
    module = Path("program.bc").resolve()
    build.link_bitcode(build.program(None), module)
    said = subprocess.check_output([LLVM_NM, "--defined-only", module], text=True)
    return {line.split()[-1] for line in said.splitlines()}


def rebuilt(build: Build) -> str:
    """Compiles and links the program again, and returns its output."""
    to = Path("rebuilt").resolve()
    rebuild_from_source(build, build.program(None), [], to, 1)
    return subprocess.check_output([to], text=True)


@pytest.mark.parametrize(
    "line",
    [
        f"{COMPILE} && $CC {OBJECTS} -o program",
        # Options that only the compiler or only the linker uses.
        "$CC -Werror -Wall -I. -pie -fPIE -rdynamic -s -Wl,-z,now -z relro main.c"
        " upper.c a/part.c -o program",
        f"echo '-I. \"-c\"' > some.rsp && {COMPILE.replace('-I. -c', '@some.rsp')} &&"
        f" echo '{OBJECTS}' > all.rsp && $CC @all.rsp -o program",
        f"$CC -x c-header shared.h -o shared.h.gch && {COMPILE} && $CC -I. -include"
        f" shared.h -c main.c -o main.c.o && $CC {OBJECTS} -o program",
        f"{COMPILE} && $CC -I. -c main.c -o - > main.c.o && $CC -I. -c main.c -o"
        f" /dev/null && $CC -I. -c main.c -o main.c.o && $CC {OBJECTS} -o program",
        f"$CC shared.h -o h.pch && {COMPILE} && $CC -I. -include-pch h.pch -c main.c -o"
        f" main.c.o && $CC {OBJECTS} -o program",
    ],
    ids=["objects", "one command", "response files", "gch", "no files", "pch"],
)
def test_commands_are_recorded(line: str) -> None:
    build = built(line)
    assert {"main", "upper", "lower"} <= functions(build)
    assert rebuilt(build) == "16\n"


@pytest.mark.parametrize("thin", ["", "T"])
def test_archives_keep_their_members(thin: str) -> None:
    """Members may have the same name, and an earlier member may be needed later.

    Members that the build has not compiled stay in the archive.
    """
    Path("upper.c").write_text(
        '#include "shared.h"\nint code(void); int upper(int x) { return lower(x) +'
        " code(); }\n"
    )
    members = "a/part.c.o b/part.c.o upper.c.o code.o"
    build = built(
        f"{COMPILE} && $CC -c b/part.c -o b/part.c.o && $CC -c code.S -o code.o &&"
        f" {LLVM_AR} qcs{thin} libparts.a {members} && $CC main.c.o -L. -lparts -o"
        " program"
    )
    archive = Path("libparts.a")
    assert objects_of(archive) == [Path(name).read_bytes() for name in members.split()]
    found = functions(build)
    assert {"main", "upper", "lower"} <= found
    assert "other" not in found
    assert rebuilt(build) == "22\n"
    archive.write_bytes(archive.read_bytes()[:100])
    with pytest.raises(Malformed, match=r"libparts\.a: expected an archive"):
        build.units_of(build.program(None))


def test_libraries_that_are_named_by_options() -> None:
    """Folders may follow, and a shared library precedes an archive."""
    parts = f"{COMPILE} && ar qcs libparts.a upper.c.o a/part.c.o"
    both = f"{parts} && $CC -shared -fPIC -I. upper.c a/part.c -o libparts.so"
    link = f"$CC -Wl,-rpath,{Path.cwd()} main.c.o -lparts -L. -o program"
    assert "upper" in functions(built(f"{parts} && {link}"))
    build = built(f"{both} && {link}")
    assert functions(build) == {"main"}
    assert rebuilt(build) == "16\n"
    assert "upper" in functions(built(f"{both} && {link} -static"))


def test_generated_sources() -> None:
    """A source may change after its compilation, or disappear."""
    build = built(
        "cp main.c made.c && $CC -I. -c made.c -o 1.o && cp upper.c made.c && $CC -I."
        " -c made.c -o 2.o && mkdir c && cp a/part.c c && $CC -I. -c c/part.c -o 3.o &&"
        " rm -r c && $CC 1.o 2.o 3.o -o program"
    )
    assert rebuilt(build) == "16\n"


def test_missing_files_are_named(project: Path) -> None:
    link = f"{COMPILE} && $CC {OBJECTS} -o program"
    build = built(f"{link} && rm upper.c.o")
    with pytest.raises(InvalidArgument, match=r"upper\.c\.o: the build linked this"):
        build.units_of(build.program(None))
    with pytest.raises(InvalidArgument, match=rf"nothing \(and {project}/program, now"):
        built(f"{link} && rm program").program(None)
    strip = " && ".join(f"objcopy -R .comment {name}" for name in OBJECTS.split())
    build = built(f"{COMPILE} && {strip} && $CC {OBJECTS} -o program")
    with pytest.raises(InvalidArgument, match="has not compiled the objects of"):
        functions(build)


def test_a_folder_with_other_files_stays(project: Path) -> None:
    other = project / "other"
    other.mkdir()
    (other / "data").write_text("precious")
    for folder in (other, project):
        with pytest.raises(InvalidArgument, match="expected an empty or new folder"):
            built("true", folder)
    assert (other / "data").read_text() == "precious"
    assert (project / "main.c").exists()
    # The folder of a build can be used again.
    link = f"{COMPILE} && $CC {OBJECTS} -o program"
    for _ in range(2):
        assert built(link, project / 'odd "$ name').units
    with pytest.raises(InvalidArgument, match="expected a name without ':'"):
        built(link, project / "a:b")


def search(*words: str) -> str:
    """Runs a search that fails, and returns its message."""
    command = ["search", "smallest-code", "--plugin", str(PLUGIN), *words]
    result = CliRunner().invoke(app, [*command, "--", "touch", "built"])
    assert isinstance(result.exception, InvalidArgument), result.output
    assert not Path("built").exists()
    return str(result.exception)


def test_mistakes_are_found_before_the_build(project: Path) -> None:
    assert "there is no folder" in search("--out", "absent/x.txt")
    assert "expected a regular file, found a folder" in search("--out", "a")
    assert "found a device" in search("--out", "/dev/full")
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)
    inside = search("--folder", "x", "--out", "x/y.txt")
    assert inside == "--out x/y.txt is in --folder, which is emptied"
    with locked(project / "x"):
        assert "x is used by another process" in search("--folder", "x")


def test_a_terminated_search_ends_the_build() -> None:
    sleep = f"sleep 1000.{os.getpid()}"
    # Python does not end a child if a signal arrives while it starts the child.
    line = f"sleep 0.5; {sleep}; true"
    words = ["search", "smallest-code", "--plugin", str(PLUGIN), "--", "sh", "-c"]
    options = {"stdin": subprocess.DEVNULL}
    with Started(CLI, *words, line, **options) as process:
        pattern = sleep.replace(" ", "\0")
        (number,) = until(lambda: running(pattern))
        try:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE)
            until(lambda: not running(pattern))
        finally:
            if running(pattern):
                os.kill(number, signal.SIGKILL)
    assert process.returncode == 128 + signal.SIGTERM


def test_a_search_of_another_build_is_refused() -> None:
    """A later build of the program replaces the objects that were searched."""
    build = built(f"{COMPILE} && $CC {OBJECTS} -o program")
    found = Path("found.txt")
    found.touch()
    SearchedProgram(RECORDS.resolve(), build, build.program(None)).save(found)
    assert [one.name for one in open_all([RECORDS])] == ["program"]
    with pytest.raises(InvalidArgument, match="records is named 2 times, expected on"):
        open_all([RECORDS, RECORDS.resolve()])
    Path("program").rename("kept")  # as after `make clean`
    with pytest.raises(InvalidArgument, match=r"program has changed .* search again"):
        SearchedProgram.open(RECORDS)
    Path("kept").rename("program")
    compile_again = ["clang-22", "-O1", "-I.", "-c", "upper.c", "-o", "upper.c.o"]
    subprocess.run(compile_again, check=True)
    with pytest.raises(InvalidArgument, match=r"upper\.c\.o has changed since the"):
        SearchedProgram.open(RECORDS)
    (RECORDS / "records.jsonl").write_text("{}\n")
    with pytest.raises(Malformed, match=r"records\.jsonl: expected records"):
        SearchedProgram.open(RECORDS)
    (RECORDS / "search.json").write_text("{}")
    with pytest.raises(Malformed, match=r"search\.json: expected a search"):
        SearchedProgram.open(RECORDS)


def test_names_of_decisions_may_have_quotes() -> None:
    decisions = Decisions(
        pipelines={"it's": "globaldce"},
        files={
            name: FileDecisions("it's", 4, frozenset({"a'b"}))
            for name in ("it's.c", "a\x0cb.c", os.fsdecode(b"\xff.c"), 'say "x".c')
        },
    )
    path = Path("decisions.txt")
    decisions.save(path)
    assert Decisions.read(path) == decisions
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert Decisions.read(path) == decisions
