# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How large the modules of a corpus are, as a plot."""

from pathlib import Path

from mlbridge_optimizations.corpus.manifest import Corpus


def plot_sizes(corpus: Corpus, path: Path) -> None:
    """Writes a PNG: a point for each module, in a row for each program."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    programs = corpus.select()
    figure = Figure(figsize=(8, 1 + 0.3 * len(programs)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    colours = {"training": "C0", "held-out": "C1"}
    for row, program in enumerate(programs):
        sizes = [m.instructions for m in program.modules if m.functions]
        colour = colours[program.split]
        axes.plot(sizes, [row] * len(sizes), "o", color=colour, alpha=0.4)
    for split, colour in colours.items():
        axes.plot([], [], "o", color=colour, label=split)
    axes.set_yticks(range(len(programs)), [program.name for program in programs])
    axes.set_xscale("log")
    axes.set_xlabel("instructions in a module, before optimisation")
    axes.grid(visible=True, alpha=0.25)
    axes.legend(loc="best", fontsize="small")
    figure.savefig(path, dpi=120)
