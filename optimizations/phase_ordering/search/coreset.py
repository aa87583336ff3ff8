# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds a core set of sequences, and trains a model that picks one per module.

The method is from "Learning Compiler Pass Orders using Coreset and Normalized Value
Prediction" (ICML 2023). Here, the sequences may also be whole pipelines. Interrupted
work continues from the files in the output folder.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from statistics import geometric_mean

import numpy as np
from numpy.typing import NDArray

from mlbridge.errors import InvalidArgument
from mlbridge_optimizations.corpus import manifest
from mlbridge_optimizations.corpus.manifest import program_of
from mlbridge_optimizations.corpus.recipes import SHARED
from mlbridge_optimizations.optimization import MODEL
from mlbridge_optimizations.plot import panels_of
from mlbridge_optimizations.show import ShowStage, quiet

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
from .value import Fitted, ValueSettings

# The space and the length of random sequences, if the core set has whole pipelines.
RANDOM, RANDOM_LENGTH = "oz", 15

MODEL_FILE = f"{MODEL}.onnx"  # The model's name in the output folder.
LEAST = 300  # Modules with fewer instructions are searched last.


@dataclass(frozen=True)
class CoreSetSettings(Searched, Made):
    """The settings of a search and a training."""

    actions: str = "oz"  # The action space of the search.
    search: SearchSettings = field(default_factory=SearchSettings)
    evolution: EvolutionSettings | None = None  # Set this to search whole pipelines.
    # A core set. ``evolution`` starts from it. Without ``evolution``, no search runs.
    core: Path | None = None
    value: ValueSettings = field(default_factory=ValueSettings)


@dataclass(frozen=True)
class Trained:
    """The results of a training. Either ``fitted`` or ``foresight`` is None."""

    core: CoreSet
    searched: float | None  # See `Pool`.
    fitted: Fitted | None  # The value model.
    foresight: Foresight | None  # The lookahead model.
    model: Path  # The path of the model.
    failures: list[tuple[str, Order, str]]  # See `Table`.


@dataclass(frozen=True)
class Pool:
    """The sequences from which the core set is chosen."""

    options: EpisodeOptions  # The compiler's options, with the action space.
    # Maps each sequence to the programs on which it was found. The set is empty if the
    # programs are unknown, or if the sequence does not come from a search.
    origins: dict[Order, frozenset[str]]
    length: int  # See `CoreSet`.
    random: str | None = None  # See `CoreSet`.
    # The geomean over the searched modules of the best size / -Oz. None if no module
    # was searched.
    searched: float | None = None
    core: CoreSet | None = None  # The core set, if it is given and not searched.

    def core_set(self, table: Table, count: int) -> tuple[CoreSet, list[int]]:
        """Returns the best core set for a table, and its indices in the table."""
        known = self.core
        chosen = table.greedy(count) if known is None else [*range(len(self.origins))]
        smallest = np.minimum.accumulate(table.sizes[:, chosen], axis=1)
        ratios = tuple(map(table.ratio, smallest.T))
        sequences = tuple(table.sequences[number] for number in chosen)
        if known is not None:
            return replace(known, sequences=sequences, ratios=ratios), chosen
        space = self.options.space
        if self.random is not None:
            # Keep only the core set's pipelines in the action space.
            kept = tuple(space.actions[action] for (action,) in sequences)
            space = replace(space, actions=kept)
            sequences = tuple((number,) for number in range(len(kept)))
        return CoreSet(space, sequences, ratios, self.length, self.random), chosen


