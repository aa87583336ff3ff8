# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From code for fixed extents to code for free ones.

The generator is at home with fixed extents; with free ones it knows fewer operators,
and miscompiles some (MatMul over a free extent sums nothing). So a free extent n is
given two sizes, both primes, and the two texts are compared: a number that differs is
a function of n, and two points tell which. The result is compared with ONNX Runtime
for other sizes before anybody gets to see it.

What the generator decides by comparing sizes (the first 5000 of n elements) it decides
for the two primes, so both are to be on the same side of each number in the model.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from mlbridge.errors import Unsupported

Point = Mapping[str, int]
"""The size of each free extent, by the C name of its variable."""

# A decimal number that is not a part of a name or of a hexadecimal float.
_NUMBER = re.compile(r"(?<![\w.])(\d+(?:\.0)?(?:f|[uU]?[lL]{0,2}))(?![\w.])")
_DIGITS = re.compile(r"\d+")
_MAX_DEGREE = 3
_MAX_OFFSET = 64
_LEAST_PRIME = 2003
_MOST_PRIME = 1 << 17
# Within so much of the first there are primes for any model.
_NEAR = 256


def starts(constants: set[int]) -> list[int]:
    """Where to look for the primes: above all numbers of the model, if there they do.

    The last one always is to be tried; where it is below some of the numbers, the code
    is good up to the primes only.
    """
    low = _LEAST_PRIME
    while near := [c for c in constants if low <= c <= low + _NEAR]:
        low = max(near) + 1
    high = max(constants, default=0) + 1
    return [high, low] if low < high <= _MOST_PRIME else [low]


def points(
    variables: Sequence[str], taken: set[int], start: int
) -> tuple[Point, Point]:
    """Two sizes for each variable: primes from a start on, in no number of `taken`."""
    primes = _primes(start, taken)
    sizes = [(next(primes), next(primes)) for _ in variables]
    return (
        dict(zip(variables, (a for a, _ in sizes), strict=True)),
        dict(zip(variables, (b for _, b in sizes), strict=True)),
    )


def generalise(texts: tuple[str, str], at: tuple[Point, Point]) -> str:
    """One text for any extents, out of the texts at two points.

    Raises:
        Unsupported: the texts differ in more than numbers, or by a number that is no
            product of extents plus a constant.
    """
    first, second = (_NUMBER.split(text) for text in texts)
    if first[::2] != second[::2]:
        raise Unsupported("the code for two sizes of a free extent is not alike")
    pieces = [
        piece if piece == other else _expression(piece, other, at)
        for piece, other in zip(first, second, strict=True)
    ]
    return "".join(pieces)


def _expression(first: str, second: str, at: tuple[Point, Point]) -> str:
    """The C expression that has these values at the two points."""
    values = [int(_DIGITS.findall(number)[0]) for number in (first, second)]
    for degree in range(1, _MAX_DEGREE + 1):
        for names in itertools.combinations_with_replacement(at[0], degree):
            bases = [1, 1]
            for name in names:
                bases = [b * p[name] for b, p in zip(bases, at, strict=True)]
            factor, rest = divmod(values[0] - values[1], bases[0] - bases[1])
            offset = values[0] - factor * bases[0]
            if rest or factor < 1 or abs(offset) > _MAX_OFFSET:
                continue
            product = " * ".join([str(factor)] * (factor != 1) + list(names))
            text = f"({product}{offset:+d})" if offset else product
            text = f"({text})" if " " in text and not offset else text
            return f"(float){text}" if first.endswith("f") else text
    raise Unsupported(
        f"the number {first} of the code follows from a free extent in a way that is "
        "more than a product and a constant"
    )


def _primes(start: int, taken: set[int]) -> Iterator[int]:
    for number in itertools.count(start | 1, 2):
        prime = all(number % d for d in range(3, int(number**0.5) + 1, 2))
        if prime and not any(size and size % number == 0 for size in taken):
            yield number
