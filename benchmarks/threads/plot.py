# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plot of threads and processes."""

from pathlib import Path

from mlbridge_benchmarks.common.plot import panels_of
from mlbridge_benchmarks.threads.threads import Cells


def save(decided: Cells, compiled: Cells, path: Path) -> None:
    """Writes a PNG: decisions a second, and the time of compiling, over N."""
    wanted = [
        (cells, label)
        for cells, label in (
            (decided, "decisions/s"),
            (compiled, "s to compile all"),
        )
        if cells
    ]
    with panels_of(path, len(wanted)) as panels:
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
                        list(mine),
                        values,
                        f"C{colour}{dashes}o",
                        label=f"{name}, {side}",
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
