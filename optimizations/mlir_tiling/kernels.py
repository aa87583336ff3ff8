# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels on which models are trained and evaluated, and their split.

A kernel is one loop nest, written as affine loops or as a `linalg.generic`. The split
is fixed: `training_kernels` draws sizes and forms, `HELD_OUT_SIZES` lists other sizes
of the same kinds, and `HELD_OUT_KINDS` lists kinds that no training kernel has.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

AFFINE, LINALG = "affine", "linalg"

NOINLINE = 'attributes {passthrough = ["noinline"]}'
"""The attribute of functions that LLVM does not inline."""

MOST_ITERATIONS, LEAST_ITERATIONS = 1 << 23, 1 << 14
"""The largest and the smallest number of iterations of a training kernel's nest."""


@dataclass(frozen=True)
class Pattern:
    """The computation of a kernel, without sizes.

    Attributes:
        kind: the kind of kernel, for which the best fixed choice is found.
        out: the index expressions of the output, such as ``("i", "j")``.
        reads: the operand and the index expressions of each read. Reads of the same
            operand make a stencil.
        body: how the reads are combined: ``product`` and ``sum`` add to the output,
            ``max`` takes the maximum with it, and ``mean`` replaces it.
        orders: the orders in which the source's loops may be written.
        ranges: for each loop, the range from which a training kernel's size is drawn.
    """

    name: str
    kind: str
    out: tuple[str, ...]
    reads: tuple[tuple[str, tuple[str, ...]], ...]
    body: str
    orders: tuple[str, ...]
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)

    @cached_property
    def loops(self) -> str:
        """The names of the loops."""
        return "".join(sorted(self.orders[0]))


