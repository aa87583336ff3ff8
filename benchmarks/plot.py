# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plots, of what the paper has as figures and a table."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from mlbridge_benchmarks.rtt.inprocess import Measured
from mlbridge_benchmarks.rtt.measurement import Results
from mlbridge_benchmarks.threads.threads import Cells

if TYPE_CHECKING:
    from mlbridge_benchmarks.phase_ordering.compile_time import Results as CompileTimes
    from mlbridge_benchmarks.phase_ordering.training import Results as Trainings


def is_available() -> bool:
    """Whether matplotlib is installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def save(measured: Sequence[Results], path: Path) -> None:
    """Writes a PNG with one panel a placement."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5 * len(measured), 5), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(measured), sharey=True, squeeze=False)[0]
    for panel, results in zip(panels, measured, strict=True):
        lengths = results.lengths
        for name, floor in results.floors.items():
            panel.plot(lengths, floor.median, "--", label=f"raw {name} floor")
        for subject, series in results.subjects.items():
            label = f"{subject.runner.name} {subject.serdes} {subject.policy}"
            panel.plot(lengths, series.median, label=label)
        for name, baseline in results.baselines.items():
            panel.plot(lengths, baseline.median, ":", label=f"{name} alone")
        panel.set_yscale("log")
        panel.set_title(results.placement.name)
        panel.set_xlabel("float32s in a question")
        panel.grid(visible=True, which="both", alpha=0.25)
    panels[0].set_ylabel("median round trip, us")
    panels[-1].legend(fontsize="small")
    figure.savefig(path, dpi=130)


def save_in_process(found: Sequence[Measured], path: Path) -> None:
    """Writes a PNG with one panel a policy: each runner, and its floor dashed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    policies = [name for name in dict.fromkeys(m.model for m in found) if name != "mlp"]
    figure = Figure(figsize=(6.5 * len(policies), 5), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(policies), sharey=True, squeeze=False)[0]
    for panel, policy in zip(panels, policies, strict=True):
        runtimes = dict.fromkeys(m.runtime for m in found)
        for colour, runtime in enumerate(runtimes):
            mine = [m for m in found if (m.model, m.runtime) == (policy, runtime)]
            lengths = [m.floats for m in mine]
            panel.plot(
                lengths, [m.runner_us for m in mine], f"C{colour}", label=runtime
            )
            panel.plot(
                lengths,
                [m.floor_us for m in mine],
                f"C{colour}--",
                label=f"{runtime}, direct call",
            )
        panel.set_yscale("log")
        panel.set_title(policy)
        panel.set_xlabel("float32s in a question")
        panel.grid(visible=True, which="both", alpha=0.25)
    panels[0].set_ylabel("median call, us")
    panels[-1].legend(fontsize="small")
    figure.savefig(path, dpi=130)


def save_threads(decided: Cells, compiled: Cells, path: Path) -> None:
    """Writes a PNG: decisions a second, and the time of compiling, over N."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    wanted = [
        (cells, label)
        for cells, label in (
            (decided, "decisions/s"),
            (compiled, "s to compile all"),
        )
        if cells
    ]
    figure = Figure(figsize=(6.5 * len(wanted), 5), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(wanted), squeeze=False)[0]
    for panel, (cells, label) in zip(panels, wanted, strict=True):
        runners = dict.fromkeys(runner for runner, _, _ in cells)
        for colour, name in enumerate(runners):
            for side, dashes in (("threads", "-"), ("processes", "--")):
                mine = {
                    n: c for (r, n, s), c in cells.items() if (r, s) == (name, side)
                }
                values = [
                    cell.rate if cells is decided else cell.seconds
                    for cell in mine.values()
                ]
                panel.plot(
                    list(mine), values, f"C{colour}{dashes}o", label=f"{name}, {side}"
                )
        panel.set_xlabel("threads of one process, or processes")
        panel.set_ylabel(label)
        panel.set_xscale("log", base=2)
        if cells is decided:
            panel.set_yscale("log")
        else:
            panel.set_ylim(bottom=0)
        panel.grid(visible=True, which="both", alpha=0.25)
        panel.legend(fontsize="small")
    figure.savefig(path, dpi=130)


def save_compile_time(results: "CompileTimes", path: Path) -> None:
    """Writes a PNG: seconds for all modules by flow, and of each over its size."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 5), layout="constrained")
    FigureCanvasAgg(figure)
    bars, points = figure.subplots(1, 2)
    names = list(results.runs)
    colours = [f"C{i}" for i in range(len(names))]
    shown = bars.barh(names, [results.total(name) for name in names], color=colours)
    bars.bar_label(shown, fmt="%.2f s", padding=3)
    bars.invert_yaxis()
    bars.margins(x=0.15)
    bars.set_xlabel("s for all modules")
    for colour, name in zip(colours, names, strict=True):
        runs = results.runs[name]
        times = [1e3 * median(r.seconds for r in runs[file]) for file in results.files]
        points.plot(list(results.files.values()), times, f"{colour}.", label=name)
    points.set_xscale("log")
    points.set_yscale("log")
    points.set_xlabel("instructions of a module")
    points.set_ylabel("ms")
    points.grid(visible=True, which="both", alpha=0.25)
    points.legend(fontsize="small")
    figure.savefig(path, dpi=130)


def save_training(results: "Trainings", path: Path) -> None:
    """Writes a PNG: steps a second, and time over iterations of a learner."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    count = 2 if results.learned else 1
    figure = Figure(figsize=(6.5 * count, 5), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, count, squeeze=False)[0]
    keys = list(results.played)
    labels = [f"{flow}, {n} worker{'s' * (n > 1)}" for flow, n in keys]
    flows = list(dict.fromkeys(flow for flow, _ in keys))
    colours = [f"C{flows.index(flow)}" for flow, _ in keys]
    shown = panels[0].barh(labels, [results.rate(*key) for key in keys], color=colours)
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
    figure.savefig(path, dpi=130)
