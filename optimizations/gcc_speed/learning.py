# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Learns from searches which calls to inline and which loops to unroll.

A model is a rule with few limits. Training tries all limits of a grid. It minimises the
executed instructions plus a price for the added bytes, both relative to the program. An
inlined call saves CALL_INSTRUCTIONS instructions each time it runs. The savings of
unrolled loops were measured. All other loops are cold: they save nothing.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mlbridge.errors import InvalidArgument
from mlbridge.export import FeatureSpec, Metadata, export
from mlbridge_optimizations.evaluation import tables

from .models import GCC_DECIDES
from .search import (
    CALL_INSTRUCTIONS,
    FACTOR,
    MOST_BLOCKS,
    MOST_ITERATIONS,
    Searched,
    Site,
    added_instructions,
    unroll_factor,
)

FEATURES = {
    "inline": {
        "cost_estimate": "int64_t",
        "loop_depth": "int32_t",
        "frequency": "float",
    },
    "unroll": {
        "instructions": "int32_t",
        "blocks": "int32_t",
        "iterations": "int64_t",
        "calls": "int32_t",
        "has_trip_count": "int32_t",
        "frequency": "float",
    },
}
"""The features that the models use, and their types."""

FREQUENCIES = (1.0, 2.0, 4.0, 8.0)
SIZES = (6, 8, 10, 12, 15, 20, 25, 30, 40)
GRIDS: Mapping[str, Sequence[tuple[float, ...]]] = {
    "inline": list(product(FREQUENCIES, SIZES)),
    "unroll": list(product(FREQUENCIES, SIZES, (0, *SIZES))),
}
"""The limits that training tries: the least frequency of a call, and the maximum growth
by inlining it; the least frequency of a loop, and the maximum number of instructions in
loops with two blocks, and in loops with up to MOST_BLOCKS blocks."""

BYTES_PER_UNIT = 5
"""The bytes per unit of gcc's estimate of sizes, from measured calls."""
BYTES_PER_INSTRUCTION = 4.5
"""The bytes per added instruction of loops that were not measured."""
ALL_SOURCES = 1.35
"""The bytes that a rule adds in all sources relative to those with hot functions."""


class Rule(nn.Module):
    """The model that gcc asks. Replies what gcc shall do, or that gcc decides."""

    def __init__(self, decision: str, limits: Sequence[float]) -> None:
        super().__init__()
        self.decision, self.limits = decision, tuple(limits)
        self.columns = list(FEATURES[decision])

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        """Maps float [n, d] to a reply, int64 [n]."""
        found = dict(zip(self.columns, features.unbind(dim=1), strict=True))
        reply = torch.full_like(features[:, 0], GCC_DECIDES[self.decision])
        chosen = found["frequency"] >= self.limits[0]
        if self.decision == "inline":
            chosen &= (found["loop_depth"] > 0) & (
                found["cost_estimate"] <= self.limits[1]
            )
            choice = torch.ones_like(reply)
        else:
            _, most, most_with_blocks = self.limits
            size, known = found["instructions"], found["iterations"]
            chosen &= (found["has_trip_count"] > 0) & (found["calls"] == 0)
            chosen &= ((found["blocks"] <= 2) & (size <= most)) | (
                (found["blocks"] <= MOST_BLOCKS) & (size <= most_with_blocks)
            )
            is_short = (known > 0) & (known <= MOST_ITERATIONS)
            choice = torch.where(is_short, known + 1, float(FACTOR))
        return {"decision": torch.where(chosen, choice, reply).to(torch.int64)}


def read_searches(file: Path) -> list[Searched]:
    """Reads the last search of each program.

    Raises InvalidArgument if there is none, and Malformed if the file is damaged.
    """
    command = "search gcc-speed-decisions"
    found = [*tables.read_table(file, _searched, command)] if file.is_file() else []
    if not found:
        raise InvalidArgument(
            f"{file}: expected searches, found none; search first with"
            f" `mlbridge {command}`"
        )
    return [*{one.program: one for one in found}.values()]


def _searched(*, sites: Iterable[dict[str, Any]], **members: Any) -> Searched:
    return Searched(**members, sites=[_site(**one) for one in sites])


