# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IR2Vec vocabularies, and embeddings of real programs held against LLVM's own."""

import json
import os
import shutil
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from mlbridge import ir2vec
from mlbridge.cli._export import _vocabulary
from mlbridge.errors import Malformed, SchemaMismatch
from mlbridge_optimizations.inlining import corpus
from programs import IS_FULL, run_program
from stock_llvm import CLANG, OPT, needs_llvm

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
CHECK = BUILD / "release/tests/ir2vec/ir2vec-check"
PLUGIN = BUILD / "release/lib/MLBridgeLLVM.so"
MLBRIDGE = ROOT / ".venv/bin/mlbridge"
JOBS = os.cpu_count() or 1

# As tests/ir2vec/VocabularyTest.cpp has it.
SMALL = """{
  "Opcodes": {"Add": [1, 2], "Ret": [0.25, -3e1]},
  "Types": {"VoidTy": [2, 4], "IntegerTy": [-2, 0]},
  "Arguments": {"Variable": [10, 0], "ICMP_eq": [5, 5]}
}"""
SMALL_HASH = "sha256:524105d716a09a7ed11b4f23e6a62cc4062aab99367e36241875041ee2d14ce3"

# Of each program, the files with the most in them.
SAMPLE = {"zlib": ("deflate.c",), "lua": ("lgc.c",), "bzip2": ("blocksort.c",)}


def write(folder: Path, text: str, name: str = "small.json") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def of_add(vector: str | None) -> str:
    """A vocabulary that has at most one entry."""
    entry = f'"Add":{vector}' if vector else ""
    return f'{{"Opcodes":{{{entry}}},"Types":{{}},"Arguments":{{}}}}'


def test_hash_is_the_compilers(tmp_path: Path) -> None:
    vocabulary = ir2vec.load(write(tmp_path, SMALL))
    assert (vocabulary.name, vocabulary.dimension) == ("small.json", 2)
    assert vocabulary.hash == SMALL_HASH


def test_hash_is_of_the_meaning(tmp_path: Path) -> None:
    sections = json.loads(SMALL)
    sections["Types"]["ArrayTy"] = [0, -0.0]
    sections["Arguments"] = dict(reversed(sections["Arguments"].items()))
    sections["Arguments"]["Variable"] = [1e1, -0.0]
    same = write(tmp_path, json.dumps({**sections, "more": 1}, indent=1))
    assert ir2vec.load(same).hash == SMALL_HASH
    sections["Opcodes"]["Ret"][0] = 0.25000000000000006
    assert ir2vec.load(write(tmp_path, json.dumps(sections))).hash != SMALL_HASH


def test_saved_is_the_same(tmp_path: Path) -> None:
    vocabulary = ir2vec.load(write(tmp_path, SMALL))
    vocabulary.save(tmp_path / "copy.json")
    assert ir2vec.load(tmp_path / "copy.json").sections == vocabulary.sections


@pytest.mark.parametrize(
    ("text", "error", "part"),
    [
        ("", Malformed, "expected JSON"),
        ("[" * 100_000, Malformed, "expected JSON"),
        ("[]", SchemaMismatch, "expected objects Opcodes"),
        ('{"Opcodes":{},"Types":{}}', SchemaMismatch, "expected objects Opcodes"),
        (of_add(None), SchemaMismatch, "found none"),
        (of_add("[true]"), SchemaMismatch, "Opcodes.Add: expected an array of numbers"),
        (
            of_add("[1,2]").replace('"Types":{', '"Types":{"VoidTy":[1]'),
            *(Malformed, "Types.VoidTy: expected dimension 2, found 1"),
        ),
        (of_add("[]"), Malformed, "Opcodes.Add"),
        (of_add("[1e999]"), Malformed, "Opcodes.Add: expected finite numbers"),
        (of_add(f"[1{'0' * 400}]"), Malformed, "Opcodes.Add: expected finite numbers"),
    ],
)
def test_refuses(tmp_path: Path, text: str, error: type[Exception], part: str) -> None:
    with pytest.raises(error, match=part):
        ir2vec.load(write(tmp_path, text))


def test_converts(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "getelementptr:[1.5, -2],\nintegerTy:[3, 4],\nphi:[5, 6],\n"
        "label:[7, 8],\n\npointer:[9, 10],\npointerTy:[11, 12]\n",
    )
    assert ir2vec.convert(path).sections == {
        "Opcodes": {"GetElementPtr": [1.5, -2.0], "PHI": [5.0, 6.0]},
        "Types": {"IntegerTy": [3.0, 4.0], "PointerTy": [11.0, 12.0]},
        "Arguments": {"Pointer": [9.0, 10.0]},
    }
    with pytest.raises(SchemaMismatch, match=r":1: .*found 'retrun'"):
        ir2vec.convert(write(tmp_path, "retrun:[1]"))
    with pytest.raises(Malformed, match=":2: expected numbers"):
        ir2vec.convert(write(tmp_path, "ret:[1],\nbr:[1"))
    with pytest.raises(Malformed, match=":1: expected numbers"):
        ir2vec.convert(write(tmp_path, "ret:" + "[" * 100_000))


