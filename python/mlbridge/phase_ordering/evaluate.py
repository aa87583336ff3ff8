# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How good a model is: its code sizes against stock clang's and against what is cheap.

Each file is compiled on its own. For every way the same number of tries and the same
rule for the state that counts:

- ``alone``: one sequence is chosen without making machine code, its last state counts;
- ``best of K``: K sequences are compiled, and the smallest last state counts.

The baselines under the same rules are the sequence that was best on the training
programs, the K of a core set of them, and K drawn at random.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mlbridge.corpus import toolchain
from mlbridge.corpus.manifest import Corpus, Module, Program
from mlbridge.envs.machine_code import text_size
from mlbridge.errors import InvalidArgument, ModelError
from mlbridge.phase_ordering.actions import Action, ActionSpace
from mlbridge.phase_ordering.compiler import CompilerOptions, SequenceRunner
from mlbridge.phase_ordering.model import Model, Order
from mlbridge.phase_ordering.runners import Runners

Array = NDArray[np.float64]
Show = Callable[[str, int, int], None]

DRAWS = 4000
"""Of the bootstrap."""

LEVELS = ("-Oz", "-Os", "-O2")
"""Of a stock clang in a process of its own. Its -Oz may differ by some bytes from the
environment's: machine code is made there of a copy of the module, whose lists of uses
are in another order, and that shows in ties of the code generator."""


@dataclass(frozen=True)
class EvaluationSettings:
    """What is compared.

    Attributes:
        tries: K.
        seed: of what is drawn at random.
        steps: the length of random sequences.
        levels: of stock clang, as a check and for comparison.
        most: instructions of a module; larger ones are left out.
    """

    tries: int = 8
    seed: int = 0
    steps: int = 15
    levels: tuple[str, ...] = LEVELS
    most: int | None = None


@dataclass
class Way:
    """One way to choose, and what it makes of each file.

    Attributes:
        name: in words.
        tries: sequences that are compiled for a file before one is chosen.
        emitted: objects that are made for a file in order to choose.
        sizes: bytes of machine code, [files].
        chosen: the pipeline that was chosen for each file, where it is ours.
    """

    name: str
    tries: int
    emitted: int
    sizes: Array
    chosen: list[str] = field(default_factory=list)


@dataclass
class Evaluation:
    """What was found; `Statistics` sums it up.

    Attributes:
        files: paths below the corpus.
        programs: of these.
        oz: bytes by stock -Oz, [files].
        ways: to choose.
        failures: pipelines that crashed the compiler, as (file, pipeline); there -Oz's
            size counts, since deployment falls back to it.
    """

    files: list[str]
    programs: list[str]
    oz: Array
    ways: list[Way]
    failures: list[tuple[str, str]] = field(default_factory=list)


