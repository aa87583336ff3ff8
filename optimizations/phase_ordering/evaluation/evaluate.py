# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How good a model is: its code sizes against stock clang's and against what is cheap.

Each file is compiled on its own. For every way the same number of tries and the same
rule for the state that counts:

- ``alone``: one sequence is chosen without making machine code, its last state counts;
- ``best of K``: K sequences are compiled, and -Oz; the smallest last state counts.
  Deployment tries -Oz beside them, too.

The baselines under the same rules are the sequence that was best on the training
programs, the K of a core set of them, and K drawn at random. A sequence that the
compiler does not survive is -Oz, which deployment falls back to.
"""

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mlbridge.envs.machine_code import text_size
from mlbridge.errors import InvalidArgument
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.corpus.manifest import Corpus, Module, Program
from mlbridge_optimizations.show import ShowStage

from ..environment.actions import Order
from ..environment.compiler import (
    EpisodeOptions,
    ModuleFailed,
    SequenceFailed,
    SequenceRunner,
)
from ..environment.measure import Measured, measure, oz_size
from ..environment.runners import Runners
from ..model.coreset import CoreSet
from ..model.model import Model, Task
from .settings import Compared

Array = NDArray[np.float64]
T = TypeVar("T")

# Of a stock clang in a process of its own; of -Oz all ratios are.
LEVELS = ("-Os", "-O2")


@dataclass(frozen=True)
class EvaluationSettings(Compared):
    """What is compared."""

    draws: int = 5  # Of random sequences, with a seed each; their mean size counts.
    levels: tuple[str, ...] = LEVELS  # Of stock clang, for comparison.


@dataclass
class Way:
    """One way to choose, and what it makes of each file."""

    name: str  # In words.
    tries: int  # Sequences that are compiled for a file before one is chosen.
    emitted: int  # Objects that are made for a file in order to choose.
    # Bytes of machine code, [files]; where there are several draws, the mean.
    sizes: Array
    # The pipeline that was chosen for each file, where it is ours; None where stock -Oz
    # was, or was fallen back to. Of several draws, by the first.
    chosen: list[str | None] = field(default_factory=list)
    draws: int = 1  # At random.


@dataclass(frozen=True)
class Failure:
    """What the compiler did not survive."""

    file: str  # Path below the corpus.
    pipeline: str  # Of the sequence; empty where it did not come to the first action.
    kind: str  # ``crash``, ``timeout`` or ``refused``.


@dataclass
class Evaluation:
    """What was found; `Statistics` sums it up."""

    files: list[str]  # Paths below the corpus.
    programs: list[str]  # Of these.
    oz: Array  # Bytes by stock clang's -Oz, [files].
    ways: list[Way]  # To choose.
    failures: list[Failure] = field(default_factory=list)  # There -Oz counts instead.


Choice = str | None  # A pipeline, without the prologue; None is stock -Oz.


@dataclass(frozen=True)
class _Rule:
    """A way before it is measured: of each draw, the choices of each file."""

    name: str
    tries: int
    emitted: int
    draws: list[list[list[Choice]]]


def evaluate(
    corpus: Corpus,
    split: str | None,
    model: Model,
    core: CoreSet | None,
    settings: EvaluationSettings,
    *,
    vocabulary: Path | None = None,
    jobs: int = 1,
    log: Path | None = None,
    show: ShowStage = lambda stage, done, total: None,
) -> Evaluation:
    """Compares a model with the baselines on the files of a split.

    Without a core set there are only random sequences of the model's space to compare
    with. Sizes are kept for another time in the log; see `measure`.

    Raises:
        InvalidArgument: there is no file.
    """
    units = _units(corpus, split, settings)
    paths = [corpus.folder / module.path for _, module in units]
    names = {path: module.path for path, (_, module) in zip(paths, units, strict=True)}
    oz = _sizes_of(oz_size, paths, "clang -Oz", jobs, show)
    rollouts, failures = _rollouts(model, paths, settings, vocabulary, jobs, show)

    rules = _rules(model.task, core, settings, paths, rollouts)
    tried = [files for rule in rules for files in rule.draws]
    wanted = {
        path: sorted({choice for files in tried for choice in files[n] if choice})
        for n, path in enumerate(paths)
    }
    measured = dict(
        measure(
            wanted,
            model.task.actions.prologue,
            timeout=settings.timeout,
            plugin=settings.plugin,
            jobs=jobs,
            log=log,
            show=partial(show, "Compiling"),
        )
    )
    for path in paths:
        failures += [(path, error) for error in measured[path].failures]
    kept = [n for n, size in enumerate(oz) if size]
    ways = [_way(rule, kept, [measured[path] for path in paths], oz) for rule in rules]
    inside = [measured[paths[n]].oz or oz[n] for n in kept]
    ways.append(Way("clang -Oz, in the plug-in", 1, 0, np.array(inside, float)))
    for level in settings.levels:
        name, chosen = f"clang {level}", [units[n] for n in kept]
        sizes = _sizes_of(partial(_stock, level), chosen, name, jobs, show)
        ways.append(Way(name, 1, 0, np.array(sizes, float)))
    return Evaluation(
        [units[n][1].path for n in kept],
        [units[n][0].name for n in kept],
        np.array([oz[n] for n in kept], float),
        ways,
        [Failure(names[path], error.pipeline, error.kind) for path, error in failures],
    )


def _rules(
    task: Task,
    core: CoreSet | None,
    settings: EvaluationSettings,
    paths: Sequence[Path],
    rollouts: Sequence[Sequence[Order | None]],
) -> list[_Rule]:
    """The model's ways, those of the core set if there is one, and chance."""
    count = settings.tries
    ours = [
        [None if order is None else task.actions.joined(order) for order in orders]
        for orders in rollouts
    ]
    space, length = task.actions, task.steps
    fixed: list[Choice] = []
    if core is not None:
        space, length = core.drawn_from, core.length
        fixed = [core.actions.joined(order) for order in core.sequences[:count]]

    def drawn_for(path: Path, draw: int) -> list[Choice]:
        size, seed = (count, length), settings.seed + draw
        orders = random_sequences(len(space.actions), path, size, seed)
        return [space.joined(order) for order in orders]

    drawn = [[drawn_for(path, n) for path in paths] for n in range(settings.draws)]
    everywhere = [[fixed for _ in paths]]
    rules = [_alone("model, alone", [ours])]
    if fixed:
        rules.append(_alone("best fixed sequence", everywhere))
    rules.append(_alone("one random sequence", drawn))
    rules.append(_best("model, best of {}", [ours]))
    if fixed:
        rules.append(_best("{} fixed sequences", everywhere))
    rules.append(_best("random, best of {}", drawn))
    return rules


