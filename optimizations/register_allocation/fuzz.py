# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Allocates registers at random and compares the programs' outputs.

No decision of a policy may cause wrong code. In each round, random policies of the
plug-in allocate all functions of a program, LLVM's verifier checks the machine code,
and the program must print the same output as without optimisation. The verifier runs
before and after LLVM's allocator, and in one of eight rounds after each pass. The code
before register allocation is always the same, so it is made only once::

    python -m mlbridge_optimizations.register_allocation.fuzz --decisions 50000000

For AArch64, C programs that need no library run under qemu::

    python -m mlbridge_optimizations.register_allocation.fuzz --target aarch64
"""

import os
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import typer

from mlbridge.errors import Error, InvalidArgument
from mlbridge.signals import sigterm_exits
from mlbridge.terminal import console
from mlbridge_optimizations.built import plugin_of
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.commands.shared import CorpusFolder, Plugin, Programs, Split
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.corpus.manifest import Corpus, Program, load
from mlbridge_optimizations.corpus.runs import Tester
from mlbridge_optimizations.evaluation.fuzzing import conclude, logged
from mlbridge_optimizations.show import Show, quiet

LEVEL = "-O2"
# One of this many rounds verifies the machine code after each pass.
THOROUGH = 8
# The C library overwrites freed memory, so that a later use probably crashes.
ENVIRONMENT = ("env", "MALLOC_PERTURB_=165")


@dataclass(frozen=True)
class Target:
    """A machine for which programs are compiled.

    Attributes:
        flags: clang's flags.
        link: further flags for linking.
        emulator: the command that runs an executable, or an empty string.
        packages: Debian packages that must be installed.
        slowdown: the factor by which a program may run longer than natively.
    """

    flags: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    emulator: str = ""
    packages: str = ""
    slowdown: float = 1.0

    def can_link(self, program: Program) -> bool:
        """Whether all libraries that the program needs are installed for the target."""
        alone = set(program.libraries) <= {"-lm", "-lpthread"}
        return not self.emulator or (alone and not program.is_cpp)


TARGETS = {
    "x86-64": Target(),
    "aarch64": Target(
        ("--target=aarch64-linux-gnu",),
        ("--target=aarch64-linux-gnu", "-static"),
        "qemu-aarch64",
        "qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
        20.0,
    ),
}

# The plug-in's statistics: each word follows its number.
_COUNT = re.compile(rb"(\d+) (decisions|evicted|split|spilled|recoloured|live ranges)")


@dataclass(frozen=True)
class Round:
    """A program that one random policy has compiled.

    Attributes:
        decisions: the number of the policy's decisions.
        left: the number of live ranges that the policy left to greedy.
        problem: why the program is wrong, or an empty string.
        command: a command that compiles one file of the program as in this round.
    """

    program: str
    seed: int
    decisions: int = 0
    evicted: int = 0
    split: int = 0
    spilled: int = 0
    recoloured: int = 0
    left: int = 0
    problem: str = ""
    command: str = ""


def flags_of(plugin: Path, seed: int) -> list[str]:
    """Returns clang's flags for the random policy with this seed.

    The seed also determines how often the policy splits, spills and evicts. In one of
    four rounds, the policy leaves some live ranges to greedy.
    """
    draw = np.random.default_rng(seed)
    chances = {
        "split": draw.integers(5, 96),
        "spill": draw.integers(0, 40),
        "evict": draw.integers(0, 91),
        "stop": draw.integers(1, 100) if draw.integers(4) == 0 else 0,
    }
    options = [f"regalloc-random-{name}={value}" for name, value in chances.items()]
    options += ["regalloc-policy=random", f"regalloc-seed={seed}", "print-statistics"]
    thorough = seed % THOROUGH == 0
    verify = toolchain.mllvm(
        ["-verify-machineinstrs" if thorough else "-verify-regalloc"]
    )
    return [*toolchain.plugin_flags(plugin, *options), *verify]


def fuzz(
    corpus: Corpus,
    programs: Sequence[Program],
    plugin: Path,
    decisions: int,
    *,
    target: Target = TARGETS["x86-64"],
    seed: int = 0,
    jobs: int = 1,
    show: Show = quiet,
) -> Iterator[Round]:
    """Yields rounds until they have made at least `decisions` decisions in total.

    Each seed compiles all programs. `jobs` programs are compiled in parallel.
    """
    made = 0
    with (
        TemporaryDirectory(prefix="mlbridge-fuzz-") as name,
        ThreadPoolExecutor(jobs) as pool,
    ):
        bitcode = dict(
            pool.map(lambda it: (it.name, _optimized(it, target, Path(name))), programs)
        )
        for number in count(seed):
            flags = flags_of(plugin, number)
            todo = [
                (corpus, program, target, flags, number, bitcode[program.name])
                for program in programs
            ]
            for found in pool.map(lambda it: _round(*it), todo):
                made += found.decisions
                show(min(made, decisions), decisions)
                yield found
            if made >= decisions:
                return


def works_with_stock(corpus: Corpus, program: Program, target: Target) -> bool:
    """Whether the program can be tested on the target.

    Some programs are configured for x86-64, or their output depends on the processor.
    """
    if not target.can_link(program):
        return False
    with TemporaryDirectory(prefix="mlbridge-fuzz-") as folder:
        try:
            bitcode = _optimized(program, target, Path(folder))
        except Error:
            return False
        return not _round(corpus, program, target, [], 0, bitcode).problem


def _optimized(program: Program, target: Target, folder: Path) -> list[Path]:
    """Compiles all files of a program to optimised bitcode in a folder."""
    files = [folder / f"{program.name}-{n}.bc" for n in range(len(program.modules))]
    for module, file in zip(program.modules, files, strict=True):
        flags = [*target.flags, "-emit-llvm"]
        toolchain.compile_source(program, module, file, LEVEL, flags)
    return files


def _round(
    corpus: Corpus,
    program: Program,
    target: Target,
    more: Sequence[str],
    seed: int,
    bitcode: Sequence[Path],
) -> Round:
    """Compiles a program from optimised bitcode, and runs its test."""
    flags = [*target.flags, *more]
    counts: Counter[str] = Counter()
    command: list[str] = []
    with TemporaryDirectory(prefix="mlbridge-fuzz-") as folder:
        try:
            objects = []
            for number, module in enumerate(program.modules):
                file = Path(folder, f"{number}.o")
                output = ["-c", "-o", str(file)]
                # Report a command for sources, because users have no bitcode.
                command = toolchain.source_command(program, [module], LEVEL, flags)
                command += output
                generate = toolchain.codegen_command(
                    program, bitcode[number], LEVEL, flags
                )
                _, said = toolchain.run(
                    [*ENVIRONMENT, *generate, *output], folder=Path(program.root)
                )
                for value, name in _COUNT.findall(said):
                    counts[name.decode()] += int(value)
                objects.append(file)
            executable = Path(folder, "program")
            linked = (
                executable.with_suffix(".linked") if target.emulator else executable
            )
            flags = [*target.link, *program.libraries]
            toolchain.link(objects, flags, linked, cpp=program.is_cpp)
            if target.emulator:
                executable.write_text(
                    f'#!/bin/sh\nexec {target.emulator} {linked} "$@"\n'
                )
                executable.chmod(0o755)
            with Tester(corpus, program) as tester:
                limit = target.slowdown * tester.generous_limit()
                problem = tester.run(executable, limit).problem
        except Error as error:
            problem = str(error)
    see = f"cd {shlex.quote(program.root)} && {shlex.join(command)}" if problem else ""
    left = counts.pop("live ranges", 0)
    return Round(program.name, seed, **counts, left=left, problem=problem, command=see)


def main(
    decisions: Annotated[
        int, typer.Option(min=1, help="Stop after this many decisions.")
    ] = 1_000_000,
    programs: Programs = None,
    corpus: CorpusFolder = Path("build/corpus"),
    split: Split = "training",
    target: Annotated[
        str, typer.Option(help="What to compile for: x86-64 or aarch64.")
    ] = "x86-64",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first round.")] = 0,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Programs in parallel.")
    ] = os.cpu_count() or 1,
    plugin: Plugin = None,
    out: Annotated[
        Path, typer.Option(help="File for the rounds, to which lines are appended.")
    ] = Path("build/register-allocation/fuzz.jsonl"),
) -> None:
    """Check that random register allocation does not change the programs' output."""
    found = load(corpus.resolve())
    chosen = found.select(split, only=programs or ())
    if target not in TARGETS:
        raise InvalidArgument(
            f"--target: expected one of {', '.join(TARGETS)}, found {target!r}"
        )
    kind = TARGETS[target]
    if kind.emulator and not shutil.which(kind.emulator):
        raise InvalidArgument(
            f"--target {target}: install the Debian packages {kind.packages}"
        )
    if kind.emulator:
        chosen = [one for one in chosen if works_with_stock(found, one, kind)]
        console.print(f"Programs for {target}: {', '.join(one.name for one in chosen)}")
    # On SIGTERM, wait for the programs that run.
    with sigterm_exits(), ProgressBars() as bars:
        rounds = logged(
            fuzz(
                *(found, chosen, plugin_of(plugin), decisions),
                target=kind,
                seed=seed,
                jobs=jobs,
                show=bars.stage("Decisions"),
            ),
            out,
            _problems_of,
        )
    numbers = {"programs compiled": len(rounds)}
    for name in ("decisions", "evicted", "split", "spilled", "recoloured", "left"):
        numbers[name] = sum(getattr(one, name) for one in rounds)
    numbers["wrong programs"] = sum(bool(one.problem) for one in rounds)
    conclude("Register allocation at random", numbers, "wrong programs")


def _problems_of(one: Round) -> list[str]:
    if not one.problem:
        return []
    return [f"{one.program}, seed {one.seed}: {one.problem}; {one.command}"]


if __name__ == "__main__":
    typer.run(main)
