# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures code size and IR instructions after a pipeline, or after ``clang -Oz``."""

import itertools
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
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


@dataclass
class Measured:
    """The code sizes of a module in bytes, and its numbers of IR instructions.

    The numbers of instructions are unknown if `measure` was called without `with_oz`.
    """

    sizes: dict[str, int]  # Maps pipelines to sizes.
    failures: list[SequenceFailed]  # No pipeline is tried after a `ModuleFailed`.
    oz: int  # The size after -Oz in the environment, or 0 if unknown.
    instructions: dict[str, int] = field(default_factory=dict)  # Numbers by pipeline.
    oz_instructions: int = 0  # The number after -Oz, or 0 if unknown.


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

    The prologue runs before each pipeline. Results in the log are not measured again,
    and new results are added to the log. With `with_oz`, the function also measures -Oz
    and counts IR instructions, which takes longer. A log requires `with_oz`.
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
            before = known[Path(name)]
            # Measure again if a line of an older log has no instructions.
            for line in (line for line in lines if "instructions" in line):
                before.sizes |= line["sizes"]
                before.instructions |= line["instructions"]
                before.oz, before.oz_instructions = line["oz"], line["oz_instructions"]

        def work(runner: SequenceRunner, path: Path) -> Measured:
            made = deepcopy(known[path])
            for pipeline in wanted[path]:
                if pipeline in made.sizes:
                    continue
                order = [numbers[pipeline]]
                try:
                    if with_oz:
                        found = runner.run(path, order)
                        made.sizes[pipeline], made.oz = found.last, found.oz
                        made.instructions[pipeline] = found.info["instructions"]
                        made.oz_instructions = found.info["oz_instructions"]
                    else:
                        with tempfile.TemporaryDirectory(dir=folder) as own:
                            through = Path(own, "module.o")
                            size = runner.last_size(path, order, through)
                        made.sizes[pipeline] = size
                except ModuleFailed as error:
                    made.failures.append(error)
                    break
                except SequenceFailed as error:
                    made.failures.append(error)
            return made

        with Runners(options, jobs, timeout) as runners:
            for path, found in runners.map(work, list(wanted), show):
                fresh = found.sizes.keys() - known[path].sizes.keys()
                if log is not None and fresh:
                    line = {
                        "sizes": {p: found.sizes[p] for p in fresh},
                        "instructions": {p: found.instructions[p] for p in fresh},
                        "oz": found.oz,
                        "oz_instructions": found.oz_instructions,
                    }
                    kept.add(path, line)
                yield path, found
