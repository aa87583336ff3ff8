# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plots of round trips: between processes, and within one."""

from collections.abc import Sequence
from pathlib import Path

from mlbridge_benchmarks.common.plot import panels_of
from mlbridge_benchmarks.rtt.inprocess import Measured
from mlbridge_benchmarks.rtt.measurement import Results


def save(measured: Sequence[Results], path: Path) -> None:
    """Writes a PNG with one panel a placement."""
    with panels_of(path, len(measured), shared=True) as panels:
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


def save_in_process(found: Sequence[Measured], path: Path) -> None:
    """Writes a PNG with one panel a policy: each runner, and its floor dashed."""
    policies = [name for name in dict.fromkeys(m.model for m in found) if name != "mlp"]
    with panels_of(path, len(policies), shared=True) as panels:
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
