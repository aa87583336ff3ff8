# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures what inlining and unrolling decisions save in instructions and add in bytes.

gcc unrolls loops after inlining, and a decision changes only the instruction counts of
its own functions. So one run under valgrind measures one decision in each function, by
the instructions that the function executes. All small counted loops are measured in
one run, and a function's savings are divided among its loops. Calls are measured in
groups. The calls of a group have no function in common.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import numpy as np

import mlbridge
from mlbridge.files import OwnFolder
from mlbridge.log import read_log
from mlbridge_optimizations.corpus.manifest import Program

from .measure import (
    Build,
    Counted,
    SmallTester,
    function_sizes,
    text_and_constants,
)
from .models import GCC_DECIDES, Served

FACTOR = 4
"""The unroll factor of loops that are not unrolled completely."""
MOST_ITERATIONS = 16
"""Loops with at most this known number of iterations are unrolled completely."""
MOST_INSTRUCTIONS = 40
MOST_BLOCKS = 6
"""The limits of the loops that are measured."""
LARGEST_TEXT = 1.05
"""The maximum size of a program's code relative to stock gcc -O2."""

HOT = 0.002
"""A function is searched if it executes more than this share of the instructions."""
CALL_INSTRUCTIONS = 12
"""A rough number of instructions that inlining saves per call. Inlined calls in loops
of nine programs saved 10 to 12 instructions on average."""
HOT_CALLS = 0.0005
"""A call is searched if inlining may save more than this share of the instructions."""
MOST_GROUPS = 4
"""The maximum number of groups of calls. Measuring a group takes about a minute."""

Key = tuple[str, str, int]
"""Identifies a request by its source, its decision, and its number in the compile."""


@dataclass
class Site:
    """A request of gcc, and the measured results of its choices.

    Attributes:
        key: which request it is.
        functions: the function with a loop, or the caller and the callee.
        features: the request's features.
        calls: the number of executed calls. Calls with the same functions divide their
            number by gcc's estimated frequencies.
        gains: by choice, the saved share of the program's instructions.
        growths: by choice, the bytes of code that it adds.
    """

    key: Key
    functions: tuple[str, ...]
    features: dict[str, float]
    calls: float = 0.0
    gains: dict[int, float] = field(default_factory=dict)
    growths: dict[int, int] = field(default_factory=dict)


@dataclass
class Searched:
    """The results of the search of a program.

    Attributes:
        instructions: executed instructions with stock gcc -O2.
        text: bytes of the program's code with stock gcc -O2.
        choices: the number of choices in the best set that the search found.
        ratio: executed instructions with these choices, relative to stock gcc -O2.
        size: the size of the code with these choices, relative to stock gcc -O2.
    """

    program: str
    instructions: int
    text: int
    sites: list[Site]
    choices: int = 0
    ratio: float = 1.0
    size: float = 1.0


def plain(name: str) -> str:
    """Returns a function's name without suffixes of gcc's copies, such as .isra.0."""
    return name.partition(".")[0]


def plain_sums(values: Mapping[str, int]) -> dict[str, int]:
    """Adds the values of a function's copies."""
    sums: dict[str, int] = {}
    for name, value in values.items():
        sums[plain(name)] = sums.get(plain(name), 0) + value
    return sums


def weight(site: Site) -> float:
    """Returns gcc's estimate of how often a site runs, at least 0.001."""
    return max(0.001, site.features["frequency"])


def unroll_factor(loop: Site) -> int:
    """Returns the factor that is measured, or 0 if the loop is not measured.

    The number of iterations of a measured loop is known before the loop begins.
    """
    features = loop.features
    if (
        not features["has_trip_count"]
        or features["calls"]
        or features["blocks"] > MOST_BLOCKS
        or features["instructions"] > MOST_INSTRUCTIONS
    ):
        return 0
    known = features["iterations"]
    return int(known) + 1 if 0 < known <= MOST_ITERATIONS else FACTOR


