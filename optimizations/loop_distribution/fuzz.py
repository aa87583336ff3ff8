# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Distributes loops at random and compares the programs' outputs.

No decision about a loop may cause wrong code. Each round generates a program with
random loops, and compiles it with several random policies of the plug-in. All
executables must print the same output as without optimisation::

    python -m mlbridge_optimizations.loop_distribution.fuzz --decisions 1000000

Programs of csmith can be compiled instead; `mlbridge corpus csmith` generates them::

    export CPATH=build/workloads/csmith/usr/include/csmith
    python -m mlbridge_optimizations.loop_distribution.fuzz build/corpus/made/csmith/*.c

In one of eight compiles, LLVM's whole pipeline runs, and the code is verified after
each pass.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from mlbridge.errors import Error, ModelError, Timeout
from mlbridge.signals import sigterm_exits
from mlbridge_optimizations.built import plugin_of
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.commands.shared import Plugin
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.evaluation.fuzzing import UNWANTED, conclude, logged
from mlbridge_optimizations.show import Show, quiet

from .random_programs import program

RUN_SECONDS = 60.0
# One of this many compiles uses the whole pipeline, and verifies the code after each
# pass. All other compiles are several times as fast: they begin with the bitcode before
# vectorisation, and generate machine code without optimisation.
THOROUGH = 8
PREPARE = (
    *("-passes=default<O3>", "-vectorize-loops=false", "-vectorize-slp=false"),
    "-disable-loop-unrolling",
)
_CLEAN_UP = "instcombine<no-verify-fixpoint>,simplifycfg"
TRANSFORM = (
    "function(loop-simplify,lcssa,mlbridge-loop-distribution,loop-vectorize,"
    f"loop-load-elim,{_CLEAN_UP},loop-unroll,{_CLEAN_UP})"
)
# Floating-point contraction would change results.
FLAGS = ("-w", "-ffp-contract=off")

_COUNTS = re.compile(
    rb"(?P<loops>\d+) loops, (?P<declined>\d+) declined; (?P<partitions>\d+) "
    rb"partitions: (?P<distributed>\d+) distributed, (?P<illegal>\d+) illegal; "
    rb"(?P<factors>\d+) factors: (?P<factors_set>\d+) set"
)


@dataclass(frozen=True)
class Round:
    """A program that several random policies have compiled.

    Attributes:
        counts: the plug-in's counts, summed over the policies.
        problems: descriptions of wrong programs and failed compiles.
    """

    seed: int
    counts: dict[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def decisions(self) -> int:
        """The number of random decisions."""
        return self.counts.get("partitions", 0) + self.counts.get("factors", 0)


class _Compiler:
    """Compiles one program for one target, from bitcode that all policies share."""

    def __init__(self, source: Path, folder: Path, march: str, plugin: Path) -> None:
        self.folder = folder
        self.plugin = plugin
        self.march = march
        self.raw, self.prepared = folder / "raw.bc", folder / "prepared.bc"
        folder.mkdir()
        unoptimised = ["-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c"]
        command = [toolchain.CLANG, "-O3", *FLAGS, march, *unoptimised, str(source)]
        toolchain.run([*command, "-o", str(self.raw)])
        command = [toolchain.OPT, *PREPARE, str(self.raw), "-o", str(self.prepared)]
        toolchain.run(command)

    def compile(self, executable: Path, seed: int) -> bytes:
        """Compiles with a seed's random policy. Returns the compiler's messages."""
        optimised = self.folder / "optimised.bc"
        given = [f"-mlbridge-loop-seed={seed}", "-mlbridge-print-statistics"]
        command = [toolchain.OPT, f"-load-pass-plugin={self.plugin}", *given]
        command += ["-load", str(self.plugin)]
        if seed % THOROUGH:
            command += [f"-passes={TRANSFORM}", str(self.prepared)]
        else:
            verify = ["-verify-each", "-verify-loop-info", "-verify-dom-info"]
            command += ["-passes=default<O3>", *verify, str(self.raw)]
        said = toolchain.run([*command, "-o", str(optimised)])[1]
        level = "-O0" if seed % THOROUGH else "-O3"
        generate = [toolchain.CLANG, level, "-w", "-Xclang", "-disable-llvm-passes"]
        command = [*generate, self.march, str(optimised), "-o", str(executable)]
        toolchain.run(command)
        return said


def one_round(
    seed: int,
    policies: int,
    plugin: Path,
    march: Sequence[str],
    text: str | None = None,
) -> Round:
    """Compiles one program with several policies. By default, generates the program."""
    counts: Counter[str] = Counter()
    problems = []
    with TemporaryDirectory(prefix="mlbridge-loops-") as name:
        source = Path(name, "loops.c")
        source.write_text(program(seed) if text is None else text)
        reference = Path(name, "reference")
        toolchain.run(
            [toolchain.CLANG, "-O0", *FLAGS, str(source), "-o", str(reference)]
        )
        try:
            expected, _ = toolchain.run([reference], seconds=RUN_SECONDS)
        except Timeout:
            return Round(seed, {"too_slow": 1})
        compilers: dict[str, _Compiler] = {}
        for policy in range(policies):
            executable = Path(name, "program")
            number = seed * policies + policy
            flag = march[number // THOROUGH % len(march)]
            try:
                if flag not in compilers:
                    folder = Path(name, str(len(compilers)))
                    compilers[flag] = _Compiler(source, folder, flag, plugin)
                said = compilers[flag].compile(executable, number)
                found = _COUNTS.search(said)
                if found:
                    counts.update({k: int(v) for k, v in found.groupdict().items()})
                elif text is None:  # Every random program has loops.
                    raise ModelError(f"no statistics: {said[-500:]!r}")
                if unwanted := UNWANTED.search(said):
                    raise ModelError(unwanted.group().decode())
                printed, _ = toolchain.run([executable], seconds=RUN_SECONDS)
                if printed != expected:
                    raise ModelError("other output than at -O0")
            except Error as error:
                problems.append(f"program {seed}, policy {number}, {flag}: {error}")
    return Round(seed, dict(counts), tuple(problems))


def targets() -> list[str]:
    """Returns clang's flags for baseline x86-64, and for AVX2 if this CPU has it."""
    info = Path("/proc/cpuinfo")
    flags = info.read_text() if info.exists() else ""
    wide = all(f" {name}" in flags for name in ("avx2", "fma", "bmi2"))
    return ["-march=x86-64", *(["-march=x86-64-v3"] if wide else [])]


def fuzz(
    decisions: int,
    plugin: Path,
    *,
    seed: int = 0,
    policies: int = 16,
    jobs: int = 1,
    programs: Sequence[Path] = (),
    show: Show = quiet,
) -> Iterator[Round]:
    """Yields rounds until they have made at least ``decisions`` decisions in total.

    If ``programs`` is not empty, ends after the last program.
    """
    made = 0
    march = targets()

    def run(number: int) -> Round:
        text = programs[number].read_text() if programs else None
        return one_round(number, policies, plugin, march, text)

    numbers = iter(range(seed, len(programs)) if programs else count(seed))
    with ThreadPoolExecutor(jobs) as pool:
        while batch := list(islice(numbers, jobs)):
            rounds = pool.map(run, batch)
            for found in rounds:
                made += found.decisions
                show(min(made, decisions), decisions)
                yield found
            if made >= decisions:
                return


def main(
    programs: Annotated[
        list[Path] | None,
        typer.Argument(help="C programs. [default: random programs]"),
    ] = None,
    decisions: Annotated[
        int, typer.Option(min=1, help="Stop after this many decisions.")
    ] = 100_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first program.")] = 0,
    policies: Annotated[
        int, typer.Option(min=1, help="Random policies for each program.")
    ] = 16,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Programs in parallel.")
    ] = os.cpu_count() or 1,
    plugin: Plugin = None,
    out: Annotated[
        Path, typer.Option(help="File for the rounds, to which lines are appended.")
    ] = Path("build/loop-distribution/fuzz.jsonl"),
) -> None:
    """Check that random decisions about loops do not change what programs print."""
    # On SIGTERM, wait for the programs that run.
    with sigterm_exits(), ProgressBars() as bars:
        rounds = logged(
            fuzz(
                decisions,
                plugin_of(plugin),
                seed=seed,
                policies=policies,
                jobs=jobs,
                programs=programs or (),
                show=bars.stage("Decisions"),
            ),
            out,
            lambda one: one.problems,
        )
    total: Counter[str] = Counter()
    for one in rounds:
        total.update(one.counts)
    numbers = {name.replace("_", " "): value for name, value in total.items()}
    wrong = sum(len(one.problems) for one in rounds)
    conclude(
        "Random decisions about loops",
        {"programs": len(rounds), **numbers, "wrong compiles": wrong},
        "wrong compiles",
    )


if __name__ == "__main__":
    typer.run(main)
