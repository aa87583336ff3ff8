# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles that go wrong: whoever dies, hangs or lies, nothing is left behind."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import mlbridge
from mlbridge import InteractiveCompilerInterface, compile_with_policy
from mlbridge.interactive.process import GUARD
from programs import PATIENCE, Started, run_program, shell_script, status_of, until
from stock_llvm import (
    CLANG,
    LLC,
    assert_gone,
    compiler_of,
    group_members,
    leaves_nothing,
    needs_llvm,
    sources,
)
from test_interactive_channel import LIES, header, observation

__all__ = ["leaves_nothing", "sources"]

pytestmark = [needs_llvm, pytest.mark.usefixtures("leaves_nothing")]
# What a deadline may be exceeded by, with other tests on the machine.
# What a deadline may be exceeded by, with other tests on the machine.
SLACK = 3.0


def command_in(sources: Path, *flags: str) -> list[str]:
    return [CLANG, "-O2", *flags, "-c", str(sources / "pressure.c"), "-o", "-"]


def first_legal(features: mlbridge.Features) -> int:
    return int(features["mask"].argmax())


class Stop(Exception):
    """What a policy raises here."""


def test_a_policy_that_raises(sources: Path) -> None:
    groups: list[int] = []

    def policy(features: mlbridge.Features) -> int:
        (group,) = guards()
        assert len(group_members(group)) == 2
        groups.append(group)
        raise Stop

    with pytest.raises(Stop):
        compile_with_policy(command_in(sources), eviction=policy)
    assert_gone(groups[0])


def guards() -> list[int]:
    """The groups whose guards this process has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if words[:2] == [os.fsencode(GUARD), str(os.getpid()).encode()]:
                found.append(int(folder.name))
    return found


def test_an_illegal_answer_ends_the_compiler_first(sources: Path) -> None:
    compiler = InteractiveCompilerInterface(command_in(sources), "eviction", timeout=60)
    compiler.evaluate()
    group = compiler.pid
    assert group_members(group)
    with pytest.raises(mlbridge.SchemaMismatch):
        compiler.populate_buffer(77)
    assert_gone(group)


def test_an_interface_that_nobody_has(sources: Path) -> None:
    compiler = InteractiveCompilerInterface(command_in(sources), "eviction", timeout=60)
    compiler.evaluate()
    group = compiler.pid
    del compiler
    gc.collect()
    assert_gone(group)


# A host that says what group its compiler is in, and then thinks for long.
HOST = """
import sys, time
from mlbridge import InteractiveCompilerInterface, compile_with_policy
advisor, timeout, how, *command = sys.argv[1:]
def think(features):
    time.sleep(100)
if how == "policy":
    # The guard is the only child.
    def policy(features):
        print(open("/proc/thread-self/children").read().split()[0], flush=True)
        think(features)
    compile_with_policy(command, timeout=float(timeout), **{advisor: policy})
else:
    compiler = InteractiveCompilerInterface(command, advisor, timeout=float(timeout))
    features = compiler.evaluate()
    print(compiler.pid, flush=True)
    if how == "loop":
        think(features)
"""


@contextmanager
def host(
    command: list[str], how: str = "loop", timeout: float = 100
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Another Python that compiles, and the process group of its compiler."""
    with Started(HOST, "eviction", str(timeout), how, *command) as process:
        group = int(process.stdout.readline())
        try:
            yield process, group
        finally:
            process.kill()
            # A test that fails is not to leave what it is about.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("how", ["loop", "policy"])
@pytest.mark.parametrize("flag", ["-fintegrated-cc1", "-fno-integrated-cc1"])
def test_a_host_that_is_killed(
    sources: Path, leaves_nothing: Path, number: int, how: str, flag: str
) -> None:
    """Without an integrated cc1, the one that asks is a child of the compiler."""
    with host(command_in(sources, flag), how) as (process, group):
        assert len(group_members(group)) == (3 if flag == "-fno-integrated-cc1" else 2)
        assert list(leaves_nothing.iterdir())
        os.kill(process.pid, number)
        start = time.monotonic()
        until(lambda: not group_members(group), "the compiler has not ended")
        assert time.monotonic() - start < SLACK
        until(lambda: not list(leaves_nothing.iterdir()), "the FIFOs are still there")
        status = process.wait(PATIENCE)
    if number == signal.SIGTERM and how == "policy":
        assert status == 128 + signal.SIGTERM
    else:
        assert status == -number


