# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generates kernels with random loops, on which models are trained.

The kernels use the arrays of TSVC's kernels, but none of its patterns is copied, so
that the suites remain for the evaluation. Values stay in the range of normal numbers:
each value is a mean, a product or a difference of values up to 1, and recurrences
halve what they carry.
"""

import random
from dataclasses import dataclass, field

from mlbridge_optimizations.loop_distribution.kernels import Kernel

VECTORS = ("a", "b", "c", "d", "e")
MATRICES = ("aa", "bb", "cc")

FAMILY = "generated"


@dataclass
class _Shape:
    """A loop nest: its head, and how its arrays are indexed."""

    head: str
    weight: float
    arrays: tuple[str, ...]
    # Indices of the element of the iteration, with an offset.
    indices: tuple[str, ...]
    # Elements that other iterations of the innermost loop use, too.
    fixed: tuple[str, ...] = ()
    bodies: int = 1


_FULL = "for (int i = 4; i < N - 4; i++)"
_INNER = "for (int j = 4; j < M - 4; j++)"
_NEST = f"for (int i = 4; i < M - 4; i++)\n    {_INNER}"
_SHAPES = (
    _Shape(_FULL, 10, VECTORS, ("[i{}]",), ("a[1]", "b[2]")),
    _Shape("for (int i = N - 5; i >= 4; i--)", 1, VECTORS, ("[i{}]",)),
    _Shape("for (int i = 4; i < N - 4; i += 2)", 1, VECTORS, ("[i{}]",)),
    _Shape("for (int i = 4; i < N / 2 - 4; i++)", 1.5, VECTORS, ("[i{}]", "[2 * i{}]")),
    _Shape("for (int i = n1 + 3; i < N - 4; i += n3)", 0.5, VECTORS, ("[i{}]",)),
    _Shape("for (int i = 4; i < N - 4 - k; i++)", 0.7, VECTORS, ("[i{}]", "[i + k]")),
    _Shape(_NEST, 2, MATRICES, ("[i][j{}]", "[i][j{}]", "[i - 1][j]"), ("a[i]",)),
    _Shape(_NEST, 1.5, MATRICES, ("[j{}][i]", "[j{}][i]", "[j][i - 1]"), ("b[i]",)),
    _Shape(_NEST, 1, MATRICES, ("[i][j{}]", "[j][i]"), ("a[i]", "b[i]")),
    _Shape(
        f"for (int i = 4; i < M - 4; i++)\n    {_INNER.replace('4; j', 'i; j')}",
        *(0.7, MATRICES, ("[i][j{}]", "[j{}][i]"), ("a[i]",)),
    ),
)


@dataclass
class _Writer:
    """Writes the body of one loop."""

    draw: random.Random
    shape: _Shape
    # How likely a statement reads what another one writes.
    reuse: float
    offsets: list[int]
    lines: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    scalars: list[str] = field(default_factory=list)
    result: str = "0"

    def element(self, array: str | None = None, *, offset: int | None = None) -> str:
        if array is None:
            pool = self.shape.arrays
            if self.written and self.draw.random() < self.reuse:
                array = self.draw.choice(self.written)
            else:
                array = self.draw.choice(pool)
        index = self.draw.choice(self.shape.indices)
        if offset is None:
            offset = self.draw.choice(self.offsets)
        at = f" {'+' if offset > 0 else '-'} {abs(offset)}" if offset else ""
        return f"{array}{index.format(at)}"

    def operand(self) -> str:
        kind = self.draw.random()
        if self.scalars and kind < 0.25:
            return self.draw.choice(self.scalars)
        if kind < 0.33:
            return self.draw.choice(["s1", "s2", "t", "(real)0.3", "(real)0.7"])
        if kind < 0.36 and self.shape.fixed:
            return self.draw.choice(self.shape.fixed)
        if kind < 0.38 and self.shape.arrays is VECTORS:
            return f"{self.draw.choice('xy')}[ip[i]]"
        return self.element()

    def expression(self, terms: int) -> str:
        text = self.operand()
        for _ in range(terms):
            other = self.operand()
            text = self.draw.choices(
                [
                    f"{text} * {other}",
                    f"({text} + {other}) * (real)0.5",
                    f"({text} - {other} * {self.operand()}) * (real)0.5",
                    f"({text} + {other} * {self.operand()}) * (real)0.5",
                    f"{text} / ({other} * {other} + (real)1)",
                    f"sqrtf(fabsf({text})) * (real)0.5",
                    f"({other} > (real)0.5 ? {text} : {self.operand()})",
                ],
                [3, 3, 2, 4, 0.5, 0.3, 0.5],
            )[0]
        return text

    def terms(self) -> int:
        return self.draw.choices([0, 1, 2, 3, 5, 8], [1, 4, 4, 3, 1.5, 0.5])[0]

    def target(self) -> str:
        free = [x for x in self.shape.arrays if x not in self.written]
        array = self.draw.choice(free if free else self.shape.arrays)
        if self.draw.random() < 0.06 and self.written:
            array = self.draw.choice(self.written)
        self.written.append(array)
        return self.element(array, offset=0 if self.draw.random() < 0.85 else None)

    def assignment(self) -> None:
        target, value = self.target(), self.expression(self.terms())
        sign = self.draw.choice(["=", "=", "=", "+=", "-="])
        half = f"{target} * (real)0.5 {sign[0]} " if sign != "=" else ""
        self.lines.append(f"{target} = {half}{value};")

    def recurrence(self) -> None:
        """Carries a value from an iteration to the next one through memory."""
        target = self.target()
        array = self.written[-1]
        back = self.draw.choice([1, 1, 1, 2, 4])
        index = self.shape.indices[0]
        now, old = index.format(""), index.format(f" - {back}")
        target, carried = f"{array}{now}", f"{array}{old}"
        self.lines.append(
            f"{target} = {carried} * (real)0.5 + {self.expression(self.terms())}"
            " * (real)0.5;"
        )

    def temporary(self) -> None:
        name = f"v{len(self.lines)}"
        self.lines.append(f"real {name} = {self.expression(max(1, self.terms()))};")
        self.scalars.append(name)

    def carried(self) -> None:
        """Uses a scalar of the iteration before."""
        name = f"w{len(self.lines)}"
        self.before.append(f"real {name} = (real)0.5;")
        if self.draw.random() < 0.5:
            self.lines.append(f"{self.target()} = ({name} + {self.operand()}) * s1;")
            self.lines.append(f"{name} = {self.element()};")
        else:
            self.lines.append(
                f"{name} = {name} * (real)0.5 + {self.expression(1)} * (real)0.5;"
            )
            self.lines.append(f"{self.target()} = {name};")

    def reduction(self) -> None:
        name = f"r{len(self.lines)}"
        self.before.append(f"real {name} = (real)0;")
        value = self.expression(self.terms())
        self.lines.append(
            self.draw.choice(
                [
                    f"{name} += {value};",
                    f"if ({value} > {name}) {name} = {self.operand()};",
                ]
            )
        )
        self.result = name

    def condition(self) -> None:
        test = f"{self.operand()} {self.draw.choice('<>')} {self.operand()}"
        store = f"{self.target()} = {self.expression(self.terms())};"
        other = f"{self.target()} = {self.expression(self.terms())};"
        form = self.draw.random()
        if form < 0.5:
            self.lines.append(f"if ({test}) {store}")
        elif form < 0.75:
            self.lines.append(f"if ({test}) {{ {store} {other} }}")
        else:
            self.lines.append(f"if ({test}) {store} else {other}")

    def scatter(self) -> None:
        if self.shape.arrays is VECTORS:
            array = self.draw.choice("xy")
            self.lines.append(f"{array}[ip[i]] = {self.expression(self.terms())};")
        else:
            self.assignment()


def kernel(seed: int) -> Kernel:
    """Returns the kernel that a seed determines."""
    draw = random.Random(seed)
    shape = draw.choices(_SHAPES, [each.weight for each in _SHAPES])[0]
    offsets = draw.choice(
        [[0], [0], [0], [0, 0, 0, 1], [0, 0, -1], [0, 0, 0, 1, -1], [0, 1, -2]]
    )
    writer = _Writer(draw, shape, draw.choice([0.0, 0.1, 0.2, 0.4]), offsets)
    kinds = {
        writer.assignment: 10.0,
        writer.recurrence: draw.choice([0.0, 0.0, 0.0, 2.0, 5.0]),
        writer.temporary: draw.choice([0.0, 1.0, 3.0]),
        writer.carried: draw.choice([0.0, 0.0, 0.0, 2.0]),
        writer.reduction: draw.choice([0.0, 0.0, 0.0, 3.0]),
        writer.condition: draw.choice([0.0, 0.0, 0.0, 3.0]),
        writer.scatter: draw.choice([0.0, 0.0, 0.0, 0.0, 2.0]),
    }
    for _ in range(draw.choices([1, 2, 3, 4, 5, 6], [1.5, 3, 3, 2, 1, 0.5])[0]):
        draw.choices(list(kinds), list(kinds.values()))[0]()
    body = "\n      ".join(writer.lines)
    before = "\n  ".join(writer.before)
    name = f"g{seed}"
    text = (
        f'KERNEL({name}, "random statements") {{\n  {before}\n'
        f"  {shape.head} {{\n      {body}\n  }}\n  return {writer.result};\n}}\n"
    )
    return Kernel("tsvc", FAMILY, name, "random statements", "", text)
