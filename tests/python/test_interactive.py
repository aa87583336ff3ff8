# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stock opt, clang and llc with a policy in Python, without a plug-in."""

import re
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlbridge
from mlbridge import InteractiveCompilerInterface, compile_with_policy
from mlbridge.interactive.advisors import AdvisorName, tool_of
from programs import raising
from stock_llvm import CLANG, LLC, OPT, needs_llvm

pytestmark = [needs_llvm, pytest.mark.usefixtures("leaves_nothing")]

POLICIES: dict[str, Any] = {
    "inliner": lambda features: features["callee_basic_block_count"] > 0,
    "eviction": lambda features: int(features["mask"].argmax()),
    "priority": lambda features: features["li_size"],
}
compile_by: Any = compile_with_policy
"""An untyped alias for computed keywords, which mypy cannot check."""


def stock(command: list[str]) -> bytes:
    return subprocess.run(command, capture_output=True, check=True).stdout


def to_stdout(tool: str, source: Path, *flags: str) -> list[str]:
    return [tool, "-Oz", *flags, "-c", str(source), "-o", "-"]


def bitcode(source: Path, *flags: str) -> Path:
    """Returns the source as bitcode, for opt and llc."""
    into = source.with_suffix(".bc")
    subprocess.run([CLANG, *flags, "-emit-llvm", "-c", source, "-o", into], check=True)
    return into


def command_for(tool: str, advisor: AdvisorName, sources: Path) -> list[str]:
    source = sources / ("calls.c" if advisor == "inliner" else "pressure.c")
    if tool == CLANG:
        return to_stdout(tool, source)
    if tool == LLC:
        return [LLC, "-O2", "-filetype=obj", str(bitcode(source, "-O2")), "-o", "-"]
    source = bitcode(source, "-O2", "-Xclang", "-disable-llvm-passes")
    return [OPT, "-passes=default<Oz>", str(source), "-o", "-"]


@pytest.mark.parametrize(
    ("tool", "advisor"),
    [
        *((CLANG, "inliner"), (CLANG, "eviction"), (CLANG, "priority")),
        *((OPT, "inliner"), (LLC, "eviction"), (LLC, "priority")),
    ],
)
def test_each_advisor_and_tool(tool: str, advisor: AdvisorName, sources: Path) -> None:
    command = command_for(tool, advisor, sources)
    seen = []

    def policy(features: mlbridge.Features) -> Any:
        seen.append({name: value.copy() for name, value in features.items()})
        return POLICIES[advisor](features)

    policies = {advisor: policy}
    result = compile_by(command, timeout=60, **policies)
    assert (result.returncode, result.stderr) == (0, "")
    assert len(result.stdout) > 100
    assert result.decisions == len(seen) > 0
    said = result.conversations[advisor]
    assert said.contexts == (("",) if advisor == "inliner" else ("pressure",))
    if advisor == "eviction":
        assert all(features["mask"].dtype == np.int64 for features in seen)
        assert seen[0]["mask"].shape == (1, 33)
    assert compile_by(command, timeout=60, **policies).stdout == result.stdout


def test_decisions_count(sources: Path) -> None:
    command = to_stdout(CLANG, sources / "calls.c")
    calls = []
    for policy in (lambda _: 0, lambda _: 1):
        result = compile_with_policy(command, inliner=policy)
        assert result.decisions == 2
        (sources / "out.o").write_bytes(result.stdout)
        code = stock(["llvm-objdump-22", "-d", str(sources / "out.o")])
        calls.append(len(re.findall(rb"\bcall|\bjmp.*<sum>", code)))
    # Without inlining, there are two calls, the last of which may be a jump.
    assert calls[0] > calls[1] == 0


@pytest.mark.parametrize(
    "policy",
    [
        lambda features: None,
        lambda features: features["inlining_default"],
        lambda features: {"inlining_decision": features["inlining_default"]},
        raising(lambda features: mlbridge.Deferred()),
    ],
)
def test_llvms_own_decision(sources: Path, policy: mlbridge.Policy) -> None:
    command = to_stdout(CLANG, sources / "calls.c")
    assert compile_with_policy(command, inliner=policy).stdout == stock(command)