def test_a_host_that_exits(sources: Path, leaves_nothing: Path) -> None:
    with host(command_in(sources), "exit") as (process, group):
        assert process.wait(PATIENCE) == 0
        assert_gone(group)
        assert list(leaves_nothing.iterdir()) == []


def test_a_host_that_is_stopped(sources: Path, leaves_nothing: Path) -> None:
    """The guard keeps the deadline for it."""
    start = time.monotonic()
    with host(command_in(sources), timeout=1) as (process, group):
        os.kill(process.pid, signal.SIGSTOP)
        until(lambda: not group_members(group), "the compiler has not ended")
        assert 0.5 < time.monotonic() - start < 1 + SLACK + 2
        assert list(leaves_nothing.iterdir()) == []


def test_a_policy_that_hangs(sources: Path) -> None:
    ended = []

    def policy(features: mlbridge.Features) -> int:
        (group,) = guards()
        until(lambda: not group_members(group), "the compiler has not ended")
        ended.append(group)
        return first_legal(features)

    start = time.monotonic()
    with pytest.raises(mlbridge.Timeout, match=r"not ended within 1\.0 s"):
        compile_with_policy(command_in(sources), eviction=policy, timeout=1.0)
    assert ended
    assert time.monotonic() - start < 1 + SLACK


@pytest.mark.parametrize("which", ["timeout", "decision_timeout"])
def test_a_compiler_that_is_stopped(sources: Path, which: str) -> None:
    def policy(features: mlbridge.Features) -> int:
        (group,) = guards()
        os.kill(compiler_of(group), signal.SIGSTOP)
        return first_legal(features)

    limits: dict[str, Any] = {which: 0.7}
    start = time.monotonic()
    with pytest.raises(mlbridge.Timeout, match=r"clang-22 .* 0\.7 s.*1 decisions"):
        compile_with_policy(command_in(sources), eviction=policy, **limits)
    assert time.monotonic() - start < 1 + SLACK


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_compiler_that_is_killed(sources: Path, number: int) -> None:
    def policy(features: mlbridge.Features) -> int:
        (group,) = guards()
        os.kill(compiler_of(group), number)
        return first_legal(features)

    with pytest.raises(mlbridge.CompilerFailed) as caught:
        compile_with_policy(command_in(sources), eviction=policy)
    if number == signal.SIGKILL:
        assert caught.value.returncode == -number
        assert "signal 9" in str(caught.value)
    else:
        # clang says where it was, and ends in its own way.
        assert caught.value.returncode != 0
        assert "PLEASE submit a bug report" in caught.value.stderr


def test_a_guard_that_is_killed(sources: Path) -> None:
    groups: list[int] = []

    def policy(features: mlbridge.Features) -> int:
        # The compiler may ask once more before it is gone, too.
        if not groups:
            groups.extend(guards())
            os.kill(groups[0], signal.SIGKILL)
        return first_legal(features)

    with pytest.raises(mlbridge.CompilerFailed, match="signal 9"):
        compile_with_policy(command_in(sources), eviction=policy)
    assert_gone(groups[0])


def test_a_tool_that_is_not_there(sources: Path) -> None:
    with pytest.raises(mlbridge.OSFailure, match="cannot run llc-99: No such file"):
        compile_with_policy(["llc-99", "x.ll"], eviction=first_legal)
    with pytest.raises(mlbridge.OSFailure, match="cannot run"):
        compile_with_policy([str(sources / "llc")], eviction=first_legal)
    (sources / "llc").write_text("not a program")
    with pytest.raises(mlbridge.OSFailure, match="Permission denied"):
        compile_with_policy([str(sources / "llc")], eviction=first_legal)
    with pytest.raises(mlbridge.OSFailure, match="cannot run llc-22"):
        compile_with_policy([LLC], eviction=first_legal, cwd=sources / "nowhere")


def test_a_tool_that_finds_an_error(sources: Path) -> None:
    broken = sources / "broken.c"
    broken.write_text("int f(void) { return undeclared; }")
    command = [CLANG, "-c", str(broken), "-o", "-"]
    with pytest.raises(mlbridge.CompilerFailed, match="undeclared") as caught:
        compile_with_policy(command, inliner=lambda _: 0)
    assert caught.value.returncode == 1
    assert "1 error generated" in caught.value.stderr
    assert isinstance(caught.value, mlbridge.PeerClosed)
    result = compile_with_policy(command, inliner=lambda _: 0, check=False)
    assert result.returncode == 1
    assert "undeclared" in result.stderr
    with pytest.raises(mlbridge.CompilerFailed, match="--no-such-option"):
        compile_with_policy([LLC, "--no-such-option"], eviction=first_legal)


