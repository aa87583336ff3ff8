# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the outputs of policy-compiled programs to their outputs at -O0.

A policy is either a model or a random choice of actions. For a model, stock clang with
the plug-in compiles the program. A random policy draws a sequence of actions for each
file from a seed, and runs them in the environment. Each unexpected output is
reproduced, and then attributed either to the policy or to undefined behaviour in the
program.
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
from mlbridge_optimizations.corpus.recipes import PROGRAMS
from mlbridge_optimizations.corpus.runs import Run, Tester, tests_digest
from mlbridge_optimizations.show import Show, quiet

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

SPACES = ("oz", "odg", "passes")  # The seed of a random policy selects one of these.

DIFFERENT, UNSTEADY, LATE, NONE = "different", "unsteady", "late", "none"
# Faults of a policy. ``none`` means that clang failed to compile the program with a
# model.
FAULTS = (DIFFERENT, UNSTEADY, LATE, NONE)
OWN = "own fault"  # The program has a fault itself, for example undefined behaviour.

REDUCING_SECONDS = 600.0  # The time limit for reducing a failure to a few actions.

_SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")

_OF_A_FILE = ("onnx", "aot", "aoti", "tvm")  # The schemes whose models are one file.

# Disables the detection of leaks, because leaks do not change outputs.
_LEAKS = 'const char *__asan_default_options(void) { return "detect_leaks=0"; }\n'

Objects = list[Path]


@dataclass(frozen=True)
class OutputsSettings:
    """The policies to test."""

    models: tuple[str, ...]  # The model specs.
    random: int  # The number of random policies.
    seed: int  # The seed of the first random policy.
    out: Path  # The folder for results and reproducers.
    timeout: float = TIMEOUT  # See `SequenceRunner`.
    plugin: Path | None = None  # The default is the path that `mlbridge doctor` shows.


@dataclass(frozen=True)
class Finding:
    """An unexpected output, or a failure of a compiler."""

    policy: str
    kind: str  # One of `FAULTS`, `OWN`, or `SequenceFailed.kind` for a failure.
    problem: str
    see: str  # A folder or a command line with which to reproduce it.


@dataclass
class Outcome:
    """The results of one program."""

    program: str
    policies: int = 0  # The number of policies with which the program was compiled.
    executables: int = 0  # The number of different executables.
    findings: list[Finding] = field(default_factory=list)  # Unexpected outputs.
    # Failures of compilers with random policies. The module was then compiled with
    # stock -Oz.
    failures: list[Finding] = field(default_factory=list)
    error: str = ""  # The reason if the program could not be tested.

    @property
    def is_good(self) -> bool:
        """Whether the outputs are correct with all policies."""
        return not self.error and not any(f.kind in FAULTS for f in self.findings)

    @classmethod
    def parse(cls, found: Mapping[str, Any]) -> "Outcome":
        """Reads the result of `asdict`."""
        names = ("findings", "failures")
        lists = {name: [Finding(**it) for it in found[name]] for name in names}
        return cls(**{**found, **lists})


def every_action() -> tuple[ActionSpace, dict[str, range]]:
    """Joins all spaces into one, and maps each space to the indices of its actions."""
    spaces = [ActionSpace.load(name) for name in SPACES]
    numbers, first = {}, 0
    for space in spaces:
        numbers[space.name] = range(first, first + len(space.actions))
        first += len(space.actions)
    actions = tuple(action for space in spaces for action in space.actions)
    return ActionSpace("every", "", spaces[0].prologue, actions), numbers


def random_sequence(numbers: range, seed: int, module: str) -> list[int]:
    """Draws a random sequence of 1 to len(numbers) actions for a module."""
    draw = np.random.default_rng([seed, *module.encode()])
    length = int(draw.integers(1, len(numbers), endpoint=True))
    return [numbers[int(n)] for n in draw.integers(len(numbers), size=length)]


