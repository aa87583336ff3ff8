# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All of Lua, compiled by stock clang, opt and llc under policies in Python."""

import os
import random
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import mlbridge
from mlbridge import compile_with_policy
from mlbridge_optimizations.corpus.sources import SourceProgram, unpack
from programs import FULL, IS_FULL
from stock_llvm import CLANG, LLC, OPT, leaves_nothing, needs_llvm

__all__ = ["leaves_nothing"]

pytestmark = [needs_llvm, pytest.mark.usefixtures("leaves_nothing")]

BUILD = Path(__file__).resolve().parents[2] / "build"
PLUGIN = BUILD / "release/tests/interactive/LiveRangeSizePriority.so"
JOBS = os.cpu_count() or 1

# A bit of everything; what it prints depends on nothing but Lua.
SCRIPT = r"""
local function fibonacci(n)
  if n < 2 then return n end
  return fibonacci(n - 1) + fibonacci(n - 2)
end
print(fibonacci(20), 7 // 2, -7 % 3, 2 ^ 0.5, 1 << 40, 0x7fffffffffffffff + 1)
local words = {}
for word in ("the quick brown fox jumps over the lazy dog"):gmatch("%a+") do
  words[#words + 1] = word:gsub("^%l", string.upper)
end
table.sort(words, function(a, b) return a:reverse() < b:reverse() end)
print(table.concat(words, ","), ("%5.2f|%-8s|%q"):format(math.pi, "x", "a\nb"))
local co = coroutine.wrap(function(a)
  while true do a = coroutine.yield(a * 2) end
end)
print(co(1), co(2), co(3))
local object = setmetatable({}, {
  __index = function(_, key) return key .. "!" end,
  __call = function(_, ...) return select("#", ...) end,
  __close = function() print("closed") end,
})
do local guard <close> = object; print(object.hello, object(1, nil, 3)) end
print(pcall(error, { code = 3 }), select(2, pcall(function() local x; return x.y end)))
local sum = 0
for i = 1, 20000 do
  local t = { i, tostring(i), { i } }
  sum = (sum * 31 + #t[2] + t[3][1] ~ i) & 0xffffffff
end
collectgarbage()
print(sum, string.pack("<i4d", 7, 1.5):byte(1, -1), utf8.len("ä☃"))
print(load("local a <const> = 5; return a * 2 .. ''")(), #string.dump(fibonacci) > 0)
"""


@pytest.fixture(scope="module")
def lua() -> SourceProgram:
    return unpack(["lua"], BUILD / "workloads")["lua"]


def some(lua: SourceProgram) -> Sequence[Path]:
    """The files that are compiled by a policy: few where time counts."""
    return lua.sources if IS_FULL else lua.sources[::5]


@dataclass(frozen=True)
class Stock:
    """Lua as clang alone makes it: the objects, and what the script prints."""

    objects: dict[str, bytes]
    output: str


@pytest.fixture(scope="module")
def by_clang(lua: SourceProgram, tmp_path_factory: pytest.TempPathFactory) -> Stock:
    made = compile_all(lua.sources, lambda source: stock(clang(lua, source, "-O0")))
    return Stock(made, run_script(made, tmp_path_factory.mktemp("stock")))


def clang(lua: SourceProgram, source: Path, *flags: str) -> list[str]:
    return [CLANG, *flags, "-w", *lua.flags, "-c", str(source), "-o", "-"]


def stock(command: list[str], text: bytes | None = None) -> bytes:
    done = subprocess.run(
        command, input=text, capture_output=True, check=True, timeout=300
    )
    return done.stdout


def compile_all(sources: Sequence[Path], compile_one: Any) -> dict[str, Any]:
    """What comes of each file, by its name."""
    with ThreadPoolExecutor(JOBS) as pool:
        made = pool.map(compile_one, sources)
        return dict(zip((path.stem for path in sources), made, strict=True))


def run_script(objects: dict[str, bytes], folder: Path) -> str:
    """Links Lua, and runs the script in it."""
    paths = []
    for name, data in objects.items():
        paths.append(folder / f"{name}.o")
        paths[-1].write_bytes(data)
    program = folder / "lua"
    stock([CLANG, *map(str, paths), "-Wl,-E", "-lm", "-ldl", "-o", str(program)])
    return stock([str(program), "-"], SCRIPT.encode()).decode()


