# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The demo of inlining, without its model: compiling, measuring, comparing."""

import json
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the demo's packages are not installed")

from mlbridge import CompilerFailed
from mlbridge_optimizations.corpus.sources import SourceProgram
from mlbridge_optimizations.corpus.toolchain import CLANG, link, run
from mlbridge_optimizations.inlining import report, toolchain
from mlbridge_optimizations.inlining.agreement import Agreement
from mlbridge_optimizations.inlining.corpus import concatenate_sources
from mlbridge_optimizations.inlining.evaluate import (
    Asked,
    Build,
    UnexpectedStatistics,
    compare_bzip2,
    compare_objects,
    read_statistics,
)
from mlbridge_optimizations.inlining.record import UnitLog, read_table
from programs import shell_script

LINE = (
    "mlbridge-inliner: /src/a b.c: asked=204 inlined=62 deferred=0 failed=0 "
    "compared=204 default_inlined=60 both_inlined=58 agreement=97.06% "
    "first_us=412.0 mean_us=8.3 total_us=2096.9\n"
)

needs_clang = pytest.mark.skipif(not shutil.which(CLANG), reason=f"no {CLANG} here")
needs_bzip2 = pytest.mark.skipif(not shutil.which("bzip2"), reason="no bzip2 here")


def nothing() -> None:
    """Replaces a progress bar's `advance`."""


def test_statistics() -> None:
    found = read_statistics("a.c:1:1: warning: asked=1\n" + LINE)
    expected = Agreement(both_inline=58, only_llvm=2, only_model=4, neither=140)
    assert found.agreement == expected
    assert f"{found.agreement.accuracy:.2%}" == "97.06%"
    assert found.mean_first_us == 412.0
    assert found.mean_us == pytest.approx((2096.9 - 412.0) / 203)
    assert read_statistics("warning: something else\n") == Asked()


def test_statistics_of_several_files() -> None:
    none = "mlbridge-inliner: b.c: asked=0 inlined=0 deferred=0 failed=0 \n"
    found = sum((read_statistics(text) for text in (LINE, none, LINE)), Asked())
    assert found.agreement.decisions == 408
    assert (found.sessions, found.mean_first_us) == (2, 412.0)
    assert found.mean_us == pytest.approx((2096.9 - 412.0) / 203)


@pytest.mark.parametrize(
    ("was", "is_"),
    [("deferred=0", "deferred=1"), ("failed=0", "failed=3"), ("compared=204 ", "")],
)
def test_statistics_of_others_decisions(was: str, is_: str) -> None:
    with pytest.raises(UnexpectedStatistics, match="not all decisions"):
        read_statistics(LINE.replace(was, is_))


def write_log(
    path: Path, rows: list[tuple[int, int, int]], names: str = "ab"
) -> UnitLog:
    """Writes a training log of int64[1] tensors, with the decision last."""
    specs = [
        {"name": name, "type": "int64_t", "port": 0, "shape": [1]}
        for name in (*names, "inlining_decision")
    ]
    data = json.dumps({"features": specs, "advice": specs[-1]}).encode()
    data += b'\n{"context":"default"}\n'
    for index, row in enumerate(rows):
        data += b'{"observation":%d}\n' % index + struct.pack("<3q", *row) + b"\n"
    path.write_bytes(data)
    return UnitLog(path.stem, path)


def test_table_of_logs(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    units = [
        write_log(tmp_path / "one.log", [(1, 2, 0), (3, 4, 1)]),
        UnitLog("empty", tmp_path / "empty.log"),
        UnitLog("absent", tmp_path / "absent.log"),
        write_log(tmp_path / "two.log", [(-5, 1 << 40, 1)]),
    ]
    table = read_table(units)
    assert table.names == ("a", "b")
    assert table.features.tolist() == [[1, 2], [3, 4], [-5, 1 << 40]]
    assert table.decisions.tolist() == [False, True, True]
    assert table.units.tolist() == [0, 0, 3]
    assert table.unit_names == ("one", "empty", "absent", "two")
    assert table.column("b").tolist() == [2, 4, 1 << 40]


def test_table_of_unlike_logs(tmp_path: Path) -> None:
    units = [
        write_log(tmp_path / "one.log", [(1, 2, 0)]),
        write_log(tmp_path / "two.log", [(1, 2, 0)], names="ba"),
    ]
    with pytest.raises(ValueError, match=r"two\.log has other features"):
        read_table(units)
    with pytest.raises(ValueError, match="no decision"):
        read_table([UnitLog("absent", tmp_path / "absent.log")])


def written(folder: Path, texts: dict[str, str]) -> tuple[Path, ...]:
    """Writes these files, and returns their paths."""
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text)
    return tuple(folder / name for name in texts)


