# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IR2Vec vocabularies, and embeddings of real programs compared with LLVM's own."""

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
from programs import BUILD, IS_FULL, ROOT, run_program
from stock_llvm import CLANG, OPT, needs_llvm

CHECK = BUILD / "tests/ir2vec/ir2vec-check"
PLUGIN = BUILD / "lib/MLBridgeLLVM.so"
MLBRIDGE = ROOT / ".venv/bin/mlbridge"
JOBS = os.cpu_count() or 1

# Keep equal to the vocabulary in tests/ir2vec/VocabularyTest.cpp.
SMALL = """{
  "Opcodes": {"Add": [1, 2], "Ret": [0.25, -3e1]},
  "Types": {"VoidTy": [2, 4], "IntegerTy": [-2, 0]},
  "Arguments": {"Variable": [10, 0], "ICMP_eq": [5, 5]}
}"""
SMALL_HASH = "sha256:524105d716a09a7ed11b4f23e6a62cc4062aab99367e36241875041ee2d14ce3"

SAMPLE = ("deflate.c", "lgc.c", "blocksort.c")
"""The most varied file of each program."""


def write(folder: Path, text: str, name: str = "small.json") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def of_add(vector: str | None) -> str:
    """Returns a vocabulary with one entry, or without entries."""
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
    done = run_program([script], check=True, timeout=300)
    vocabulary = ROOT / "build/ir2vec/ir2vec-300d.json"
    if not vocabulary.exists():
        pytest.skip(f"cannot fetch the published vocabulary: {done.stderr[-300:]}")
    return vocabulary


def test_published(published: Path) -> None:
    vocabulary = ir2vec.load(published)
    assert vocabulary.dimension == 300
    counts = {name: len(entries) for name, entries in vocabulary.sections.items()}
    assert counts == {"Opcodes": 52, "Types": 6, "Arguments": 4}
    shown = run_program([MLBRIDGE, "vocabulary", "show", published], check=True).stdout
    assert vocabulary.hash in shown
    assert "ir2vec-300d.json: dimension 300, 52 opcodes" in shown


@needs_llvm
def test_real_programs(published: Path, tmp_path: Path) -> None:
    """Embeddings equal LLVM's, before optimisation and after each pass of -Oz."""
    commands: dict[Path, list[str | Path]] = {}
    for name, program in corpus.fetch(ROOT / "build/workloads").items():
        for source in program.sources:
            if IS_FULL or source.name in SAMPLE:
                output = tmp_path / f"{name}-{source.stem}.bc"
                flags = ("-Oz", "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-w")
                files = ("-c", source, "-o", output)
                commands[output] = [CLANG, *flags, *program.flags, *files]
    assert len(commands) >= 3

    def check(file: Path) -> str:
        run_program(commands[file], check=True, timeout=300)
        return run_program([CHECK, published, file], check=True, timeout=900).stdout

    figures: Counter[str] = Counter()
    with ThreadPoolExecutor(JOBS) as pool:
        for line in pool.map(check, commands):
            for word in line.split()[1:]:
                key, _, value = word.partition("=")
                figures[key] += int(value)
    assert figures["compared"] > 3_000 * len(commands)
    assert figures["checks"] > 1_200 * len(commands)
    assert figures["passes"] > 60 * len(commands)
    # Most embeddings come from the cache.
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
        numbers = rest.splitlines()[0].split("[ ")[1].split(" ]")[0].split()
        # The embedding of `ret void` is the vector of the opcode plus half the vector
        # of the type.
        opcode, kind = (
            known.sections["Opcodes"]["Ret"],
            known.sections["Types"]["VoidTy"],
        )
        expected = np.array(opcode) + 0.5 * np.array(kind)
        np.testing.assert_allclose(np.array(numbers, float), expected, rtol=1e-6)
