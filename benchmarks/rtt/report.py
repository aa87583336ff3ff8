# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reports measurements as JSON rows, tables, limits and plots."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from mlbridge_benchmarks.common.tables import Bound, number, plain_table
from mlbridge_optimizations.plot import finish, panels_of

from .measurement import Results, Series, Subject

SHOWN_LENGTHS = (500, 5_000, 50_000)
FC_LIMIT = 1.6  # The limit on `fc`, relative to `echo` plus the product in NumPy.
JSON_LIMIT = 0.15  # The limit on a sweep with JSON, relative to Python's json.


def shown(lengths: Sequence[int]) -> dict[str, int]:
    """Maps each length that tables show to its index."""
    wanted = [length for length in SHOWN_LENGTHS if length in lengths]
    wanted = wanted or sorted({lengths[0], lengths[len(lengths) // 2], lengths[-1]})
    return {str(length): lengths.index(length) for length in wanted}


def sweep_ms(microseconds: NDArray[np.float64]) -> float:
    """Returns the sum of one trip per length, in ms."""
    return float(microseconds.sum()) / 1e3


def row(results: Results, subject: Subject) -> dict[str, Any]:
    """Returns a runner's row. Times of sweeps are in ms, and times of trips in µs."""
    series = results.subjects[subject]
    floor = sweep_ms(results.floors[subject.runner.floor].median)
    sweep = sweep_ms(series.median)
    at = shown(results.lengths)

    def us(values: NDArray[np.float64]) -> dict[str, float]:
        return {length: round(float(values[i]), 3) for length, i in at.items()}

    others = {f"{name}_ms": each for name, each in results.baselines.items()} | {
        f"{name.replace('-', '_')}_floor_ms": results.floors[name]
        for name in subject.runner.other_floors
        if name in results.floors
    }
    return {
        "runner": subject.runner.name,
        "serdes": subject.serdes,
        "python": subject.policy,
        "placement": results.placement.name,
        "sweep_ms": round(sweep, 4),
        "floor_ms": round(floor, 4),
        # Round to significant digits, because shared memory's ratio is small.
        "ratio": float(f"{sweep / floor:.4g}"),
        "us": us(series.median),
        "allocations_per_message": round(series.allocations_per_message, 4),
        "sweep_mean_ms": round(sweep_ms(series.mean), 4),
        "sweep_p99_ms": round(sweep_ms(series.p99), 4),
        "us_mean": us(series.mean),
        "us_p99": us(series.p99),
        "sweeps": len(series.sweeps),
        "features": "fresh" if results.fresh else "kept",
        **{name: round(sweep_ms(other.median), 4) for name, other in others.items()},
    }


def bounds(results: Results) -> list[Bound]:
    """Returns the runners' times and allocations with their limits."""
    medians = {s: sweep_ms(series.median) for s, series in results.subjects.items()}
    where = results.placement.name
    found = []

    def add(subject: Subject | str, against: str, value: float, limit: float) -> None:
        found.append(Bound(str(subject), where, against, value, limit))

    for subject, sweep in medians.items():
        if subject.serdes == "json":
            stdlib = sweep_ms(results.baselines["stdlib"].median)
            add(subject, "stdlib json alone", sweep / stdlib, JSON_LIMIT)
        elif subject.policy == "echo":
            name, limit = subject.runner.limits[where]
            floor = sweep_ms(results.floors[name].median)
            add(subject, f"raw {name} floor", sweep / floor, limit)
        else:
            echo = medians[Subject(subject.runner, subject.serdes, "echo")]
            dot = sweep_ms(results.baselines["dot"].median)
            add(subject, "echo + NumPy dot alone", sweep / (echo + dot), FC_LIMIT)
    counted = [
        series.allocations_per_message
        for subject, series in results.subjects.items()
        if not subject.runner.allocates
    ]
    if counted:
        add("all", "allocations a message", max(counted), 0)
    return found


def sweeps_table(results: Results) -> Table:
    """Returns the times of each row as a table."""
    at = shown(results.lengths)
    features = "fresh floats" if results.fresh else "floats"
    title = f"{results.placement.name}: ms a sweep, µs a trip of so many {features}"
    columns = ("median", "/floor", "mean", "p99", *at, "mallocs")
    table = plain_table(title, [""], columns)

    def add(name: str, series: Series, ratio: str, mallocs: str, style: str) -> None:
        sums = [sweep_ms(x) for x in (series.median, series.mean, series.p99)]
        median, mean, p99 = map(number, sums)
        trips = [number(float(series.median[i])) for i in at.values()]
        table.add_row(name, median, ratio, mean, p99, *trips, mallocs, style=style)

    for name, floor in results.floors.items():
        add(f"raw {name} floor", floor, "", "", "dim")
    for subject, series in results.subjects.items():
        least = sweep_ms(results.floors[subject.runner.floor].median)
        ratio = number(sweep_ms(series.median) / least)
        add(str(subject), series, ratio, f"{series.allocations_per_message:g}", "")
    names = {"dot": "NumPy dot alone", "stdlib": "stdlib json alone"}
    for name, baseline in results.baselines.items():
        add(names[name], baseline, "", "", "dim")
    return table


def plot(measured: Sequence[Results], path: Path) -> None:
    """Plots one panel per placement."""
    with panels_of(path, len(measured), shared=True) as panels:
        for panel, results in zip(panels, measured, strict=True):
            lengths = results.lengths
            for name, floor in results.floors.items():
                panel.plot(lengths, floor.median, "--", label=f"raw {name} floor")
            for subject, series in results.subjects.items():
                panel.plot(lengths, series.median, label=str(subject))
            for name, baseline in results.baselines.items():
                panel.plot(lengths, baseline.median, ":", label=f"{name} alone")
            is_last, words = panel is panels[-1], "float32s in a request"
            finish(panel, legend=is_last, yscale="log", xlabel=words)
            panel.set_title(results.placement.name.replace("-", " "))
        panels[0].set_ylabel("median round trip, µs (lower is better)")
