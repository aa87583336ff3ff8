# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares allocators on whole programs, which stock clang compiles.

A row is a set of options of LLVM and the plug-in. A cost is the number of spills,
reloads and copies, weighted by block frequency
(compilers/llvm/RegAlloc/AllocationCost.h). Ratios are relative to LLVM's greedy
allocator.
"""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from mlbridge.envs.machine_code import text_size
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.corpus.manifest import Program
from mlbridge_optimizations.evaluation.statistics import mean_interval
from mlbridge_optimizations.show import Show, quiet

from .functions import (
    LEVEL,
    SECONDS,
    SMALLEST,
    cost_of,
)

GREEDY = "greedy"
FIXED = {
    GREEDY: "",
    "basic": "-regalloc=basic",
    "weight": "-mlbridge-regalloc-policy=weight",
    "free": "-mlbridge-regalloc-policy=free",
    "size": "-mlbridge-regalloc-policy=size",
    "eviction": "-mlbridge-regalloc-policy=eviction",
}
"""The rows that are always compared: LLVM's allocators and fixed policies."""

Function = Mapping[str, float]


@dataclass
class Measured:
    """The code of a program by one allocator.

    Attributes:
        text: the size of all code sections, in bytes.
        functions: the counts of each function, by module and function.
    """

    text: int = 0
    functions: dict[str, Function] = field(default_factory=dict)


@dataclass(frozen=True)
class Compared:
    """A row relative to greedy, for the functions in which greedy spills.

    Attributes:
        text: the ratio of code sizes.
        cost: the geometric mean of the functions' cost ratios, and its interval.
        interval: the middle 95 % of a bootstrap over the functions.
        total: the ratio of the sums of costs.
        spills: the ratio of the sums of weighted spills.
        reloads: the ratio of the sums of weighted reloads.
        instructions: the ratio of the numbers of spills and reloads in the code.
        worse: the number of functions with a higher cost than greedy's.
        functions: the number of functions.
    """

    text: float
    cost: float
    interval: tuple[float, float]
    total: float
    spills: float
    reloads: float
    instructions: float
    worse: int
    functions: int


def compare(greedy: Measured, row: Measured) -> Compared:
    """Compares two allocations of the same programs."""
    spilling = [
        name
        for name, counts in greedy.functions.items()
        if counts["spills"] + counts["reloads"] > 0 and name in row.functions
    ]

    def ratio(*kinds: str) -> float:
        before, after = (
            sum(of.functions[name][kind] for name in spilling for kind in kinds)
            for of in (greedy, row)
        )
        return after / max(before, SMALLEST)

    def costs(of: Measured) -> NDArray[np.float64]:
        found = [max(cost_of(of.functions[name]), SMALLEST) for name in spilling]
        return np.array(found, np.float64)

    before, after = costs(greedy), costs(row)
    logs = np.log(after / before)
    low, high = mean_interval(list(logs)) if spilling else (0.0, 0.0)
    return Compared(
        row.text / greedy.text if greedy.text else 1.0,
        float(np.exp(logs.mean())) if spilling else 1.0,
        (float(np.exp(low)), float(np.exp(high))),
        float(after.sum() / before.sum()) if spilling else 1.0,
        ratio("weighted_spills"),
        ratio("weighted_reloads"),
        ratio("spills", "reloads"),
        int((after > before * (1 + 1e-9)).sum()),
        len(spilling),
    )


def measure(
    programs: Sequence[Program],
    rows: Mapping[str, str],
    plugin: Path,
    *,
    jobs: int = 1,
    show: Show = quiet,
) -> dict[str, dict[str, Measured]]:
    """Compiles programs with each row's options. Returns results by row and program."""
    todo = [
        (row, options.split(), program, index)
        for row, options in rows.items()
        for program in programs
        for index in range(len(program.modules))
    ]
    found = {row: {program.name: Measured() for program in programs} for row in rows}

    def compile_one(
        item: tuple[str, list[str], Program, int],
    ) -> tuple[int, list[dict[str, float]]]:
        _, options, program, index = item
        with TemporaryDirectory(prefix="mlbridge-evaluate-") as folder:
            costs, target = Path(folder, "costs.jsonl"), Path(folder, "a.o")
            # Greedy would replace a model that fails, and the row would be wrong.
            flags = toolchain.plugin_flags(
                plugin, f"regalloc-costs={costs}", "on-error=fatal"
            )
            flags += toolchain.mllvm(options)
            command = toolchain.source_command(
                program, [program.modules[index]], LEVEL, flags
            )
            command += ["-c", "-o", str(target)]
            toolchain.run(command, folder=Path(program.root), seconds=SECONDS)
            lines = costs.read_text().splitlines() if costs.exists() else []
            return text_size(target.read_bytes(), program.name), [
                json.loads(line) for line in lines
            ]

    with ThreadPoolExecutor(jobs) as pool:
        for done, (item, (size, lines)) in enumerate(
            zip(todo, pool.map(compile_one, todo), strict=True)
        ):
            show(done + 1, len(todo))
            row, _, program, index = item
            one = found[row][program.name]
            one.text += size
            one.functions |= {f"{index}:{line['function']}": line for line in lines}
    return found


def together(programs: Mapping[str, Measured]) -> Measured:
    """Returns the sum over programs."""
    whole = Measured()
    for name, one in programs.items():
        whole.text += one.text
        whole.functions |= {f"{name}:{key}": v for key, v in one.functions.items()}
    return whole
