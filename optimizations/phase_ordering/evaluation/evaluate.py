# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the code sizes of a model, of stock clang and of simple baselines.

The size of each file is measured after a sequence of passes. There are two rules to
choose the sequence:

- ``alone``: one sequence is chosen, without a measurement.
- ``best of K``: the sizes after K sequences and after -Oz are measured, and the
  result is the smallest size. The plug-in does the same in a compiler.

The same is done for the number of IR instructions.

The baselines choose the best sequences of a core set, or random sequences. If the
compiler fails on a sequence, the result is the size after -Oz, because the plug-in
falls back to -Oz.
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
from ..environment.measure import measure, oz_size
from ..environment.runners import Runners
from ..environment.settings import Compared
from ..model.coreset import CoreSet
from ..model.model import Model, Task

Array = NDArray[np.float64]
T = TypeVar("T")
# A pipeline without the passes that run before the first action. None means stock -Oz.
Choice = str | None


@dataclass(frozen=True)
class EvaluationSettings(Compared):
    """The settings of an evaluation."""

    draws: int = 5  # The number of random baselines. The result is their mean.
    levels: tuple[str, ...] = ("-Os", "-O2")  # Further levels of clang to compare.


@dataclass
class Way:
    """A way to choose a pass sequence, and the result for each file."""

    name: str
    tries: int  # The number of sequences to try per file.
    emitted: int  # The number of object files made per file in order to choose.
    # The code sizes in bytes, or the numbers of instructions, [files], as the mean of
    # the draws.
    sizes: Array
    # The pipeline for each file in the first draw. None means stock -Oz.
    chosen: list[Choice] = field(default_factory=list)
    draws: int = 1


@dataclass(frozen=True)
class Failure:
    """A failure of the compiler."""

    file: str  # The path relative to the corpus.
    pipeline: str  # The pipeline, or "" if the compiler failed before the first action.
    kind: str  # ``crash``, ``timeout`` or ``refused``.


@dataclass
class Evaluation:
    """The results of an evaluation. `Statistics` reports them."""

    files: list[str]  # The paths relative to the corpus.
    programs: list[str]  # The program of each file.
    oz: Array  # The sizes after stock -Oz, [files].
    ways: list[Way]
    failures: list[Failure] = field(default_factory=list)
    # The same comparison by the number of IR instructions.
    instructions: "Evaluation | None" = None


@dataclass(frozen=True)
class _Rule:
    """A way that is not measured yet. `draws` has the choices by draw and by file."""

    name: str
    tries: int
    emitted: int
    draws: list[list[list[Choice]]]


