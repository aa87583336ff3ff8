# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the code size of modules after a pipeline, or after ``clang -Oz``."""

import itertools
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlbridge.envs.machine_code import text_size
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.show import Show, quiet

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
    """The code sizes of a module in bytes."""

    sizes: dict[str, int]  # Maps pipelines to sizes.
    failures: list[SequenceFailed]  # No pipeline is tried after a `ModuleFailed`.
    oz: int  # The size after -Oz in the environment, or 0 if unknown.


def oz_size(module: Path, *, own_session: bool = False) -> int:
    """Returns the code size of unoptimised bitcode after ``clang -Oz``, in bytes.

    The size is the same as for the source file (docs/guides/corpus.md). Raises
    CompilerFailed if the file is not bitcode, and Timeout.
    """
    with tempfile.TemporaryDirectory(prefix="mlbridge-stock-") as folder:
        target = Path(folder, "module.o")
        toolchain.compile_bitcode(module, target, "-Oz", own_session=own_session)
        return text_size(target.read_bytes(), module.name)


def space_of(
    pipelines: Iterable[str], prologue: str
) -> tuple[ActionSpace, dict[str, int]]:
    """Returns a space with one action per pipeline, and the action of each pipeline."""
    numbers = {p: number for number, p in enumerate(dict.fromkeys(pipelines))}
    actions = [Action(str(n), pipeline or NOTHING) for pipeline, n in numbers.items()]
    # Add an action if there is none, because a space must not be empty.
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
    show: Show = quiet,
) -> Iterator[tuple[Path, Measured]]:
    """Measures each module after each wanted pipeline. Yields finished modules.

    The prologue runs before each pipeline. Sizes in the log are not measured again, and
    new sizes are added to the log. `with_oz` also measures -Oz, which takes longer.
    """
    every = itertools.chain.from_iterable(wanted.values())
    space, numbers = space_of(every, prologue)
    with tempfile.TemporaryDirectory(prefix="mlbridge-measure-") as folder:
        reward = "text-size" if with_oz else "none"
        file = Path(folder, "actions.json")
        options = EpisodeOptions.of(space, file, reward=reward, plugin=plugin)
        # Put an empty space in the log's key, because a size depends only on its own
        # pipeline.
        alone = Path(folder, "nothing.json")
        space_of((), prologue)[0].save(alone)
        kept = Kept(log, replace(options, actions=str(alone)), {})
        known = {path: Measured({}, [], 0) for path in wanted}
        for name, lines in kept.load_all(list(wanted)).items():
            sizes = {p: int(s) for line in lines for p, s in line["sizes"].items()}
            oz = max(int(line["oz"]) for line in lines)
            known[Path(name)] = Measured(sizes, [], oz)

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
