# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A core set of sequences, and a value model that picks among them.

The recipe of "Learning Compiler Pass Orders using Coreset and Normalized Value
Prediction" (ICML 2023), with sequences of actions as there or with whole pipelines.
Each part is kept in the folder of the training, so that one that was cut short goes on:
``search.jsonl`` or ``measured.jsonl``, ``table.jsonl``, ``core.json``.
"""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlbridge.errors import InvalidArgument
from mlbridge_optimizations.corpus import manifest
from mlbridge_optimizations.corpus.manifest import program_of
from mlbridge_optimizations.corpus.recipes import SHARED
from mlbridge_optimizations.plot import panels_of
from mlbridge_optimizations.show import ShowStage

from ..environment.actions import Action, ActionSpace, Order
from ..environment.compiler import EpisodeOptions, SequenceRunner
from ..environment.runners import Runners
from ..model.coreset import CoreSet
from ..model.export import export_model
from ..model.model import Task
from . import lookahead
from . import value as value_model
from .changes import Library
from .evolve import EvolutionSettings, evolve
from .lookahead import Foresight
from .measurements import Measurements, Table, tabulate
from .search import SearchSettings, search
from .settings import Made, Searched
from .value import Check, Fitted, ValueSettings

# The random sequences to compare whole pipelines with: of this space, and so long.
RANDOM, RANDOM_LENGTH = "oz", 15

MODEL = "model.onnx"  # In the folder of the training.
LEAST = 300  # Instructions: of smaller modules there is little to learn.


@dataclass(frozen=True)
class CoreSetSettings(Searched, Made):
    """What is asked for."""

    actions: str = "oz"  # The space of the search.
    # How each of these is searched.
    search: SearchSettings = field(default_factory=SearchSettings)
    # How whole pipelines are searched, in place of sequences of actions.
    evolution: EvolutionSettings | None = None
    # A core set that is there: without ``evolution`` nothing is searched, and nothing
    # chosen; with it, what is searched begins there.
    core: Path | None = None
    # How the value model is trained.
    value: ValueSettings = field(default_factory=ValueSettings)


@dataclass(frozen=True)
class Trained:
    """What came of the recipe."""

    core: CoreSet
    # Geomean over the searched modules of the best that was found; None if nothing was
    # searched.
    searched: float | None
    fitted: Fitted | None  # The value model, and what it does for programs left out.
    # The same of a model that looks ahead; one of the two is None.
    foresight: Foresight | None
    model: Path  # Its file.
    # What the compiler did not survive; see `Table`.
    failures: list[tuple[str, Order, str]]


@dataclass(frozen=True)
class Pool:
    """Sequences, and what is known of them."""

    options: EpisodeOptions  # Of the compiler, with the space that they are of.
    # By sequence, the programs in which it was found: none, where it is there whatever
    # is searched, or where that is not known.
    origins: dict[Order, frozenset[str]]
    length: int  # Of random sequences to compare them with: see `CoreSet`.
    # Where these are drawn from, if each of our sequences is a pipeline as a whole, the
    # one action that it has.
    random: str | None = None
    # Geomean over the searched modules of the best found for each; None if no module
    # was.
    searched: float | None = None
    # The core set that they are, in its order, if they are one already.
    core: CoreSet | None = None

    @property
    def sequences(self) -> list[Order]:
        """All of them."""
        return list(self.origins)

    def core_set(self, table: Table, count: int) -> tuple[CoreSet, list[int]]:
        """The best so many by a table of all, and their numbers in it."""
        chosen = list(range(len(table.sequences)))
        if self.core is None:
            chosen = table.greedy(count)
        smallest = np.full(len(table.modules), np.inf)
        ratios = []
        for number in chosen:
            smallest = np.minimum(smallest, table.sizes[:, number])
            ratios.append(table.ratio(smallest))
        if self.core is not None:
            core = replace(self.core, sequences=tuple(table.sequences))
            return replace(core, ratios=tuple(ratios)), chosen
        space = self.options.space
        sequences = tuple(table.sequences[number] for number in chosen)
        if self.random is not None:
            # Of whole pipelines none is of use but these.
            kept = tuple(space.actions[action] for (action,) in sequences)
            space = replace(space, actions=kept)
            sequences = tuple((number,) for number in range(len(kept)))
        core = CoreSet(space, sequences, tuple(ratios), self.length, self.random)
        return core, chosen


def train(
    settings: CoreSetSettings, show: ShowStage = lambda stage, done, total: None
) -> Trained:
    """Searches, chooses, and trains.

    Raises:
        InvalidArgument: the corpus has no such modules.
    """
    corpus = manifest.load(settings.corpus.resolve())
    settings.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(settings), indent=1, default=str)
    (settings.out / "settings.json").write_text(text + "\n", encoding="utf-8")
    files = corpus.files("training", without=settings.leave_out or ())
    most = max(files.values(), default=0) if settings.most is None else settings.most
    small = {file: count for file, count in files.items() if count <= most}
    if not small:
        raise InvalidArgument(f"{settings.corpus} has no training module so small")
    modules = list(files)
    if settings.linked:
        programs = corpus.select("training", without=settings.leave_out or ())
        # One with a file that nothing is trained on is none to train on.
        modules += [
            corpus.folder / program.linked.path
            for program in programs
            if program.name not in SHARED
        ]
    pool = _pool(settings, small, show)
    table = tabulate(
        pool.options,
        settings.workers,
        modules,
        pool.sequences,
        settings.out / "table.jsonl",
        partial(show, "Trying on all"),
        timeout=settings.timeout,
    )
    core, chosen = pool.core_set(table, settings.count)
    core.save(settings.out / "core.json")
    fitted, foresight = None, None
    if settings.ahead:
        foresight = _train_to_look_ahead(settings, core, table, chosen, show)
    else:
        origins = list(pool.origins.values())
        fitted = _train_model(settings, core, table, chosen, origins, show)
    path = settings.out / MODEL
    return Trained(core, pool.searched, fitted, foresight, path, table.failures)


def _pool(
    settings: CoreSetSettings, small: Mapping[Path, int], show: ShowStage
) -> Pool:
    if settings.evolution is not None:
        count = max(settings.searched, settings.evolution.modules)
        modules = balanced(small, count, settings.evolution.seed)
        begin = settings.core
        return of_pipelines(
            modules, settings.searched, settings.evolution, settings, show, begin
        )
    if settings.core is not None:
        return of_core_set(CoreSet.load(settings.core), settings)
    how = settings.search
    options = EpisodeOptions(
        settings.actions, ("step",), "none", how.length, plugin=settings.plugin
    )
    modules = balanced(small, settings.searched, how.seed)
    return of_actions(options, modules, how, settings, show)


def balanced(files: Mapping[Path, int], count: int, seed: int) -> list[Path]:
    """So many modules, of each program as many as of any other while there are any.

    Which of a program's is drawn, by the root of its instructions: of a large one more
    can be learned, but it takes longer. Very small ones come last.
    """
    draw = np.random.default_rng(seed)
    by_program: dict[str, list[Path]] = {}
    for file in files:
        by_program.setdefault(program_of(file), []).append(file)
    large = [
        _drawn(files, [file for file in members if files[file] >= LEAST], draw)
        for members in by_program.values()
    ]
    small = [
        sorted(file for file in members if files[file] < LEAST)
        for members in by_program.values()
    ]
    return [*_in_turn(large), *_in_turn(small)][:count]


def _in_turn(queues: Sequence[Sequence[Path]]) -> list[Path]:
    """The first of each, then the second of each, and so on."""
    waves = itertools.zip_longest(*queues)
    return [file for wave in waves for file in wave if file is not None]


def _drawn(
    files: Mapping[Path, int], members: Sequence[Path], draw: np.random.Generator
) -> list[Path]:
    """In an order by chance, in which large ones tend to be early."""
    if not members:
        return []
    weights = np.sqrt([files[member] for member in members])
    order = draw.choice(
        len(members), len(members), replace=False, p=weights / weights.sum()
    )
    return [members[number] for number in order]


def _train_model(
    settings: CoreSetSettings,
    core: CoreSet,
    table: Table,
    chosen: Sequence[int],
    origins: Sequence[frozenset[str]],
    show: ShowStage,
) -> Fitted:
    options = EpisodeOptions(
        settings.actions,
        tuple(settings.observation.split(",")),
        # What the table was made for; nothing is measured by it here.
        "text-size",
        1,
        vocabulary=settings.vocabulary.resolve() if settings.vocabulary else None,
        plugin=settings.plugin,
    )
    task = Task(_whole(core), 1, stop=False, observation=tuple(options.widths))
    modules = [Path(module) for module in table.modules]
    with Runners(options, settings.workers, settings.timeout) as runners:
        rows = observe(runners, modules)
    fitted = value_model.train(
        rows,
        table,
        chosen,
        options.widths,
        settings.value,
        origins=origins,
        show=partial(show, "Training"),
    )
    # A compiler that tries several has to see which are next.
    decide, network = "outputs:values", value_model.Ranked(fitted.model)
    file, seed = settings.out / MODEL, settings.value.seed
    export_model(network, file, options, task, seed=seed, decide=decide)
    _plot(core, partial(_draw_epochs, fitted.checks), settings.out / "curve.png")
    return fitted


def _train_to_look_ahead(
    settings: CoreSetSettings,
    core: CoreSet,
    table: Table,
    chosen: Sequence[int],
    show: ShowStage,
) -> Foresight:
    """The value of states, as a file beside the core set.

    Raises:
        InvalidArgument: there are not so many sequences.
    """
    if not 2 <= settings.ahead <= len(core.sequences):
        raise InvalidArgument(
            f"looking ahead: expected 2 to {len(core.sequences)} sequences, which is"
            f" all of the core set; found {settings.ahead}"
        )
    space = _whole(core)
    actions, seen = settings.out / "core-actions.json", lookahead.OBSERVATION
    options = EpisodeOptions.of(space, actions, seen, plugin=settings.plugin)
    modules = [Path(module) for module in table.modules]
    with Runners(options, settings.workers, settings.timeout) as runners:
        rows = lookahead.outcomes(
            runners, modules, settings.ahead, partial(show, "Looking ahead")
        )
    every = np.ones(len(modules), bool)
    foresight = lookahead.train(
        rows,
        table.part(every, chosen),
        options.widths,
        show=partial(show, "Training"),
    )
    observed, seed = tuple(options.widths), settings.value.seed
    task = Task(space, 1, stop=False, observation=observed, lookahead=settings.ahead)
    network, file = foresight.model, settings.out / MODEL
    export_model(network, file, options, task, seed=seed, decide="outputs:value")
    _plot(core, partial(_draw_settings, foresight), settings.out / "curve.png")
    return foresight


def _whole(core: CoreSet) -> ActionSpace:
    return core.actions.of_sequences(
        core.sequences,
        f"{core.actions.name}-core",
        f"{len(core.sequences)} sequences of {core.actions.name}",
    )


def observe(runners: Runners, modules: Sequence[Path]) -> NDArray[np.float32]:
    """The features of modules before the first action, in rows."""

    def row(runner: SequenceRunner, module: Path) -> NDArray[np.float32]:
        return runners.options.row(runner.reset(module).features)

    found = dict(runners.map(row, modules))
    return np.stack([found[module] for module in modules])


def _draw_epochs(checks: Sequence[Check], axes: Any) -> None:
    axes.set(xlabel="epochs")
    if not checks:
        # Of one program only: there was none to leave out in turn.
        return
    epochs = [check.epochs for check in checks]
    axes.plot(epochs, [check.chosen for check in checks], label="chosen")
    _draw_bounds(axes, checks[0].fixed, checks[0].best)


def _draw_settings(foresight: Foresight, axes: Any) -> None:
    """What looking ahead brought, by how much weights were held down."""
    for margin in sorted({margin for _, margin, _ in foresight.tried}):
        ridges = {r: ratio for r, m, ratio in foresight.tried if m == margin}
        label = f"chosen, margin {margin:g}"
        axes.plot(list(ridges), list(ridges.values()), "o-", label=label)
    _draw_bounds(axes, foresight.fixed, foresight.best)
    axes.set(xlabel="ridge", xscale="log")


def _draw_bounds(axes: Any, fixed: float, best: float) -> None:
    axes.axhline(fixed, color="0.5", ls="--", label="best fixed")
    axes.axhline(best, color="green", ls=":", label="best of all")


def _plot(core: CoreSet, draw: Callable[[Any], None], path: Path) -> None:
    """Writes a PNG: what K sequences bring, and how the model learned."""
    with panels_of(path, 2, size=(11, 4)) as (left, right):
        left.plot(range(1, len(core.ratios) + 1), core.ratios, "o-")
        left.set(xlabel="sequences in the core set", ylabel="best of them, size / -Oz")
        left.set_title("training programs")
        draw(right)
        if right.get_legend_handles_labels()[0]:
            right.legend(fontsize="small")
        right.set(ylabel="size / -Oz")
        right.set_title("each program by a model that has not seen it")
        for panel in (left, right):
            panel.grid(visible=True, alpha=0.25)


def of_actions(
    options: EpisodeOptions,
    modules: Sequence[Path],
    settings: SearchSettings,
    made: Made,
    show: ShowStage,
) -> Pool:
    """The best sequence of actions for each module, and the space's own order."""
    log = made.out / "search.jsonl"
    with Runners(options, made.workers, made.timeout) as runners:
        found = search(runners, modules, settings, log, partial(show, "Searching"))
    own = tuple(range(min(len(options.space.actions), settings.length)))
    origins: dict[Order, frozenset[str]] = {own: frozenset()}
    found = [best for best in found if best.sequences]
    for best in found:
        sequence = best.sequences[0]
        if sequence != own:
            program = program_of(Path(best.module))
            origins[sequence] = origins.get(sequence, frozenset()) | {program}
    ratios = [min(best.ratios) for best in found]
    return Pool(
        options,
        origins,
        settings.length,
        searched=geometric_mean(ratios) if ratios else None,
    )


