# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pipelines make of modules: any pipelines, or those of a stock clang."""

import itertools
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mlbridge.envs.machine_code import text_size
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.show import Show

from .actions import NOTHING, Action, ActionSpace
from .compiler import (
    TIMEOUT,
    EpisodeOptions,
    ModuleFailed,
    SequenceFailed,
    SequenceRunner,
)
from .kept import Kept
from .runners import Runners


@dataclass(frozen=True)
class Measured:
    """What pipelines make of a module."""

    # Bytes of machine code by pipeline, of those that the compiler survived.
    sizes: dict[str, int]
    # The others. Behind a `ModuleFailed` no other was tried.
    failures: list[SequenceFailed]
    oz: int  # By -Oz in the environment; 0 if that is not known.


def oz_size(module: Path, *, own_session: bool = False) -> int:
    """Bytes of machine code that ``clang -Oz`` makes of bitcode not optimised yet.

    That is, to the byte, what it makes of the source: docs/corpus.md.

    Raises:
        CompilerFailed: it is no such bitcode.
        Timeout: clang did not end.
    """
    with tempfile.TemporaryDirectory(prefix="mlbridge-stock-") as folder:
        target = Path(folder, "module.o")
        toolchain.compile_bitcode(module, target, "-Oz", own_session=own_session)
        return text_size(target.read_bytes(), module.name)


def space_of(
    pipelines: Iterable[str], prologue: str
) -> tuple[ActionSpace, dict[str, int]]:
    """A space whose actions are pipelines as a whole, and the action of each."""
    numbers = {p: number for number, p in enumerate(dict.fromkeys(pipelines))}
    actions = [Action(str(n), pipeline or NOTHING) for pipeline, n in numbers.items()]
    # No space is without an action.
    actions = actions or [Action("nothing", NOTHING)]
    return ActionSpace("pipelines", "", prologue, tuple(actions)), numbers


def measure(
    wanted: Mapping[Path, Sequence[str]],
    prologue: str,
    *,
    timeout: float = TIMEOUT,
    jobs: int = 1,
    plugin: Path | None = None,
    with_oz: bool = True,
    log: Path | None = None,
    show: Show = lambda done, total: None,
) -> Iterator[tuple[Path, Measured]]:
    """Tries on each module the pipelines that are wanted there, behind the prologue.

    Sizes that are in the log, lines of JSON, are not measured again, and new ones are
    added. What -Oz makes in the environment takes longer, so it is optional.

    Returns:
        Each module, as it gets done.
    """
    every = itertools.chain.from_iterable(wanted.values())
    space, numbers = space_of(every, prologue)
    with tempfile.TemporaryDirectory(prefix="mlbridge-measure-") as folder:
        reward = "text-size" if with_oz else "none"
        file = Path(folder, "actions.json")
        options = EpisodeOptions.of(space, file, reward=reward, plugin=plugin)
        # Whatever else is wanted, a pipeline makes the same of a module.
        alone = Path(folder, "nothing.json")
        space_of((), prologue)[0].save(alone)
        kept = Kept(log, replace(options, actions=str(alone)), {})
        merged = _merged(kept.load_all(list(wanted)))
        known = {p: merged.get(str(p), Measured({}, [], 0)) for p in wanted}

        def size(runner: SequenceRunner, path: Path, number: int) -> tuple[int, int]:
            if with_oz:
                found = runner.run(path, [number])
                return found.last, found.oz
            with tempfile.TemporaryDirectory(dir=folder) as own:
                return runner.last_size(path, [number], Path(own, "module.o")), 0

        def work(runner: SequenceRunner, path: Path) -> Measured:
            sizes, oz = dict(known[path].sizes), known[path].oz
            failures: list[SequenceFailed] = []
            for pipeline in wanted[path]:
                if pipeline in sizes:
                    continue
                try:
                    sizes[pipeline], oz = size(runner, path, numbers[pipeline])
                except ModuleFailed as error:
                    failures.append(error)
                    break
                except SequenceFailed as error:
                    failures.append(error)
            return Measured(sizes, failures, oz)

        with Runners(options, jobs, timeout) as runners:
            for path, found in runners.map(work, list(wanted), show):
                if fresh := dict(found.sizes.items() - known[path].sizes.items()):
                    kept.add(path, {"sizes": fresh, "oz": found.oz})
                yield path, found


def _merged(kept: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Measured]:
    found = {}
    for module, lines in kept.items():
        sizes = {p: int(s) for line in lines for p, s in line["sizes"].items()}
        found[module] = Measured(sizes, [], max(int(line["oz"]) for line in lines))
    return found
