# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels to train on: products and sums of arrays, and stencils."""

import json
import random
from pathlib import Path
from typing import Any

from .kernels import Case

LETTERS = "ijkl"
INSTANCES = {2: 1.2e6, 3: 4e6, 4: 4e6}
"""The number of a kernel's iterations, by its number of loops."""


def _subscripts(draw: random.Random, loops: str, least: int) -> str:
    chosen = draw.sample(loops, draw.randint(least, min(3, len(loops))))
    return "".join(f"[{letter}]" for letter in chosen)


def _product(draw: random.Random, depth: int) -> tuple[dict[str, str], str]:
    """Returns the subscripts of each array, and a sum of products."""
    loops = LETTERS[:depth]
    arrays = {
        "C": _subscripts(draw, loops, 1),
        "A": _subscripts(draw, loops, 2),
        "B": _subscripts(draw, loops, 1),
    }
    read = [f"{name}{arrays[name]}" for name in "AB"]
    body = f"C{arrays['C']} += {draw.choice([' * ', ' + ']).join(read)}"
    return arrays, body


def _stencil(draw: random.Random) -> tuple[dict[str, str], str]:
    """Returns a stencil in place, or from one array to another."""
    offsets = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
    source = draw.choice("AC")
    points = draw.sample(offsets, draw.randint(2, 6))
    read = " + ".join(f"{source}[i + 1 + {a}][j + 1 + {b}]" for a, b in points)
    return {"C": "[i][j]", "A": "[i][j]"}, f"C[i + 1][j + 1] = 0.2 * ({read})"


def kernel_of(seed: int) -> dict[str, Any]:
    """Returns the JSON of a random kernel."""
    draw = random.Random(seed)
    is_stencil = draw.random() < 0.2
    depth = 2 if is_stencil else draw.choice([2, 2, 3, 3, 3, 4])
    arrays, body = _stencil(draw) if is_stencil else _product(draw, depth)
    scale = draw.uniform(0.4, 1.5)
    extent = int((scale * INSTANCES[depth]) ** (1 / depth))
    loops = list(LETTERS[:depth])
    order = draw.sample(loops, depth)
    extents = {letter: draw.choice([extent, extent * 2 // 3]) for letter in loops}
    bounds = " and ".join(f"0 <= {one} < {extents[one]}" for one in loops)
    halo = 2 if is_stencil else 0
    return {
        "name": f"generated_{seed}",
        "arrays": {
            name: [extents[letter] + halo for letter in subscripts[1:-1].split("][")]
            for name, subscripts in arrays.items()
        },
        "statements": [
            {
                "domain": f"S[{', '.join(loops)}] : {bounds}",
                "schedule": f"[{', '.join(order)}]",
                "body": body,
            }
        ],
    }


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
