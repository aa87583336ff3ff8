# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lua, compiled by stock clang, opt and llc with policies in Python."""

import os
import random
import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import pytest

import mlbridge
from mlbridge import compile_with_policy
from mlbridge_optimizations.corpus.sources import SourceProgram, unpack
from programs import BUILD, FULL, IS_FULL, ROOT
from stock_llvm import CLANG, LLC, OPT, needs_llvm

pytestmark = [needs_llvm, pytest.mark.usefixtures("leaves_nothing")]

PLUGIN = BUILD / "tests/interactive/LiveRangeSizePriority.so"
T = TypeVar("T")
JOBS = os.cpu_count() or 1

# Uses many features of Lua. The output is deterministic.
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


def stock(command: list[str], text: bytes | None = None) -> bytes:
    done = subprocess.run(
        command, input=text, capture_output=True, check=True, timeout=300
    )
    return done.stdout


@dataclass(frozen=True)
class Lua:
    """Lua's sources, a folder for the files that a test makes, and stock objects."""

    program: SourceProgram
    folder: Path
    objects: dict[str, bytes] = field(default_factory=dict)
    """The object files that clang -O0 makes."""

    def clang(self, source: Path, *flags: str) -> list[str]:
        return [CLANG, *flags, "-w", *self.program.flags, "-c", str(source), "-o", "-"]

    def bitcode(self, source: Path, *flags: str) -> str:
        module = self.folder / f"{source.stem}.bc"
        module.write_bytes(stock(self.clang(source, *flags, "-emit-llvm")))
        return str(module)

    def allocator(self, tool: str, source: Path) -> list[str]:
        """Returns a command that allocates registers at -O2."""
        if tool == CLANG:
            return self.clang(source, "-O2")
        flags = ["-O2", "-filetype=obj", "-relocation-model=pic"]
        return [LLC, *flags, self.bitcode(source, "-O2"), "-o", "-"]

    def compile_some(self, compile_one: Callable[[Path], T]) -> dict[str, T]:
        """Returns the results of every fifth file, or of all files in the full run."""
        sources = self.program.sources[:: 1 if IS_FULL else 5]
        with ThreadPoolExecutor(JOBS) as pool:
            made = pool.map(compile_one, sources)
            return dict(zip((path.stem for path in sources), made, strict=True))

    def run_script(self, objects: Mapping[str, bytes]) -> str:
        """Links Lua with some objects replaced, and returns the script's output."""
        paths = []
        for name, data in {**self.objects, **objects}.items():
            paths.append(str(self.folder / f"{name}.o"))
            Path(paths[-1]).write_bytes(data)
        program = str(self.folder / "lua")
        stock([CLANG, *paths, "-Wl,-E", "-lm", "-ldl", "-o", program])
        return stock([program, "-"], SCRIPT.encode()).decode()

    def check(self, made: Mapping[str, mlbridge.CompileResult], decisions: int) -> None:
        """Expects over `decisions` decisions per file on average, and a working Lua."""
        assert sum(result.decisions for result in made.values()) > decisions * len(made)
        objects = {name: result.stdout for name, result in made.items()}
        assert self.run_script(objects) == self.run_script({})


@pytest.fixture(scope="module")
def stock_lua(tmp_path_factory: pytest.TempPathFactory) -> Lua:
    program = unpack(["lua"], ROOT / "build/workloads")["lua"]
    lua = Lua(program, tmp_path_factory.mktemp("stock"))
    with ThreadPoolExecutor(JOBS) as pool:
        made = pool.map(lambda path: stock(lua.clang(path, "-O0")), program.sources)
        names = (path.stem for path in program.sources)
        return replace(lua, objects=dict(zip(names, made, strict=True)))


@pytest.fixture
def lua(stock_lua: Lua, tmp_path: Path) -> Lua:
    return replace(stock_lua, folder=tmp_path)


@pytest.mark.parametrize("tool", [CLANG, OPT])
def test_llvms_inlining_is_stock(lua: Lua, tool: str) -> None:
    """Repeating `inlining_default` makes the same object, byte for byte."""

    def compile_one(source: Path) -> tuple[int, bytes, bytes]:
        command = lua.clang(source, "-Oz")
        if tool == OPT:
            module = lua.bitcode(source, "-Oz", "-Xclang", "-disable-llvm-passes")
            command = [OPT, "-passes=default<Oz>", module, "-o", "-"]
        result = compile_with_policy(
            command, inliner=lambda features: features["inlining_default"]
        )
        return result.decisions, result.stdout, stock(command)

    made = lua.compile_some(compile_one)
    assert [name for name, (_, ours, theirs) in made.items() if ours != theirs] == []
    assert sum(decisions for decisions, _, _ in made.values()) > 25 * len(made)


@pytest.mark.parametrize("tool", [CLANG, LLC])
def test_priority_by_size_is_that_rule_in_process(lua: Lua, tool: str) -> None:
    if not PLUGIN.exists():
        pytest.skip(f"{PLUGIN} is not built: scripts/build release")
    load = f"-fplugin={PLUGIN}" if tool == CLANG else f"-load={PLUGIN}"

    def compile_one(source: Path) -> tuple[mlbridge.CompileResult, bytes, bytes]:
        command = lua.allocator(tool, source)
        result = compile_with_policy(
            command, priority=lambda features: features["li_size"]
        )
        return result, stock([command[0], load, *command[1:]]), stock(command)

    made = lua.compile_some(compile_one)
    assert [name for name, (a, b, _) in made.items() if a.stdout != b] == []
    # The rule differs from LLVM's own.
    assert any(a.stdout != stock_object for a, _, stock_object in made.values())
    lua.check({name: a for name, (a, *_) in made.items()}, 300)


def first(features: mlbridge.Features) -> int:
    return int(features["mask"].argmax())


def last(features: mlbridge.Features) -> int:
    return int(features["mask"][0].nonzero()[0][-1])


def at_random(features: mlbridge.Features) -> int:
    legal: list[int] = features["mask"][0].nonzero()[0].tolist()
    return random.Random(features["progress"].tobytes()).choice(legal)


@pytest.mark.parametrize(
    "policy", [first, *(pytest.param(p, marks=FULL) for p in (last, at_random))]
)
@pytest.mark.parametrize("tool", [CLANG, LLC])
def test_lua_runs_whoever_is_evicted(
    lua: Lua, tool: str, policy: mlbridge.Policy
) -> None:
    def compile_one(source: Path) -> mlbridge.CompileResult:
        return compile_with_policy(lua.allocator(tool, source), eviction=policy)

    lua.check(lua.compile_some(compile_one), 15)


def by_chance(features: mlbridge.Features) -> bool:
    return random.Random(features["callsite_cost"].tobytes()).random() < 0.5


INLINERS = [lambda _: False, lambda _: True, by_chance]


@FULL
@pytest.mark.parametrize("policy", INLINERS, ids=["never", "always", "by_chance"])
def test_lua_runs_whatever_is_inlined(lua: Lua, policy: mlbridge.Policy) -> None:
    def compile_one(source: Path) -> mlbridge.CompileResult:
        return compile_with_policy(lua.clang(source, "-Oz"), inliner=policy)

    lua.check(lua.compile_some(compile_one), 6)
