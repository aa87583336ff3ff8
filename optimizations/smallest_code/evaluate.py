# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares policies of inlining by the linked sizes of programs.

A model is trained for each program, on all other programs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from tempfile import TemporaryDirectory

from mlbridge.files import spec_of

from .calls import Calls
from .flags import model_flags, replay_flags, threshold_flags
from .imitation import train, write
from .linking import Sizes, rebuild
from .rule import ONE_USE, write_rule
from .searched import SearchedProgram
from .settings import CLANG_OZ, ImitationOptions

MODEL = "model"
RULE = "merged, one use"
SEARCH = "search"


@dataclass(frozen=True)
class Comparison:
    """The linked sizes of a program by policy."""

    program: str
    sizes: Mapping[str, Sizes]

    def ratio(self, policy: str) -> float:
        """Returns the linked .text by a policy, relative to clang -Oz."""
        return self.sizes[policy].text / self.sizes[CLANG_OZ].text


def compare(
    program: SearchedProgram,
    flags: Mapping[str, Sequence[str]],
    jobs: int,
    advance: Callable[[], None] = lambda: None,
) -> Comparison:
    """Compiles and links a program by each policy. `flags` has clang's flags."""
    sizes = {}
    with TemporaryDirectory(prefix="mlbridge-size-") as folder:
        for name, given in flags.items():
            to = Path(folder, program.name)
            sizes[name] = rebuild(program.build, program.link, given, to, jobs)
            advance()
    return Comparison(program.name, sizes)


def flags_of(
    program: SearchedProgram, models: Mapping[str, str], plugin: Path
) -> dict[str, list[str]]:
    """Returns clang's flags of each policy."""
    rows = {CLANG_OZ: [], **threshold_flags()}
    for name, spec in models.items():
        rows[name] = model_flags(spec, plugin, program.callee_files)
    rows[SEARCH] = replay_flags(program.decisions, plugin)
    return rows


def one_use(calls: Calls, folder: Path) -> str:
    """Writes the rule that the model should beat, and returns its spec."""
    path = folder / "one-use.onnx"
    write_rule(ONE_USE, path, calls)
    return spec_of("onnx", path)


def train_without(
    left_out: int, calls: Sequence[Calls], folder: Path, options: ImitationOptions
) -> str:
    """Trains a model on all programs but one, and returns its spec."""
    others = [one for index, one in enumerate(calls) if index != left_out]
    path = folder / f"without-{left_out}.onnx"
    write(train(others, options), path, Calls.join(others), options.seed)
    return spec_of("onnx", path)


def mean_ratio(comparisons: Sequence[Comparison], policy: str) -> float:
    """Returns the geometric mean over programs."""
    return geometric_mean(one.ratio(policy) for one in comparisons)