class Searcher:
    """Compiles one program with given inlining and unrolling choices.

    Counts the instructions that the compiled program executes.
    """

    def __init__(
        self, program: Program, folder: Path, plugin: Path, server: Served
    ) -> None:
        self.program, self.folder = program, folder
        self.plugin, self.server = plugin, server
        self.stock = Build(program, folder).all(keep=True)
        executable = self.stock.link(folder / "stock")
        self.tester = SmallTester(program, executable)
        # Callgrind counts some instructions otherwise than cachegrind.
        calls = self.tester.count(executable, folder, calls=True).calls
        self.base = replace(self.tester.count(executable, folder), calls=calls)
        self.text = text_and_constants(executable)
        self.sizes = plain_sums(function_sizes(executable))
        self.counts = plain_sums(self.base.functions)
        self.hot = {
            name: share
            for name, value in self.counts.items()
            if (share := value / self.base.instructions) > HOT and name in self.sizes
        }
        self.sources = [
            source
            for source, made in self.stock.objects.items()
            if self.hot.keys() & set(plain_sums(function_sizes(made)))
        ]

    def sites(self) -> list[Site]:
        """Returns gcc's requests about the sources with hot functions.

        Leaves out the calls of functions that gcc inlines everywhere.
        """
        found = []
        for source in self.sources:
            for decision in ("inline", "unroll"):
                found += self._record(source, decision)
        kept = [one for one in found if one.functions[-1] in self.sizes]
        self._divide_calls([one for one in kept if one.key[1] == "inline"])
        return kept

    def _divide_calls(self, sites: Sequence[Site]) -> None:
        """Sets the number of executed calls of each site."""
        calls: dict[tuple[str, ...], int] = {}
        for (caller, callee), number in self.base.calls.items():
            pair = plain(caller), plain(callee)
            calls[pair] = calls.get(pair, 0) + number
        sums: dict[tuple[str, ...], float] = {}
        for site in sites:
            sums[site.functions] = sums.get(site.functions, 0.0) + weight(site)
        for site in sites:
            share = weight(site) / sums[site.functions]
            site.calls = share * calls.get(site.functions, 0)

    def _record(self, source: str, decision: str) -> list[Site]:
        with OwnFolder("mlbridge-gcc-") as folder:
            log = folder.path / "log"
            plugin = [f"-fplugin={self.plugin.resolve()}"]
            plugin.append(f"-fplugin-arg-mlbridge-{decision}=record:{log}|none")
            self.stock.compile(source, folder.path / "x.o", plugin)
            if log.stat().st_size == 0:
                return []
            return [
                Site(
                    (source, decision, number),
                    tuple(map(plain, one.context.split("->"))),
                    {k: float(np.asarray(v).item()) for k, v in one.features.items()},
                )
                for number, one in enumerate(read_log(log))
            ]

    def try_choices(self, choices: Mapping[Key, int]) -> tuple[Counted, Path]:
        """Compiles the program with choices, and counts its executed instructions.

        gcc makes the choices that are not in `choices`. Also returns the executable.
        """
        made = {}
        for number, source in enumerate(dict.fromkeys(key[0] for key in choices)):
            numbers = {"inline": count(), "unroll": count()}

            def answer(
                decision: str,
                features: mlbridge.Features,
                source: str = source,
                numbers: Mapping[str, "count[int]"] = numbers,
            ) -> int:
                key = source, decision, next(numbers[decision])
                return choices.get(key, GCC_DECIDES[decision])

            self.server.answer = answer
            made[source] = self.folder / f"tried-{number}.o"
            flags = self.server.flags(self.plugin, ("inline", "unroll"))
            self.stock.compile(source, made[source], flags)
        executable = self.stock.link(self.folder / "tried", made)
        return self.tester.count(executable, self.folder), executable

    def ratios(self, choices: Mapping[Key, int]) -> tuple[float, float]:
        """Returns instructions and size with choices, relative to stock gcc."""
        if not choices:
            return 1.0, 1.0
        counted, executable = self.try_choices(choices)
        instructions = counted.instructions / self.base.instructions
        return instructions, text_and_constants(executable) / self.text

    def measure(self, tried: Sequence[tuple[Site, int]]) -> None:
        """Measures all choices in one build of the program.

        A site's gain and growth are the sums for the functions of the site.
        """
        if not tried:
            return
        counted, executable = self.try_choices({s.key: c for s, c in tried})
        counts = plain_sums(counted.functions)
        sizes = plain_sums(function_sizes(executable))
        for site, choice in tried:
            names = set(site.functions)
            saved = sum(self.counts.get(n, 0) - counts.get(n, 0) for n in names)
            grown = sum(sizes.get(n, 0) - self.sizes.get(n, 0) for n in names)
            site.gains[choice] = saved / self.base.instructions
            site.growths[choice] = grown