def train(settings: CoreSetSettings, show: ShowStage = quiet) -> Trained:
    """Runs all steps. Raises InvalidArgument if the corpus has no modules."""
    corpus = manifest.load(settings.corpus.resolve())
    settings.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(settings), indent=1, default=str)
    (settings.out / "settings.json").write_text(text + "\n", encoding="utf-8")
    without = settings.leave_out or ()
    files = corpus.files("training", without=without)
    most = max(files.values(), default=0) if settings.most is None else settings.most
    small = {file: count for file, count in files.items() if count <= most}
    if not small:
        raise InvalidArgument(
            f"{settings.corpus}: no training module fits --max-instructions"
        )
    modules = list(files)
    if settings.linked:
        # Omit programs that share source files with held-out programs.
        modules += [
            corpus.folder / program.linked.path
            for program in corpus.select("training", without=without)
            if program.name not in SHARED
        ]
    if settings.evolution is not None:
        pool = _of_pipelines(settings, settings.evolution, small, show)
    elif settings.core is not None:
        core = CoreSet.load(settings.core)
        origins = dict.fromkeys(core.sequences, frozenset[str]())
        options = _options(settings, core.actions, "pool.json")
        pool = Pool(options, origins, core.length, core.random, core=core)
    else:
        pool = _of_actions(settings, small, show)
    table = tabulate(
        pool.options,
        settings.jobs,
        modules,
        list(pool.origins),
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
        origins_of = list(pool.origins.values())
        fitted = _train_model(settings, core, table, chosen, origins_of, show)
    path = settings.out / MODEL_FILE
    return Trained(core, pool.searched, fitted, foresight, path, table.failures)


def _options(settings: Made, space: ActionSpace, name: str) -> EpisodeOptions:
    return EpisodeOptions.of(space, settings.out / name, plugin=settings.plugin)


def balanced(files: Mapping[Path, int], count: int, seed: int) -> list[Path]:
    """Draws modules, the same number from each program if possible.

    The probability of a module is proportional to the square root of its number of
    instructions: large modules are more useful, but take longer. Very small modules
    come last.
    """
    draw = np.random.default_rng(seed)
    by_program: dict[str, list[Path]] = {}
    for file in files:
        by_program.setdefault(program_of(file), []).append(file)
    large, small = [], []
    for members in by_program.values():
        small.append(sorted(file for file in members if files[file] < LEAST))
        large.append([file for file in members if files[file] >= LEAST])
        if size := len(large[-1]):
            weights = np.sqrt([files[file] for file in large[-1]])
            order = draw.choice(size, size, replace=False, p=weights / weights.sum())
            large[-1] = [large[-1][number] for number in order]
    waves = chain(zip_longest(*large), zip_longest(*small))
    return [file for wave in waves for file in wave if file is not None][:count]


def _train_model(
    settings: CoreSetSettings,
    core: CoreSet,
    table: Table,
    chosen: Sequence[int],
    origins: Sequence[frozenset[str]],
    show: ShowStage,
) -> Fitted:
    """Trains a value model, and writes it to the output folder."""
    # Set the reward for the metadata only. No size is measured here.
    options = EpisodeOptions(
        settings.actions,
        tuple(settings.observation.split(",")),
        "text-size",
        1,
        vocabulary=settings.vocabulary.resolve() if settings.vocabulary else None,
        plugin=settings.plugin,
    )
    task = Task(_whole(core), 1, stop=False, observation=tuple(options.widths))
    modules = [Path(module) for module in table.modules]

    def row(runner: SequenceRunner, module: Path) -> NDArray[np.float32]:
        return options.row(runner.reset(module).features)

    with Runners(options, settings.jobs, settings.timeout) as runners:
        found = dict(runners.map(row, modules))
    fitted = value_model.train(
        np.stack([found[module] for module in modules]),
        table,
        chosen,
        options.widths,
        settings.value,
        origins=origins,
        show=partial(show, "Training"),
    )
    # Export `Ranked`: a compiler that tries several sequences uses this order.
    decide, network = "outputs:values", value_model.Ranked(fitted.model)
    file, seed = settings.out / MODEL_FILE, settings.value.seed
    export_model(network, file, options, task, seed=seed, decide=decide)
    # With a single program, there are no checks to plot.
    curve = [(check.epochs, check.chosen) for check in fitted.checks]
    bounds = [(check.fixed, check.best) for check in fitted.checks[:1]]
    curves = {"chosen": curve} if curve else {}
    _plot(core, settings.out, curves, bounds, {"xlabel": "epochs"})
    return fitted


def _train_to_look_ahead(
    settings: CoreSetSettings,
    core: CoreSet,
    table: Table,
    chosen: Sequence[int],
    show: ShowStage,
) -> Foresight:
    """Trains a lookahead model, and writes it to the output folder.

    Raises InvalidArgument if the core set has fewer sequences than `ahead`.
    """
    if not 2 <= settings.ahead <= len(core.sequences):
        raise InvalidArgument(
            f"--ahead: expected 2 to {len(core.sequences)} sequences, which is the"
            f" whole core set; found {settings.ahead}"
        )
    space = _whole(core)
    actions, seen = settings.out / "core-actions.json", lookahead.OBSERVATION
    options = EpisodeOptions.of(space, actions, seen, plugin=settings.plugin)
    modules = [Path(module) for module in table.modules]
    with Runners(options, settings.jobs, settings.timeout) as runners:
        rows = lookahead.outcomes(
            runners, modules, settings.ahead, partial(show, "Looking ahead")
        )
    every = table.part(np.ones(len(modules), bool), chosen)
    training = partial(show, "Training")
    foresight = lookahead.train(rows, every, options.widths, show=training)
    observed, seed = tuple(options.widths), settings.value.seed
    task = Task(space, 1, stop=False, observation=observed, lookahead=settings.ahead)
    network, file = foresight.model, settings.out / MODEL_FILE
    export_model(network, file, options, task, seed=seed, decide="outputs:value")
    curves: dict[str, list[tuple[float, float]]] = {}
    for ridge, margin, ratio in sorted(foresight.tried):
        curves.setdefault(f"chosen, margin {margin:g}", []).append((ridge, ratio))
    bounds = [(foresight.fixed, foresight.best)]
    labels = {"xlabel": "ridge", "xscale": "log"}
    _plot(core, settings.out, curves, bounds, labels)
    return foresight


def _whole(core: CoreSet) -> ActionSpace:
    name, count = core.actions.name, len(core.sequences)
    text = f"{count} sequences of {name}"
    return core.actions.of_sequences(core.sequences, f"{name}-core", text)


def _plot(
    core: CoreSet,
    out: Path,
    curves: Mapping[str, Sequence[tuple[float, float]]],
    bounds: Sequence[tuple[float, float]],
    labels: Mapping[str, str],
) -> None:
    """Writes curve.png, with the ratios of the core set and the learning curve."""
    with panels_of(out / "curve.png", 2, size=(11, 4)) as (left, right):
        left.plot(range(1, len(core.ratios) + 1), core.ratios, "o-")
        left.set(xlabel="sequences in the core set", ylabel="best of them, size / -Oz")
        left.set_title("training programs")
        for label, points in curves.items():
            right.plot(*zip(*points, strict=True), "o-", label=label)
        for fixed, best in bounds:
            right.axhline(fixed, color="0.5", ls="--", label="best fixed")
            right.axhline(best, color="green", ls=":", label="best of all")
            right.legend(fontsize="small")
        right.set(ylabel="size / -Oz", **labels)
        right.set_title("each program by a model that has not seen it")
        for panel in (left, right):
            panel.grid(visible=True, alpha=0.25)


def _of_actions(
    settings: CoreSetSettings, small: Mapping[Path, int], show: ShowStage
) -> Pool:
    """Searches for the best sequence for each module.

    Adds the sequence that runs the actions in the order of the action space.
    """
    how = settings.search
    options = EpisodeOptions(
        settings.actions, ("step",), "none", how.length, plugin=settings.plugin
    )
    modules = balanced(small, settings.searched, how.seed)
    log = settings.out / "search.jsonl"
    with Runners(options, settings.jobs, settings.timeout) as runners:
        found = search(runners, modules, how, log, partial(show, "Searching"))
    own = tuple(range(min(len(options.space.actions), how.length)))
    origins: dict[Order, frozenset[str]] = {own: frozenset()}
    found = [best for best in found if best.sequences]
    for best in found:
        sequence = best.sequences[0]
        if sequence != own:
            program = program_of(Path(best.module))
            origins[sequence] = origins.get(sequence, frozenset()) | {program}
    ratios = [min(best.ratios) for best in found]
    searched = geometric_mean(ratios) if ratios else None
    return Pool(options, origins, how.length, searched=searched)


def _of_pipelines(
    settings: CoreSetSettings,
    evolution: EvolutionSettings,
    small: Mapping[Path, int],
    show: ShowStage,
) -> Pool:
    """Searches for pipelines for all modules together, and then for single modules.

    If the settings have a core set, the search also starts from the core set. Raises
    InvalidArgument if the core set does not contain whole pipelines.
    """
    library = Library.load()
    begin = settings.core
    starts = _pipelines(begin, library.prologue) if begin is not None else {}
    stock = Action("-Oz", library.pipeline())
    text = "Pipelines made of clang's -Oz"
    space = ActionSpace("pipelines", text, library.prologue, (stock,))
    count = max(settings.searched, evolution.modules)
    measurements = Measurements(
        _options(settings, space, "pipeline.json"),
        balanced(small, count, evolution.seed),
        workers=settings.jobs,
        timeout=settings.timeout,
        log=settings.out / "measured.jsonl",
    )
    changes = list(map(library.changes_of, starts))
    found = evolve(library, measurements, settings.searched, evolution, show, changes)
    # Pipelines for all modules have no origin.
    names = {stock.pipeline: stock.name} | starts
    for number, pipeline in enumerate(found.together, 1):
        names.setdefault(pipeline, f"for all/{number}")
    shared = set(names)
    programs: dict[str, frozenset[str]] = dict.fromkeys(names, frozenset())
    for module, (pipeline, _) in found.best.items():
        names.setdefault(pipeline, f"{program_of(module)}/{module.stem}")
        if pipeline not in shared:
            known = programs.get(pipeline, frozenset())
            programs[pipeline] = known | {program_of(module)}
    ratios = [ratio for _, ratio in found.best.values()]
    actions = tuple(Action(name, pipeline) for pipeline, name in names.items())
    return Pool(
        _options(settings, replace(space, actions=actions), "pool.json"),
        {(n,): programs[action.pipeline] for n, action in enumerate(actions)},
        RANDOM_LENGTH,
        RANDOM,
        geometric_mean(ratios) if ratios else None,
    )


def _pipelines(file: Path, prologue: str) -> dict[str, str]:
    """Reads a core set of whole pipelines. Returns a dict from pipeline to name."""
    core = CoreSet.load(file)
    if core.actions.prologue != prologue or any(len(s) != 1 for s in core.sequences):
        raise InvalidArgument(
            f"{file}: to begin a search of pipelines with, expected a core set of whole"
            f" ones, found one of sequences of '{core.actions.name}'"
        )
    actions = (core.actions.actions[action] for (action,) in core.sequences)
    return {action.pipeline: action.name for action in actions}
