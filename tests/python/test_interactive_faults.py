# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles that fail: a dead, hung or malformed peer leaves no process and no file."""

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
from stock_llvm import CLANG, LLC, assert_gone, compiler_of, group_members, needs_llvm
from test_interactive_channel import LIES, header, observation

pytestmark = [needs_llvm, pytest.mark.usefixtures("leaves_nothing")]
SLACK = 3.0
"""Seconds by which a deadline may be exceeded on a busy machine."""


def command_in(sources: Path, *flags: str) -> list[str]:
    return [CLANG, "-O2", *flags, "-c", str(sources / "pressure.c"), "-o", "-"]


def first_legal(features: mlbridge.Features) -> int:
    return int(features["mask"].argmax())


def test_a_policy_that_raises(sources: Path) -> None:
    groups: list[int] = []

    def policy(features: mlbridge.Features) -> int:
        groups.append(guard())
        assert len(group_members(groups[0])) == 2
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        compile_with_policy(command_in(sources), eviction=policy)
    assert_gone(groups[0])


def guard() -> int:
    """Returns the process group of this process's only guard."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if words[:2] == [os.fsencode(GUARD), str(os.getpid()).encode()]:
                found.append(int(folder.name))
    (group,) = found
    return group


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


# A host that prints its compiler's process group and then blocks.
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
    """Yields another Python that compiles, and its compiler's process group."""
    with Started(HOST, "eviction", str(timeout), how, *command) as process:
        group = int(process.stdout.readline())
        try:
            yield process, group
        finally:
            process.kill()
            # A test that fails must not leave the compiler running.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("how", ["loop", "policy"])
@pytest.mark.parametrize("flag", ["-fintegrated-cc1", "-fno-integrated-cc1"])
def test_a_host_that_is_killed(
    sources: Path, leaves_nothing: Path, number: int, how: str, flag: str
) -> None:
    """Without an integrated cc1, a child of the compiler sends the requests."""
    with host(command_in(sources, flag), how) as (process, group):
        assert len(group_members(group)) == (3 if flag == "-fno-integrated-cc1" else 2)
        assert list(leaves_nothing.iterdir())
        os.kill(process.pid, number)
        start = time.monotonic()
        until(lambda: not group_members(group), "the compiler has not ended")
        assert time.monotonic() - start < SLACK
        until(lambda: not list(leaves_nothing.iterdir()), "the FIFOs are still there")
        is_handled = number == signal.SIGTERM and how == "policy"
        assert process.wait(PATIENCE) == (128 + number if is_handled else -number)


def test_a_host_that_exits(sources: Path, leaves_nothing: Path) -> None:
    with host(command_in(sources), "exit") as (process, group):
        assert process.wait(PATIENCE) == 0
        assert_gone(group)
        assert list(leaves_nothing.iterdir()) == []


def test_a_host_that_is_stopped(sources: Path, leaves_nothing: Path) -> None:
    """The guard enforces the deadline."""
    start = time.monotonic()
    with host(command_in(sources), timeout=1) as (process, group):
        os.kill(process.pid, signal.SIGSTOP)
        until(lambda: not group_members(group), "the compiler has not ended")
        assert 0.5 < time.monotonic() - start < 1 + SLACK + 2
        assert list(leaves_nothing.iterdir()) == []


def test_a_policy_that_hangs(sources: Path) -> None:
    ended = []

    def policy(features: mlbridge.Features) -> int:
        group = guard()
        until(lambda: not group_members(group), "the compiler has not ended")
        ended.append(group)
        return first_legal(features)

    start = time.monotonic()
    with pytest.raises(mlbridge.Timeout, match=r"not ended within 1\.0 s"):
        compile_with_policy(command_in(sources), eviction=policy, timeout=1.0)
    assert ended
    assert time.monotonic() - start < 1 + SLACK


def sending(number: int) -> mlbridge.Policy:
    """Returns a policy that sends a signal to the compiler."""

    def policy(features: mlbridge.Features) -> int:
        os.kill(compiler_of(guard()), number)
        return first_legal(features)

    return policy


@pytest.mark.parametrize("which", ["timeout", "decision_timeout"])
def test_a_compiler_that_is_stopped(sources: Path, which: str) -> None:
    limits: dict[str, Any] = {which: 0.7}
    policy = sending(signal.SIGSTOP)
    start = time.monotonic()
    with pytest.raises(mlbridge.Timeout, match=r"clang-22 .* 0\.7 s.*1 decisions"):
        compile_with_policy(command_in(sources), eviction=policy, **limits)
    assert time.monotonic() - start < 1 + SLACK


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_compiler_that_is_killed(sources: Path, number: int) -> None:
    with pytest.raises(mlbridge.CompilerFailed) as caught:
        compile_with_policy(command_in(sources), eviction=sending(number))
    if number == signal.SIGKILL:
        assert caught.value.returncode == -number
        assert "signal 9" in str(caught.value)
    else:
        # clang's own handler prints the crash report and exits.
        assert caught.value.returncode != 0
        assert "PLEASE submit a bug report" in caught.value.stderr


