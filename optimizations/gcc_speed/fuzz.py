# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles with random policies of gcc's plug-in and compares the programs' outputs.

No decision may make gcc fail or generate wrong code. Each policy draws which of the
four decisions it makes, and how often it leaves a decision to gcc. With each policy,
gcc compiles one file of a C, C++ or csmith program, at -O2 or -O3::

    python -m mlbridge_optimizations.gcc_speed.fuzz --policies 1000

`mlbridge corpus fetch` and `mlbridge corpus csmith` make the programs.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

import mlbridge
from mlbridge.errors import Error, ModelError
from mlbridge.files import OwnFolder
from mlbridge.signals import sigterm_exits
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.corpus.manifest import Corpus, Program, load
from mlbridge_optimizations.evaluation.fuzzing import conclude, logged
from mlbridge_optimizations.show import Show, quiet

from .measure import Build, Plugin, SmallTester, find_plugin
from .models import (
    DECISIONS,
    GCC_DECIDES,
    Answer,
    Served,
    served,
)

REAL = ("bzip2", "libjsoncpp", "lua", "minisat", "zlib")
LEVELS = "-O2", "-O3"
GENERATED = 40
"""The maximum number of csmith programs, because each needs a stock build, too."""

CHOICES = {
    "inline": (0, 1),
    "unroll": (1, 2, 3, 4, 8, 16),
    "flags": range(1, 7),
    "gates": (0,),
}


@dataclass(frozen=True)
class Round:
    """A test of a random policy: one file of a program was compiled with the policy.

    Attributes:
        requests: the number of gcc's requests.
        problem: describes the problem, or is an empty string.
    """

    policy: int
    program: str
    decisions: tuple[str, ...]
    requests: int
    problem: str = ""


def random_answers(draw: random.Random) -> tuple[tuple[str, ...], Answer]:
    """Draws decisions, and a policy that answers requests about them."""
    decisions = tuple(draw.sample(DECISIONS, draw.randint(1, len(DECISIONS))))
    rates = {one: draw.choice((0.02, 0.2, 0.6, 0.9, 1.0)) for one in decisions}

    def answer(decision: str, features: mlbridge.Features) -> int:
        if draw.random() < rates[decision]:
            return draw.choice(CHOICES[decision])
        return GCC_DECIDES[decision]

    return decisions, answer


class Fuzzer:
    """Compiles programs with random policies. `folder` stores stock gcc's objects."""

    def __init__(
        self, corpus: Corpus, real: Sequence[str], plugin: Path, folder: Path
    ) -> None:
        self.plugin, self.folder = plugin, folder
        self.real = [corpus.program(name) for name in real]
        generated = (p for p in corpus.programs.values() if p.split == "generated")
        self.generated = list(islice(generated, GENERATED))
        self._stock: dict[str, tuple[Build, SmallTester]] = {}

    def stock(self, program: Program) -> tuple[Build, SmallTester]:
        """Returns the program's objects from stock gcc, and the program's tester."""
        if program.name not in self._stock:
            build = Build(program, self.folder / program.name).all()
            executable = build.link(build.folder / "stock")
            self._stock[program.name] = build, SmallTester(program, executable)
        return self._stock[program.name]

    def round(self, policy: int, server: Served) -> Round:
        """Compiles one file of a program with a policy, and tests the program."""
        draw = random.Random(policy)
        # Half of the policies compile a real program.
        is_real = draw.random() < 0.5 or not self.generated
        program = draw.choice(self.real if is_real else self.generated)
        decisions, server.answer = random_answers(draw)
        before = sum(server.counts.values())
        problem = ""
        try:
            problem = self._compile(program, draw, server, decisions)
        except Error as error:
            problem = f"policy {policy}, {program.name}: {error}"
        requests = sum(server.counts.values()) - before
        return Round(policy, program.name, decisions, requests, problem)

    def _compile(
        self,
        program: Program,
        draw: random.Random,
        server: Served,
        decisions: Sequence[str],
    ) -> str:
        build, tester = self.stock(program)
        source, level = draw.choice(list(build.objects)), draw.choice(LEVELS)
        target = build.folder / "random.o"
        flags = [level, *server.flags(self.plugin, decisions)]
        said = build.compile(source, target, flags)
        if said:
            raise ModelError(f"{source}: {said[-2000:]}")
        executable = build.link(build.folder / "random", {source: target})
        done = tester.run(executable, 60.0 + tester.generous_limit())
        return done.problem


def fuzz(
    corpus: Corpus,
    policies: int,
    *,
    seed: int = 0,
    real: Sequence[str] = REAL,
    plugin: Path | None = None,
    show: Show = quiet,
) -> Iterator[Round]:
    """Yields a round for each policy. The policies' seeds start at `seed`."""
    with OwnFolder("mlbridge-gcc-fuzz-") as folder, served() as server:
        fuzzer = Fuzzer(corpus, real, find_plugin(plugin), folder.path)
        for number in range(policies):
            yield fuzzer.round(seed + number, server)
            show(number + 1, policies)


def main(
    policies: Annotated[int, typer.Option(help="Number of random policies.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the first policy.")] = 0,
    corpus: Annotated[Path, typer.Option(help="The corpus folder.")] = Path(
        "build/corpus"
    ),
    plugin: Plugin = None,
    out: Annotated[Path, typer.Option(help="File to append the rounds to.")] = Path(
        "build/gcc-speed/fuzz.jsonl"
    ),
) -> None:
    """Compile with random policies."""
    with sigterm_exits(), ProgressBars() as bars:
        rounds = fuzz(
            load(corpus),
            policies,
            seed=seed,
            plugin=plugin,
            show=bars.stage("Policies"),
        )
        done = logged(rounds, out, lambda one: [one.problem] if one.problem else [])
    numbers = {
        "policies": len(done),
        "requests": sum(one.requests for one in done),
        "wrong": sum(bool(one.problem) for one in done),
    }
    conclude("Random policies", numbers, "wrong")


if __name__ == "__main__":
    typer.run(main)