def _expressions(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _pattern(
    name: str, kind: str, out: str, reads: str, body: str, orders: str, ranges: str
) -> Pattern:
    """Parses reads like ``A:i,k B:k,j``, and ranges like ``ij=4-64 k=2-8``."""
    sizes: dict[str, tuple[int, int]] = {}
    for part in ranges.split():
        loops, _, span = part.partition("=")
        low, high = map(int, span.split("-"))
        sizes |= dict.fromkeys(loops, (low, high))
    operands = []
    for read in reads.split():
        operand, _, indices = read.partition(":")
        operands.append((operand, _expressions(indices)))
    return Pattern(
        *(name, kind, _expressions(out), tuple(operands), body),
        *(tuple(orders.split()), sizes),
    )


_STAR = "A:i+1,j+1 A:i,j+1 A:i+2,j+1 A:i+1,j A:i+1,j+2"
_CUBE = (
    "A:i+1,j+1,k+1 A:i,j+1,k+1 A:i+2,j+1,k+1 A:i+1,j,k+1 A:i+1,j+2,k+1"
    " A:i+1,j+1,k A:i+1,j+1,k+2"
)
_BOX = " ".join(f"A:i+{p},j+{q}" for p in range(3) for q in range(3))

PATTERNS = {
    one.name: one
    for one in (
        _pattern(
            *("matmul-nn", "matmul", "i,j", "A:i,k B:k,j", "product"),
            *("ijk ikj jki", "ijk=16-320"),
        ),
        _pattern(
            *("matmul-nt", "matmul", "i,j", "A:i,k B:j,k", "product"),
            *("ijk jik", "ijk=16-320"),
        ),
        _pattern(
            *("matmul-tn", "matmul", "i,j", "A:k,i B:k,j", "product"),
            *("ijk kij", "ijk=16-320"),
        ),
        _pattern(
            *("bmm-nn", "batched matmul", "b,i,j", "A:b,i,k B:b,k,j", "product"),
            *("bijk", "b=2-16 ijk=8-160"),
        ),
        _pattern(
            *("bmm-nt", "batched matmul", "b,i,j", "A:b,i,k B:b,j,k", "product"),
            *("bijk", "b=2-16 ijk=8-160"),
        ),
        _pattern(
            *("bmm-mid", "batched matmul", "i,b,j", "A:i,b,k B:k,b,j", "product"),
            *("bijk ibjk", "b=2-16 ijk=8-160"),
        ),
        _pattern(
            *("conv-nchw", "convolution", "f,y,x", "A:c,y+p,x+q B:f,c,p,q", "product"),
            *("fyxcpq", "fc=2-64 yx=7-64 pq=1-5"),
        ),
        _pattern(
            *("conv-nhwc", "convolution", "y,x,f", "A:y+p,x+q,c B:p,q,c,f", "product"),
            *("yxfpqc yxpqcf", "fc=2-64 yx=7-64 pq=1-5"),
        ),
        _pattern(
            *("conv-1d", "convolution", "x,f", "A:x+q,c B:q,c,f", "product"),
            *("xfqc", "fc=4-128 x=32-512 q=3-9"),
        ),
        _pattern("star", "stencil", "i,j", _STAR, "mean", "ij ji", "ij=64-1500"),
        _pattern("box", "stencil", "i,j", _BOX, "mean", "ij ji", "ij=64-1500"),
        _pattern("cube", "stencil", "i,j,k", _CUBE, "mean", "ijk kji", "ijk=16-160"),
        _pattern("row-sum", "reduction", "i", "A:i,j", "sum", "ij ji", "ij=64-2500"),
        _pattern("column-sum", "reduction", "j", "A:i,j", "sum", "ji ij", "ij=64-2500"),
        _pattern(
            "middle-max", "reduction", "i,k", "A:i,j,k", "max", "ikj", "ijk=8-256"
        ),
        _pattern("outer-sum", "reduction", "k", "A:i,j,k", "sum", "kij", "ijk=8-256"),
        # The held-out kinds.
        _pattern(
            *("contract-abc", "contraction", "a,b,c", "A:a,c,d B:d,b", "product"),
            *("abcd",),
            "",
        ),
        _pattern(
            *("contract-ttm", "contraction", "a,b,c", "A:a,d,c B:b,d", "product"),
            *("abcd",),
            "",
        ),
        _pattern(
            *("depthwise", "depthwise convolution", "c,y,x"),
            *("A:c,y+p,x+q B:c,p,q", "product", "cyxpq", ""),
        ),
        _pattern("transpose-2d", "transposition", "j,i", "A:i,j", "mean", "ij ji", ""),
        _pattern(
            "transpose-3d", "transposition", "k,j,i", "A:i,j,k", "mean", "ijk", ""
        ),
    )
}


@dataclass(frozen=True)
class Kernel:
    """A pattern with sizes, a form, an element type and an order of the loops."""

    pattern: Pattern
    sizes: tuple[tuple[str, int], ...]
    form: str = AFFINE
    element: str = "f32"
    order: str = ""

    @property
    def name(self) -> str:
        """A name that contains all of the kernel's parameters."""
        sizes = "x".join(f"{loop}{size}" for loop, size in self.sizes)
        return f"{self.pattern.name}-{sizes}-{self.loops}-{self.form}-{self.element}"

    @staticmethod
    def trips_of(name: str) -> list[int]:
        """Returns the trip counts in the source's order, from a kernel's name."""
        *_, sizes_text, order, _, _ = name.split("-")
        sizes = {part[0]: int(part[1:]) for part in re.findall(r"[a-z]\d+", sizes_text)}
        return [sizes[loop] for loop in order]

    @property
    def loops(self) -> str:
        """The loops in the source's order, outermost first."""
        return self.order or self.pattern.orders[0]

    @property
    def iterations(self) -> int:
        """The iterations of the whole nest."""
        return prod(size for _, size in self.sizes)

    def _extent(self, expression: str) -> int:
        """Returns the largest value of an index expression, plus one."""
        sizes = {loop: size - 1 for loop, size in self.sizes}
        return 1 + sum(
            sizes[term] if term in sizes else int(term)
            for term in expression.split("+")
        )

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each operand. The output is ``O``."""
        found: dict[str, tuple[int, ...]] = {}
        for operand, indices in (*self.pattern.reads, ("O", self.pattern.out)):
            shape = tuple(self._extent(one) for one in indices)
            same = found.setdefault(operand, shape)
            found[operand] = tuple(map(max, shape, same))
        return found

    def memref(self, operand: str) -> str:
        """Returns the type of an operand."""
        shape = "x".join(map(str, self.shapes[operand]))
        return f"memref<{shape}x{self.element}>"

    @property
    def arguments(self) -> str:
        """The types of the function's arguments, by operand name."""
        return ", ".join(self.memref(operand) for operand in sorted(self.shapes))

    def function(self, name: str) -> str:
        """Returns the kernel as a function that LLVM does not inline."""
        arguments = ", ".join(
            f"%{one}: {self.memref(one)}" for one in sorted(self.shapes)
        )
        body = self._affine() if self.form == AFFINE else self._linalg()
        return f"func.func @{name}({arguments}) {NOINLINE} {{\n{body}  return\n}}\n"

    def _combine(self, reads: Sequence[str]) -> tuple[list[str], str]:
        """Returns the lines that combine the reads and %old, and the result's name."""
        kind, body, lines = self.element, self.pattern.body, []
        if body == "product":
            lines = [
                f"%product = arith.mulf {reads[0]}, {reads[1]} : {kind}",
                f"%result = arith.addf %old, %product : {kind}",
            ]
        elif body in ("sum", "max"):
            operation = "addf" if body == "sum" else "maximumf"
            lines = [f"%result = arith.{operation} %old, {reads[0]} : {kind}"]
        else:
            total = reads[0]
            for number, read in enumerate(reads[1:]):
                lines.append(f"%sum{number} = arith.addf {total}, {read} : {kind}")
                total = f"%sum{number}"
            share = 1.0 / len(reads)
            lines.append(f"%share = arith.constant {share:.6e} : {kind}")
            lines.append(f"%result = arith.mulf {total}, %share : {kind}")
        return lines, "%result"

    def _affine(self) -> str:
        sizes = dict(self.sizes)

        def access(indices: Sequence[str]) -> str:
            return ", ".join(re.sub("([a-z])", r"%\1", one) for one in indices)

        lines = [f"affine.for %{loop} = 0 to {sizes[loop]} {{" for loop in self.loops]
        reads = []
        for number, (operand, indices) in enumerate(self.pattern.reads):
            reads.append(f"%r{number}")
            lines.append(
                f"%r{number} = affine.load %{operand}[{access(indices)}]"
                f" : {self.memref(operand)}"
            )
        at = f"%O[{access(self.pattern.out)}] : {self.memref('O')}"
        if self.pattern.body != "mean":
            lines.append(f"%old = affine.load {at}")
        combined, result = self._combine(reads)
        lines += [*combined, f"affine.store {result}, {at}"]
        return "\n".join(lines) + "\n" + "}" * len(self.loops) + "\n"

    def _linalg(self) -> str:
        """Returns the body as a `linalg.generic`, if `can_be_linalg` is true."""
        dims = ", ".join(self.loops)
        used = "".join(self.pattern.out)
        maps = ", ".join(
            f"affine_map<({dims}) -> ({', '.join(indices)})>"
            for _, indices in (*self.pattern.reads, ("O", self.pattern.out))
        )
        iterators = ", ".join(
            '"parallel"' if loop in used else '"reduction"' for loop in self.loops
        )
        operands = [operand for operand, _ in self.pattern.reads]
        values = [f"%r{number}" for number in range(len(operands))]
        combined, result = self._combine(values)
        arguments = ", ".join(f"{value}: {self.element}" for value in (*values, "%old"))
        inputs = ", ".join(f"%{one}" for one in operands)
        types = ", ".join(self.memref(one) for one in operands)
        return (
            f"linalg.generic {{indexing_maps = [{maps}],"
            f" iterator_types = [{iterators}]}}"
            f" ins({inputs} : {types}) outs(%O : {self.memref('O')}) {{\n"
            f"^bb0({arguments}):\n"
            + "\n".join(combined)
            + f"\nlinalg.yield {result} : {self.element}\n}}\n"
        )


def can_be_linalg(pattern: Pattern) -> bool:
    """Returns whether each operand is read once."""
    operands = [operand for operand, _ in pattern.reads]
    return len(set(operands)) == len(operands)


def random_kernel(pattern: Pattern, draw: random.Random) -> Kernel:
    """Draws sizes, a form, an element type and an order of the loops."""
    while True:
        sizes = tuple(
            (loop, round(low * (high / low) ** draw.random()))
            for loop, (low, high) in sorted(pattern.ranges.items())
        )
        # Programs prefer multiples of 8.
        if draw.random() < 0.6:
            sizes = tuple((n, s - s % 8 if s >= 16 else s) for n, s in sizes)
        form = draw.choice([AFFINE, LINALG]) if can_be_linalg(pattern) else AFFINE
        element = draw.choice(["f32", "f32", "f64"])
        kernel = Kernel(pattern, sizes, form, element, draw.choice(pattern.orders))
        if LEAST_ITERATIONS <= kernel.iterations <= MOST_ITERATIONS:
            return kernel


def training_kernels(count: int, seed: int = 0) -> list[Kernel]:
    """Returns kernels of the training kinds, alternating between the patterns.

    No kernel has the sizes of a held-out kernel.
    """
    draw = random.Random(seed)
    patterns = [one for one in PATTERNS.values() if one.ranges]
    held_out = {(one.pattern.name, one.sizes) for one in HELD_OUT_SIZES}
    found: list[Kernel] = []
    while len(found) < count:
        kernel = random_kernel(patterns[len(found) % len(patterns)], draw)
        if (kernel.pattern.name, kernel.sizes) not in held_out:
            found.append(kernel)
    return found


def _held_out(text: str) -> list[Kernel]:
    """Parses lines such as ``matmul-nn i=96 j=80 k=112 : ijk affine f32``."""
    found = []
    for line in text.strip().splitlines():
        sizes_text, _, rest = line.partition(":")
        name, *sizes = sizes_text.split()
        order, form, element = rest.split()
        pairs = (size.split("=") for size in sizes)
        kernel_sizes = tuple(sorted((loop, int(size)) for loop, size in pairs))
        found.append(Kernel(PATTERNS[name], kernel_sizes, form, element, order))
    return found


HELD_OUT_SIZES = _held_out("""
matmul-nn i=72 j=72 k=72 : ijk affine f32
matmul-nn i=200 j=200 k=200 : ijk affine f32
matmul-nn i=384 j=384 k=96 : ijk linalg f64
matmul-nn i=50 j=300 k=410 : jki affine f32
matmul-nt i=136 j=136 k=136 : ijk affine f32
matmul-nt i=350 j=48 k=240 : jik linalg f32
matmul-tn i=168 j=168 k=168 : ijk affine f64
matmul-tn i=33 j=500 k=250 : kij linalg f32
bmm-nn b=4 i=100 j=100 k=100 : bijk affine f32
bmm-nn b=24 i=40 j=72 k=56 : bijk linalg f32
bmm-nt b=12 i=64 j=64 k=64 : bijk affine f32
bmm-nt b=3 i=120 j=200 k=50 : bijk linalg f64
bmm-mid b=8 i=88 j=88 k=88 : bijk affine f32
bmm-mid b=20 i=36 j=100 k=60 : ibjk linalg f32
conv-nchw c=12 f=24 p=3 q=3 x=40 y=40 : fyxcpq affine f32
conv-nchw c=48 f=40 p=3 q=3 x=14 y=14 : fyxcpq linalg f32
conv-nchw c=3 f=32 p=5 q=5 x=56 y=56 : fyxcpq affine f64
conv-nhwc c=12 f=24 p=3 q=3 x=40 y=40 : yxfpqc affine f32
conv-nhwc c=48 f=40 p=3 q=3 x=14 y=14 : yxpqcf linalg f32
conv-nhwc c=80 f=56 p=1 q=1 x=30 y=30 : yxfpqc linalg f32
conv-1d c=40 f=72 q=5 x=300 : xfqc affine f32
conv-1d c=96 f=20 q=7 x=160 : xfqc linalg f64
star i=1000 j=1000 : ij affine f32
star i=720 j=1400 : ji affine f64
box i=900 j=900 : ji affine f32
box i=400 j=1800 : ij affine f32
cube i=100 j=100 k=100 : ijk affine f32
cube i=140 j=60 k=200 : kji affine f64
row-sum i=1200 j=1200 : ij affine f32
row-sum i=1900 j=600 : ji affine f64
column-sum i=1200 j=1200 : ji affine f32
column-sum i=500 j=2800 : ij linalg f32
middle-max i=100 j=180 k=90 : ikj affine f32
middle-max i=20 j=300 k=300 : ikj linalg f64
outer-sum i=120 j=110 k=140 : kij affine f32
outer-sum i=30 j=60 k=900 : kij linalg f32
""")

HELD_OUT_KINDS = _held_out("""
contract-abc a=24 b=60 c=30 d=50 : abcd affine f32
contract-abc a=64 b=32 c=48 d=40 : abcd linalg f64
contract-abc a=10 b=150 c=20 d=130 : abcd affine f32
contract-ttm a=24 b=60 c=30 d=50 : abcd affine f32
contract-ttm a=50 b=32 c=64 d=36 : abcd linalg f32
contract-ttm a=8 b=100 c=140 d=40 : abcd affine f64
depthwise c=32 p=3 q=3 x=56 y=56 : cyxpq affine f32
depthwise c=96 p=5 q=5 x=28 y=28 : cyxpq linalg f32
depthwise c=64 p=3 q=3 x=112 y=20 : cyxpq affine f64
transpose-2d i=1024 j=1024 : ij affine f32
transpose-2d i=600 j=1700 : ji linalg f64
transpose-3d i=100 j=100 k=100 : ijk affine f32
transpose-3d i=40 j=300 k=80 : ijk linalg f64
""")
