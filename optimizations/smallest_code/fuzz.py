# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decides about code size at random and compares the programs' outputs.

No decision about inlining, passes or outlining may cause wrong code. Each random policy
compiles several programs, which must print the same output as without optimisation. A
policy is a pair of random models, or it replays random decisions from a file. By
default, the programs are those that `mlbridge corpus csmith` has generated::

    python -m mlbridge_optimizations.smallest_code.fuzz --policies 50
"""

import os
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import typer

from mlbridge.errors import Error, InvalidArgument, ModelError
from mlbridge.files import spec_of
from mlbridge.signals import sigterm_exits
from mlbridge_optimizations.built import plugin_of
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.commands.shared import CorpusFolder, Plugin, Programs, Split
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.corpus.manifest import Corpus, Module, Program, load
from mlbridge_optimizations.corpus.runs import Tester
from mlbridge_optimizations.corpus.toolchain import mllvm, plugin_flags
from mlbridge_optimizations.corpus.wrapper import LOCATIONS
from mlbridge_optimizations.evaluation.fuzzing import UNWANTED, conclude, logged
from mlbridge_optimizations.phase_ordering.environment.actions import ActionSpace
from mlbridge_optimizations.show import Show, quiet

from .calls import read_calls, write_decisions
from .decisions import OTHERS, STOCK, Decisions, FileDecisions
from .flags import FEATURES
from .random_models import write_inliner, write_order

LEVEL = "-Oz"
PIPELINE = "random"
INLINE = "cgscc(inline)"
SPACES = ("oz", "odg", "passes")
MOST_PASSES = 12
MOST_LEAST = 8  # The greatest limit for outlining.
# One of this many policies verifies the machine code after each pass.
THOROUGH = 4

NUMBERS = {
    "inlining": "inlining decisions",
    "passes": "random actions",
    "outlined": "outlined functions",
    "stock": "files with kept stock code",
}
"""Maps numbers of a round to their names in the summary."""

# The plug-in's statistics, whose counts are summed.
_COUNT = re.compile(
    rb"mlbridge-(?:inliner: .*\b(?P<name>asked|applied)"
    rb"|phase-ordering: .*\bactions)=(?P<count>\d+)"
)


@dataclass(frozen=True)
class Policy:
    """A random policy.

    Attributes:
        seed: seeds all decisions.
        inlines: the probability with which a call is inlined.
        replays: whether a file of decisions is replayed. Otherwise, models decide.
        space: the action space from which passes are drawn, or an empty string for the
            passes of clang -Oz.
        passes: the number of actions.
        search: with models, the number of sequences that are tried.
        least: LLVM's -outliner-benefit-threshold. It is 0 if nothing is outlined.
        whole: in a file of decisions, the share of the functions from which nothing is
            outlined.
        is_guarded: whether smaller stock code is kept.
    """

    seed: int
    inlines: float
    replays: bool
    space: str
    passes: int
    search: int
    least: int
    whole: float
    is_guarded: bool

    @classmethod
    def draw(cls, seed: int) -> "Policy":
        """Draws a policy."""
        draw = np.random.default_rng(seed)
        return cls(
            seed,
            inlines=float(draw.choice([0.1, 0.3, 0.5, 0.8])),
            replays=bool(draw.integers(2)),
            space=str(draw.choice(["", "", *SPACES])),
            passes=int(draw.integers(1, MOST_PASSES + 1)),
            search=int(draw.choice([0, 0, 2])),
            least=int(draw.integers(0, MOST_LEAST + 1)),
            whole=float(draw.choice([0.0, 0.5])),
            is_guarded=bool(draw.integers(4) == 0),
        )


@dataclass(frozen=True)
class Round:
    """A program that one random policy has compiled.

    Attributes:
        seed: the policy's seed.
        inlining: the number of inlining decisions, also in tried sequences of passes.
        passes: the number of random actions, which run one pass or several passes.
        outlined: the number of outlined functions in the program.
        stock: the number of files for which the guard kept stock code.
        problem: why the program is wrong, or an empty string.
        command: a command that compiles one file of the program as in this round. It
            needs files that no longer exist.
    """

    program: str
    seed: int
    inlining: int = 0
    passes: int = 0
    outlined: int = 0
    stock: int = 0
    problem: str = ""
    command: str = ""


class _Compiler:
    """Compiles a program's files with one policy. Writes files to a folder."""

    def __init__(
        self, program: Program, policy: Policy, plugin: Path, folder: Path
    ) -> None:
        self.program, self.policy = program, policy
        self.plugin, self.folder = plugin, folder
        self.counts: Counter[str] = Counter()
        self.command: list[str] = []
        self._draw = np.random.default_rng(policy.seed)
        inliner = folder / "inliner.onnx"
        write_inliner(inliner, policy.inlines, policy.seed)
        self._inliner = spec_of("onnx", inliner)

    def compile(self, module: Module) -> Path:
        """Compiles a file. Returns the object."""
        options = self._replay(module) if self.policy.replays else self._decide()
        options += ["print-statistics", "on-error=fatal"]
        options += ["size-guard"] if self.policy.is_guarded else []
        flags = plugin_flags(self.plugin, *options)
        if not self.policy.replays:
            least = self.policy.least
            limit = f"-outliner-benefit-threshold={least}"
            flags += mllvm([limit if least else "-enable-machine-outliner=never"])
        if self.policy.seed % THOROUGH == 0:
            flags += mllvm(["-verify-machineinstrs"])
        to = self.folder / f"{self.program.modules.index(module)}.o"
        said = self._run(module, flags, to)
        for found in _COUNT.finditer(said):
            self.counts[(found["name"] or b"actions").decode()] += int(found["count"])
        self.counts["stock"] += said.count(b" kept=stock ")
        if unwanted := UNWANTED.search(said):
            raise ModelError(unwanted.group().decode(errors="replace"))
        return to

    def _run(self, module: Module, flags: Sequence[str], to: Path) -> bytes:
        """Compiles a file, and returns the output of clang."""
        self.command = toolchain.source_command(
            self.program, [module], LEVEL, [*LOCATIONS, *flags]
        )
        self.command += ["-c", "-o", str(to)]
        return toolchain.run(self.command, folder=Path(self.program.root))[1]

    def _decide(self) -> list[str]:
        """Returns the plug-in's options with which random models decide."""
        policy = self.policy
        options = [f"size={self._inliner}", f"search={policy.search}"]
        if not policy.space:
            return [*options, "phase-ordering=none"]
        order = self.folder / "order.onnx"
        write_order(order, len(ActionSpace.load(policy.space).actions), policy.seed)
        return [
            *options,
            f"phase-ordering={spec_of('onnx', order)}",
            f"phase-ordering-actions={policy.space}",
            f"phase-ordering-steps={policy.passes}",
            "phase-ordering-verify",
        ]

    def _replay(self, module: Module) -> list[str]:
        """Returns the plug-in's options with which random decisions are replayed."""
        policy = self.policy
        path = self.folder / "decisions.txt"
        callees = self._write_inlining(module, path)
        pipelines = {}
        if policy.space:
            space = ActionSpace.load(policy.space)
            chosen = self._draw.integers(len(space.actions), size=policy.passes)
            # Few actions inline calls, so begin with such a pass.
            pipelines[PIPELINE] = f"{INLINE},{space.pipeline(chosen.tolist())}"
            self.counts["actions"] += policy.passes
        names = [name for name in callees if self._draw.random() < policy.whole]
        decided = FileDecisions(
            PIPELINE if pipelines else STOCK, policy.least, frozenset(names)
        )
        source = OTHERS if self._draw.integers(2) else module.source
        files = {source: decided}
        Decisions(Decisions.read(path).inlining, pipelines, files).save(path)
        return [f"size=decisions:{path}"]

    def _write_inlining(self, module: Module, path: Path) -> list[str]:
        """Writes the decisions of the random inliner. Returns all callees."""
        log = self.folder / "calls.log"
        log.unlink(missing_ok=True)
        options = [f"inliner={spec_of('record', log)}|{self._inliner}"]
        options += ["inliner-name-calls", "on-error=fatal", *FEATURES]
        flags = plugin_flags(self.plugin, *options)
        self._run(module, flags, self.folder / "recorded.o")
        try:
            calls = read_calls([log] if log.exists() else [], {})
        except InvalidArgument:  # The file has no calls.
            path.write_text("")
            return []
        write_decisions(calls, path)
        return sorted({callee for callee, _ in calls.keys})