class _Candidates:
    """Pipelines to be tried on modules: each is compiled once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.wanted: dict[str, set[int]] = {}

    def add(self, module: str, pipeline: str) -> int:
        number = self.numbers.setdefault(pipeline, len(self.numbers))
        self.wanted.setdefault(module, set()).add(number)
        return number


def evaluate(
    corpus: Corpus,
    split: str | None,
    model: Model,
    base: ActionSpace,
    core: Sequence[Order],
    settings: EvaluationSettings,
    *,
    vocabulary: Path | None = None,
    jobs: int = 1,
    show: Show = lambda stage, done, total: None,
) -> Evaluation:
    """Compares a model with the baselines on the files of a split.

    Args:
        corpus: that has them.
        split: of it.
        model: to be judged.
        base: the actions of the core set and of random sequences.
        core: sequences, the best single one first.
        settings: tries and seeds.
        vocabulary: of the model's embeddings, if it has any.
        jobs: compilers at once.
        show: is told how far it is.

    Raises:
        InvalidArgument: there is no file, or no core set.
    """
    if not core:
        raise InvalidArgument("expected a core set of one sequence at least")
    units = _units(corpus, split, settings.most)
    paths = [corpus.folder / module.path for _, module in units]
    rollouts = _rollouts(model, paths, settings, vocabulary, jobs, show)

    candidates = _Candidates()
    by_way: dict[tuple[str, int, int], list[list[int]]] = {}

    def add(name: str, tries: int, emitted: int, pipelines: list[list[str]]) -> None:
        by_way[name, tries, emitted] = [
            [candidates.add(str(path), pipeline) for pipeline in each]
            for path, each in zip(paths, pipelines, strict=True)
        ]

    count = settings.tries
    spaces = model.task.actions
    ours = [[_bare(spaces, order) for order in orders] for orders in rollouts]
    fixed = [_bare(base, order) for order in core[:count]]
    drawn = [
        [_bare(base, order) for order in random_sequences(base, path, settings)]
        for path in paths
    ]
    add("model, alone", 1, 0, [each[:1] for each in ours])
    add("best fixed sequence", 1, 0, [fixed[:1] for _ in paths])
    add("one random sequence", 1, 0, [each[:1] for each in drawn])
    add(f"model, best of {count}", count, count, ours)
    add(f"{len(fixed)} fixed sequences", len(fixed), len(fixed), [fixed for _ in paths])
    add(f"random, best of {count}", count, count, drawn)

    sizes, oz, failures = _measure(candidates, spaces.prologue, paths, jobs, show)
    kept = [n for n, path in enumerate(paths) if oz[str(path)]]
    names = list(candidates.numbers)
    ways = []
    for (name, tries, emitted), numbers in by_way.items():
        chosen, found = [], []
        for n in kept:
            of_file = sizes[str(paths[n])]
            best = min(numbers[n], key=of_file.__getitem__)
            chosen.append(best)
            found.append(of_file[best])
        pipelines = [names[number] for number in chosen]
        ways.append(Way(name, tries, emitted, np.array(found, float), pipelines))
    for level in settings.levels:
        found = _stock(units, kept, level, jobs, show)
        ways.append(Way(f"clang {level}", 1, 0, np.array(found, float)))
    return Evaluation(
        [units[n][1].path for n in kept],
        [units[n][0].name for n in kept],
        np.array([oz[str(paths[n])] for n in kept], float),
        ways,
        failures,
    )


def _units(
    corpus: Corpus, split: str | None, most: int | None
) -> list[tuple[Program, Module]]:
    found = [
        (program, module)
        for program in corpus.select(split)
        for module in program.modules
        if module.functions and (most is None or module.instructions <= most)
    ]
    if not found:
        raise InvalidArgument(f"{corpus.folder} has no module of that size")
    return found


def _bare(space: ActionSpace, order: Order) -> str:
    """A sequence as one pipeline, without the prologue."""
    return ",".join(space.actions[action].pipeline for action in order)


def random_sequences(
    base: ActionSpace, path: Path, settings: EvaluationSettings
) -> list[Order]:
    """K sequences by chance, others for each file."""
    name = f"{path.parent.name}/{path.name}"
    draw = np.random.default_rng([settings.seed, *name.encode()])
    size = (settings.tries, settings.steps)
    drawn = draw.integers(len(base.actions), size=size)
    return [tuple(int(action) for action in row) for row in drawn]


def _rollouts(
    model: Model,
    paths: Sequence[Path],
    settings: EvaluationSettings,
    vocabulary: Path | None,
    jobs: int,
    show: Show,
) -> list[list[Order]]:
    """The sequences that the model would try for each file."""
    with tempfile.TemporaryDirectory(prefix="mlbridge-evaluate-") as folder:
        file = Path(folder, "actions.json")
        model.task.actions.save(file)
        options = CompilerOptions(
            str(file),
            model.features,
            # It sees no sizes, and none are measured.
            "none",
            model.task.steps,
            model.task.stop,
            vocabulary,
        )

        def choose(runner: SequenceRunner, path: Path) -> list[Order]:
            return model.choices(runner, path, settings.tries, settings.seed)

        with Runners(options, jobs) as runners:
            return list(
                runners.map(choose, paths, lambda done, of: show("Deciding", done, of))
            )


def _measure(
    candidates: _Candidates,
    prologue: str,
    paths: Sequence[Path],
    jobs: int,
    show: Show,
) -> tuple[dict[str, dict[int, int]], dict[str, int], list[tuple[str, str]]]:
    """Sizes by module and pipeline, of -Oz by module, and what crashed."""
    names = list(candidates.numbers)
    actions = tuple(Action(str(n), name or _NOTHING) for n, name in enumerate(names))
    space = ActionSpace("evaluation", "", prologue, actions)
    with tempfile.TemporaryDirectory(prefix="mlbridge-evaluate-") as folder:
        file = Path(folder, "actions.json")
        space.save(file)
        options = CompilerOptions(str(file), ("step",), "text-size", 1)

        def measure(
            runner: SequenceRunner, path: Path
        ) -> tuple[int, dict[int, int], list[int]]:
            oz = int(runner.reset(path).info["oz_text_size"])
            found: dict[int, int] = {}
            failed = []
            for number in sorted(candidates.wanted[str(path)]):
                try:
                    found[number] = runner.run(path, [number]).last
                except ModelError:
                    found[number] = oz
                    failed.append(number)
            return oz, found, failed

        sizes: dict[str, dict[int, int]] = {}
        oz: dict[str, int] = {}
        failures: list[tuple[str, str]] = []
        with Runners(options, jobs) as runners:
            results = runners.map(
                measure, paths, lambda done, total: show("Compiling", done, total)
            )
            for path, (stock, found, failed) in zip(paths, results, strict=True):
                oz[str(path)] = stock
                sizes[str(path)] = found
                failures += [(str(path), names[number]) for number in failed]
    return sizes, oz, failures


_NOTHING = "no-op-module"


def _stock(
    units: Sequence[tuple[Program, Module]],
    kept: Sequence[int],
    level: str,
    jobs: int,
    show: Show,
) -> list[int]:
    """Bytes of machine code by stock clang, from the sources."""
    from concurrent.futures import ThreadPoolExecutor

    def compile_one(number: int) -> int:
        program, module = units[number]
        with tempfile.TemporaryDirectory(prefix="mlbridge-stock-") as folder:
            target = Path(folder, "out.o")
            toolchain.compile_source(program, module, target, level)
            return text_size(target.read_bytes(), module.source)

    sizes = []
    with ThreadPoolExecutor(jobs) as pool:
        for done, size in enumerate(pool.map(compile_one, kept), 1):
            sizes.append(size)
            show(f"clang {level}", done, len(kept))
    return sizes
