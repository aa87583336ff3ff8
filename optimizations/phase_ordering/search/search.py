# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Searches for good sequences with hill climbing, for each module separately."""

import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlbridge_optimizations.show import Show, quiet

from ..environment.actions import Order
from ..environment.compiler import ModuleFailed, SequenceFailed, SequenceRunner
from ..environment.kept import Kept
from ..environment.measure import oz_size
from ..environment.runners import Runners
from .measurements import FAILED_RATIO
from .settings import ByActions


@dataclass(frozen=True)
class SearchSettings(ByActions):
    """The settings of a search."""

    population: int = 4  # New sequences are made from this number of best sequences.
    seed: int = 0


@dataclass(frozen=True)
class Best:
    """The best sequences for a module, the best first. Empty if the compiler failed."""

    module: str
    sequences: tuple[Order, ...]
    ratios: tuple[float, ...]


def search_module(
    runner: SequenceRunner, module: Path, settings: SearchSettings
) -> Best:
    """Improves sequences step by step.

    Starts from the space's own order and from random sequences.

    The result depends only on the seed and the module. Use a runner with the reward
    ``none``, because only the last state is measured.
    """
    draw = random.Random(f"{settings.seed} {module.parent.name}/{module.name}")
    actions = len(runner.options.space.actions)
    known: dict[Order, float] = {}
    stock = oz_size(module)
    with tempfile.TemporaryDirectory(prefix="mlbridge-search-") as folder:
        object_file = Path(folder, "module.o")

        def evaluate(sequence: Order) -> None:
            if sequence in known:
                return
            try:
                size = runner.last_size(module, sequence, object_file)
                known[sequence] = size / stock if stock else 1.0
            except ModuleFailed:
                raise
            except SequenceFailed:
                known[sequence] = FAILED_RATIO

        # Begin with the actions in their order, because this is close to -Oz.
        evaluate(tuple(range(min(actions, settings.length))))
        for _ in range(4 * settings.evaluations):
            if len(known) >= settings.evaluations:
                break
            if len(known) < max(2, settings.evaluations // 10):
                evaluate(tuple(draw.randrange(actions) for _ in range(settings.length)))
                continue
            parents = sorted(known, key=lambda s: (known[s], s))[: settings.population]
            evaluate(_changed(draw.choice(parents), actions, settings.length, draw))
    best = sorted(known, key=lambda s: (known[s], len(s), s))[: settings.population]
    return Best(str(module), tuple(best), tuple(known[s] for s in best))


def _changed(sequence: Order, actions: int, length: int, draw: random.Random) -> Order:
    changed = list(sequence)
    for _ in range(draw.choice((1, 1, 2, 3))):
        kind = draw.randrange(4)
        at = draw.randrange(len(changed)) if changed else 0
        if kind == 0 and changed:
            changed[at] = draw.randrange(actions)
        elif kind == 1 and len(changed) > 1:
            other = draw.randrange(len(changed))
            changed[at], changed[other] = changed[other], changed[at]
        elif kind == 2 and len(changed) > 1:
            del changed[at]
        else:
            changed.insert(at, draw.randrange(actions))
    return tuple(changed[:length])


def search(
    runners: Runners,
    modules: Sequence[Path],
    settings: SearchSettings,
    log: Path | None = None,
    show: Show = quiet,
) -> list[Best]:
    """Searches for each module that is not in the log, and adds results to the log."""
    kept = Kept(log, runners.options, {"settings": vars(settings)})
    known = {
        module: Best(module, tuple(map(tuple, it["sequences"])), tuple(it["ratios"]))
        for module, it in kept.load(modules).items()
    }
    missing = [module for module in modules if str(module) not in known]

    def work(runner: SequenceRunner, module: Path) -> Best:
        try:
            return search_module(runner, module, settings)
        except ModuleFailed:
            return Best(str(module), (), ())

    show(len(known), len(modules))
    for module, best in runners.map(work, missing):
        known[best.module] = best
        if best.sequences:
            kept.add(module, {"sequences": best.sequences, "ratios": best.ratios})
        show(len(known), len(modules))
    return [known[str(module)] for module in modules]
