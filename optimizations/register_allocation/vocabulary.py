# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a vocabulary of MIR2Vec: a vector for each opcode and kind of operand.

TransE (Bordes et al., "Translating Embeddings for Modeling Multi-relational Data", NIPS
2013) learns vectors such that head + relation is close to tail for the triplets that
occur in machine code. LLVM's MIR2Vec uses TransE in the same way.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.show import Show, quiet

from .functions import SECONDS, llc_command
from .settings import VocabularyOptions

Triplets: TypeAlias = Mapping[tuple[str, str, str], int]
"""Maps (head, relation, tail) to the number of occurrences."""

Vectors: TypeAlias = Mapping[str, NDArray[np.float32]]

SECTIONS = {
    "Opcode": "Opcodes",
    "Operand": "CommonOperands",
    "PhyReg": "PhysicalRegisters",
    "VirtReg": "VirtualRegisters",
}
"""The sections of LLVM's file by the prefix of an entity's name."""


@dataclass(frozen=True)
class Epoch:
    """The result of one pass over the triplets.

    Attributes:
        loss: the mean margin loss.
        hits: the share of triplets whose tail is among the ten nearest entities.
    """

    number: int
    loss: float
    hits: float


def triplets_of(
    modules: Sequence[Path], plugin: Path, *, jobs: int = 1, show: Show = quiet
) -> Triplets:
    """Compiles bitcode files, and returns the triplets of their machine code."""

    def of_module(item: tuple[int, Path]) -> Counter[tuple[str, str, str]]:
        number, module = item
        file = Path(folder, f"{number}.jsonl")
        command = llc_command(module, plugin, [f"-mlbridge-mir2vec-triplets={file}"])
        toolchain.run(command, seconds=SECONDS)
        found: Counter[tuple[str, str, str]] = Counter()
        for line in file.read_text("utf-8").splitlines():
            head, relation, tail, count = json.loads(line)
            found[head, relation, tail] += count
        return found

    every: Counter[tuple[str, str, str]] = Counter()
    with (
        TemporaryDirectory(prefix="mlbridge-triplets-") as folder,
        ThreadPoolExecutor(jobs) as pool,
    ):
        for done, found in enumerate(pool.map(of_module, enumerate(modules))):
            every += found
            show(done + 1, len(modules))
    return every


class TransE(nn.Module):
    """Vectors of entities and relations."""

    def __init__(self, entities: int, relations: int, dimension: int) -> None:
        super().__init__()
        self.entities = nn.Embedding(entities, dimension)
        self.relations = nn.Embedding(relations, dimension)
        bound = 6 / dimension**0.5
        for table in (self.entities, self.relations):
            nn.init.uniform_(table.weight, -bound, bound)

    def forward(self, triplets: torch.Tensor) -> torch.Tensor:
        """Maps triplets, int64 [N, 3], to the distances of head + relation and tail."""
        head, relation, tail = triplets.unbind(1)
        moved = self.entities(head) + self.relations(relation)
        distance: torch.Tensor = (moved - self.entities(tail)).norm(dim=1)
        return distance

    def hits(self, triplets: torch.Tensor, nearest: int = 10) -> float:
        """Returns the share of triplets whose tail is among the nearest entities."""
        with torch.inference_mode():
            head, relation, tail = triplets.unbind(1)
            moved = self.entities(head) + self.relations(relation)
            distances = torch.cdist(moved, self.entities.weight)
            own = distances.gather(1, tail.unsqueeze(1))
            return float(((distances < own).sum(1) < nearest).float().mean())


def train(
    triplets: Triplets, options: VocabularyOptions
) -> Iterator[tuple[Epoch, Vectors]]:
    """Yields epochs, each with the entities' vectors, float32 [dimension].

    Each triplet counts once. A wrong triplet has a random head or tail.
    """
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)  # The tables are small.
    names = sorted({part for head, _, tail in triplets for part in (head, tail)})
    kinds = sorted({relation for _, relation, _ in triplets})
    entity = {name: number for number, name in enumerate(names)}
    relation = {name: number for number, name in enumerate(kinds)}
    table = torch.tensor(
        [[entity[h], relation[r], entity[t]] for h, r, t in sorted(triplets)]
    )
    model = TransE(len(names), len(kinds), options.dimension)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.rate)
    sample = table[torch.randperm(len(table))[:4096]]
    for number in range(options.epochs):
        total = 0.0
        with torch.no_grad():
            model.entities.weight.copy_(
                nn.functional.normalize(model.entities.weight, dim=1)
            )
        order = torch.randperm(len(table))
        for begin in range(0, len(table), 1024):
            right = table[order[begin : begin + 1024]]
            wrong = right.clone()
            replaced = 2 * torch.randint(2, (len(right),))
            wrong[torch.arange(len(right)), replaced] = torch.randint(
                len(names), (len(right),)
            )
            margin = options.margin + model(right) - model(wrong)
            loss = margin.clamp(min=0).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(right)
        vectors = model.entities.weight.detach().numpy().copy()
        yield (
            Epoch(number, total / len(table), model.hits(sample)),
            dict(zip(names, vectors, strict=True)),
        )


def write(vectors: Vectors, file: Path) -> None:
    """Writes a vocabulary in LLVM's JSON format, with four decimals."""
    sections: dict[str, dict[str, list[float]]] = {s: {} for s in SECTIONS.values()}
    for name, vector in vectors.items():
        prefix, _, rest = name.partition("_")
        sections[SECTIONS[prefix]][rest] = [round(float(x), 4) for x in vector]
    file.write_text(json.dumps(sections, separators=(",", ":")) + "\n", "utf-8")
