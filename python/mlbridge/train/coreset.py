# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A core set of sequences, and a value model that picks among them.

The recipe of "Learning Compiler Pass Orders using Coreset and Normalized Value
Prediction" (ICML 2023). Each part is kept in the folder of the training, so that one
that was cut short goes on: ``search.jsonl``, ``table.jsonl``, ``core.json``.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlbridge.corpus import manifest
from mlbridge.envs.phase_ordering import _dimension
from mlbridge.errors import InvalidArgument
from mlbridge.phase_ordering.actions import ActionSpace
from mlbridge.phase_ordering.compiler import TIMEOUT, CompilerOptions, SequenceRunner
from mlbridge.phase_ordering.coreset import CoreSet
from mlbridge.phase_ordering.model import Task
from mlbridge.phase_ordering.runners import Runners
from mlbridge.train import value as value_model
from mlbridge.train.export import export_model
from mlbridge.train.search import (
    Order,
    SearchSettings,
    Table,
    search,
    tabulate,
)
from mlbridge.train.value import Check, ValueSettings

Show = Callable[[str, int, int], None]


@dataclass(frozen=True)
class CoreSetSettings:
    """What is asked for.

    Attributes:
        corpus: its folder.
        out: the folder for what comes of it.
        actions: the space of the search.
        count: K, the sequences of the core set.
        searched: modules that are searched, each program's share the same.
        most: instructions of a module; larger ones are left out.
        search: how each of them is.
        value: how the value model is trained.
        observation: what it sees.
        vocabulary: of ``embedding``.
        workers: compilers at once.
        timeout: seconds for a sequence on a module that is not large; see
            `SequenceRunner`.
        plugin: MLBridgeLLVM.so.
    """

    corpus: Path
    out: Path
    actions: str = "oz"
    count: int = 50
    searched: int = 60
    most: int | None = 6000
    search: SearchSettings = field(default_factory=SearchSettings)
    value: ValueSettings = field(default_factory=ValueSettings)
    observation: tuple[str, ...] = ("histogram", "counts")
    vocabulary: Path | None = None
    workers: int = 1
    timeout: float = TIMEOUT
    plugin: Path | None = None


@dataclass(frozen=True)
class Trained:
    """What came of the recipe.

    Attributes:
        core: the core set.
        searched: geomean over the searched modules of the best that was found.
        checks: the value model on programs that it was not trained on, by epochs.
        model: the file.
        failures: what the compiler did not survive; see `Table`.
    """

    core: CoreSet
    searched: float
    checks: list[Check]
    model: Path
    failures: list[tuple[str, Order, str]]


def train(
    settings: CoreSetSettings, show: Show = lambda stage, done, total: None
) -> Trained:
    """Searches, chooses, and trains.

    Raises:
        InvalidArgument: the corpus has no such modules.
    """
    corpus = manifest.load(settings.corpus.resolve())
    settings.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(settings), indent=1, default=str)
    (settings.out / "settings.json").write_text(text + "\n", encoding="utf-8")
    modules = list(corpus.modules("training", most=settings.most))
    if not modules:
        raise InvalidArgument(f"{settings.corpus} has no training module so small")
    options = CompilerOptions(
        settings.actions,
        ("step",),
        "none",
        settings.search.length,
        plugin=settings.plugin,
    )
    with Runners(options, settings.workers, settings.timeout) as runners:
        found = search(
            runners,
            balanced(modules, settings.searched, settings.search.seed),
            settings.search,
            settings.out / "search.jsonl",
            lambda done, total: show("Searching", done, total),
        )
    # The space's own order, and the best of each module.
    length = min(len(options.space.actions), settings.search.length)
    found = [best for best in found if best.sequences]
    pool = [tuple(range(length)), *(best.sequences[0] for best in found)]
    table = tabulate(
        options,
        settings.workers,
        modules,
        list(dict.fromkeys(pool)),
        settings.out / "table.jsonl",
        lambda done, total: show("Trying on all", done, total),
        timeout=settings.timeout,
    )
    core, chosen = _core_set(options.space, table, settings.count)
    core.save(settings.out / "core.json")
    of_core = Table(
        table.modules,
        table.programs,
        list(core.sequences),
        table.sizes[:, chosen],
        table.oz,
    )
    model, checks = _train_model(settings, core, of_core, show)
    best = [min(b.ratios) for b in found] or [1.0]
    return Trained(
        core, float(np.exp(np.mean(np.log(best)))), checks, model, table.failures
    )