# What runs instead of a compiler: it has the channel's name as LLVM gets it.
IMPOSTOR = """
import sys, time
base = next(w.split("=")[1] for w in sys.argv if "channel-base" in w)
replies = open(base + ".in", "rb")
with open(base + ".out", "wb", 0) as channel:
    channel.write(eval(sys.argv[1]))
    exec(sys.argv[2])
"""


def by_impostor(data: bytes, then: str = "", **options: Any) -> mlbridge.CompileResult:
    """A compile by what writes such data, and then does so."""
    command = [sys.executable, "-c", IMPOSTOR, repr(data), then]
    return compile_with_policy(command, inliner=lambda _: 0, tool="opt", **options)


def request() -> bytes:
    default = {"name": "inlining_default", "type": "int64_t", "port": 0, "shape": [1]}
    return header(default) + b'{"observation":0}\n' + bytes(8) + b"\n"


@pytest.mark.parametrize("lie", [lie for lie in LIES if len(LIES[lie][0]) < 10_000])
def test_a_compiler_that_lies(lie: str) -> None:
    data, _ = LIES[lie]
    start = time.monotonic()
    with pytest.raises((mlbridge.Malformed, mlbridge.SchemaMismatch)):
        by_impostor(data, "time.sleep(60)")
    assert time.monotonic() - start < PATIENCE


def test_a_compiler_of_another_version() -> None:
    with pytest.raises(mlbridge.SchemaMismatch, match="inlining_default"):
        by_impostor(header() + observation(0, 1))


@pytest.mark.parametrize("missing", [1, 10, 20])
def test_a_compiler_that_ends_in_the_middle(missing: int) -> None:
    """With success, that is: else its own error counts."""
    data = request()[:-missing]
    with pytest.raises(mlbridge.Malformed, match="found the end of the compile"):
        by_impostor(data)
    with pytest.raises(mlbridge.CompilerFailed, match="status 3"):
        by_impostor(data, "sys.exit(3)")


def test_a_compiler_that_says_nothing() -> None:
    with pytest.raises(mlbridge.Timeout, match="neither asked nor ended"):
        by_impostor(b"", "time.sleep(60)", decision_timeout=0.5)


def test_a_compiler_that_never_reads() -> None:
    """A request without its answer's taker, as often as the pipe would fill."""
    again = request().partition(b"\n")[2]
    then = f"[channel.write({again!r}) for _ in range(20_000)]; time.sleep(60)"
    with pytest.raises(mlbridge.Malformed, match="reads its replies"):
        by_impostor(request(), then, timeout=60)


def test_what_a_compiler_leaves_running(sources: Path) -> None:
    """Its group ends with it."""
    waits = f"{sys.executable} -c 'import time; time.sleep(60)' &\necho $$ $!"
    shell_script(sources / "opt", waits)
    result = compile_with_policy([str(sources / "opt")], inliner=lambda _: 0)
    child = int(result.stdout.split()[1])
    until(lambda: status_of(child)[1:2] in ([], ["Z"]), "a child is still there")


def test_much_stderr(sources: Path) -> None:
    """Nobody need empty a pipe while the policy thinks."""
    shell_script(sources / "opt", "yes error | head -c 3000000 >&2\nexit 1")
    with pytest.raises(mlbridge.CompilerFailed) as caught:
        compile_with_policy([str(sources / "opt")], inliner=lambda _: 0, timeout=30)
    assert len(caught.value.stderr) == 3_000_000
    assert len(str(caught.value)) < 3_000


@pytest.mark.parametrize(
    "words", [[], ["1", "2", "/x"], ["1", "x", "/x", "true"], ["1", "-1", "/x", "true"]]
)
def test_the_guard_needs_a_group(words: list[str]) -> None:
    """As one of somebody else's group it would kill what is not its own."""
    done = run_program([GUARD, *words], timeout=20)
    assert done.returncode == 2
    assert "mlbridge-guard" in done.stderr