def _alone(name: str, draws: Sequence[Sequence[Sequence[Choice]]]) -> _Rule:
    return _Rule(name, 1, 0, [[list(file[:1]) for file in files] for files in draws])


def _best(name: str, draws: Sequence[Sequence[Sequence[Choice]]]) -> _Rule:
    """The smallest of several and -Oz, which is first: of equals it is kept."""
    count = max(len(file) for files in draws for file in files)
    choices = [[[None, *file] for file in files] for files in draws]
    return _Rule(name.format(count), count, count + 1, choices)


def _way(
    rule: _Rule, kept: Sequence[int], measured: Sequence[Measured], oz: Sequence[int]
) -> Way:
    sizes: list[list[int]] = []
    chosen: list[list[Choice]] = []
    for files in rule.draws:
        sizes.append([])
        chosen.append([])
        for n in kept:
            known = measured[n].sizes
            # What the compiler did not survive is -Oz.
            choices = [choice if choice in known else None for choice in files[n]]
            found = [oz[n] if choice is None else known[choice] for choice in choices]
            best = int(np.argmin(found))
            sizes[-1].append(found[best])
            chosen[-1].append(choices[best])
    means = np.mean(np.array(sizes, float), axis=0)
    return Way(rule.name, rule.tries, rule.emitted, means, chosen[0], len(sizes))


def _units(
    corpus: Corpus, split: str | None, settings: EvaluationSettings
) -> list[tuple[Program, Module]]:
    most = settings.most
    found = [
        (program, module)
        for program in corpus.select(split, only=settings.programs or ())
        for module in program.modules
        if module.functions and (most is None or module.instructions <= most)
    ]
    if not found:
        raise InvalidArgument(f"{corpus.folder} has no module of that size")
    return found


def random_sequences(
    actions: int, path: Path, size: tuple[int, int], seed: int
) -> list[Order]:
    """So many sequences of so many actions by chance, others for each file."""
    draw = np.random.default_rng([seed, *f"{path.parent.name}/{path.name}".encode()])
    drawn = draw.integers(actions, size=size)
    return [tuple(int(action) for action in row) for row in drawn]


def _rollouts(
    model: Model,
    paths: Sequence[Path],
    settings: EvaluationSettings,
    vocabulary: Path | None,
    jobs: int,
    show: ShowStage,
) -> tuple[list[list[Order | None]], list[tuple[Path, SequenceFailed]]]:
    """The sequences that the model would try for each file, None where it fails."""
    with tempfile.TemporaryDirectory(prefix="mlbridge-evaluate-") as folder:
        task = model.task
        # It sees no sizes, and none are measured.
        options = EpisodeOptions.of(
            task.actions,
            Path(folder, "actions.json"),
            model.features,
            steps=task.steps,
            stop=task.stop,
            vocabulary=vocabulary,
            plugin=settings.plugin,
        )

        def choose(runner: SequenceRunner, path: Path) -> list[Order | SequenceFailed]:
            try:
                return model.choices(runner, path, settings.tries, settings.seed)
            except ModuleFailed as error:
                return [error]

        with Runners(options, jobs, settings.timeout) as runners:
            found = dict(runners.map(choose, paths, partial(show, "Deciding")))
    failures: list[tuple[Path, SequenceFailed]] = []
    rollouts: list[list[Order | None]] = [[] for _ in paths]
    for path, orders in zip(paths, rollouts, strict=True):
        for order in found[path]:
            if isinstance(order, SequenceFailed):
                failures.append((path, order))
            orders.append(None if isinstance(order, SequenceFailed) else order)
    return rollouts, failures


def _stock(level: str, unit: tuple[Program, Module]) -> int:
    program, module = unit
    with tempfile.TemporaryDirectory(prefix="mlbridge-stock-") as folder:
        target = Path(folder, "out.o")
        toolchain.compile_source(program, module, target, level)
        return text_size(target.read_bytes(), module.source)


def _sizes_of(
    size: Callable[[T], int], files: Sequence[T], stage: str, jobs: int, show: ShowStage
) -> list[int]:
    sizes = []
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for found in pool.map(size, files):
                sizes.append(found)
                show(stage, len(sizes), len(files))
        except BaseException:
            # Nobody waits for the others.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return sizes