def program(folder: Path, **sources: str) -> SourceProgram:
    texts = {f"{name}.c": text for name, text in sources.items()}
    return SourceProgram("it", "1-1", written(folder, texts), ("-DANSWER=42",))


@needs_clang
def test_compiles_and_links(tmp_path: Path) -> None:
    sources = program(
        tmp_path,
        main="int f(void); int main(void) { return f(); }",
        f="int f(void) { return ANSWER + MORE; }",
    )
    compiled = list(
        toolchain.compile_program(
            sources, tmp_path / "out", extra=lambda s: [f"-DMORE={len(s.stem)}"], jobs=2
        )
    )
    assert [unit.source for unit in compiled] == list(sources.sources)
    objects = [unit.object_file for unit in compiled]
    sizes = [toolchain.text_size([unit]) for unit in objects]
    assert min(sizes) > 0
    assert toolchain.text_size(objects) == sum(sizes)
    link(objects, (), tmp_path / "it")
    with pytest.raises(CompilerFailed, match="status 43"):
        run([tmp_path / "it"])


@needs_clang
def test_does_not_compile(tmp_path: Path) -> None:
    broken = program(tmp_path, broken="int main(void) { return undeclared; }")
    with pytest.raises(CompilerFailed, match=r"broken\.c.*\n?.*undeclared"):
        list(toolchain.compile_program(broken, tmp_path))


def test_concatenated_sources(tmp_path: Path) -> None:
    sources = program(tmp_path, a="one\n", b="two\n")
    text = concatenate_sources([sources, sources], tmp_path / "all.txt")
    assert text.read_text() == "one\ntwo\none\ntwo\n"


@needs_bzip2
def test_builds_are_compared(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("real data\n" * 50_000)
    scripts = (
        'exec bzip2 "$@"',
        'case $2 in -9) set -- -c -1;; esac; exec bzip2 "$@"',
        'bzip2 "$@"; case $2 in -d) echo more;; esac',
        "exit 3",
    )
    stock, other, no_trip, broken = (
        Build(shell_script(tmp_path / f"script{index}", script), 1)
        for index, script in enumerate(scripts)
    )
    assert compare_bzip2(stock, stock, [text], nothing) == []
    assert compare_bzip2(stock, other, [text], nothing) == ["text: compressed with -9"]
    assert compare_bzip2(stock, no_trip, [text], nothing) == [
        "text: decompressed after -1",
        "text: decompressed after -9",
    ]
    with pytest.raises(CompilerFailed, match="status 3"):
        compare_bzip2(stock, broken, [text], nothing)


def results(agreement: Agreement, text: int, wrong: list[str]) -> list[bool]:
    """Returns which conditions a build meets. The stock build has 10,000 bytes."""
    asked = Asked(agreement, sessions=1, first_us=100.0, rest_us=990.0)
    build = Build(Path("bzip2"), text, (), "pipe", asked, 5.0, tuple(wrong))
    return list(report.conditions(Build(Path("bzip2"), 10_000), [build]).values())


GOOD = Agreement(both_inline=15, only_llvm=2, only_model=3, neither=80)


def test_conditions_are_checked() -> None:
    assert results(GOOD, 10_100, []) == [True, True, True]
    assert results(replace(GOOD, neither=79), 10_000, []) == [False, True, True]
    assert results(GOOD, 10_101, []) == [True, False, True]
    assert results(GOOD, 9_899, []) == [True, False, True]
    assert results(GOOD, 10_000, ["text: compressed with -1"]) == [True, True, False]
    # Without decisions, the condition of agreement is violated.
    assert results(Agreement(), 10_000, []) == [False, True, True]


def test_object_files_are_compared(tmp_path: Path) -> None:
    def built(way: str, *contents: str) -> Build:
        texts = {f"{index}.o": text for index, text in enumerate(contents)}
        objects = written(tmp_path / way, texts)
        return Build(Path("bzip2"), 10_000, objects, way, Asked(GOOD))

    first = built("pipe", "one", "two")
    same, other = built("onnx", "one", "two"), built("aot", "one", "too")
    assert compare_objects(first, same) == []
    assert compare_objects(first, other) == ["1.o: not as by pipe"]
    compared = [
        replace(build, differences=tuple(compare_objects(first, build)))
        for build in (first, same, other)
    ]
    kept = report.conditions(Build(Path("bzip2"), 10_000), compared)
    assert list(kept.values()) == [True, True, True, True, False]
    assert list(kept)[-1] == "by aot, the same object files: 1.o: not as by pipe"