def test_several_advisors_of_one_compiler(sources: Path) -> None:
    both = sources / "both.c"
    both.write_text(
        (sources / "calls.c").read_text() + (sources / "pressure.c").read_text()
    )
    two = ("eviction", "priority")
    for command, advisors in (
        (to_stdout(CLANG, sources / "pressure.c"), two),
        (command_for(LLC, "eviction", sources), two),
        (to_stdout(CLANG, both), POLICIES),
    ):
        result = compile_by(command, **{name: POLICIES[name] for name in advisors})
        assert set(result.conversations) == set(advisors)
        assert all(said.decisions > 0 for said in result.conversations.values())


@pytest.mark.parametrize("timeout", [float("inf"), 1e300, 1e6])
def test_long_limits(sources: Path, timeout: float) -> None:
    command = to_stdout(CLANG, sources / "calls.c")
    result = compile_with_policy(command, inliner=lambda _: 1, timeout=timeout)
    assert result.decisions == 2


def test_several_processes_of_one_clang(sources: Path) -> None:
    """Each cc1 opens the channel anew and sends its own header."""
    (sources / "again.c").write_text(
        "static int f(void) { return 3; }int g(void) { return f(); }"
    )
    names = ("calls", "nothing", "pressure", "again")
    command = [CLANG, "-Oz", "-c", *(f"{name}.c" for name in names)]
    result = compile_with_policy(command, inliner=lambda _: 1, cwd=sources, timeout=60)
    assert result.decisions == 3
    assert all((sources / f"{name}.o").exists() for name in names)


def test_nothing_to_decide(sources: Path) -> None:
    command = to_stdout(CLANG, sources / "nothing.c")
    assert compile_with_policy(command, **POLICIES).decisions == 0


def test_the_papers_loop(sources: Path) -> None:
    command = to_stdout(CLANG, sources / "pressure.c")
    with InteractiveCompilerInterface(command, "eviction", timeout=60) as compiler:
        features = compiler.evaluate()
        assert (compiler.advisor, compiler.context) == ("eviction", "pressure")
        assert [s.name for s in compiler.headers["eviction"].features] == [*features]
        with pytest.raises(mlbridge.InvalidArgument, match="has no reply"):
            compiler.evaluate()
        with pytest.raises(mlbridge.InvalidArgument, match="no result"):
            _ = compiler.result
        for decisions in count(1):  # noqa: B007
            compiler.populate_buffer(int(features["mask"].argmax()))
            try:
                features = compiler.evaluate()
            except mlbridge.PeerClosed as closed:
                assert "no more requests" in str(closed)
                break
        assert compiler.result.decisions == decisions
        assert list(compiler) == []
        with pytest.raises(mlbridge.InvalidArgument, match="no request"):
            compiler.populate_buffer(0)


def test_features_are_views(sources: Path) -> None:
    command = to_stdout(CLANG, sources / "pressure.c")
    with InteractiveCompilerInterface(command, "priority") as compiler:
        kept = []
        for features in compiler:
            kept.append(features["li_size"])
            with pytest.raises(ValueError, match="read-only"):
                features["li_size"][0] = 3
            compiler.populate_buffer(features["li_size"])
        assert len(kept) > 10
        assert all(view is kept[0] for view in kept)


@pytest.mark.parametrize(
    ("advisor", "reply", "says"),
    [
        ("inliner", 12345, "'inlining_decision': expected 0 or 1, found 12345"),
        ("inliner", -7, "found -7"),
        ("inliner", 0.5, "found 0.5"),
        ("inliner", float("nan"), "found nan"),
        ("inliner", "yes", "found 'yes'"),
        ("inliner", np.zeros(2), "found .0. 0."),
        ("inliner", {"priority": 1}, "under its name, found {'priority': 1}"),
        ("inliner", [[1], [1, 2]], "found"),
        ("eviction", 33, r"where 'mask' is 1 \([0-9, ]+\), found 33"),
        ("eviction", -1, "found -1"),
        ("eviction", 1.5, "found 1.5"),
        ("eviction", True, "found True"),
        ("eviction", 2**70, f"found {2**70}"),
        ("eviction", np.int64(-2), "found"),
        ("priority", -1, "expected a number from 0 to 4294967040, found -1"),
        ("priority", 2**32, "found 4294967296"),
        ("priority", float("inf"), "found inf"),
        ("priority", np.float32("nan"), "found .*nan"),
        ("priority", np.ones((2, 2)), "found"),
    ],
)
def test_illegal_answers(
    sources: Path, advisor: AdvisorName, reply: Any, says: str
) -> None:
    command = command_for(CLANG, advisor, sources)
    with pytest.raises(mlbridge.SchemaMismatch, match=f"{advisor} advisor: .*{says}"):
        compile_by(command, **{advisor: lambda _: reply})


