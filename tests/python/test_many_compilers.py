# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""32 real compilers at once, on one model: nobody gets anybody else's decisions."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the demo's packages are not installed")

import inliner_builds
from mlbridge import batched, serving
from mlbridge_optimizations.corpus.sources import SourceProgram
from mlbridge_optimizations.corpus.toolchain import CLANG
from mlbridge_optimizations.inlining.corpus import fetch
from mlbridge_optimizations.inlining.network import InliningNetwork
from mlbridge_optimizations.inlining.policy import Policy
from mlbridge_optimizations.inlining.toolchain import in_spec, model_flags

COMPILERS = 32


@pytest.fixture(scope="module")
def programs() -> dict[str, SourceProgram]:
    return fetch(inliner_builds.WORKLOADS)


@pytest.fixture
def plugin() -> Path:
    return inliner_builds.plugin_or_skip()


def test_32_compilers_on_one_model_and_on_32(
    programs: dict[str, SourceProgram], plugin: Path, tmp_path: Path
) -> None:
    def alone(unit: inliner_builds.Unit) -> tuple[bytes, int]:
        at = tmp_path / unit.source.stem
        policy = Policy(InliningNetwork.load(inliner_builds.MODEL / "inliner.pt"))
        with serving(policy, f"pipe:{at}", on_error="raise") as served:
            made = unit.compile(tmp_path / "alone", plugin, f"pipe:{in_spec(at)}")
        assert made.decisions == served.statistics.questions
        return made.contents, made.decisions

    candidates = [
        inliner_builds.Unit(program, source)
        for program in (programs["lua"], programs["zlib"])
        for source in program.sources
    ][: COMPILERS + 8]
    with ThreadPoolExecutor(2) as pool:
        results = zip(candidates, pool.map(alone, candidates), strict=True)
        # A file without calls asks nobody.
        expected = [(u, made, n) for u, (made, n) in results if n][:COMPILERS]
    assert len(expected) == COMPILERS

    at = tmp_path / "model"
    policy = inliner_builds.CountingPolicy()
    schemes = ("pipe", "shm")

    def together(index: int) -> bytes:
        unit, *_ = expected[index]
        spec = f"{schemes[index % 2]}:{in_spec(at)}"
        return unit.compile(tmp_path / "together", plugin, spec).contents

    with (
        serving(
            batched(policy.together),
            f"pipe:{at}",
            on_error="raise",
            max_batch=COMPILERS,
        ) as served,
        # All of them at the same time, however few cores there are.
        ThreadPoolExecutor(COMPILERS) as pool,
    ):
        objects = list(pool.map(together, range(COMPILERS)))

    assert (served.statistics.sessions, served.statistics.errors) == (COMPILERS, 0)
    assert policy.decisions == served.statistics.questions
    different = [
        unit.source.name
        for made, (unit, wanted, _) in zip(objects, expected, strict=True)
        if made != wanted
    ]
    print(
        f"{policy.decisions} decisions of {COMPILERS} compilers, up to "
        f"{policy.largest_batch} at once, {policy.close} too close to call, "
        f"{len(different)} objects different"
    )
    if policy.close == 0:
        assert different == []
        assert policy.decisions == sum(questions for *_, questions in expected)
    assert len(different) <= policy.close
    assert policy.decisions > 1000


def test_a_killed_compiler_leaves_the_others_alone(
    programs: dict[str, SourceProgram], plugin: Path, tmp_path: Path
) -> None:
    lua = programs["lua"]
    at = tmp_path / "model"
    policy = Policy(InliningNetwork.load(inliner_builds.MODEL / "inliner.pt"))
    source = max(lua.sources, key=lambda path: path.stat().st_size)
    command: list[str | Path] = [
        *(CLANG, "-Oz", "-w", *lua.flags),
        *model_flags(plugin, f"pipe:{in_spec(at)}"),
        *("-c", source, "-o"),
    ]
    with serving(batched(policy.decide_together), f"pipe:{at}", max_batch=8) as served:
        victims = [
            subprocess.Popen([*command, tmp_path / f"victim{i}.o"]) for i in range(3)
        ]
        survivors = [
            subprocess.Popen([*command, tmp_path / f"survivor{i}.o"]) for i in range(3)
        ]
        while served.statistics.sessions < 3:
            assert any(v.poll() is None for v in victims)
        for victim in victims:
            victim.kill()
        assert [survivor.wait(120) for survivor in survivors] == [0, 0, 0]
        for victim in victims:
            victim.wait(10)
    objects = [(tmp_path / f"survivor{i}.o").read_bytes() for i in range(3)]
    assert objects[0] == objects[1] == objects[2]