def of_pipelines(
    modules: Sequence[Path],
    searched: int,
    settings: EvolutionSettings,
    made: Made,
    show: ShowStage,
    begin: Path | None,
) -> Pool:
    """Pipelines for all modules, and the best for each of the first so many.

    With those of the core set in the file ``begin``, where the search begins.

    Raises:
        InvalidArgument: it is one of something else.
    """
    library = Library.load()
    starts = _pipelines(begin, library.prologue) if begin else {}
    stock = Action("-Oz", library.pipeline())
    space = ActionSpace(
        "pipelines", "Pipelines made of clang's -Oz", library.prologue, (stock,)
    )
    measurements = Measurements(
        _compiler(space, made, "pipeline.json"),
        modules,
        workers=made.workers,
        timeout=made.timeout,
        log=made.out / "measured.jsonl",
    )
    changes = list(map(library.changes_of, starts))
    found = evolve(library, measurements, searched, settings, show, changes)
    # What was found for all modules is not of one program more than of another.
    names = {stock.pipeline: stock.name} | starts
    for number, pipeline in enumerate(found.together, 1):
        names.setdefault(pipeline, f"for all/{number}")
    programs: dict[str, frozenset[str]] = dict.fromkeys(names, frozenset())
    shared = set(names)
    for module, (pipeline, _) in found.best.items():
        names.setdefault(pipeline, f"{program_of(module)}/{module.stem}")
        if pipeline not in shared:
            known = programs.get(pipeline, frozenset())
            programs[pipeline] = known | {program_of(module)}
    ratios = [ratio for _, ratio in found.best.values()]
    actions = tuple(Action(name, pipeline) for pipeline, name in names.items())
    space = replace(space, actions=actions)
    return Pool(
        _compiler(space, made, "pool.json"),
        {(n,): programs[action.pipeline] for n, action in enumerate(actions)},
        RANDOM_LENGTH,
        RANDOM,
        geometric_mean(ratios) if ratios else None,
    )


def _pipelines(file: Path, prologue: str) -> dict[str, str]:
    core = CoreSet.load(file)
    if core.actions.prologue != prologue or any(len(s) != 1 for s in core.sequences):
        raise InvalidArgument(
            f"{file}: to begin a search of pipelines with, expected a core set of whole"
            f" ones, found one of sequences of '{core.actions.name}'"
        )
    actions = (core.actions.actions[action] for (action,) in core.sequences)
    return {action.pipeline: action.name for action in actions}


def of_core_set(core: CoreSet, made: Made) -> Pool:
    """The sequences of a core set, in their order."""
    return Pool(
        _compiler(core.actions, made, "pool.json"),
        dict.fromkeys(core.sequences, frozenset()),
        core.length,
        core.random,
        core=core,
    )


def _compiler(space: ActionSpace, made: Made, name: str) -> EpisodeOptions:
    return EpisodeOptions.of(space, made.out / name, plugin=made.plugin)
