# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Learns from the search which calls to inline and which loops to unroll.

The network's output is the chance that a choice is made. Training maximises the saved
instructions minus a price for the added bytes, both relative to the program. A site
that the search did not measure is cold: it saves nothing, and adds its estimated size.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mlbridge.errors import InvalidArgument
from mlbridge.export import FeatureSpec, Metadata, Training, export
from mlbridge_optimizations.evaluation import tables

from .models import GCC_DECIDES
from .search import FACTOR, Searched, Site

CHOICES = {"inline": 1, "unroll": FACTOR}
"""For each decision, the only choice that a model makes instead of gcc."""

FEATURES = {
    "inline": {
        "callee_basic_block_count": "int64_t",
        "callee_users": "int64_t",
        "caller_users": "int64_t",
        "nr_ctant_params": "int64_t",
        "cost_estimate": "int64_t",
        "callee_size": "int32_t",
        "caller_size": "int32_t",
        "callee_time": "float",
        "call_time": "int32_t",
        "loop_depth": "int32_t",
        "frequency": "float",
        "callee_loop_depth": "int32_t",
        "callee_is_local": "int32_t",
        "callee_is_inline": "int32_t",
    },
    "unroll": {
        "instructions": "int32_t",
        "blocks": "int32_t",
        "depth": "int32_t",
        "iterations": "int64_t",
        "loads": "int32_t",
        "stores": "int32_t",
        "calls": "int32_t",
        "has_trip_count": "int32_t",
        "frequency": "float",
    },
}
"""The features that the models use, and their types."""

HIDDEN = 16
STEPS = 500
MEMBERS = 3
BYTES_PER_UNIT = 6
"""The bytes per unit of gcc's estimate of sizes, for calls that were not measured."""
BYTES_PER_STATEMENT = 4


class SpeedNetwork(nn.Module):
    """Maps features, float [n, d], to the logits of a choice, float [n]."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, features: Tensor) -> None:
        super().__init__()
        scaled = self.scaled(features)
        self.register_buffer("mean", scaled.mean(dim=0))
        self.register_buffer("deviation", scaled.std(dim=0).clamp(min=0.1))
        self.layers = nn.Sequential(
            nn.Linear(features.shape[1], HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 1)
        )

    @staticmethod
    def scaled(features: Tensor) -> Tensor:
        """Returns logarithms, because sizes and frequencies span several magnitudes."""
        return torch.log(features.clamp(min=-0.9) + 1)

    def forward(self, features: Tensor) -> Tensor:
        """Returns the logits."""
        inputs = (self.scaled(features) - self.mean) / self.deviation
        found: Tensor = self.layers(inputs)
        return found.squeeze(1)


class Decision(nn.Module):
    """The model that gcc asks. The mean of several networks decides the reply."""

    def __init__(self, members: Sequence[SpeedNetwork], decision: str) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.yes, self.no = CHOICES[decision], GCC_DECIDES[decision]

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        """Maps float [n, d] to a reply, int64 [n]."""
        logits = torch.stack([member(features) for member in self.members]).mean(dim=0)
        chosen = (logits > 0).to(torch.int64)
        return {"decision": self.no + (self.yes - self.no) * chosen}


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
    gains: Mapping[str, float],
    growths: Mapping[str, int],
) -> Site:
    source, decision, number = key
    if missing := FEATURES[decision].keys() - features.keys():
        raise ValueError(f"a site has no feature {min(missing)!r}")
    numbers = (*features.values(), *gains.values(), *growths.values())
    if not all(map(math.isfinite, numbers)):
        raise ValueError("expected finite features, gains and growths")
    return Site(
        (source, decision, number),
        tuple(functions),
        features,
        # JSON has only strings as keys.
        {int(choice): gain for choice, gain in gains.items()},
        {int(choice): size for choice, size in growths.items()},
    )


def write_search(searched: Searched, file: Path) -> None:
    """Appends the results of a search to a file, as a line of JSON."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as log:
        print(json.dumps(asdict(searched)), file=log)


def _growth(site: Site, decision: str) -> float:
    """Returns the bytes that a choice adds, measured or estimated."""
    measured = site.growths.get(CHOICES[decision])
    if measured is not None:
        return float(measured)
    if decision == "inline":
        return BYTES_PER_UNIT * max(1.0, site.features["cost_estimate"])
    return BYTES_PER_STATEMENT * (FACTOR - 1) * site.features["instructions"]


def table(searches: Iterable[Searched], decision: str) -> tuple[Tensor, Tensor, Tensor]:
    """Returns features, float [n, d], and gains and growths, float [n], in percent."""
    rows, gains, growths = [], [], []
    for searched in searches:
        sites = [site for site in searched.sites if site.key[1] == decision]
        # Several sites may have the same functions and the same gain. Divide the gain
        # among them, so that it is not learned several times.
        shares: dict[tuple[object, ...], int] = {}
        for site in sites:
            pair = site.functions, site.gains.get(CHOICES[decision])
            shares[pair] = shares.get(pair, 0) + 1
        for site in sites:
            gain = site.gains.get(CHOICES[decision])
            rows.append([site.features[name] for name in FEATURES[decision]])
            share = shares[site.functions, gain]
            gains.append(100 * (gain or 0.0) / share)
            size = _growth(site, decision)
            growths.append(100 * size / searched.text)
    return torch.tensor(rows), torch.tensor(gains), torch.tensor(growths)


def train(
    searches: Sequence[Searched], decision: str, price: float, seed: int
) -> SpeedNetwork:
    """Trains a network.

    A decision that adds 1 % of code must save at least `price` % of the instructions.
    """
    torch.manual_seed(seed)
    features, gains, growths = table(searches, decision)
    network = SpeedNetwork(features)
    worth = gains - price * growths
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01, weight_decay=0.1)
    for _ in range(STEPS):
        chances = torch.sigmoid(network(features))
        loss = -(chances * worth).sum() / len(searches)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return network.eval()


def write_model(
    searches: Sequence[Searched], decision: str, price: float, seed: int, file: Path
) -> tuple[float, float, float]:
    """Trains networks and writes them to an .onnx file.

    Returns the share of sites that the model chooses in the training data, and the mean
    saved instructions and added bytes of a program, in percent.
    """
    members = [train(searches, decision, price, seed + n) for n in range(MEMBERS)]
    model = Decision(members, decision)
    names = FEATURES[decision]
    file.parent.mkdir(parents=True, exist_ok=True)
    features, gains, growths = table(searches, decision)
    export(
        model,
        file,
        features=[FeatureSpec(n, kind, (1,), low=0) for n, kind in names.items()],
        samples={n: features[:64, i : i + 1].numpy() for i, n in enumerate(names)},
        decide="",
        metadata=Metadata(
            reward="saved instructions - price * bytes", training=Training(seed=seed)
        ),
    )
    chosen = (model(features)["decision"] == CHOICES[decision]).float()
    count = len(searches)
    return (
        float(chosen.mean()),
        float((chosen * gains).sum()) / count,
        float((chosen * growths).sum()) / count,
    )