def search_loops(searcher: Searcher, sites: Iterable[Site]) -> None:
    """Measures the unrolling of all small counted loops in hot functions.

    A function's savings are divided by the loops' estimated frequencies, and its growth
    by the added instructions.
    """
    measured = [one for one in hot_loops(searcher, sites) if unroll_factor(one)]
    searcher.measure([(site, unroll_factor(site)) for site in measured])
    by_function: dict[str, list[Site]] = {}
    for site in measured:
        by_function.setdefault(site.functions[0], []).append(site)
    for group in by_function.values():
        weights = sum(map(weight, group))
        added = sum(map(added_instructions, group))
        for site in group:
            factor = unroll_factor(site)
            site.gains[factor] *= weight(site) / weights
            grown = site.growths[factor] * added_instructions(site) / added
            site.growths[factor] = round(grown)


def added_instructions(site: Site) -> float:
    """Returns how many instructions the measured unrolling of a loop adds."""
    return max(1.0, site.features["instructions"]) * (unroll_factor(site) - 1)


def frequent_calls(searcher: Searcher, sites: Iterable[Site]) -> list[Site]:
    """Returns the calls that inlining may make faster, the most frequent first."""
    least = HOT_CALLS * searcher.base.instructions / CALL_INSTRUCTIONS
    return sorted((one for one in sites if one.calls > least), key=lambda x: -x.calls)


def hot_loops(searcher: Searcher, sites: Iterable[Site]) -> list[Site]:
    """Returns the loops of hot functions."""
    return [
        site
        for site in sites
        if site.key[1] == "unroll" and site.functions[0] in searcher.hot
    ]


def search_calls(searcher: Searcher, sites: Iterable[Site]) -> None:
    """Measures the inlining of frequent calls. A group's calls share no function."""
    groups: list[tuple[set[str], list[tuple[Site, int]]]] = []
    for site in frequent_calls(searcher, sites):
        free = (one for one in groups if not one[0] & set(site.functions))
        names, group = next(free, (set[str](), list[tuple[Site, int]]()))
        if not group:
            if len(groups) == MOST_GROUPS:
                continue
            groups.append((names, group))
        names.update(site.functions)
        group.append((site, 1))
    for _, group in groups:
        searcher.measure(group)


def best_choices(sites: Iterable[Site], bytes_left: float) -> dict[Key, int]:
    """Returns the choices that save most per byte, with at most `bytes_left` bytes."""
    found = [
        (site, choice, gain)
        for site in sites
        for choice, gain in site.gains.items()
        if gain > 1e-5
    ]

    def rate(one: tuple[Site, int, float]) -> float:
        return one[2] / max(8, one[0].growths[one[1]])

    chosen: dict[Key, int] = {}
    for site, choice, _ in sorted(found, key=rate, reverse=True):
        grown = site.growths[choice]
        if site.key not in chosen and grown <= bytes_left:
            chosen[site.key] = choice
            bytes_left -= max(0, grown)
    return chosen


def search(searcher: Searcher) -> Searched:
    """Measures a program's sites, and then the best choices within the size limit."""
    sites = searcher.sites()
    search_loops(searcher, sites)
    search_calls(searcher, sites)
    found = Searched(
        searcher.program.name, searcher.base.instructions, searcher.text, sites
    )
    # Try smaller parts of the limit, because the choices' sizes do not add up exactly.
    for part in (0.95, 0.5, 0.2):
        left = part * (LARGEST_TEXT - 1) * searcher.text
        chosen = best_choices(sites, left)
        found.choices = len(chosen)
        found.ratio, found.size = searcher.ratios(chosen)
        if found.size <= LARGEST_TEXT:
            break
    return found