def _round(corpus: Corpus, program: Program, policy: Policy, plugin: Path) -> Round:
    """Compiles a program with a policy, and runs its test."""
    outlined = 0
    with TemporaryDirectory(prefix="mlbridge-fuzz-") as folder:
        compiler = _Compiler(program, policy, plugin, Path(folder))
        try:
            objects = list(map(compiler.compile, program.modules))
            executable = Path(folder, "program")
            toolchain.link(objects, program.libraries, executable, cpp=program.is_cpp)
            symbols, _ = toolchain.run([toolchain.LLVM_NM, executable])
            outlined = symbols.count(b" OUTLINED_FUNCTION_")
            with Tester(corpus, program) as tester:
                problem = tester.run(executable, tester.generous_limit()).problem
        except Error as error:
            problem = str(error)
    see = shlex.join(compiler.command) if problem else ""
    counts = compiler.counts
    return Round(
        *(program.name, policy.seed),
        inlining=counts["asked"] + counts["applied"],
        passes=counts["actions"],
        outlined=outlined,
        stock=counts["stock"],
        problem=problem,
        command=see and f"cd {shlex.quote(program.root)} && {see}",
    )


def fuzz(
    corpus: Corpus,
    programs: Sequence[Program],
    plugin: Path,
    policies: int,
    *,
    per_policy: int = 4,
    seed: int = 0,
    jobs: int = 1,
    show: Show = quiet,
) -> Iterator[Round]:
    """Yields the rounds of random policies. The first policy has the seed ``seed``.

    Each policy compiles ``per_policy`` programs, drawn from ``programs``. ``jobs``
    programs are compiled in parallel.
    """
    with ThreadPoolExecutor(jobs) as pool:
        for number in range(policies):
            policy = Policy.draw(seed + number)
            draw = np.random.default_rng(policy.seed)
            count = min(per_policy, len(programs))
            chosen = draw.choice(len(programs), count, replace=False)
            todo = [
                (corpus, programs[index], policy, plugin) for index in sorted(chosen)
            ]
            yield from pool.map(lambda it: _round(*it), todo)
            show(number + 1, policies)


