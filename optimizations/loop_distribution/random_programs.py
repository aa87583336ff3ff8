# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generates C programs with random loops, to test transformations of loops.

A program runs its loops on overlapping and on separate arrays, with 0, 1, odd and even
numbers of iterations, and prints a hash of all memory after each function. Arithmetic
cannot overflow, and no result depends on the order of evaluation.
"""

import random
from dataclasses import dataclass

# The number of elements of the buffer that contains all arrays of a function.
BUFFER = 1024
# The longest loop, and the largest offset of an index.
LONGEST, OFFSET = 100, 4

_HEAD = """#include <stdint.h>
#include <stdio.h>
#include <string.h>
#define N {longest}
static uint64_t state = {seed}u;
static unsigned draw(void) {{
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 40);
}}
static uint64_t hash(const void *p, size_t n) {{
  uint64_t h = 1469598103934665603u;
  for (size_t i = 0; i < n; ++i)
    h = (h ^ ((const unsigned char *)p)[i]) * 1099511628211u;
  return h;
}}
static int ix[{buffer}];
"""

_CALL = """  for (unsigned run = 0; run < {runs}; ++run) {{
    static const int sizes[] = {{0, 1, 2, 3, 5, 8, 17, 33, 64, {longest}}};
    static const int gaps[] = {{200, 1, 0, 7, 64, 3}};
    fill_{type}();
    int n = sizes[run % 10], gap = gaps[run % 6];
    {type} *p = buffer_{type} + {offset};
    {type} r = {name}(p, p + gap, p + 2 * gap, p + 3 * gap, n);
    printf("{name} %u %llx %llx\\n", run,
           (unsigned long long)hash(buffer_{type}, sizeof buffer_{type}),
           (unsigned long long)hash(&r, sizeof r));
  }}
"""

_BUFFER = """static {type} buffer_{type}[{buffer}];
__attribute__((noinline)) static void fill_{type}(void) {{
  for (int i = 0; i < {buffer}; ++i) {{
    buffer_{type}[i] = {value};
    ix[i] = draw() % {longest};
  }}
}}
"""

_FILL = {
    "float": "(float)(draw() % 1000) / 1000",
    "double": "(double)(draw() % 1000) / 1000",
}


@dataclass
class _Writer:
    """Writes one function."""

    draw: random.Random
    type: str

    def number(self) -> str:
        if self.type in _FILL:
            return f"({self.type}){self.draw.randint(1, 9)} / 16"
        return f"({self.type}){self.draw.randint(1, 99)}"

    def index(self, step: int) -> str:
        offset = self.draw.randint(-OFFSET, OFFSET)
        at = "i" if step == 1 else f"{step} * i"
        return f"{at} {'-' if offset < 0 else '+'} {abs(offset)}"

    def element(self) -> str:
        array = self.draw.choice("abcd")
        kind = self.draw.random()
        if kind < 0.08:
            return f"{array}[ix[i]]"
        if kind < 0.12:
            return f"{array}[{self.draw.randint(0, 9)}]"
        return f"{array}[{self.index(2 if kind > 0.92 else 1)}]"

    def operand(self, names: list[str]) -> str:
        kind = self.draw.random()
        if names and kind < 0.4:
            return self.draw.choice(names)
        if kind < 0.5:
            return self.number()
        return self.element()

    def expression(self, names: list[str]) -> str:
        """Returns an expression whose value is bounded if its operands are bounded."""
        first, second = self.operand(names), self.operand(names)
        if self.type in _FILL:
            # The factor 0.5 keeps sums and differences in the range of the operands.
            return self.draw.choice(
                [
                    f"{first} * ({self.type})0.5 + {second} * ({self.type})0.5",
                    f"({first} - {second}) * ({self.type})0.5",
                    f"{first} * {second}",
                    f"({first} > {second} ? {first} : {self.number()})",
                ]
            )
        return self.draw.choice(
            [
                f"({self.type})({first} + {second})",
                f"({self.type})({first} - {second} * 3u)",
                f"({self.type})({first} ^ {second})",
                f"({self.type})({first} > {second} ? {first} : {second})",
            ]
        )

    def statement(self, number: int, names: list[str]) -> str:
        kind = self.draw.random()
        value = self.expression(names)
        if kind < 0.25:
            names.append(f"t{number}")
            return f"{self.type} t{number} = {value};"
        if kind < 0.3:
            half = f" * ({self.type})0.5" if self.type in _FILL else ""
            return f"s = ({self.type})(s{half} + {value}{half});"
        if kind < 0.37:
            return f"{self.element()} = last; last = {value};"
        target = self.element()
        if kind < 0.52:
            condition = f"{self.operand(names)} > {self.operand(names)}"
            other = (
                f" else {self.element()} = {self.expression(names)};"
                if self.draw.random() < 0.3
                else ""
            )
            return f"if ({condition}) {target} = {value};{other}"
        return f"{target} = {value};"

    def function(self, name: str) -> str:
        restrict = self.draw.choice(["", "", "restrict "])
        bound = self.draw.choice(["n", "n", "N", "16"])
        step = self.draw.choice([1, 1, 1, 1, 2])
        begin = self.draw.choice([0, 0, 1])
        names: list[str] = []
        body = [
            self.statement(number, names) for number in range(self.draw.randint(2, 6))
        ]
        lines = "\n    ".join(body)
        arrays = ", ".join(f"{self.type} *{restrict}{a}" for a in "abcd")
        loop = f"for (int i = {begin}; i < {bound}; i += {step}) {{\n    {lines}\n  }}"
        if self.draw.random() < 0.2:
            loop = f"for (int j = 0; j < 3; ++j)\n  {loop}"
        return (
            f"__attribute__((noinline)) static {self.type} {name}({arrays}, int n) {{\n"
            f"  {self.type} s = 0, last = {self.number()};\n  {loop}\n"
            f"  return s{' * ' if self.type in _FILL else ' ^ '}last;\n}}\n"
        )


def program(seed: int, functions: int = 40, runs: int = 30) -> str:
    """Returns the source of a program that the seed determines."""
    draw = random.Random(seed)
    parts = [_HEAD.format(longest=LONGEST, seed=seed + 1, buffer=BUFFER)]
    calls, used = [], []
    for number in range(functions):
        kind = draw.choice(["float", "double", "uint32_t", "uint16_t", "uint8_t"])
        writer = _Writer(draw, kind)
        name = f"f{number}"
        text = writer.function(name)
        if "restrict" in text:
            # Separate the arrays, because restrict does not allow them to overlap.
            call = _CALL.replace(
                "{{200, 1, 0, 7, 64, 3}}", "{{230, 230, 230, 230, 230, 230}}"
            )
        else:
            call = _CALL
        if kind not in used:
            used.append(kind)
            parts.append(
                _BUFFER.format(
                    type=kind,
                    buffer=BUFFER,
                    longest=LONGEST,
                    value=_FILL.get(kind, f"({kind})draw()"),
                )
            )
        parts.append(text)
        calls.append(
            call.format(
                name=name,
                type=kind,
                runs=runs,
                buffer=BUFFER,
                longest=LONGEST,
                offset=2 * OFFSET,
            )
        )
    parts.append("int main(void) {\n" + "".join(calls) + "  return 0;\n}\n")
    return "\n".join(parts)