def test_a_guard_that_is_killed(sources: Path) -> None:
    groups: list[int] = []

    def policy(features: mlbridge.Features) -> int:
        # The compiler may make another request before it ends.
        if not groups:
            groups.append(guard())
            os.kill(groups[0], signal.SIGKILL)
        return first_legal(features)

    with pytest.raises(mlbridge.CompilerFailed, match="signal 9"):
        compile_with_policy(command_in(sources), eviction=policy)
    assert_gone(groups[0])


def test_a_tool_that_is_not_there(sources: Path) -> None:
    text = sources / "sub/llc"
    text.parent.mkdir()
    text.write_text("not a program")
    for tool, folder, says in (
        ("llc-99", sources, "cannot run llc-99: No such file"),
        (str(sources / "llc"), sources, "cannot run"),
        (str(text), sources, "Permission denied"),
        (LLC, sources / "nowhere", "cannot run llc-22"),
    ):
        with pytest.raises(mlbridge.OSFailure, match=says):
            compile_with_policy([tool], eviction=first_legal, cwd=folder)


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


# Runs instead of a compiler. LLVM's option contains the channel's name.
IMPOSTOR = """
import sys, time
base = next(w.split("=")[1] for w in sys.argv if "channel-base" in w)
replies = open(base + ".in", "rb")
with open(base + ".out", "wb", 0) as channel:
    channel.write(eval(sys.argv[1]))
    exec(sys.argv[2])
"""


def by_impostor(data: bytes, then: str = "", **options: Any) -> mlbridge.CompileResult:
    """Compiles with a program that writes `data` and then executes `then`."""
    command = [sys.executable, "-c", IMPOSTOR, repr(data), then]
    return compile_with_policy(command, inliner=lambda _: 0, tool="opt", **options)


def request() -> bytes:
    default = {"name": "inlining_default", "type": "int64_t", "port": 0, "shape": [1]}
    return header(default) + b'{"observation":0}\n' + bytes(8) + b"\n"


@pytest.mark.parametrize("lie", [lie for lie in LIES if len(LIES[lie][0]) < 10_000])
def test_a_compiler_that_lies(lie: str) -> None:
    start = time.monotonic()
    with pytest.raises((mlbridge.Malformed, mlbridge.SchemaMismatch)):
        by_impostor(LIES[lie][0], "time.sleep(60)")
    assert time.monotonic() - start < PATIENCE


def test_a_compiler_of_another_version() -> None:
    with pytest.raises(mlbridge.SchemaMismatch, match="inlining_default"):
        by_impostor(header() + observation(0, 1))


@pytest.mark.parametrize("missing", [1, 10, 20])
def test_a_compiler_that_ends_in_the_middle(missing: int) -> None:
    """The channel's error is raised only if the compiler exits with status 0."""
    data = request()[:-missing]
    with pytest.raises(mlbridge.Malformed, match="found the end of the compile"):
        by_impostor(data)
    with pytest.raises(mlbridge.CompilerFailed, match="status 3"):
        by_impostor(data, "sys.exit(3)")


def test_a_compiler_that_says_nothing() -> None:
    with pytest.raises(mlbridge.Timeout, match="sent no request for"):
        by_impostor(b"", "time.sleep(60)", decision_timeout=0.5)


def test_a_compiler_that_never_reads() -> None:
    """If a compiler does not read replies, an error occurs before the pipe is full."""
    again = request().partition(b"\n")[2]
    then = f"[channel.write({again!r}) for _ in range(20_000)]; time.sleep(60)"
    with pytest.raises(mlbridge.Malformed, match="reads its replies"):
        by_impostor(request(), then, timeout=60)


def test_what_a_compiler_leaves_running(sources: Path) -> None:
    """The compiler's process group ends with the compiler."""
    waits = f"{sys.executable} -c 'import time; time.sleep(60)' &\necho $$ $!"
    shell_script(sources / "opt", waits)
    result = compile_with_policy([str(sources / "opt")], inliner=lambda _: 0)
    child = int(result.stdout.split()[1])
    until(lambda: status_of(child)[1:2] in ([], ["Z"]), "a child is still there")


def test_much_stderr(sources: Path) -> None:
    """A full stderr does not block the compiler while the policy computes."""
    shell_script(sources / "opt", "yes error | head -c 3000000 >&2\nexit 1")
    with pytest.raises(mlbridge.CompilerFailed) as caught:
        compile_with_policy([str(sources / "opt")], inliner=lambda _: 0, timeout=30)
    assert len(caught.value.stderr) == 3_000_000
    assert len(str(caught.value)) < 3_000


@pytest.mark.parametrize(
    "words", [[], ["1", "2", "/x"], ["1", "x", "/x", "true"], ["1", "-1", "/x", "true"]]
)
def test_the_guard_needs_a_group(words: list[str]) -> None:
    """Without its own group, the guard would kill other processes of the group."""
    done = run_program([GUARD, *words], timeout=20)
    assert done.returncode == 2
    assert "mlbridge-guard" in done.stderr
