# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Turns generated C code for fixed extents into code for free extents.

emx-onnx-cgen supports fewer operators with free extents and miscompiles some (MatMul
over a free extent sums nothing). So we generate the code twice, with two primes in
place of a free extent n, and compare the texts: numbers that differ are functions of n,
which the two points determine. `check` then compares the result with ONNX Runtime at
other sizes.

The generator's decisions that compare sizes (the first 5000 of n elements) hold for the
two primes, so both primes must lie on the same side of each number in the model.
"""

import itertools
import re
from collections.abc import Mapping, Sequence

from mlbridge.errors import Unsupported

Point = Mapping[str, int]
"""The size of each free extent, by the C name of its variable."""
# A decimal number outside of names and hexadecimal floats.
_NUMBER = re.compile(r"(?<![\w.])(\d+(?:\.0)?(?:f|[uU]?[lL]{0,2}))(?![\w.])")
_DIGITS = re.compile(r"\d+")
_MAX_DEGREE = 3
_MAX_OFFSET = 64
_LEAST_PRIME = 2003
_MOST_PRIME = 1 << 17
# An interval of this length contains enough primes for any model.
_NEAR = 256


def starts(constants: set[int]) -> list[int]:
    """Returns where to search for the primes; the first start is above all constants.

    If the last start is below some of the constants, code generated there is valid only
    up to the primes.
    """
    low = _LEAST_PRIME
    while near := [c for c in constants if low <= c <= low + _NEAR]:
        low = max(near) + 1
    high = max(constants, default=0) + 1
    return [high, low] if low < high <= _MOST_PRIME else [low]


def points(
    variables: Sequence[str], taken: set[int], start: int
) -> tuple[Point, Point]:
    """Returns two primes per variable, from `start` on, dividing no size in `taken`."""
    primes = (
        n
        for n in itertools.count(start | 1, 2)
        if all(n % d for d in range(3, int(n**0.5) + 1, 2))
        and not any(size and size % n == 0 for size in taken)
    )
    pairs = {variable: (next(primes), next(primes)) for variable in variables}
    return {v: a for v, (a, _) in pairs.items()}, {v: b for v, (_, b) in pairs.items()}


def generalise(texts: tuple[str, str], at: tuple[Point, Point]) -> str:
    """Merges the texts at two points into one text for any extents.

    They may differ only by numbers that are products of extents plus a constant.
    """
    first, second = (_NUMBER.split(text) for text in texts)
    if first[::2] != second[::2]:
        raise Unsupported("the code for two sizes of a free extent differs in form")
    return "".join(
        piece if piece == other else _expression(piece, other, at)
        for piece, other in zip(first, second, strict=True)
    )


def _expression(first: str, second: str, at: tuple[Point, Point]) -> str:
    """Returns the C expression with these values at the two points."""
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
        f"the number {first} of the code depends on a free extent by more than a "
        "product and a constant"
    )