def main(
    policies: Annotated[int, typer.Option(min=1, help="Random policies.")] = 50,
    per_policy: Annotated[
        int, typer.Option(min=1, help="Programs that each policy compiles.")
    ] = 4,
    programs: Programs = None,
    corpus: CorpusFolder = Path("build/corpus"),
    split: Split = "generated",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first policy.")] = 0,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Programs in parallel.")
    ] = os.cpu_count() or 1,
    plugin: Plugin = None,
    out: Annotated[
        Path, typer.Option(help="File for the rounds, to which lines are appended.")
    ] = Path("build/smallest-code/fuzz.jsonl"),
) -> None:
    """Check that random decisions about size do not change the programs' output."""
    found = load(corpus.resolve())
    chosen = found.select(split, only=programs or ())
    out.parent.mkdir(parents=True, exist_ok=True)
    # On SIGTERM, wait for the programs that run.
    with sigterm_exits(), ProgressBars() as bars:
        rounds = logged(
            fuzz(
                *(found, chosen, plugin_of(plugin), policies),
                per_policy=per_policy,
                seed=seed,
                jobs=jobs,
                show=bars.stage("Policies"),
            ),
            out,
            _problems_of,
        )
    numbers = {"policies": policies, "programs compiled": len(rounds)}
    for name in ("inlining", "passes", "outlined", "stock"):
        numbers[NUMBERS[name]] = sum(getattr(one, name) for one in rounds)
    numbers["wrong programs"] = sum(bool(one.problem) for one in rounds)
    conclude("Random decisions about code size", numbers, "wrong programs")


def _problems_of(one: Round) -> list[str]:
    if not one.problem:
        return []
    return [f"{one.program}, seed {one.seed}: {one.problem}; {one.command}"]


if __name__ == "__main__":
    typer.run(main)
