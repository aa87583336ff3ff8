# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Searches for each source file's passes, and functions from which code is outlined.

The inlining decisions, from an earlier search of the whole program, do not change. Each
trial compiles one file with clang and the plug-in, and lld links the program.
Therefore, the measured size is exact, whatever the linker removes or merges.
"""

import random
import resource
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from mlbridge.errors import CompilerFailed, Timeout
from mlbridge_optimizations.corpus.toolchain import run
from mlbridge_optimizations.corpus.user_build import Unit

from .decisions import STOCK, Decisions, FileDecisions
from .flags import plugin_replay_flags
from .linking import BuiltProgram, Sizes, bitcode_command, relink, source_of

LEAST = (1, 4)
"""The limits on saved bytes (`FileDecisions.least`) that a search tries. LLVM estimates
one byte for each instruction and for each call of an outlined sequence. The more bytes
a sequence saves by this estimate, the more reliably it saves bytes."""


@dataclass(frozen=True)
class FileProgress:
    """The state of a search."""

    seconds: float  # CPU time.
    trials: int
    stock: int  # The linked .text with the decisions at the start, in bytes.
    best: int


class FileSearch:
    """A search of one program.

    ``decisions`` are the decisions at the start. ``pipelines`` are further pipelines by
    name. ``show`` is called after each trial. The program's folder receives objects.
    """

    def __init__(
        self,
        program: BuiltProgram,
        decisions: Decisions,
        *,
        plugin: Path,
        pipelines: Mapping[str, str],
        seconds: float,
        seed: int = 1,
        show: Callable[[FileProgress], None] = lambda _: None,
    ) -> None:
        self._build, self._link = program.build, program.link
        groups = self._build.units_of(self._link)
        self._units = [unit for group in groups for unit in group]
        self._folder, self._plugin = program.folder / "objects", plugin
        self._pipelines = {**pipelines, **decisions.pipelines}
        self.decisions = replace(decisions, pipelines=self._pipelines)
        self._seconds, self._show = seconds, show
        self._random = random.Random(seed)
        self._made: dict[tuple[Path, FileDecisions], Path] = {}
        self._objects: dict[Path, Path] = {}
        self._started = _cpu_seconds()
        self._trials = self._stock = 0
        self.best = 0

    def run(self, save: Callable[[Decisions], None]) -> Decisions:
        """Searches until nothing helps or the time is over, and returns the decisions.

        ``save`` is called with the best decisions so far after each file.
        """
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        for unit in self._units:
            self._objects[unit.object] = self._compile(
                unit, self.decisions.of(source_of(unit))
            )
        self.best = self._stock = self._measure({})
        for unit in self._by_size():
            self._choose_pipeline(unit)
            save(self.decisions)
        for unit in self._by_size():
            self._choose_outlining(unit)
            save(self.decisions)
        return self.decisions

    def _by_size(self) -> list[Unit]:
        """Returns the units to decide about. Units with large objects come first.

        Files with the same name are left out, because they would share the decisions.
        """
        names = Counter(map(source_of, self._units))
        return sorted(
            (unit for unit in self._units if names[source_of(unit)] == 1),
            key=lambda unit: -self._objects[unit.object].stat().st_size,
        )

    def _is_over(self) -> bool:
        return _cpu_seconds() - self._started >= self._seconds

    def _compile(self, unit: Unit, decided: FileDecisions) -> Path:
        """Returns the object of a file with decisions about it."""
        key = (unit.object, decided)
        if key in self._made:
            return self._made[key]
        number = len(self._made)
        given = self._folder / f"{number}.txt"
        replace(self.decisions, files={source_of(unit): decided}).save(given)
        made = self._folder / f"{number}.o"
        flags = plugin_replay_flags(given, self._plugin)
        command = [*bitcode_command(unit), *flags, "-w", "-o", str(made.resolve())]
        run(command, folder=unit.folder)
        given.unlink()
        self._made[key] = made
        return made

    def _measure(self, changed: Mapping[Path, Path]) -> int:
        """Returns the linked .text if some objects are replaced."""
        to = self._folder / "program"
        relink(self._build, self._link, {**self._objects, **changed}, to)
        return Sizes.of(to).text

    def _try(self, unit: Unit, decided: FileDecisions, *, ties: bool = False) -> bool:
        """Tries decisions about a file. Keeps them if they make the program smaller.

        With ``ties``, also keeps them if the program's size is the same. Decisions with
        which the compiler fails are not kept.
        """
        if self._is_over() or decided == self.decisions.of(source_of(unit)):
            return False
        try:
            made = self._compile(unit, decided)
            size = self._measure({unit.object: made})
        except (CompilerFailed, Timeout):
            return False
        self._trials += 1
        is_better = size < self.best + ties
        if is_better:
            self.best = size
            self._objects[unit.object] = made
            self.decisions = self.decisions.with_file(source_of(unit), decided)
        spent = _cpu_seconds() - self._started
        self._show(FileProgress(spent, self._trials, self._stock, self.best))
        return is_better

    def _choose_pipeline(self, unit: Unit) -> None:
        for name in (STOCK, *self._pipelines):
            now = self.decisions.of(source_of(unit))
            self._try(unit, replace(now, pipeline=name))

    def _choose_outlining(self, unit: Unit) -> None:
        """Outlines from all functions, and then excludes groups of functions.

        A group stays excluded if this does not make the program larger. The groups
        become smaller and smaller.
        """
        whole = self._objects[unit.object]
        for least in LEAST:
            now = self.decisions.of(source_of(unit))
            self._try(unit, replace(now, least=least))
        if not self.decisions.of(source_of(unit)).least:
            return
        names = changed_functions(whole, self._objects[unit.object])
        self._random.shuffle(names)
        size = max(1, len(names) // 4)
        while True:
            for start in range(0, len(names), size):
                now = self.decisions.of(source_of(unit))
                more = frozenset(names[start : start + size]) - now.whole
                if more:
                    self._try(unit, replace(now, whole=now.whole | more), ties=True)
            if size == 1 or self._is_over():
                return
            size //= 2


def changed_functions(before: Path, after: Path) -> list[str]:
    """Returns the functions of an object whose sizes differ in another object."""
    sizes = _function_sizes(before)
    changed = _function_sizes(after)
    return sorted(
        name for name, size in sizes.items() if changed.get(name, size) != size
    )


def _function_sizes(path: Path) -> dict[str, int]:
    with path.open("rb") as file:
        return {
            symbol.name: symbol["st_size"]
            for section in ELFFile(file).iter_sections()
            if isinstance(section, SymbolTableSection)
            for symbol in section.iter_symbols()
            if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_size"]
        }


def _cpu_seconds() -> float:
    """Returns the CPU time of all compilers and linkers so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
