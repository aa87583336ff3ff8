# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plots of compile times and of training."""

from pathlib import Path
from statistics import median

from mlbridge_benchmarks.common.plot import panels_of
from mlbridge_benchmarks.phase_ordering.compile_time import Results as CompileTimes
from mlbridge_benchmarks.phase_ordering.training import Results as Trainings


def save_compile_time(results: CompileTimes, path: Path) -> None:
    """Writes a PNG: seconds for all modules by flow, and of each over its size."""
    with panels_of(path, 2) as (bars, points):
        names = list(results.runs)
        colours = [f"C{i}" for i in range(len(names))]
        shown = bars.barh(names, [results.total(name) for name in names], color=colours)
        bars.bar_label(shown, fmt="%.2f s", padding=3)
        bars.invert_yaxis()
        bars.margins(x=0.15)
        bars.set_xlabel("s for all modules")
        for colour, name in zip(colours, names, strict=True):
            runs = results.runs[name]
            times = [
                1e3 * median(r.seconds for r in runs[file]) for file in results.files
            ]
            points.plot(list(results.files.values()), times, f"{colour}.", label=name)
        points.set_xscale("log")
        points.set_yscale("log")
        points.set_xlabel("instructions of a module")
        points.set_ylabel("ms")
        points.grid(visible=True, which="both", alpha=0.25)
        points.legend(fontsize="small")


def save_training(results: Trainings, path: Path) -> None:
    """Writes a PNG: steps a second, and time over iterations of a learner."""
    count = 2 if results.learned else 1
    with panels_of(path, count) as panels:
        keys = list(results.played)
        labels = [f"{flow}, {n} worker{'s' * (n > 1)}" for flow, n in keys]
        flows = list(dict.fromkeys(flow for flow, _ in keys))
        colours = [f"C{flows.index(flow)}" for flow, _ in keys]
        shown = panels[0].barh(
            labels, [results.rate(*key) for key in keys], color=colours
        )
        panels[0].bar_label(shown, fmt="%.1f", padding=3)
        panels[0].invert_yaxis()
        panels[0].margins(x=0.15)
        panels[0].set_xlabel("steps/s, without a learner")
        for (flow, workers), colour in zip(keys, colours, strict=True):
            if (flow, workers) in results.learned:
                seconds = results.learning_seconds(flow, workers)
                panels[1].plot(
                    range(1, len(seconds) + 1),
                    seconds,
                    f"{colour}{'-' if workers == 1 else '--'}o",
                    label=f"{flow}, {workers}",
                )
        if results.learned:
            panels[1].set_xlabel("iterations of a DQN")
            panels[1].set_ylabel("s")
            panels[1].set_yscale("log")
            panels[1].grid(visible=True, which="both", alpha=0.25)
            panels[1].legend(fontsize="small")
