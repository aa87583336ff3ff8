# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generates kernels with random loops, on which models are trained.

The kernels use TSVC's arrays but none of its loops, because TSVC is for the evaluation.
Except in reductions, sums and differences are halved, so that floating-point values
stay bounded. Integers wrap.
"""

import random
import re
from dataclasses import dataclass, field

from mlbridge_optimizations.loop_distribution.kernels import Kernel

VECTORS = ("a", "b", "c", "d", "e")
MATRICES = ("aa", "bb", "cc")
ELEMENTS = {"float": 5.0, "double": 2.5, "uint32_t": 1.5, "uint8_t": 1.0}

FAMILY = "generated"

_FLOATING = ("#define HALF(x) ((x) * (real)0.5)", "#define NUMBER(x) ((real)(x))")
_INTEGER = (
    "#define HALF(x) ((real)((x) >> 1))",
    "#define NUMBER(x) ((real)(100 * (x)))",
)


@dataclass(frozen=True)
class _Shape:
    """A loop nest.

    Attributes:
        outer: the heads of the outer loops.
        inner: the head of the innermost loop, whose variable is `variable`.
        indices: indices of elements, with a placeholder for an offset.
        fixed: elements that each iteration of the innermost loop uses.
    """

    weight: float
    inner: str
    arrays: tuple[str, ...]
    indices: tuple[str, ...]
    outer: str = ""
    fixed: tuple[str, ...] = ()
    variable: str = "i"


def _nest(weight: float, *indices: str, fixed: tuple[str, ...] = ("a[i]",)) -> _Shape:
    inner, outer = "for (int j = 4; j < M - 4; j++)", "for (int i = 4; i < M - 4; i++)"
    return _Shape(weight, inner, MATRICES, indices, outer, fixed, "j")


_SHAPES = (
    _Shape(9, "for (int i = 4; i < N - 4; i++)", VECTORS, ("[i{}]",), "", ("a[1]",)),
    _Shape(1, "for (int i = N - 5; i >= 4; i--)", VECTORS, ("[i{}]",)),
    _Shape(1, "for (int i = 4; i < N - 4; i += 2)", VECTORS, ("[i{}]",)),
    _Shape(
        *(1.5, "for (int i = 4; i < N / 2 - 4; i++)", VECTORS),
        ("[i{}]", "[2 * i{}]"),
    ),
    _Shape(0.5, "for (int i = n1 + 3; i < N - 4; i += n3)", VECTORS, ("[i{}]",)),
    _Shape(0.7, "for (int i = 4; i < N - 4 - k; i++)", VECTORS, ("[i{}]", "[i + k]")),
    _nest(3, "[i][j{}]", "[i][j{}]", "[i - 1][j]"),
    _nest(2, "[j{}][i]", "[j{}][i]", "[j][i - 1]", fixed=("b[i]",)),
    _nest(1.5, "[i][j{}]", "[j][i]", fixed=("a[i]", "b[i]", "aa[i][4]")),
    _Shape(
        *(0.7, "for (int j = 4; j < i; j++)", MATRICES, ("[i][j{}]", "[j{}][i]")),
        *("for (int i = 5; i < M - 4; i++)", ("a[i]",), "j"),
    ),
)


@dataclass
class _Writer:
    """Writes the body of one loop."""

    draw: random.Random
    shape: _Shape
    is_integer: bool
    # The probability that a statement reads an element that another statement writes.
    reuse: float
    offsets: list[int]
    lines: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    scalars: list[str] = field(default_factory=list)

    def element(self, array: str | None = None, *, offset: int | None = None) -> str:
        if array is None:
            pool = self.shape.arrays
            if self.written and self.draw.random() < self.reuse:
                pool = tuple(self.written)
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
            return self.draw.choice(["s1", "s2", "t", "NUMBER(0.3)", "NUMBER(0.7)"])
        if kind < 0.38 and self.shape.fixed:
            return self.draw.choice(self.shape.fixed)
        if kind < 0.40 and self.shape.arrays is VECTORS:
            return f"{self.draw.choice('xy')}[ip[i]]"
        return self.element()

    def expression(self, terms: int) -> str:
        text = self.operand()
        for _ in range(terms):
            other, third = self.operand(), self.operand()
            forms = {
                f"{text} * {other}": 3.0,
                f"HALF({text} + {other})": 3.0,
                f"HALF({text} - {other} * {third})": 2.0,
                f"HALF({text} + {other} * {third})": 4.0,
                f"({other} > NUMBER(0.5) ? {text} : {third})": 0.5,
            }
            if self.is_integer:
                forms |= {f"({text} ^ {other})": 2.0, f"({text} & {other})": 1.0}
            else:
                forms |= {
                    f"{text} / ({other} * {other} + (real)1)": 0.5,
                    f"HALF(sqrt(fabs({text})))": 0.3,
                }
            text = self.draw.choices(list(forms), list(forms.values()))[0]
        return f"(real)({text})" if self.is_integer else text

    def terms(self) -> int:
        return self.draw.choices([0, 1, 2, 3, 5, 8], [1, 4, 4, 3, 1.5, 0.5])[0]

    def target(self) -> str:
        free = [x for x in self.shape.arrays if x not in self.written]
        array = self.draw.choice(free if free else self.shape.arrays)
        if self.draw.random() < 0.06 and self.written:
            array = self.draw.choice(self.written)
        self.written.append(array)
        return self.element(array, offset=0 if self.draw.random() < 0.9 else None)

    def assignment(self) -> None:
        target, value = self.target(), self.expression(self.terms())
        sign = self.draw.choice(["", "", "", "+", "-"])
        self.lines.append(
            f"{target} = HALF({target} {sign} {value});"
            if sign
            else f"{target} = {value};"
        )

    def recurrence(self) -> None:
        """Carries a value from an iteration to a later one through memory."""
        self.target()
        array, index = self.written[-1], self.shape.indices[0]
        back = self.draw.choice([1, 1, 1, 2, 4])
        now, old = index.format(""), index.format(f" - {back}")
        value = self.expression(self.terms())
        self.lines.append(f"{array}{now} = HALF({array}{old} + {value});")

    def temporary(self) -> None:
        name = f"v{len(self.lines)}"
        self.lines.append(f"real {name} = {self.expression(max(1, self.terms()))};")
        self.scalars.append(name)

    def carried(self) -> None:
        """Uses a scalar of the previous iteration."""
        name = f"w{len(self.lines)}"
        self.before.append(f"real {name} = NUMBER(0.5);")
        if self.draw.random() < 0.5:
            self.lines.append(f"{self.target()} = HALF({name} + {self.operand()});")
            self.lines.append(f"{name} = {self.element()};")
        else:
            self.lines.append(f"{name} = HALF({name} + {self.expression(1)});")
            self.lines.append(f"{self.target()} = {name};")

    def reduction(self) -> None:
        name = f"r{len(self.lines)}"
        self.before.append(f"real {name} = 0;")
        value = self.expression(self.terms())
        form = self.draw.choice(["sum", "sum", "difference", "maximum"])
        if form == "maximum":
            self.lines.append(f"if ({value} > {name}) {name} = {self.operand()};")
        else:
            self.lines.append(f"{name} {'+' if form == 'sum' else '-'}= {value};")
        place = "d[i]" if self.shape.outer else "d[1]"
        self.after.append(f"{place} = {name};")

    def condition(self) -> None:
        test = f"{self.operand()} {self.draw.choice('<>')} {self.operand()}"
        store = f"{self.target()} = {self.expression(self.terms())};"
        other = f"{self.target()} = {self.expression(self.terms())};"
        form = self.draw.choice(
            ["if (%s) %s", "if (%s) %s", "if (%s) { %s %s }", "if (%s) %s else %s"]
        )
        self.lines.append(form % (test, store, other)[: form.count("%s")])

    def scatter(self) -> None:
        value = self.expression(self.terms())
        if self.shape.arrays is VECTORS:
            self.lines.append(f"{self.draw.choice('xy')}[ip[i]] = {value};")
        else:
            self.lines.append(f"{self.target()} = {value};")

    def unroll(self, times: int) -> str:
        """Repeats the body, as in loops unrolled by hand. Returns the new head."""
        body = " ".join(self.lines)
        variable = self.shape.variable
        self.lines = [
            "{ " + re.sub(rf"\b{variable}\b", f"({variable} + {k})", body) + " }"
            for k in range(times)
        ]
        head = self.shape.inner.replace("- 4;", f"- {times + 4};")
        return head.replace(f"{variable}++", f"{variable} += {times}")


def kernel(seed: int) -> Kernel:
    """Returns the kernel that a seed determines."""
    draw = random.Random(seed)
    shape = draw.choices(_SHAPES, [each.weight for each in _SHAPES])[0]
    element = draw.choices(list(ELEMENTS), list(ELEMENTS.values()))[0]
    offsets = [[0], [0], [0], [0, 0, 0, 1], [0, 0, -1], [0, 0, 0, 1, -1], [0, 1, -2]]
    is_integer = element[0] == "u"
    reuse = draw.choice([0.0, 0.1, 0.2, 0.4])
    writer = _Writer(draw, shape, is_integer, reuse, draw.choice(offsets))
    kinds = {
        writer.assignment: 10.0,
        writer.recurrence: draw.choice([0.0, 0.0, 0.0, 2.0, 5.0]),
        writer.temporary: draw.choice([0.0, 1.0, 3.0]),
        writer.carried: draw.choice([0.0, 0.0, 0.0, 2.0]),
        writer.reduction: draw.choice([0.0, 0.0, 3.0, 20.0]),
        writer.condition: draw.choice([0.0, 0.0, 0.0, 3.0]),
        writer.scatter: draw.choice([0.0, 0.0, 0.0, 0.0, 2.0]),
    }
    for _ in range(draw.choices([1, 2, 3, 4, 5, 6], [2, 3, 3, 2, 1, 0.5])[0]):
        draw.choices(list(kinds), list(kinds.values()))[0]()
    head = shape.inner
    if len(writer.lines) < 3 and "++" in head and draw.random() < 0.25:
        head = writer.unroll(draw.choice([2, 3, 4, 5]))
    lines = [*writer.before, f"{head} {{", *writer.lines, "}", *writer.after]
    if shape.outer:
        lines = [f"{shape.outer} {{", *lines, "}"]
    name, about = f"g{seed}", "random statements"
    body = "\n  ".join([*lines, "return 0;"])
    text = f'KERNEL({name}, "{about}") {{\n  {body}\n}}\n'
    constants = _INTEGER if is_integer else _FLOATING
    return Kernel("tsvc", FAMILY, name, about, "", text, constants, element)
