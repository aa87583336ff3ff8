# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""C files for stock compilers, and checks that tests leave no process and no file."""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from programs import status_of

TAG = "MLBRIDGE_TEST_TAG"

CLANG, OPT, LLC = "clang-22", "opt-22", "llc-22"

needs_llvm = pytest.mark.skipif(
    not all(map(shutil.which, (CLANG, OPT, LLC))),
    reason=f"{CLANG}, {OPT} and {LLC} are not all installed",
)

# LLVM sends a request to an inliner about each of the two calls.
CALLS = """
static int sum(int *p, int n) {
  int s = 0;
  for (int i = 0; i < n; i++) s += p[i] * i;
  return s;
}
int first(int *p) { return sum(p, 30) ^ 0x55; }
int other(int *p) { return sum(p + 3, 20) * p[2] + p[1]; }
"""

# Has more values than registers, so that LLVM evicts some values.
PRESSURE = """
int use(int);
int pressure(const int *p, int n) {
  int a = p[0], b = p[1], c = p[2], d = p[3], e = p[4], f = p[5], g = p[6], h = p[7],
      i = p[8], j = p[9], k = p[10], l = p[11], m = p[12], o = p[13], q = p[14];
  for (int x = 0; x < n; x++) {
    a += b * p[x]; b ^= c + x; c -= d * a; d += e ^ b; e *= f + c; f -= g ^ d;
    g += h * e; h ^= i + f; i -= j * g; j += k ^ h; k *= l + i; l -= m ^ j;
    m += o * k; o ^= q + l; q -= a * m; a += use(q);
  }
  return a + b + c + d + e + f + g + h + i + j + k + l + m + o + q;
}
"""

NO_CODE = "extern int nothing;\n"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder with calls.c, pressure.c and nothing.c."""
    folder = tmp_path / "sources"
    folder.mkdir()
    for name, text in ("calls", CALLS), ("pressure", PRESSURE), ("nothing", NO_CODE):
        (folder / f"{name}.c").write_text(text)
    return folder


@pytest.fixture
def leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files. Checks that no file and no child remains."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    before = children()
    yield folder
    assert children() <= before
    assert list(folder.iterdir()) == []


@pytest.fixture
def tag(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Marks the processes of a test.

    Checks that no marked process and no file remains.
    """
    value = f"{os.getpid()}-{time.monotonic_ns()}"
    monkeypatch.setenv(TAG, value)
    with tempfile.TemporaryDirectory(prefix="mlb") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield value
        assert wait_until_gone(value) == []
        assert [pid for pid in children() if status_of(pid)[1:2] == ["Z"]] == []
        assert list(Path(folder).iterdir()) == []


def processes(tag: str) -> list[int]:
    """Returns the other processes that have the tag in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        # Ignore a process that has ended or belongs to another user.
        with contextlib.suppress(OSError):
            if f"{TAG}={tag}\0".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


def wait_until_gone(tag: str, timeout: float = 5.0) -> list[int]:
    """Waits for the processes with a tag to end. Returns the remaining processes."""
    until = time.monotonic() + timeout
    while (left := processes(tag)) and time.monotonic() < until:
        time.sleep(0.02)
    return left


def children() -> set[int]:
    """Returns the child processes that have not been reaped."""
    pids = set()
    for task in Path("/proc/self/task").iterdir():
        # The kernel may still list a joined thread for a moment.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            pids |= {int(pid) for pid in (task / "children").read_text().split()}
    return pids


def group_members(group: int) -> dict[int, str]:
    """Maps the live processes of a group to the names of their programs."""
    known = {int(p.name): status_of(p.name) for p in Path("/proc").glob("[0-9]*")}
    return {
        pid: status[0]
        for pid, status in known.items()
        if status and status[3] == str(group) and status[1] not in "ZX"
    }


def assert_gone(group: int) -> None:
    """Asserts that a group's processes have ended, at most 0.5 s later."""
    deadline = time.monotonic() + 0.5
    while members := group_members(group):
        assert time.monotonic() < deadline, members
        time.sleep(0.001)


def compiler_of(group: int) -> int:
    """Returns the compiler's process in a group that a guard leads."""
    (compiler,) = group_members(group).keys() - {group}
    return compiler