@pytest.mark.parametrize("tool", [CLANG, OPT])
def test_llvms_inlining_is_stock(lua: SourceProgram, tool: str, tmp_path: Path) -> None:
    """Repeating `inlining_default` makes the same object, byte for byte."""

    def compile_one(source: Path) -> tuple[int, bytes, bytes]:
        if tool == CLANG:
            command = clang(lua, source, "-Oz")
        else:
            module = tmp_path / f"{source.stem}.bc"
            flags = ("-Oz", "-Xclang", "-disable-llvm-passes", "-emit-llvm")
            module.write_bytes(stock(clang(lua, source, *flags)))
            command = [OPT, "-passes=default<Oz>", str(module), "-o", "-"]
        result = compile_with_policy(
            command, inliner=lambda features: features["inlining_default"]
        )
        return result.decisions, result.stdout, stock(command)

    made = compile_all(some(lua), compile_one)
    assert [name for name, (_, ours, theirs) in made.items() if ours != theirs] == []
    assert sum(decisions for decisions, _, _ in made.values()) > 25 * len(made)


def modules(lua: SourceProgram, folder: Path) -> dict[str, Path]:
    """Each file as optimised bitcode, for llc."""

    def compile_one(source: Path) -> Path:
        into = folder / f"{source.stem}.bc"
        into.write_bytes(stock(clang(lua, source, "-O2", "-emit-llvm")))
        return into

    return compile_all(some(lua), compile_one)


def allocator_commands(
    lua: SourceProgram, tool: str, folder: Path
) -> dict[str, list[str]]:
    if tool == CLANG:
        return {source.stem: clang(lua, source, "-O2") for source in some(lua)}
    flags = ["-O2", "-filetype=obj", "-relocation-model=pic"]
    return {
        name: [LLC, *flags, str(module), "-o", "-"]
        for name, module in modules(lua, folder).items()
    }


@pytest.mark.parametrize("tool", [CLANG, LLC])
def test_priority_by_size_is_that_rule_in_process(
    lua: SourceProgram, tool: str, tmp_path: Path, by_clang: Stock
) -> None:
    if not PLUGIN.exists():
        pytest.skip(f"{PLUGIN} is not built: scripts/build release")
    commands = allocator_commands(lua, tool, tmp_path)
    load = f"-fplugin={PLUGIN}" if tool == CLANG else f"-load={PLUGIN}"

    def compile_one(source: Path) -> tuple[int, bytes, bytes, bytes]:
        command = commands[source.stem]
        result = compile_with_policy(
            command, priority=lambda features: features["li_size"]
        )
        in_process = stock([command[0], load, *command[1:]])
        return result.decisions, result.stdout, in_process, stock(command)

    made = compile_all(some(lua), compile_one)
    assert [name for name, (_, a, b, _) in made.items() if a != b] == []
    # The rule is not LLVM's own.
    assert any(a != stock_object for _, a, _, stock_object in made.values())
    assert sum(decisions for decisions, *_ in made.values()) > 300 * len(made)
    objects = {name: a for name, (_, a, *_) in made.items()}
    assert run_script(by_clang.objects | objects, tmp_path) == by_clang.output


def first(features: mlbridge.Features) -> int:
    return int(features["mask"].argmax())


def last(features: mlbridge.Features) -> int:
    return int(features["mask"][0].nonzero()[0][-1])


def at_random(features: mlbridge.Features) -> int:
    legal: list[int] = features["mask"][0].nonzero()[0].tolist()
    return random.Random(features["progress"].tobytes()).choice(legal)


EVICTIONS = [(CLANG, first), (LLC, first)]
MORE = [(tool, policy) for tool in (CLANG, LLC) for policy in (last, at_random)]


@pytest.mark.parametrize(("tool", "policy"), EVICTIONS + (MORE if IS_FULL else []))
def test_lua_runs_whoever_is_evicted(
    lua: SourceProgram,
    tool: str,
    policy: mlbridge.Policy,
    tmp_path: Path,
    by_clang: Stock,
) -> None:
    commands = allocator_commands(lua, tool, tmp_path)

    def compile_one(source: Path) -> mlbridge.CompileResult:
        return compile_with_policy(commands[source.stem], eviction=policy)

    made = compile_all(some(lua), compile_one)
    assert sum(result.decisions for result in made.values()) > 15 * len(made)
    objects = {name: result.stdout for name, result in made.items()}
    assert run_script(by_clang.objects | objects, tmp_path) == by_clang.output


def by_chance(features: mlbridge.Features) -> bool:
    return random.Random(features["callsite_cost"].tobytes()).random() < 0.5


INLINERS = [lambda _: False, lambda _: True, by_chance]


@FULL
@pytest.mark.parametrize("policy", INLINERS, ids=["never", "always", "by_chance"])
def test_lua_runs_whatever_is_inlined(
    lua: SourceProgram, policy: mlbridge.Policy, tmp_path: Path, by_clang: Stock
) -> None:
    def compile_one(source: Path) -> mlbridge.CompileResult:
        return compile_with_policy(clang(lua, source, "-Oz"), inliner=policy)

    made = compile_all(some(lua), compile_one)
    assert sum(result.decisions for result in made.values()) > 6 * len(made)
    objects = {name: result.stdout for name, result in made.items()}
    assert run_script(by_clang.objects | objects, tmp_path) == by_clang.output
