# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares builds of SQLite with and without a model on queries.

The protocol follows Lehmann et al. ("Is Your Learned Query Optimizer Behaving As You
Expect?", 2023). The splits are fixed. Hot and cold times are reported separately. The
system without a model (the plain system) runs first.
"""

import shutil
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, log
from pathlib import Path

from mlbridge.aot import compile_model
from mlbridge.errors import InvalidArgument
from mlbridge_optimizations.evaluation.statistics import mean_interval
from mlbridge_optimizations.show import Show, ShowStage

from .experiment import train_model
from .features import find_extension, find_header
from .measure import STAT4, STOCK, System, Timed, build, measure, opened
from .settings import EvaluationOptions, LearningOptions
from .workloads import WORKLOADS, Queries, Query, make_database

LONG = 1e-3
"""Ratios of times are used only for queries that take at least this many seconds."""
SLOWER, LATER = 1.1, 100e-6
TRIES = 3
"""A query counts as slower only if all of this number of measurements find so."""
SPLITS = {"training": 1, "held-out": 3}
"""The seed of the queries of each split."""


@dataclass(frozen=True)
class Subject:
    """A database with queries and a model."""

    name: str
    database: Path
    spec: str
    queries: Sequence[Query]


@dataclass
class Result:
    """The times of queries by a system with a model, and by the plain system.

    Attributes:
        slow: the number of queries that take `LONG` or more and whose ratio of times is
            above `SLOWER`.
        slowest: the greatest ratio of these queries.
        late: the number of shorter queries that take over `LATER` seconds longer.
    """

    times: list[tuple[Query, Timed]] = field(default_factory=list)
    slow: int = 0
    slowest: float = 0.0
    late: int = 0
    left_out: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def changed(self) -> int:
        """The number of queries with another plan."""
        return sum(not timed.is_same for _, timed in self.times)

    def ours(self) -> list[Timed]:
        """Returns queries with LIKE, expressions or columns without an index."""
        return [timed for query, timed in self.times if not query.is_plain]

    def long(self) -> list[Timed]:
        """Returns the queries of `ours` that take `LONG` or more without a model."""
        return [timed for timed in self.ours() if timed.hot[0] >= LONG]

    def all_long(self) -> list[Timed]:
        """Returns all queries that take `LONG` or more without a model."""
        return [timed for _, timed in self.times if timed.hot[0] >= LONG]

    def preparation(self) -> tuple[float, float]:
        """Returns by how many µs the model delays the preparation: median, maximum."""
        more = [1e6 * (t.preparing[1] - t.preparing[0]) for _, t in self.times]
        return statistics.median(more), max(more)


def geomean(timed: Sequence[Timed], *, cold: bool = False) -> str:
    """Returns the geometric mean of speedups, with its interval."""
    pairs = [one.cold if cold else one.hot for one in timed]
    logs = [log(plain / learned) for plain, learned in pairs]
    if len(logs) < 2:
        return "-"
    low, high = mean_interval(logs)
    return f"{exp(statistics.mean(logs)):.2f} ({exp(low):.2f}-{exp(high):.2f})"


def subjects(
    options: EvaluationOptions, learning: LearningOptions, show: ShowStage
) -> list[Subject]:
    """Makes missing databases and models, and draws queries."""
    if options.split not in SPLITS:
        raise InvalidArgument(
            f"--split: expected training or held-out, found {options.split!r}"
        )
    if unknown := [name for name in options.workloads if name not in WORKLOADS]:
        raise InvalidArgument(
            f"--workload: expected {', '.join(WORKLOADS)}, found {unknown[0]!r}"
        )
    found = []
    for name in options.workloads:
        folder = options.out / f"{name}-{options.scale:g}"
        database, library = folder / "data.db", folder / "model.so"
        if not database.is_file():
            make_database(name, database, options.scale, seed=0)
        if not (folder / "model.onnx").is_file():
            train_model(
                database,
                *(options.extension, folder, learning),
                lambda stage, *counts, name=name: show(f"{stage}: {name}", *counts),
            )
        if not library.is_file():
            compile_model(folder / "model.onnx", library)
        drawn = Queries(database, SPLITS[options.split])
        queries = [drawn.query() for _ in range(options.queries)]
        found.append(Subject(name, database, f"aot:{library.resolve()}", queries))
    return found


def own_subject(database: Path, spec: str, statements: Path) -> Subject:
    """Reads queries from a file. The statistics of the database are renewed."""
    if not statements.is_file():
        raise InvalidArgument(f"there is no file {statements}")
    lines = [line.strip() for line in statements.read_text("utf-8").splitlines()]
    queries = [Query(line.rstrip(";"), is_plain=False) for line in lines if line]
    return Subject(database.name, database, spec, queries)


def compare(
    subject: Subject, options: EvaluationOptions, show: Show
) -> dict[str, Result]:
    """Measures all queries. Returns the results by build of SQLite with the model."""
    extension = find_extension(options.extension)
    kinds = [STAT4, STOCK] if options.stock else [STAT4]
    libraries = {kind: options.out / f"bench-{kind}.so" for kind in kinds}
    for kind, library in libraries.items():
        build(kind, find_header(), options.source, library)
    plain = System(libraries[STAT4].resolve(), subject.database, None, "")
    learned = {
        kind: System(
            *(library.resolve(), subject.database),
            *(_copy(extension, options.out / kind), subject.spec),
        )
        for kind, library in libraries.items()
    }
    with opened(plain, *learned.values()):
        plain.seconds("pragma query_only = 0")
        plain.seconds("analyze", limit=600)
        for system in (plain, *learned.values()):
            system.reopen()
        found = {f"{kind} and model": Result() for kind in kinds}
        for number, query in enumerate(subject.queries):
            for result, system in zip(found.values(), learned.values(), strict=True):
                _add(result, plain, system, query, options)
            show(number + 1, len(subject.queries))
    return found


def _copy(extension: Path, folder: Path) -> Path:
    """Copies the extension: a loaded copy works with only one build of SQLite."""
    folder.mkdir(exist_ok=True)
    copied = shutil.copy(extension, folder / extension.name)
    return Path(copied).resolve()


def _add(
    result: Result,
    plain: System,
    learned: System,
    query: Query,
    options: EvaluationOptions,
) -> None:
    ratios, more = list[float](), list[float]()
    for attempt in range(TRIES):
        timed = measure(
            plain, learned, query.sql, budget=options.budget, limit=options.limit
        )
        if isinstance(timed, str):
            result.left_out += "differ" not in timed
            result.wrong += [query.sql] * ("differ" in timed)
            return
        if attempt == 0:
            result.times.append((query, timed))
        ratios.append(timed.hot[1] / timed.hot[0])
        more.append(timed.hot[1] - timed.hot[0])
        is_long = timed.hot[0] >= LONG
        if (is_long and ratios[-1] <= SLOWER) or (not is_long and more[-1] <= LATER):
            break
    if is_long:
        result.slowest = max(result.slowest, min(ratios))
        result.slow += min(ratios) > SLOWER
    else:
        result.late += min(more) > LATER
