# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pipelines make of modules: any pipelines, other ones for each module."""

import itertools
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlbridge.phase_ordering.actions import NOTHING, Action, ActionSpace
from mlbridge.phase_ordering.compiler import (
    TIMEOUT,
    CompilerOptions,
    ModuleFailed,
    SequenceFailed,
    SequenceRunner,
)
from mlbridge.phase_ordering.runners import Runners, Show


@dataclass(frozen=True)
class Measured:
    """What pipelines make of a module.

    Attributes:
        sizes: bytes of machine code by pipeline, of those that the compiler survived.
        failures: the others. Behind a `ModuleFailed` no other was tried.
        oz: by -Oz in the environment; 0 if that is not known.
    """

    sizes: dict[str, int]
    failures: list[SequenceFailed]
    oz: int


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
    show: Show = lambda done, total: None,
) -> Iterator[tuple[Path, Measured]]:
    """Tries on each module the pipelines that are wanted there.

    Args:
        wanted: by module.
        prologue: what runs before each.
        timeout: seconds, as for `SequenceRunner`.
        jobs: compilers at once.
        plugin: MLBridgeLLVM.so; see `CompilerOptions`.
        with_oz: whether -Oz in the environment is measured, too; it takes longer.
        show: is told how many modules are done.

    Returns:
        Each module, as it gets done.
    """
    every = itertools.chain.from_iterable(wanted.values())
    space, numbers = space_of(every, prologue)
    with tempfile.TemporaryDirectory(prefix="mlbridge-measure-") as folder:
        file = Path(folder, "actions.json")
        space.save(file)
        reward = "text-size" if with_oz else "none"
        options = CompilerOptions(str(file), ("step",), reward, 1, plugin=plugin)

        def size(runner: SequenceRunner, path: Path, number: int) -> tuple[int, int]:
            if with_oz:
                found = runner.run(path, [number])
                return found.last, found.oz
            with tempfile.TemporaryDirectory(dir=folder) as own:
                return runner.last_size(path, [number], Path(own, "module.o")), 0

        def work(runner: SequenceRunner, path: Path) -> Measured:
            sizes: dict[str, int] = {}
            failures: list[SequenceFailed] = []
            oz = 0
            for pipeline in wanted[path]:
                try:
                    sizes[pipeline], oz = size(runner, path, numbers[pipeline])
                except ModuleFailed as error:
                    failures.append(error)
                    break
                except SequenceFailed as error:
                    failures.append(error)
            return Measured(sizes, failures, oz)

        with Runners(options, jobs, timeout) as runners:
            yield from runners.map(work, list(wanted), show)
