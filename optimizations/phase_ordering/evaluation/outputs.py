# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Does a program do what it does without optimisation, whatever policy compiles it?

Models are asked by stock clang with the plug-in, as their users do it. Random policies
are sequences of actions, another one for each file, drawn by a seed from one of the
spaces: one opt makes the objects of all of them, and those that are the same are run
once. What is not as expected is tried again, and then it is looked whose fault it is.
"""

import json
import shlex
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import numpy as np

from mlbridge.errors import CompilerFailed, Error, OSFailure, Timeout
from mlbridge.files import OwnFolder
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.corpus.manifest import Corpus, Program, sha256
from mlbridge_optimizations.corpus.runs import Run, Tester, tests_digest
from mlbridge_optimizations.show import Show

from ..environment.actions import ActionSpace
from ..environment.compiler import (
    TIMED_OUT,
    TIMEOUT,
    EpisodeOptions,
    SequenceFailed,
    SequenceRunner,
)
from ..environment.kept import Kept
from ..environment.runners import Runners

SPACES = ("oz", "odg", "passes")  # Whose turn it is, by the seed of a random policy.

DIFFERENT, UNSTEADY, LATE, NONE = "different", "unsteady", "late", "none"
# What no policy may do to a program; the last: by a model, it does not compile.
FAULTS = (DIFFERENT, UNSTEADY, LATE, NONE)

OWN = "own fault"  # What the program does to itself.

# That any program may take, and 20 times what it takes without optimisation.
LEAST_SECONDS = 20.0

# That may be spent on finding the one module and the few actions that it takes.
REDUCING_SECONDS = 600.0

_SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")

_OF_A_FILE = ("onnx", "aot", "aoti", "tvm")  # Schemes whose model is all in one file.

# Memory that nobody frees changes no output.
_LEAKS = 'const char *__asan_default_options(void) { return "detect_leaks=0"; }\n'

Objects = list[Path]


@dataclass(frozen=True)
class OutputsSettings:
    """What is tried."""

    models: tuple[str, ...]  # Specs, as of the plug-in's option.
    random: int  # How many random policies, of the seeds from `seed` on.
    seed: int  # Of the first of them.
    out: Path  # The folder for results and reproducers.
    # Seconds for a sequence on a module that is not large; see `SequenceRunner`.
    timeout: float = TIMEOUT
    plugin: Path | None = None  # MLBridgeLLVM.so, where it is not the one found.


@dataclass(frozen=True)
class Finding:
    """Something that is not as it should be."""

    policy: str  # Whose doing it is.
    # Of what is in `FAULTS`, or ``own fault``; of compilers ``crash``, ``timeout`` or
    # ``refused``.
    kind: str
    problem: str  # In words.
    see: str  # The folder that has it, or a command line.


@dataclass
class Outcome:
    """What came of a program."""

    program: str  # Its name.
    policies: int = 0  # That compiled it.
    executables: int = 0  # That were run; the others are the same as one of these.
    # Outputs that were not as expected.
    findings: list[Finding] = field(default_factory=list)
    # Of compilers. Such a module is compiled by stock -Oz then.
    failures: list[Finding] = field(default_factory=list)
    error: str = ""  # Why it could not be tried at all.

    @property
    def is_good(self) -> bool:
        """Whether no policy changed what the program does."""
        return not self.error and not any(f.kind in FAULTS for f in self.findings)

    @classmethod
    def parse(cls, found: Mapping[str, Any]) -> "Outcome":
        """What `asdict` makes of one."""
        names = ("findings", "failures")
        lists = {name: [Finding(**it) for it in found[name]] for name in names}
        return cls(**{**found, **lists})


def every_action() -> tuple[ActionSpace, dict[str, range]]:
    """All spaces in one, and which actions are whose."""
    spaces = [ActionSpace.load(name) for name in SPACES]
    numbers, first = {}, 0
    for space in spaces:
        numbers[space.name] = range(first, first + len(space.actions))
        first += len(space.actions)
    actions = tuple(action for space in spaces for action in space.actions)
    return ActionSpace("every", "", spaces[0].prologue, actions), numbers


def random_sequence(numbers: range, seed: int, module: str) -> list[int]:
    """Some of these actions, as many as there are at most."""
    draw = np.random.default_rng([seed, *module.encode()])
    length = int(draw.integers(1, len(numbers), endpoint=True))
    return [numbers[int(n)] for n in draw.integers(len(numbers), size=length)]


def deployed(spec: str, plugin: Path) -> list[str]:
    """The flags with which clang asks a model, and does not go on without it."""
    return toolchain.plugin_flags(plugin, f"phase-ordering={spec}", "on-error=fatal")


def check_outputs(
    corpus: Corpus,
    programs: Sequence[Program],
    settings: OutputsSettings,
    *,
    jobs: int = 1,
    show: Show = lambda done, total: None,
) -> list[Outcome]:
    """Compares what programs write with what they write without optimisation.

    What is known already, of the same compiler, plug-in, program, run tests and models,
    is not tried again: ``results.jsonl`` in the settings' folder has it. What is behind
    a spec such as ``pipe:`` is not known, nor is then what came of it; and where a
    sequence had not enough time, a program is tried again.

    Returns:
        What came of each, in their order.
    """
    out = settings.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    space, numbers = every_action()
    steps = len(space.actions)
    options = EpisodeOptions.of(
        space, out / "actions.json", steps=steps, plugin=settings.plugin
    )
    asked = {
        "models": [_identity(spec) for spec in settings.models],
        "random": [settings.seed, settings.random],
        "tests": tests_digest(),
    }
    kept = Kept(out / "results.jsonl", options, asked)
    folder = corpus.folder.resolve()
    linked = {folder / program.linked.path: program for program in programs}
    known = {path: Outcome.parse(it) for path, it in kept.load(list(linked)).items()}
    # With more time for the compilers another one may come of it.
    found = {
        path: it
        for path, it in known.items()
        if all(failure.kind != TIMED_OUT for failure in it.failures)
    }
    left = [path for path in linked if str(path) not in found]
    show(len(found), len(linked))

    def work(runner: SequenceRunner, path: Path) -> Outcome:
        outcome = Outcome(linked[path].name)
        try:
            with _Trial(corpus, linked[path], settings, runner, numbers) as trial:
                trial.run(outcome)
        except Error as error:
            outcome.error = str(error)
        return outcome

    with Runners(options, jobs, settings.timeout) as runners:
        for path, outcome in runners.map(work, left):
            found[str(path)] = outcome
            if not outcome.error:
                kept.add(path, asdict(outcome))
            show(len(found), len(linked))
    return [found[str(path)] for path in linked]


def _identity(spec: str) -> list[str]:
    """A spec, and what stands for its model: another one, where that is not known.

    Built-in models are the plug-in's, which `Kept` looks at.
    """
    scheme, _, rest = spec.partition("?")[0].partition(":")
    file = Path(unquote(rest))
    if scheme in _OF_A_FILE and file.is_absolute() and file.is_file():
        return [spec, sha256(file)]
    if scheme in ("none", "builtin"):
        return [spec, ""]
    # Who answers a pipe, say, may be another one each time.
    return [spec, uuid4().hex]


class _Trial:
    def __init__(
        self,
        corpus: Corpus,
        program: Program,
        settings: OutputsSettings,
        runner: SequenceRunner,
        numbers: Mapping[str, range],
    ) -> None:
        self._program = program
        self._settings = settings
        self._runner = runner
        self._numbers = numbers
        self._modules = [
            corpus.folder.resolve() / module.path for module in program.modules
        ]
        self._tester = Tester(corpus, program)
        self._made = OwnFolder("mlbridge-outputs-")
        self._folder = self._made.path
        # Far more than any optimised program needs, on a busy machine, too.
        self._limit = LEAST_SECONDS + 20 * self._tester.expected.seconds
        self._runs: dict[tuple[str, ...], Run] = {}
        self._stock: dict[int, Path] = {}
        self._own: str | None = None
        self._own_shown: str | None = None

    def __enter__(self) -> "_Trial":
        return self

    def __exit__(self, *_: object) -> None:
        self._tester.close()
        self._made.close()

    def run(self, outcome: Outcome) -> None:
        """Tries all policies."""
        for spec in self._settings.models:
            self._model(spec, outcome)
        first = self._settings.seed
        for seed in range(first, first + self._settings.random):
            self._random(seed, outcome)
        outcome.executables = len(self._runs)

    def _model(self, spec: str, outcome: Outcome) -> None:
        executable = self._folder / "model"
        flags = deployed(spec, self._runner.options.plugin_file())
        try:
            self._build(executable, "-Oz", flags)
        except (CompilerFailed, Timeout) as error:
            outcome.findings.append(Finding(spec, NONE, str(error), ""))
            return
        outcome.policies += 1
        run = self._run_once((sha256(executable),), executable)
        if not run.passed:
            see = self._command(flags)
            outcome.findings.append(self._finding(spec, run, executable, see))

    def _command(self, flags: Sequence[str]) -> str:
        """What makes the whole program of its sources, for a shell."""
        program = self._program
        target = self._settings.out.resolve() / program.name
        command = [
            *toolchain.source_command(program, program.modules, "-Oz", flags),
            *(*program.libraries, "-o", str(target)),
        ]
        return f"cd {shlex.quote(program.root)} && {shlex.join(command)}"

    def _random(self, seed: int, outcome: Outcome) -> None:
        space = SPACES[seed % len(SPACES)]
        policy = f"random {seed} ({space})"
        names = [module.path for module in self._program.modules]
        sequences: list[list[int] | None] = [
            random_sequence(self._numbers[space], seed, name) for name in names
        ]
        objects: Objects = []
        for number, sequence in enumerate(sequences):
            assert sequence is not None
            objects.append(self._folder / f"{number}.o")
            try:
                self._runner.write(self._modules[number], sequence, objects[number])
            except SequenceFailed as error:
                text, _, command = str(error).partition("; to see it alone: ")
                found = Finding(policy, error.kind, text, command)
                outcome.failures.append(found)
                objects[number], sequences[number] = self._oz(number), None
        outcome.policies += 1
        executable = self._folder / "random"
        run = self._run_once(tuple(map(sha256, objects)), executable, objects)
        if run.passed:
            return
        self._link(objects, executable)
        finding = self._finding(policy, run, executable, "")
        if finding.kind == OWN and self._own_shown:
            # One example of the program's own fault is enough.
            finding = replace(finding, see=self._own_shown)
        elif finding.kind != UNSTEADY:
            where = self._settings.out / f"{self._program.name}-{seed}"
            self._reproduce(where.resolve(), objects, sequences, finding.problem)
            finding = replace(finding, see=str(where))
            if finding.kind == OWN:
                self._own_shown = str(where)
        outcome.findings.append(finding)

    def _run_once(
        self, key: tuple[str, ...], executable: Path, objects: Objects | None = None
    ) -> Run:
        """Runs what was not run before; of objects it is linked first."""
        if key not in self._runs:
            if objects is not None:
                self._link(objects, executable)
            self._runs[key] = self._run(executable, self._limit)
        return self._runs[key]

    def _finding(self, policy: str, run: Run, executable: Path, see: str) -> Finding:
        longer = self._limit * (3 if run.is_late else 1)
        again = self._run(executable, longer)
        if again.passed:
            problem = f"{run.problem}; not so at the second time"
            return Finding(policy, UNSTEADY, problem, see)
        own = self._own_fault()
        if own:
            return Finding(policy, OWN, f"{again.problem}; but also {own}", see)
        kind = LATE if again.is_late else DIFFERENT
        return Finding(policy, kind, again.problem, see)

    def _own_fault(self) -> str:
        """What is wrong with the program whatever the policy, if anything is.

        That is undefined behaviour as sanitizers see it, and outputs that differ by
        what is in uninitialised variables, or at the levels of stock clang.
        """
        if self._own is None:
            options = self._folder / "leaks.o"
            source = self._folder / "leaks.c"
            source.write_text(_LEAKS)
            toolchain.run([toolchain.CLANG, "-c", source, "-o", options])
            said = []

            def tried(name: str, level: str, *flags: Sequence[str]) -> None:
                executable = self._folder / "own"
                self._build(executable, level, *flags)
                run = self._run(executable, self._limit)
                if not run.passed:
                    said.append(f"{name}: {run.problem}")

            linked = (*_SANITIZERS, str(options))
            tried("by ASan and UBSan", "-O1", _SANITIZERS, linked)
            pattern = ("-ftrivial-auto-var-init=pattern",)
            tried("with variables that begin with a pattern", "-O0", pattern)
            for level in ("-O1", "-O2", "-Oz"):
                tried(f"by stock clang {level}", level)
            self._own = "; ".join(said)
        return self._own

    def _reproduce(
        self,
        where: Path,
        objects: Objects,
        sequences: Sequence[list[int] | None],
        problem: str,
    ) -> None:
        """Saves the one module that it takes, with as few actions as it takes.

        Where that is not found in time, more of them.
        """
        until = time.monotonic() + REDUCING_SECONDS
        ours = {n: s for n, s in enumerate(sequences) if s is not None}
        guilty = None
        for number in ours:
            if len(ours) > 1 and time.monotonic() > until:
                break
            others = [self._oz(n) for n in range(len(objects))]
            others[number] = objects[number]
            if len(ours) == 1 or self._fails(others):
                guilty = number
                break
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir(parents=True)
        about: dict[str, Any] = {"program": self._program.name, "problem": problem}
        if guilty is not None:
            others = [self._oz(n) for n in range(len(objects))]
            ours = {guilty: self._reduced(guilty, others, ours[guilty], until)}
        space = self._runner.options.space
        lines = ["#!/bin/sh", "# Links the program that does something else.", "set -e"]
        lines.append('cd "$(dirname "$0")"')
        for number in range(len(objects)):
            if number not in ours:
                shutil.copy(self._oz(number), where / f"{number}.o")
                continue
            shutil.copy(self._modules[number], where / f"{number}.bc")
            reproducer = self._runner.options.reproducer
            lines.append(reproducer(f"{number}.bc", ours[number], f"{number}.o"))
        linker = toolchain.CLANGXX if self._program.is_cpp else toolchain.CLANG
        names = [f"{number}.o" for number in range(len(objects))]
        libraries = [*self._program.libraries, "-o", self._program.name]
        lines.append(shlex.join([linker, *names, *libraries]))
        (where / "reproduce.sh").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (where / "reproduce.sh").chmod(0o755)
        about["actions"] = {
            self._program.modules[number].path: [space.actions[a].name for a in taken]
            for number, taken in ours.items()
        }
        about["expected"] = self._tester.expected.outputs
        about["flags"] = self._program.flags
        text = json.dumps(about, indent=1)
        (where / "about.json").write_text(text + "\n", encoding="utf-8")

    def _reduced(
        self, number: int, others: Objects, sequence: Sequence[int], until: float
    ) -> list[int]:
        """A sequence without actions that it does not take to fail.

        Without all of them, if that is known by then.
        """
        left, at = list(sequence), 0
        target = self._folder / "reduced.o"
        while at < len(left) and len(left) > 1 and time.monotonic() < until:
            fewer = left[:at] + left[at + 1 :]
            try:
                self._runner.write(self._modules[number], fewer, target)
                does = self._fails([*others[:number], target, *others[number + 1 :]])
            except SequenceFailed:
                does = False
            if does:
                left = fewer
            else:
                at += 1
        return left

    def _fails(self, objects: Objects) -> bool:
        executable = self._folder / "tried"
        self._link(objects, executable)
        return not self._run(executable, self._limit).passed

    def _oz(self, number: int) -> Path:
        if number not in self._stock:
            self._go_on()
            target = self._folder / f"{number}-Oz.o"
            toolchain.compile_bitcode(self._modules[number], target, "-Oz")
            self._stock[number] = target
        return self._stock[number]

    def _link(self, objects: Objects, to: Path) -> None:
        self._go_on()
        libraries = self._program.libraries
        toolchain.link(objects, libraries, to, cpp=self._program.is_cpp)

    def _build(self, to: Path, level: str, *flags: Sequence[str]) -> None:
        self._go_on()
        toolchain.executable(self._program, to, level, *flags)

    def _run(self, executable: Path, seconds: float) -> Run:
        self._go_on()
        return self._tester.run(executable, seconds)

    def _go_on(self) -> None:
        """After Ctrl-C nothing is made or run any more.

        Raises:
            OSFailure: the runner was interrupted.
        """
        if self._runner.is_interrupted:
            raise OSFailure(f"{self._program.name}: interrupted")
