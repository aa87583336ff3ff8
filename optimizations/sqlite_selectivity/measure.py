# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures queries with builds of SQLite, with and without a model."""

import ctypes
import os
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mlbridge.errors import CompilerFailed, InvalidArgument
from mlbridge.files import replacing

HERE = Path(__file__).resolve().parent
# Options of Debian's libsqlite3 that affect query plans, and the option for STAT4.
FLAGS = (
    *("-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-w"),
    *("-DSQLITE_THREADSAFE=1", "-DSQLITE_ENABLE_MATH_FUNCTIONS"),
)
STAT4, STOCK = "STAT4", "stock"
PATIENCE = 900.0
"""Seconds that the compilation of SQLite may take."""


def build(kind: str, header: Path, source: Path, library: Path) -> None:
    """Compiles bench.c with SQLite, unless the library is newer than its sources.

    Args:
        kind: `STAT4`, or `STOCK` for the installed libsqlite3.
        header: the folder of MLBridgeSQLite.h.
        source: the folder of sqlite3.c for `STAT4`.
        library: the file to write.
    """
    files = [HERE / "bench.c"]
    options = ["-lsqlite3"]
    if kind == STAT4:
        files.append(source / "sqlite3.c")
        options = [f"-I{source}", "-DSQLITE_ENABLE_STAT4", "-lm", "-ldl"]
    if missing := [file for file in files if not file.is_file()]:
        raise InvalidArgument(
            f"{missing[0]}: found no such file; name the folder of SQLite's sqlite3.c"
            " with --source (in a checkout, first run `scripts/fetch-sqlite3"
            " build/workloads`)"
        )
    newest = max(file.stat().st_mtime for file in files)
    if library.is_file() and library.stat().st_mtime > newest:
        return
    library.parent.mkdir(parents=True, exist_ok=True)
    with replacing(library) as new:
        done = subprocess.run(
            ["cc", *FLAGS, f"-I{header}", *files, *options, "-o", new],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if done.returncode:
            raise CompilerFailed(f"cc cannot compile {files[-1]}: {done.stderr[-500:]}")


class System:
    """A connection of one build of SQLite. With a model, queries are rewritten."""

    def __init__(
        self, library: Path, database: Path, extension: Path | None, spec: str
    ) -> None:
        self.database = str(database).encode()
        self.extension = str(extension).encode() if extension else None
        self.spec = spec
        self._calls = ctypes.CDLL(str(library))
        self._calls.benchOpen.restype = ctypes.c_void_p
        self._calls.benchVersion.restype = ctypes.c_char_p
        self._calls.benchRun.restype = ctypes.c_double
        self._run = self._calls.benchRun
        self.connection = self._open()

    def _open(self) -> ctypes.c_void_p:
        os.environ["MLBRIDGE_SQLITE_MODEL"] = self.spec
        found = self._calls.benchOpen(self.database, self.extension)
        if not found:
            raise CompilerFailed(f"SQLite cannot open {self.database.decode()}")
        return ctypes.c_void_p(found)

    @property
    def version(self) -> str:
        """The version of SQLite, and whether it has STAT4."""
        return str(self._calls.benchVersion().decode())

    def close(self) -> None:
        """Closes the connection."""
        self._calls.benchClose(self.connection)

    def reopen(self) -> None:
        """Empties the caches of the connection and of the system."""
        self.close()
        self._calls.benchForget(self.database)
        self.connection = self._open()

    def seconds(
        self, sql: str, limit: float = 60.0, *, cold: bool = False
    ) -> tuple[float, float]:
        """Runs a query. Returns the seconds of the run, and of the preparation.

        The run's seconds are negative after an error, or if the limit was reached. They
        are CPU time. If `cold` is true, they include waiting for the disk.
        """
        preparing = ctypes.c_double()
        found = self._run(
            *(self.connection, sql.encode(), int(self.extension is not None)),
            *(int(cold), ctypes.c_double(limit), ctypes.byref(preparing), None),
        )
        return found, preparing.value

    def rows(self, sql: str, limit: float = 60.0) -> list[str] | None:
        """Returns the sorted rows of a query, or None if it failed or did not end."""
        text, preparing = ctypes.c_void_p(), ctypes.c_double()
        found = self._run(
            *(self.connection, sql.encode(), int(self.extension is not None)),
            *(0, ctypes.c_double(limit), ctypes.byref(preparing), ctypes.byref(text)),
        )
        raw = ctypes.string_at(text.value) if text.value else b""
        self._calls.benchFree(text)
        return sorted(raw.decode(errors="replace").splitlines()) if found >= 0 else None


@dataclass(frozen=True)
class Timed:
    """The times of one query in seconds, as pairs: without and with a model.

    Attributes:
        hot: medians of the CPU time in alternating runs.
        preparing: medians of the preparation, which includes the rewriting.
        cold: the time of the first run with empty caches.
        is_same: whether both query plans are the same.
    """

    hot: tuple[float, float]
    preparing: tuple[float, float]
    cold: tuple[float, float]
    is_same: bool


@contextmanager
def opened(*systems: System) -> Iterator[None]:
    """Closes systems at the end."""
    try:
        yield
    finally:
        for system in systems:
            system.close()


def measure(
    plain: System, learned: System, sql: str, *, budget: float, limit: float
) -> Timed | str:
    """Measures a query with two systems, or returns why this is not possible.

    Args:
        plain: the system without a model.
        learned: the system with a model.
        sql: the query.
        budget: the maximum total seconds of repeated runs, beyond 5 runs.
        limit: the query is left out if the plain system takes more seconds than this.
    """
    expected = plain.rows(sql, limit)
    if expected is None:
        return f"the plain system takes more than {limit:g} s"
    if learned.rows(sql, 20 * limit) != expected:
        return "the results differ"
    explained = f"explain query plan {sql}"
    is_same = plain.rows(explained) == learned.rows(explained)
    hot, preparing = _alternating((plain, learned), sql, budget)
    plain.reopen()
    first = plain.seconds(sql, cold=True)[0]
    learned.reopen()
    cold = (first, learned.seconds(sql, cold=True)[0])
    return Timed(hot, preparing, cold, is_same)


def _alternating(
    systems: Sequence[System], sql: str, budget: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    runs: list[list[tuple[float, float]]] = [[], []]
    spent = 0.0
    while len(runs[0]) < 5 or (spent < budget and len(runs[0]) < 51):
        for found, system in zip(runs, systems, strict=True):
            one = system.seconds(sql)
            found.append(one)
            spent += one[0]
    first, second = (
        [statistics.median(one[i] for one in found) for found in runs] for i in (0, 1)
    )
    return (first[0], first[1]), (second[0], second[1])
