# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plot: us a trip over the length, as in the paper's figure 5c."""

from collections.abc import Sequence
from pathlib import Path

from mlbridge.bench.measurement import Results


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
