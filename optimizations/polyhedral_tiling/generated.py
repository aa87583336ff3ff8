# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels to train on: sums of products, transposed copies, and stencils."""

import json
import random
from pathlib import Path
from typing import Any

from .kernels import Case

LETTERS = "ijkl"
INSTANCES = {2: 1.2e6, 3: 3e6, 4: 3e6}
"""The number of a kernel's iterations, by its number of loops."""


Nest = tuple[list[dict[str, str]], dict[str, list[int | str]]]
"""The statements of a kernel, and its arrays."""


def _extents(draw: random.Random, depth: int) -> dict[str, int]:
    """Returns an extent for each loop."""
    extent = int((draw.uniform(0.3, 1.5) * INSTANCES[depth]) ** (1 / depth))
    return {one: draw.choice([extent, extent * 2 // 3]) for one in LETTERS[:depth]}


def _product(draw: random.Random, depth: int) -> Nest:
    """Sums of products, in one or two statements, with subscripts in any order."""
    extents = _extents(draw, depth)
    loops = list(extents)
    arrays: dict[str, list[int | str]] = {}

    def access(name: str, least: int) -> str:
        chosen = draw.sample(loops, draw.randint(least, min(3, depth)))
        arrays[name] = [extents[letter] for letter in chosen]
        return name + "".join(f"[{letter}]" for letter in chosen)

    bounds = " and ".join(f"0 <= {one} < {extents[one]}" for one in loops)
    order = draw.sample(loops, depth)
    is_fused = draw.random() < 0.5
    statements = []
    for number in range(draw.choice([1, 1, 1, 2] if depth < 4 else [1])):
        read = [
            access(name + str(number), least) for name, least in (("A", 2), ("B", 1))
        ]
        time = [*order, str(number)] if is_fused else [str(number), *order]
        operator = draw.choice([" * ", " * ", " + "])
        statements.append(
            {
                "domain": f"S{number}[{', '.join(loops)}] : {bounds}",
                "schedule": f"[{', '.join(time)}]",
                "body": f"{access(f'C{number}', 1)} += {operator.join(read)}",
            }
        )
    return statements, arrays


def _copy(draw: random.Random) -> Nest:
    """A copy of a matrix, or of the sum of two, with subscripts in another order."""
    extents = _extents(draw, 2)
    subscripts = [draw.choice(["[i][j]", "[j][i]"]) for _ in "CAB"]
    read = [f"A{subscripts[1]}", f"B{subscripts[2]}"][: draw.randint(1, 2)]
    body = f"C{subscripts[0]} = {' + '.join(read)}"
    largest: list[int | str] = [max(extents.values())] * 2
    statement = {
        "domain": f"S[i, j] : 0 <= i < {extents['i']} and 0 <= j < {extents['j']}",
        "schedule": draw.choice(["[i, j]", "[j, i]"]),
        "body": body,
    }
    return [statement], {name: largest for name in "ABC" if name in body}


def _stencil(draw: random.Random) -> Nest:
    """Steps of a stencil, in place or between two arrays."""
    steps = draw.choice([1, 3, 6])
    extent = int((draw.uniform(0.3, 1.5) * INSTANCES[2] / steps) ** 0.5)
    offsets = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
    points = draw.sample(offsets, draw.randint(2, 6))
    arrays: dict[str, list[int | str]] = {"A": [extent] * 2}
    pairs = [("A", "A")] if draw.random() < 0.6 else [("A", "B"), ("B", "A")]
    statements = []
    for number, (source, target) in enumerate(pairs):
        arrays[target] = [extent] * 2
        read = " + ".join(f"{source}[i + {a}][j + {b}]" for a, b in points)
        statements.append(
            {
                "domain": f"S{number}[t, i, j] : 0 <= t < {steps}"
                f" and 1 <= i, j < {extent - 1}",
                "schedule": f"[t, {number}, i, j]",
                "body": f"{target}[i][j] = 0.2 * ({read})".replace("+ -", "- "),
            }
        )
    return statements, arrays


def kernel_of(seed: int) -> dict[str, Any]:
    """Returns the JSON of a random kernel."""
    draw = random.Random(seed)
    kind = draw.random()
    if kind < 0.15:
        statements, arrays = _copy(draw)
    elif kind < 0.4:
        statements, arrays = _stencil(draw)
    else:
        statements, arrays = _product(draw, draw.choice([2, 2, 3, 3, 3, 4]))
    return {"name": f"generated_{seed}", "arrays": arrays, "statements": statements}


def generated_cases(count: int, folder: Path, first: int = 0) -> list[Case]:
    """Writes random kernels into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for seed in range(first, first + count):
        kernel = kernel_of(seed)
        file = folder / f"{kernel['name']}.json"
        file.write_text(json.dumps(kernel, indent=1) + "\n", encoding="utf-8")
        found.append(Case(kernel["name"], "", file, "generated"))
    return found