def test_export_notes_the_hash(tmp_path: Path) -> None:
    assert _vocabulary(write(tmp_path, SMALL)) == ("small.json", SMALL_HASH)


@needs_llvm
def test_names_are_llvms(tmp_path: Path) -> None:
    tool = shutil.which("llvm-ir2vec-22")
    if tool is None:
        pytest.skip("llvm-ir2vec-22 is not installed")
    done = subprocess.run([tool, "entities"], check=True, capture_output=True)
    known = {line.split("\t")[0] for line in done.stdout.decode().splitlines()[1:]}
    named = {name for _, name in ir2vec._LLVM_NAMES.values()}
    assert len(named) == 62
    assert named <= known


@pytest.fixture(scope="module")
def published() -> Path:
    """The published vocabulary, made from the package index's file."""
    script = ROOT / "scripts/fetch-ir2vec-vocabulary"
    done = run_program([script], timeout=300)
    assert done.returncode == 0, done.stderr
    vocabulary = BUILD / "ir2vec/ir2vec-300d.json"
    if not vocabulary.exists():
        pytest.skip(f"the published vocabulary cannot be had: {done.stderr[-300:]}")
    return vocabulary


def test_published(published: Path) -> None:
    vocabulary = ir2vec.load(published)
    assert vocabulary.dimension == 300
    assert {name: len(has) for name, has in vocabulary.sections.items()} == {
        "Opcodes": 52,
        "Types": 6,
        "Arguments": 4,
    }
    shown = run_program([MLBRIDGE, "vocabulary", "show", published], check=True).stdout
    assert vocabulary.hash in shown
    assert "ir2vec-300d.json: dimension 300, 52 opcodes" in shown


def modules(folder: Path) -> list[Path]:
    """The files of real programs, as clang gives them to the passes of -Oz."""
    programs = corpus.fetch(BUILD / "workloads")
    commands = []
    for name, program in programs.items():
        for source in program.sources:
            if IS_FULL or source.name in SAMPLE[name]:
                output = folder / f"{name}-{source.stem}.bc"
                commands.append(
                    [
                        *(CLANG, "-Oz", "-Xclang", "-disable-llvm-passes", "-w"),
                        *(*program.flags, "-emit-llvm", "-c", source, "-o", output),
                    ]
                )
    with ThreadPoolExecutor(JOBS) as pool:
        list(pool.map(lambda c: subprocess.run(c, check=True, timeout=300), commands))
    return sorted(folder.glob("*.bc"))


@needs_llvm
def test_real_programs(published: Path, tmp_path: Path) -> None:
    """Every embedding is LLVM's, and stays so after each pass of -Oz."""
    files = modules(tmp_path)
    assert len(files) >= 3

    def check(file: Path) -> str:
        done = run_program([CHECK, published, file], timeout=900)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with ThreadPoolExecutor(JOBS) as pool:
        lines = list(pool.map(check, files))
    figures: Counter[str] = Counter()
    for line in lines:
        for word in line.split()[1:]:
            key, _, value = word.partition("=")
            figures[key] += int(value)
    assert figures["compared"] > 3_000 * len(files)
    assert figures["checks"] > 1_200 * len(files)
    assert figures["passes"] > 60 * len(files)
    # Most of what is asked is known already.
    assert figures["counted"] < figures["asked"] / 10


@needs_llvm
def test_plugin_and_python_agree_on_the_hash(published: Path, tmp_path: Path) -> None:
    source = tmp_path / "empty.ll"
    source.write_text("define void @f() {\n  ret void\n}\n")
    for vocabulary in (published, write(tmp_path, SMALL)):
        done = run_program(
            [
                *(OPT, f"-load-pass-plugin={PLUGIN}", "-disable-output"),
                f"-mlbridge-ir2vec-vocabulary={vocabulary}",
                *("-passes=print<mlbridge-ir2vec>", source),
            ],
            check=True,
        )
        head, _, rest = done.stderr.partition("\n")
        metadata = json.loads(head[head.index("{") :])
        known = ir2vec.load(vocabulary)
        assert metadata == {"name": vocabulary.name, "hash": known.hash}
        # ret void: an opcode, and half a type.
        numbers = rest.splitlines()[0].split("[ ")[1].split(" ]")[0].split()
        expected = np.array(known.sections["Opcodes"]["Ret"]) + 0.5 * np.array(
            known.sections["Types"]["VoidTy"]
        )
        np.testing.assert_allclose(np.array(numbers, float), expected, rtol=1e-6)