def check_outputs(
    corpus: Corpus,
    programs: Sequence[Program],
    settings: OutputsSettings,
    *,
    jobs: int = 1,
    show: Show = quiet,
) -> list[Outcome]:
    """Compares the outputs of programs. Returns the results in the programs' order.

    Results in ``results.jsonl`` are reused if the compiler, the plug-in, the program,
    its run tests and the models are the same. They are not reused after a timeout, or
    for specs such as ``pipe:``, because then the model is unknown.
    """
    out = settings.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    space, numbers = every_action()
    steps, plugin = len(space.actions), settings.plugin
    options = EpisodeOptions.of(space, out / "actions.json", steps=steps, plugin=plugin)
    asked = {
        "models": [_identity(spec) for spec in settings.models],
        "random": [settings.seed, settings.random],
        "tests": tests_digest(PROGRAMS),
    }
    kept = Kept(out / "results.jsonl", options, asked)
    folder = corpus.folder.resolve()
    linked = {folder / program.linked.path: program for program in programs}
    found = {path: Outcome.parse(it) for path, it in kept.load(list(linked)).items()}
    for path, outcome in list(found.items()):
        if any(failure.kind == TIMED_OUT for failure in outcome.failures):
            del found[path]
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
        for file, outcome in runners.map(work, left):
            found[str(file)] = outcome
            if not outcome.error:
                kept.add(file, asdict(outcome))
            show(len(found), len(linked))
    return [found[str(path)] for path in linked]


def _identity(spec: str) -> list[str]:
    """Returns a spec and an ID of its model. The ID of an unknown model is unique."""
    scheme, _, rest = spec.partition("?")[0].partition(":")
    file = Path(unquote(rest))
    if scheme in _OF_A_FILE and file.is_absolute() and file.is_file():
        return [spec, sha256(file)]
    # A built-in model needs no ID, because `Kept` compares the plug-in.
    return [spec, "" if scheme in ("none", "builtin") else uuid4().hex]


