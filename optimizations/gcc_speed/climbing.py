# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Improves a program's inlining and unrolling decisions by hill climbing.

A site is a call or a loop. Each compile tries new choices for several sites that have
no function in common. The instruction counts and the sizes of the sites' functions
show which choices to keep.
"""

import random
from collections.abc import Mapping, Sequence

from mlbridge_optimizations.show import Show, quiet

from .measure import function_sizes
from .models import GCC_DECIDES
from .search import (
    LARGEST_TEXT,
    Key,
    Searched,
    Searcher,
    Site,
    best_choices,
    frequent_calls,
    hot_loops,
    plain_sums,
)

CHOICES = {"inline": (0, 1, 2), "unroll": (0, 1, 2, 4, 8)}
"""The choices that hill climbing tries, by decision."""
MOST_CHANGES = 8
"""The maximum number of new choices in one compile."""
LEAST_GAIN = 1e-5
"""A choice is kept if it saves more than this share of the program's instructions."""


def climb(
    searcher: Searcher,
    found: Searched,
    compiles: int,
    seed: int = 0,
    show: Show = quiet,
) -> dict[Key, int]:
    """Improves the best choices of a search, and updates the figures in `found`.

    Returns the choices. With them, the program's code is at most LARGEST_TEXT times as
    large as stock gcc's. Measurements are added to the sites.
    """
    sites = [*hot_loops(searcher, found.sites), *frequent_calls(searcher, found.sites)]
    budget = 0.95 * (LARGEST_TEXT - 1) * found.text
    best = best_choices(found.sites, budget)
    if not sites or compiles == 0:
        return best
    draw = random.Random(seed)
    choices = dict(best)
    counts, sizes = _count(searcher, choices)
    for done in range(compiles):
        proposed = _propose(sites, choices, draw)
        changes = {site.key: choice for site, choice in proposed}
        new_counts, new_sizes = _count(searcher, {**choices, **changes})
        used = sum(sizes.values()) - sum(searcher.sizes.values())
        for site, choice in proposed:
            gain = _difference(site, counts, new_counts) / found.instructions
            grown = -_difference(site, sizes, new_sizes)
            if site.key not in choices:
                site.gains.setdefault(choice, gain)
                site.growths.setdefault(choice, grown)
            is_faster = gain > LEAST_GAIN and used + grown <= budget
            if is_faster or (gain >= 0 and grown < 0):
                choices[site.key] = choice
                used += grown
                for name in site.functions:
                    counts[name] = new_counts.get(name, 0)
                    sizes[name] = new_sizes.get(name, 0)
        show(done + 1, compiles)
    ratio, size = searcher.ratios(choices)
    if ratio < found.ratio and size <= LARGEST_TEXT:
        found.ratio, found.size, found.choices = ratio, size, len(choices)
        return choices
    return best


def _count(
    searcher: Searcher, choices: Mapping[Key, int]
) -> tuple[dict[str, int], dict[str, int]]:
    """Returns the instructions and the bytes of each function."""
    if not choices:
        return dict(searcher.counts), dict(searcher.sizes)
    counted, executable = searcher.try_choices(choices)
    return plain_sums(counted.functions), plain_sums(function_sizes(executable))


def _difference(site: Site, before: Mapping[str, int], after: Mapping[str, int]) -> int:
    """Returns by how much the sum over a site's functions has decreased."""
    names = set(site.functions)
    return sum(before.get(name, 0) - after.get(name, 0) for name in names)


def _propose(
    sites: Sequence[Site], choices: Mapping[Key, int], draw: random.Random
) -> list[tuple[Site, int]]:
    """Draws other choices for sites that have no function in common."""
    taken: set[str] = set()
    proposed = []
    for site in draw.sample(sites, len(sites)):
        if taken.isdisjoint(site.functions):
            decision = site.key[1]
            now = choices.get(site.key, GCC_DECIDES[decision])
            others = [choice for choice in CHOICES[decision] if choice != now]
            proposed.append((site, draw.choice(others)))
            taken.update(site.functions)
            if len(proposed) == MOST_CHANGES:
                break
    return proposed
