# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generalises generated C code from fixed extents to free extents.

emx-onnx-cgen supports few operators with free extents, and miscompiles some of them.
Therefore, each free extent n is replaced by a prime, and the code is generated twice,
with two different primes. A number that differs between the two texts depends on n.
`_expression` finds a product of extents plus a constant that equals the number in both
texts. `check` later tests the result at other sizes.

The generator may compare n with a constant of the model, for example to slice the first
5000 elements. Then either both primes must be above the constant, or both must be below
it.
"""

import itertools
import re
from collections.abc import Mapping, Sequence

from mlbridge.errors import Unsupported

Point = Mapping[str, int]
"""Maps the C variable of each free extent to a size."""
# Matches a decimal number that is not part of a name or a hexadecimal float.
_NUMBER = re.compile(r"(?<![\w.])(\d+(?:\.0)?(?:f|[uU]?[lL]{0,2}))(?![\w.])")
_DIGITS = re.compile(r"\d+")
_MAX_DEGREE = 3
_MAX_OFFSET = 64
_LEAST_PRIME = 2003
_MOST_PRIME = 1 << 17
# The length of an interval that contains the primes of a free extent.
_NEAR = 160


def starts(constants: set[int], extents: int) -> list[int]:
    """Returns the numbers at which a search for primes may start, best first.

    `extents` is the number of extents for which the search must find primes.

    Code that is generated with primes above the first start is valid for all sizes,
    because this start is above all constants. Code from another start is valid only for
    sizes up to the primes.
    """
    low = _LEAST_PRIME
    while near := [c for c in constants if low <= c <= low + _NEAR * extents]:
        low = max(near) + 1
    high = max(constants, default=0) + 1
    return [high, low] if low < high <= _MOST_PRIME else [low]


def points(
    variables: Sequence[str], taken: set[int], start: int
) -> tuple[Point, Point]:
    """Returns two primes >= `start` for each variable. No prime divides a `taken` size.

    The primes of two variables differ by more than the largest constant that
    `_expression` tries, so a number cannot be attributed to the wrong variable.
    """
    first: dict[str, int] = {}
    second: dict[str, int] = {}
    primes = (
        n
        for n in itertools.count(start | 1, 2)
        if all(n % d for d in range(3, int(n**0.5) + 1, 2))
        and not any(size and size % n == 0 for size in taken)
    )
    least = start
    for variable in variables:
        first[variable] = next(n for n in primes if n >= least)
        second[variable] = next(primes)
        least = second[variable] + _MAX_OFFSET + 1
    return first, second


def generalise(texts: tuple[str, str], at: tuple[Point, Point]) -> str:
    """Merges the code for two points into code for any extents.

    The texts may differ only in numbers that are products of extents plus a constant.
    """
    first, second = (_NUMBER.split(text) for text in texts)
    if first[::2] != second[::2]:
        raise Unsupported("the code for two sizes of a free extent differs in form")
    return "".join(
        piece if piece == other else _expression(piece, other, at)
        for piece, other in zip(first, second, strict=True)
    )


def _expression(first: str, second: str, at: tuple[Point, Point]) -> str:
    """Returns a C expression that equals `first` at point 0 and `second` at point 1."""
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