class _Trial:
    def __init__(
        self,
        corpus: Corpus,
        program: Program,
        settings: OutputsSettings,
        runner: SequenceRunner,
        numbers: Mapping[str, range],
    ) -> None:
        self._program, self._settings = program, settings
        self._runner, self._numbers = runner, numbers
        root = corpus.folder.resolve()
        self._modules = [root / module.path for module in program.modules]
        self._tester = Tester(corpus, program)
        self._made = OwnFolder("mlbridge-outputs-")
        self._folder = self._made.path
        self._limit = self._tester.generous_limit()
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
        for spec in self._settings.models:
            self._model(spec, outcome)
        first = self._settings.seed
        for seed in range(first, first + self._settings.random):
            self._random(seed, outcome)
        outcome.executables = len(self._runs)

    def _model(self, spec: str, outcome: Outcome) -> None:
        executable = self._folder / "model"
        plugin = self._runner.options.plugin_file()
        # Make failures of the model fatal, so that clang does not fall back to -Oz.
        by = (f"phase-ordering={spec}", "on-error=fatal")
        flags = toolchain.plugin_flags(plugin, *by)
        try:
            self._build(executable, "-Oz", flags)
        except (CompilerFailed, Timeout) as error:
            outcome.findings.append(Finding(spec, NONE, str(error), ""))
            return
        outcome.policies += 1
        run = self._run_once((sha256(executable),), executable)
        if not run.passed:
            program = self._program
            target = self._settings.out.resolve() / program.name
            command = toolchain.source_command(program, program.modules, "-Oz", flags)
            command += [*program.libraries, "-o", str(target)]
            see = f"cd {shlex.quote(program.root)} && {shlex.join(command)}"
            outcome.findings.append(self._finding(spec, run, executable, see))

    def _random(self, seed: int, outcome: Outcome) -> None:
        space = SPACES[seed % len(SPACES)]
        policy = f"random {seed} ({space})"
        sequences: dict[int, list[int]] = {}
        objects: Objects = []
        for number, module in enumerate(self._program.modules):
            drawn = random_sequence(self._numbers[space], seed, module.path)
            objects.append(self._folder / f"{number}.o")
            try:
                self._runner.write(self._modules[number], drawn, objects[number])
                sequences[number] = drawn
            except SequenceFailed as error:
                text, _, command = str(error).partition("; to see it alone: ")
                failure = Finding(policy, error.kind, text, command)
                outcome.failures.append(failure)
                objects[number] = self._oz(number)
        outcome.policies += 1
        executable = self._folder / "random"
        run = self._run_once(tuple(map(sha256, objects)), executable, objects)
        if run.passed:
            return
        self._link(objects, executable)
        finding = self._finding(policy, run, executable, "")
        if finding.kind == OWN and self._own_shown:
            # Show the first example, because one per program is enough.
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
        """Runs an executable once per key. If `objects` is given, links them first."""
        if key not in self._runs:
            if objects is not None:
                self._link(objects, executable)
            self._runs[key] = self._run(executable, self._limit)
        return self._runs[key]

    def _finding(self, policy: str, run: Run, executable: Path, see: str) -> Finding:
        again = self._run(executable, self._limit * (3 if run.is_late else 1))
        if again.passed:
            problem = f"{run.problem}; not so at the second time"
            return Finding(policy, UNSTEADY, problem, see)
        if own := self._own_fault():
            return Finding(policy, OWN, f"{again.problem}; but also {own}", see)
        kind = LATE if again.is_late else DIFFERENT
        return Finding(policy, kind, again.problem, see)

    def _own_fault(self) -> str:
        """Describes faults of the program, which are not caused by a policy.

        A program has a fault if a sanitizer reports it, or if its output depends on
        uninitialised variables or on the optimisation level.
        """
        if self._own is None:
            options, source = self._folder / "leaks.o", self._folder / "leaks.c"
            source.write_text(_LEAKS)
            toolchain.run([toolchain.CLANG, "-c", source, "-o", options])
            faults = []

            def check(name: str, level: str, *flags: Sequence[str]) -> None:
                executable = self._folder / "own"
                self._build(executable, level, *flags)
                run = self._run(executable, self._limit)
                if not run.passed:
                    faults.append(f"{name}: {run.problem}")

            linked = (*_SANITIZERS, str(options))
            check("by ASan and UBSan", "-O1", _SANITIZERS, linked)
            pattern = ("-ftrivial-auto-var-init=pattern",)
            check("with variables that begin with a pattern", "-O0", pattern)
            for level in ("-O1", "-O2", "-Oz"):
                check(f"by stock clang {level}", level)
            self._own = "; ".join(faults)
        return self._own

    def _reproduce(
        self,
        where: Path,
        objects: Objects,
        sequences: Mapping[int, list[int]],
        problem: str,
    ) -> None:
        """Saves a reproducer: one module and as few actions as possible.

        At the time limit, a larger reproducer is saved.
        """
        until = time.monotonic() + REDUCING_SECONDS
        left = dict(sequences)
        for number, sequence in sequences.items():
            if len(sequences) > 1 and time.monotonic() > until:
                break
            others = [self._oz(n) for n in range(len(objects))]
            alone = [*others[:number], objects[number], *others[number + 1 :]]
            if len(sequences) == 1 or self._fails(alone):
                left = {number: self._reduced(number, others, sequence, until)}
                break
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir(parents=True)
        space = self._runner.options.space
        lines = ["#!/bin/sh", "# Links the program that does something else.", "set -e"]
        lines.append('cd "$(dirname "$0")"')
        names = [f"{number}.o" for number in range(len(objects))]
        for number, name in enumerate(names):
            if number not in left:
                shutil.copy(self._oz(number), where / name)
                continue
            shutil.copy(self._modules[number], where / f"{number}.bc")
            reproducer = self._runner.options.reproducer
            lines.append(reproducer(f"{number}.bc", left[number], name))
        linker = toolchain.CLANGXX if self._program.is_cpp else toolchain.CLANG
        libraries = [*self._program.libraries, "-o", self._program.name]
        lines.append(shlex.join([linker, *names, *libraries]))
        (where / "reproduce.sh").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (where / "reproduce.sh").chmod(0o755)
        actions = {
            self._program.modules[number].path: [space.actions[a].name for a in taken]
            for number, taken in left.items()
        }
        about = {
            "program": self._program.name,
            "problem": problem,
            "actions": actions,
            "expected": self._tester.expected.outputs,
            "flags": self._program.flags,
        }
        text = json.dumps(about, indent=1)
        (where / "about.json").write_text(text + "\n", encoding="utf-8")

    def _reduced(
        self, number: int, others: Objects, sequence: Sequence[int], until: float
    ) -> list[int]:
        """Removes actions without which the failure remains, until the time `until`."""
        left, at = list(sequence), 0
        target = self._folder / "reduced.o"
        while at < len(left) and len(left) > 1 and time.monotonic() < until:
            fewer = left[:at] + left[at + 1 :]
            try:
                self._runner.write(self._modules[number], fewer, target)
                fails = self._fails([*others[:number], target, *others[number + 1 :]])
            except SequenceFailed:
                fails = False
            if fails:
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
        """Raises OSFailure if the runner was interrupted, for example by Ctrl-C."""
        if self._runner.is_interrupted:
            raise OSFailure(f"{self._program.name}: interrupted")
