# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares a model's code sizes with those of stock clang and of cheap baselines.

Each file is compiled on its own. There are two rules, which all ways follow:

- ``alone``: one sequence is chosen without machine code; its last state counts.
- ``best of K``: K sequences and -Oz are compiled; the smallest last state counts.
  Deployment also tries -Oz beside them.

The baselines are the best sequence on the training programs, the K of a core set, and K
random ones. A sequence on which the compiler fails counts as -Oz, to which deployment
falls back.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
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
from mlbridge_optimizations.show import ShowStage, quiet

from ..environment.actions import Order
from ..environment.compiler import (
    EpisodeOptions,
    ModuleFailed,
    SequenceFailed,
    SequenceRunner,
)
from ..environment.measure import Measured, measure, oz_size
from ..environment.runners import Runners
from ..environment.settings import Compared
from ..model.coreset import CoreSet
from ..model.model import Model, Task

Array = NDArray[np.float64]
T = TypeVar("T")
Choice = str | None  # A pipeline without the prologue; None is stock -Oz.


@dataclass(frozen=True)
class EvaluationSettings(Compared):
    """The settings of an evaluation."""

    draws: int = 5  # Of random sequences; their mean size counts.
    levels: tuple[str, ...] = ("-Os", "-O2")  # Of stock clang, besides -Oz.


@dataclass
class Way:
    """One way of choosing a pass sequence, and its result for each file."""

    name: str
    tries: int  # Sequences compiled for a file.
    emitted: int  # Objects made for a file in order to choose.
    sizes: Array  # Mean bytes of machine code of the draws, [files].
    # Each file's pipeline, in the first draw; None for stock -Oz, also as a fallback.
    chosen: list[Choice] = field(default_factory=list)
    draws: int = 1


@dataclass(frozen=True)
class Failure:
    """A failure of the compiler."""

    file: str  # Path below the corpus.
    pipeline: str  # Empty before the first action.
    kind: str  # ``crash``, ``timeout`` or ``refused``.


@dataclass
class Evaluation:
    """The results of an evaluation; see `Statistics`."""

    files: list[str]  # Paths below the corpus.
    programs: list[str]  # Of the files.
    oz: Array  # Bytes by stock clang's -Oz, [files].
    ways: list[Way]
    failures: list[Failure] = field(default_factory=list)  # There -Oz counts instead.


@dataclass(frozen=True)
class _Rule:
    """A way before it is measured: for each draw, the choices of each file."""

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
    show: ShowStage = quiet,
) -> Evaluation:
    """Compares a model with the baselines on the files of a split.

    Without a core set the only baselines are random sequences of the model's space.
    Sizes are kept in the log; see `measure`. InvalidArgument is raised without files.
    """
    most = settings.most
    units = [
        (program, module)
        for program in corpus.select(split, only=settings.programs or ())
        for module in program.modules
        if module.functions and (most is None or module.instructions <= most)
    ]
    if not units:
        raise InvalidArgument(f"{corpus.folder} has no module of that size")
    paths = [corpus.folder / module.path for _, module in units]
    names = {path: module.path for path, (_, module) in zip(paths, units, strict=True)}
    oz = _sizes_of(oz_size, paths, "clang -Oz", jobs, show)
    rollouts = _rollouts(model, paths, settings, vocabulary, jobs, show)
    tries = [(path, it) for path in paths for it in rollouts[path]]
    failures = [(path, it) for path, it in tries if isinstance(it, SequenceFailed)]
    rules = _rules(model.task, core, settings, paths, rollouts)
    tried = [files for rule in rules for files in rule.draws]
    wanted = {
        path: sorted({choice for files in tried for choice in files[n] if choice})
        for n, path in enumerate(paths)
    }
    by_path = dict(
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
    measured = [by_path[path] for path in paths]
    for path, its in zip(paths, measured, strict=True):
        failures += [(path, error) for error in its.failures]
    kept = [n for n, size in enumerate(oz) if size]
    ways = [_way(rule, kept, measured, oz) for rule in rules]
    inside = [measured[n].oz or oz[n] for n in kept]
    ways.append(Way("clang -Oz, in the plug-in", 1, 0, np.array(inside, float)))
    chosen = [units[n] for n in kept]
    for level in settings.levels:
        name, size = f"clang {level}", partial(_stock, level)
        sizes = _sizes_of(size, chosen, name, jobs, show)
        ways.append(Way(name, 1, 0, np.array(sizes, float)))
    return Evaluation(
        [module.path for _, module in chosen],
        [program.name for program, _ in chosen],
        np.array([oz[n] for n in kept], float),
        ways,
        [Failure(names[path], error.pipeline, error.kind) for path, error in failures],
    )


def _rules(
    task: Task,
    core: CoreSet | None,
    settings: EvaluationSettings,
    paths: Sequence[Path],
    rollouts: Mapping[Path, Sequence[Order | SequenceFailed]],
) -> list[_Rule]:
    """Makes the rules of the model, of the core set if there is one, and of chance."""

    def joined(order: Order | SequenceFailed) -> Choice:
        if isinstance(order, SequenceFailed):
            return None
        return task.actions.joined(order)

    count = settings.tries
    ours = [list(map(joined, rollouts[path])) for path in paths]
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
    """Makes a rule that takes the smallest; -Oz is first, so it wins ties."""
    count = max(len(file) for files in draws for file in files)
    choices = [[[None, *file] for file in files] for files in draws]
    return _Rule(name.format(count), count, count + 1, choices)


def _way(
    rule: _Rule, kept: Sequence[int], measured: Sequence[Measured], oz: Sequence[int]
) -> Way:
    def best(n: int, choices: Sequence[Choice]) -> tuple[int, Choice]:
        known = measured[n].sizes
        # A failed sequence counts as -Oz.
        pairs = [(known[c], c) if c in known else (oz[n], None) for c in choices]
        return min(pairs, key=lambda pair: pair[0])

    found = [[best(n, files[n]) for n in kept] for files in rule.draws]
    means = np.mean([[size for size, _ in files] for files in found], axis=0)
    chosen = [choice for _, choice in found[0]]
    return Way(rule.name, rule.tries, rule.emitted, means, chosen, len(found))


def random_sequences(
    actions: int, path: Path, size: tuple[int, int], seed: int
) -> list[Order]:
    """Draws sequences of actions of that shape, different for each file."""
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
) -> dict[Path, list[Order | SequenceFailed]]:
    """Returns the model's sequences and failures for each file."""
    with tempfile.TemporaryDirectory(prefix="mlbridge-evaluate-") as folder:
        task = model.task
        # No sizes are measured here.
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
            return dict(runners.map(choose, paths, partial(show, "Deciding")))


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
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return sizes