def evaluate(
    corpus: Corpus,
    split: str | None,
    model: Model | Task,
    core: CoreSet | None,
    settings: EvaluationSettings,
    *,
    vocabulary: Path | None = None,
    jobs: int = 1,
    log: Path | None = None,
    show: ShowStage = quiet,
) -> Evaluation:
    """Compares a model with the baselines on the files of a split.

    Without a core set, the only baselines are random sequences of the model's actions.
    If `model` is only a task, only baselines are compared. `measure` describes the log.
    Raises InvalidArgument if there are no files.
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
    rollouts: dict[Path, list[Order | SequenceFailed]] = {}
    task = model if isinstance(model, Task) else model.task
    if isinstance(model, Model):
        rollouts = _rollouts(model, paths, settings, vocabulary, jobs, show)
    tries = [(path, it) for path in rollouts for it in rollouts[path]]
    failures = [(path, it) for path, it in tries if isinstance(it, SequenceFailed)]
    rules = _rules(task, core, settings, paths, rollouts)
    tried = [files for rule in rules for files in rule.draws]
    wanted = {
        path: sorted({choice for files in tried for choice in files[n] if choice})
        for n, path in enumerate(paths)
    }
    by_path = dict(
        measure(
            wanted,
            task.actions.prologue,
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
    sizes = [its.sizes for its in measured]
    ways = [_way(rule, kept, sizes, oz) for rule in rules]
    inside = [measured[n].oz or oz[n] for n in kept]
    ways.append(Way("clang -Oz, in the plug-in", 1, 0, np.array(inside, float)))
    chosen = [units[n] for n in kept]
    for level in settings.levels:
        name, size = f"clang {level}", partial(_stock, level)
        at_level = _sizes_of(size, chosen, name, jobs, show)
        ways.append(Way(name, 1, 0, np.array(at_level, float)))

    def evaluation(kept: list[int], oz: list[int], ways: list[Way]) -> Evaluation:
        chosen = [units[n] for n in kept]
        programs = [program.name for program, _ in chosen]
        sizes = np.array([oz[n] for n in kept], float)
        return Evaluation([module.path for _, module in chosen], programs, sizes, ways)

    found = evaluation(kept, oz, ways)
    found.failures = [
        Failure(names[path], error.pipeline, error.kind) for path, error in failures
    ]
    # The number after -Oz is unknown if the compiler failed before the first action.
    counts = [its.oz_instructions for its in measured]
    counted = [n for n in kept if counts[n]]
    if counted:
        by_count = [its.instructions for its in measured]
        by_instructions = [_way(rule, counted, by_count, counts) for rule in rules]
        found.instructions = evaluation(counted, counts, by_instructions)
    return found


def _rules(
    task: Task,
    core: CoreSet | None,
    settings: EvaluationSettings,
    paths: Sequence[Path],
    rollouts: Mapping[Path, Sequence[Order | SequenceFailed]],
) -> list[_Rule]:
    """Returns the rules for the model, a core set, if any, and random choice."""

    def joined(order: Order | SequenceFailed) -> Choice:
        if isinstance(order, SequenceFailed):
            return None
        return task.actions.joined(order)

    count = settings.tries
    ours = [list(map(joined, rollouts[path])) for path in paths if rollouts]
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
    rules = [_alone("model, alone", [ours])] if ours else []
    if fixed:
        rules.append(_alone("best fixed sequence", everywhere))
    rules.append(_alone("one random sequence", drawn))
    if ours:
        rules.append(_best("model, best of {}", [ours]))
    if fixed:
        rules.append(_best("{} fixed sequences", everywhere))
    rules.append(_best("random, best of {}", drawn))
    return rules


def _alone(name: str, draws: Sequence[Sequence[Sequence[Choice]]]) -> _Rule:
    return _Rule(name, 1, 0, [[list(file[:1]) for file in files] for files in draws])


def _best(name: str, draws: Sequence[Sequence[Sequence[Choice]]]) -> _Rule:
    """Returns a rule that chooses the smallest size. -Oz is first, so it wins ties."""
    count = max(len(file) for files in draws for file in files)
    choices = [[[None, *file] for file in files] for files in draws]
    return _Rule(name.format(count), count, count + 1, choices)


def _way(
    rule: _Rule,
    kept: Sequence[int],
    measured: Sequence[dict[str, int]],
    oz: Sequence[int],
) -> Way:
    def best(n: int, choices: Sequence[Choice]) -> tuple[int, Choice]:
        known = measured[n]
        # Use the size after -Oz for a failed sequence.
        pairs = [(known[c], c) if c in known else (oz[n], None) for c in choices]
        return min(pairs, key=lambda pair: pair[0])

    found = [[best(n, files[n]) for n in kept] for files in rule.draws]
    means = np.mean([[size for size, _ in files] for files in found], axis=0)
    chosen = [choice for _, choice in found[0]]
    return Way(rule.name, rule.tries, rule.emitted, means, chosen, len(found))


def random_sequences(
    actions: int, path: Path, size: tuple[int, int], seed: int
) -> list[Order]:
    """Draws size[0] sequences of size[1] actions, which differ between files."""
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
    """Returns a dict from file to the model's sequences and failures."""
    with tempfile.TemporaryDirectory(prefix="mlbridge-evaluate-") as folder:
        task = model.task
        # Use no reward, because `measure` measures the sizes later.
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