def test_masked_indices_are_illegal(sources: Path) -> None:
    """Masked indices are illegal, because LLVM crashes if it receives one."""
    command = command_for(LLC, "eviction", sources)
    with pytest.raises(mlbridge.SchemaMismatch, match="where 'mask' is 1"):
        compile_with_policy(command, eviction=lambda f: int(f["mask"].argmin()))


@pytest.mark.parametrize("advisor", ["eviction", "priority", "inliner"])
def test_no_deferral_where_llvm_has_none(sources: Path, advisor: AdvisorName) -> None:
    command = command_for(CLANG, advisor, sources)
    options = {advisor: lambda _: None, "include_default": False}
    with pytest.raises(mlbridge.Unsupported, match=f"{advisor} advisor: .*None"):
        compile_by(command, **options)


def test_without_the_default(sources: Path) -> None:
    command = command_for(CLANG, "inliner", sources)
    seen: list[set[str]] = []

    def policy(features: mlbridge.Features) -> int:
        seen.append({*features})
        return 0

    for include in (True, False):
        compile_with_policy(command, inliner=policy, include_default=include)
    assert seen[0] - seen[-1] == {"inlining_default"}
    assert len(seen[-1]) == 38


def test_from_any_thread(sources: Path) -> None:
    """A compile outlives the thread that started it, but not the process."""
    command = command_for(CLANG, "priority", sources)
    with ThreadPoolExecutor() as pool:
        start = partial(InteractiveCompilerInterface, command, "priority", timeout=60)
        started = pool.submit(start)
    with started.result() as compiler:
        for features in compiler:
            compiler.populate_buffer(features["li_size"])
    assert compiler.result.decisions > 10


def by_opt(**limits: Any) -> Any:
    return compile_with_policy(["opt"], inliner=id, **limits)


def by_clang(advisors: Any) -> Any:
    return InteractiveCompilerInterface(["clang"], advisors)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: compile_with_policy(["clang-22"]), "expected a policy"),
        (lambda: compile_with_policy([], inliner=id), "an empty list"),
        (lambda: compile_with_policy(["gcc", "-c"], inliner=id), "gcc: expected clang"),
        (lambda: compile_with_policy(["llc-22"], inliner=id), "clang or opt"),
        (lambda: compile_with_policy(["opt-22"], eviction=id), "clang or llc"),
        (lambda: compile_with_policy(["opt-22"], priority=id), "no priority advisor"),
        (lambda: by_opt(timeout=float("nan")), "above 0, found nan"),
        (lambda: by_opt(decision_timeout=0), "above 0, found 0"),
        (lambda: by_clang(["inliner", "inliner"]), "different advisors"),
        (lambda: by_clang("inline"), "expected an advisor"),
    ],
)
def test_wrong_arguments(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(mlbridge.InvalidArgument, match=says):
        make()


@pytest.mark.parametrize(
    ("program", "tool"),
    [
        ("clang", "clang"),
        ("/usr/lib/llvm-22/bin/clang++", "clang"),
        ("clang++-22", "clang"),
        ("x86_64-linux-gnu-clang-22", "clang"),
        ("./opt", "opt"),
        ("llc-22", "llc"),
    ],
)
def test_tools_by_name(program: str, tool: str) -> None:
    assert tool_of(program) == tool


def test_a_tool_of_another_name(sources: Path) -> None:
    link = sources / "cc"
    link.symlink_to("/usr/bin/clang-22")
    command = [str(link), *command_for(CLANG, "inliner", sources)[1:]]
    result = compile_with_policy(command, inliner=lambda _: 1, tool="clang")
    assert result.decisions == 2
