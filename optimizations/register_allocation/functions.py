# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions whose registers are hard to allocate, as small bitcode files.

In most functions, every live range finds a free register, or all policies make the same
code. The other functions are extracted into one file for each module of a corpus, so
that a policy can be tried on all of them in seconds.
"""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mlbridge.errors import InvalidArgument
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.corpus.manifest import Program
from mlbridge_optimizations.show import Show, quiet

LLC = "llc-22"
EXTRACT = "llvm-extract-22"
LEVEL = "-O2"
# Trials of long functions take seconds, and the machine may be busy.
SECONDS = 1800.0
# Costs below 0.1 instructions per run are raised to 0.1. Without this limit, a function
# whose last spill disappears would outweigh all other functions in a geometric mean.
SMALLEST = 0.1
_EVERY = ("-mlbridge-regalloc-search=5", "-mlbridge-regalloc-search-all")


def bitcode_files(folder: Path) -> list[Path]:
    """Returns the files that `extract` has written, or raises InvalidArgument."""
    files = sorted(folder.glob("*.bc"))
    if not files:
        raise InvalidArgument(
            f"{folder}: expected bitcode files, found none; write them with"
            " `mlbridge search register-allocation-functions`"
        )
    return files


def cost_of(line: Mapping[str, float]) -> float:
    """Returns the weighted cost in a line that the plug-in printed for a function."""
    return sum(line[f"weighted_{kind}"] for kind in ("spills", "reloads", "copies"))


@dataclass(frozen=True)
class Costs:
    """The weighted costs of a function: spills, reloads and copies.

    Attributes:
        trials: the cost by each policy, which is None if the policy failed.
        line: the plug-in's counts of the final allocation.
    """

    module: str
    function: str
    trials: Mapping[str, float | None]
    line: Mapping[str, float]

    @property
    def greedy(self) -> float:
        """The cost by LLVM's greedy allocator. 0 if the function was not searched."""
        return self.trials.get("greedy") or 0.0

    @property
    def final(self) -> float:
        """The cost of the final allocation."""
        return cost_of(self.line)

    @property
    def policies_differ(self) -> bool:
        """Whether a policy's cost differs from greedy's by more than 0.1 %."""
        return any(
            cost is not None and abs(cost - self.greedy) > 0.001 * self.greedy
            for cost in self.trials.values()
        )


def llc_command(module: Path, plugin: Path, options: Sequence[str]) -> list[str]:
    """Returns a command that generates x86-64 code and discards it."""
    flags = [LLC, LEVEL, "-relocation-model=pic", "-filetype=obj", str(module)]
    return [*flags, "-o", "/dev/null", f"-load={plugin}", *options]


def costs_of(
    modules: Sequence[Path],
    plugin: Path,
    options: Sequence[str],
    *,
    jobs: int = 1,
    show: Show = quiet,
) -> list[Costs]:
    """Generates code for modules, and returns the costs of all their functions."""

    def compile_one(item: tuple[int, Path]) -> Path:
        number, module = item
        file = Path(folder, f"{number}.jsonl")
        costs = f"-mlbridge-regalloc-costs={file}"
        command = llc_command(module, plugin, [*options, costs])
        toolchain.run(command, seconds=SECONDS)
        return file

    found = []
    with (
        TemporaryDirectory(prefix="mlbridge-costs-") as folder,
        ThreadPoolExecutor(jobs) as pool,
    ):
        files = pool.map(compile_one, enumerate(modules))
        for done, (module, file) in enumerate(zip(modules, files, strict=True)):
            show(done + 1, len(modules))
            lines = file.read_text().splitlines() if file.exists() else []
            found += [_parse(module, json.loads(line)) for line in lines]
    return found


def _parse(module: Path, line: dict[str, Any]) -> Costs:
    trials = line.pop("trials", {})
    name = line.pop("function")
    line.pop("module")
    return Costs(str(module), name, trials, line)


def extract(
    programs: Sequence[Program],
    plugin: Path,
    folder: Path,
    *,
    jobs: int = 1,
    show: Show = quiet,
) -> list[Path]:
    """Writes the functions for which fixed policies differ, in one file per module.

    Files that exist are kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    todo = [
        (program, index)
        for program in programs
        for index in range(len(program.modules))
    ]
    with ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda it: _extract(it[0], it[1], plugin, folder), todo)
        files = []
        for done, file in enumerate(results):
            show(done + 1, len(todo))
            if file is not None:
                files.append(file)
    return files


def _extract(program: Program, index: int, plugin: Path, folder: Path) -> Path | None:
    target = folder / f"{program.name}-{index}.bc"
    easy = folder / f"{program.name}-{index}.easy"
    if target.exists():
        return target
    if easy.exists():
        return None
    with TemporaryDirectory(prefix="mlbridge-extract-") as scratch:
        optimised = Path(scratch, "module.bc")
        command = toolchain.source_command(
            program, [program.modules[index]], LEVEL, ["-emit-llvm"]
        )
        command += ["-c", "-o", str(optimised)]
        toolchain.run(command, folder=Path(program.root))
        found = costs_of([optimised], plugin, _EVERY)
        hard = [costs for costs in found if costs.policies_differ]
        if not hard:
            easy.touch()
            return None
        names = [f"--func={costs.function}" for costs in hard]
        part = Path(scratch, "part.bc")
        toolchain.run([EXTRACT, str(optimised), *names, "-o", str(part)])
        part.replace(target)
    return target