def balanced(modules: Sequence[Path], count: int, seed: int) -> list[Path]:
    """So many modules, of each program as many as of any other while there are any."""
    draw = np.random.default_rng(seed)
    by_program: dict[str, list[Path]] = {}
    for module in modules:
        by_program.setdefault(module.parent.name, []).append(module)
    for files in by_program.values():
        draw.shuffle(files)
    chosen: list[Path] = []
    while len(chosen) < min(count, len(modules)):
        for files in by_program.values():
            if files and len(chosen) < count:
                chosen.append(files.pop())
    return chosen


def _core_set(
    space: ActionSpace, table: Table, count: int
) -> tuple[CoreSet, list[int]]:
    chosen = table.greedy(count)
    smallest = np.full(len(table.modules), np.inf)
    ratios = []
    for number in chosen:
        smallest = np.minimum(smallest, table.sizes[:, number])
        ratios.append(float(np.exp(table.score(smallest))))
    sequences = tuple(table.sequences[number] for number in chosen)
    return CoreSet(space, sequences, tuple(ratios)), chosen


def _train_model(
    settings: CoreSetSettings, core: CoreSet, table: Table, show: Show
) -> tuple[Path, list[Check]]:
    """The value model, as a file beside the core set."""
    whole = core.actions.of_sequences(
        core.sequences,
        f"{core.actions.name}-core",
        f"{len(core.sequences)} sequences of {core.actions.name}, greedily chosen",
    )
    options = CompilerOptions(
        settings.actions,
        settings.observation,
        # What the table was made for; nothing is measured by it here.
        "text-size",
        1,
        vocabulary=settings.vocabulary.resolve() if settings.vocabulary else None,
        dimension=_dimension(settings.vocabulary),
        plugin=settings.plugin,
    )
    task = Task(whole, 1, stop=False, observation=tuple(options.widths))
    modules = [Path(module) for module in table.modules]
    rows = observe(options, modules, settings.workers)
    model, checks = value_model.train(
        rows,
        table,
        options.widths,
        settings.value,
        lambda done, total: show("Training", done, total),
    )
    path = settings.out / "model.onnx"
    export_model(
        model,
        path,
        options,
        task,
        seed=settings.value.seed,
        decide="argmax:values",
    )
    _plot(core, checks, settings.out / "curve.png")
    return path, checks


def observe(
    options: CompilerOptions, modules: Sequence[Path], workers: int
) -> NDArray[np.float32]:
    """The features of modules before the first action, in rows."""

    def row(runner: SequenceRunner, module: Path) -> NDArray[np.float32]:
        features: Mapping[str, Any] = runner.reset(module).features
        return np.concatenate([features[name] for name in options.widths])

    with Runners(options, workers) as runners:
        return np.stack(list(runners.map(row, modules)))


def _plot(core: CoreSet, checks: Sequence[Check], path: Path) -> None:
    """Writes a PNG: what K sequences bring, and how the value model learned."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    left.plot(range(1, len(core.ratios) + 1), core.ratios, "o-")
    left.set(xlabel="sequences in the core set", ylabel="best of them, size / -Oz")
    left.set_title("training programs")
    if checks:
        epochs = [check.epochs for check in checks]
        right.plot(epochs, [check.chosen for check in checks], label="chosen")
        right.axhline(checks[0].fixed, color="0.5", ls="--", label="best fixed")
        right.axhline(checks[0].best, color="green", ls=":", label="best of all")
        right.legend(fontsize="small")
    right.set(xlabel="epochs", ylabel="size / -Oz")
    right.set_title("each program by a model that has not seen it")
    for panel in (left, right):
        panel.grid(visible=True, alpha=0.25)
    figure.savefig(path, dpi=120)