def _site(
    key: Sequence[Any],
    functions: Sequence[str],
    features: dict[str, float],
    calls: float,
    gains: Mapping[str, float],
    growths: Mapping[str, int],
) -> Site:
    source, decision, number = key
    if missing := FEATURES[decision].keys() - features.keys():
        raise ValueError(f"a site has no feature {min(missing)!r}")
    numbers = (*features.values(), calls, *gains.values(), *growths.values())
    if not all(map(math.isfinite, numbers)):
        raise ValueError("expected finite features, calls, gains and growths")
    return Site(
        (source, decision, number),
        tuple(functions),
        features,
        calls,
        # JSON has only strings as keys.
        {int(choice): gain for choice, gain in gains.items()},
        {int(choice): size for choice, size in growths.items()},
    )


def write_search(searched: Searched, file: Path) -> None:
    """Appends the results of a search to a file, as a line of JSON."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as log:
        print(json.dumps(asdict(searched)), file=log)


def table(searched: Searched, decision: str) -> tuple[Tensor, Tensor, Tensor]:
    """Returns features, float [n, d], and gains and growths, float [n].

    Gains are relative to the program's instructions, and growths to its bytes.
    """
    rows, gains, growths = [], [], []
    for site in searched.sites:
        if site.key[1] != decision:
            continue
        if decision == "inline":
            gain = CALL_INSTRUCTIONS * site.calls / searched.instructions
            grown = BYTES_PER_UNIT * max(1.0, site.features["cost_estimate"])
        else:
            factor = unroll_factor(site)
            gain = site.gains.get(factor, 0.0)
            grown = site.growths.get(factor, 0)
            if factor and factor not in site.growths:
                grown = BYTES_PER_INSTRUCTION * added_instructions(site)
        rows.append([site.features[name] for name in FEATURES[decision]])
        gains.append(gain)
        growths.append(ALL_SOURCES * grown / searched.text)
    features = torch.tensor(rows).reshape(-1, len(FEATURES[decision]))
    return features, torch.tensor(gains), torch.tensor(growths)


Effect = tuple[float, float]
"""The saved instructions and the added bytes, relative to a program."""


def effects(searches: Sequence[Searched], decision: str) -> dict[Rule, list[Effect]]:
    """Returns the estimated effects of all rules of a grid on each program."""
    rules = [Rule(decision, limits) for limits in GRIDS[decision]]
    found: dict[Rule, list[Effect]] = {rule: [] for rule in rules}
    for searched in searches:
        features, gains, growths = table(searched, decision)
        for rule in rules:
            chosen = rule(features)["decision"] != GCC_DECIDES[decision]
            found[rule].append(
                (float((chosen * gains).sum()), float((chosen * growths).sum()))
            )
    return found


def best_rule(found: Mapping[Rule, Sequence[Effect]], price: float) -> Rule:
    """Returns the rule with the least mean of log(instructions) plus price * bytes."""

    def loss(rule: Rule) -> float:
        costs = (
            math.log(max(0.01, 1 - gain)) + price * grown for gain, grown in found[rule]
        )
        return sum(costs)

    return min(found, key=loss)


def write_model(
    searches: Sequence[Searched], decision: str, price: float, file: Path
) -> tuple[Rule, list[Effect]]:
    """Chooses a rule, and writes it to an .onnx file.

    A decision that adds 1 % of code must save at least `price` % of the instructions.
    Also returns the effects on each program of the rules that are chosen for the other
    programs.
    """
    found = effects(searches, decision)
    rule = best_rule(found, price)
    left_out = []
    for number in range(len(searches)):
        others = {
            one: [*known[:number], *known[number + 1 :]] for one, known in found.items()
        }
        left_out.append(found[best_rule(others, price)][number])
    names = FEATURES[decision]
    file.parent.mkdir(parents=True, exist_ok=True)
    features = torch.cat([table(one, decision)[0] for one in searches])
    export(
        rule,
        file,
        features=[FeatureSpec(n, kind, (1,), low=0) for n, kind in names.items()],
        samples={n: features[:64, i : i + 1].numpy() for i, n in enumerate(names)},
        decide="",
        metadata=Metadata(reward="saved instructions - price * bytes"),
    )
    return rule, left_out
