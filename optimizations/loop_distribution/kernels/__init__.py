# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels on which decisions about loops are measured.

``tsvc`` has the 151 patterns of the Test Suite for Vectorizing Compilers, and
``polybench`` has the 30 problems of PolyBench. Both were written for this project. Each
kernel is compiled alone and verified against -O0.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent

SUITES = ("tsvc", "polybench")

# A model is evaluated on the families of a fold, and trained on all other families.
FOLDS = (
    ("linear_dependence", "blas"),
    ("distribution", "solvers"),
    ("control_flow", "stencils"),
    ("reductions", "others"),
    ("addressing",),
)

# The kernels that divide or take square roots. These operations are slow, so decisions
# about loops hardly change the time.
HEAVY = frozenset(
    {
        *("adi", "cholesky", "correlation", "covariance", "durbin", "gramschmidt"),
        *("lu", "ludcmp", "s451", "seidel_2d", "trisolv"),
    }
)

# The kinds of memory in which the data of a kernel fit.
LEVELS = ("L1", "L2", "memory")

# For each level: the number of rows of TSVC's matrices, and the size of PolyBench's
# data by complexity (`Kernel.work`).
_ROWS = (32, 128, 2048)
_ELEMENTS = {
    "linear": (2000, 16000, 4_000_000),
    "square": (40, 120, 1200),
    "cubic": (40, 80, 240),
    "cube": (14, 32, 160),
}

_KERNEL = re.compile(
    r'^KERNEL\((\w+), "([^"]*)"(?:, (\w+))?\) \{\n.*?^\}\n', re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Kernel:
    """A loop nest.

    Attributes:
        suite: ``tsvc`` or ``polybench``.
        family: the file that contains the kernel.
        exercises: the special property of the kernel.
        work: for PolyBench, how the work grows with the size of the data, such as
            ``linear``. Otherwise an empty string.
        text: the function, with its macro.
        constants: definitions of macros, such as the number of steps.
        element: the type of TSVC's elements.
    """

    suite: str
    family: str
    name: str
    exercises: str
    work: str
    text: str
    constants: tuple[str, ...] = ()
    element: str = "float"

    @property
    def fold(self) -> int:
        """The index of the kernel's fold."""
        return next(n for n, families in enumerate(FOLDS) if self.family in families)

    @property
    def header(self) -> Path:
        """The file that declares the kernel's data."""
        return FOLDER / self.suite / f"{self.suite}.h"

    def definitions(self, level: str) -> list[str]:
        """Returns clang's flags that choose the size of the data."""
        number = LEVELS.index(level)
        if self.suite == "tsvc":
            flags = ["-DTSVC", f"-DM={_ROWS[number]}", f"-DREAL={self.element}"]
            return [*flags, *(["-DINTEGER"] if self.element[0] == "u" else [])]
        flags = [f"-DN={_ELEMENTS[self.work][number]}"]
        flags += ["-DLINEAR"] if self.work == "linear" else []
        return [*flags, *(["-DCUBE"] if self.work == "cube" else [])]

    def source(self) -> str:
        """Returns a C file with the kernel as a function named ``VARIANT``."""
        lines = [f'#include "{self.header}"', *self.constants, "#undef KERNEL"]
        lines += ["#define KERNEL(...) __attribute__((noinline)) real VARIANT(void)"]
        return "\n".join([*lines, self.text])


@cache
def kernels() -> dict[str, Kernel]:
    """Returns all kernels by name."""
    found = {}
    for suite in SUITES:
        for file in sorted((FOLDER / suite).glob("*.c")):
            code = file.read_text(encoding="utf-8")
            constants = tuple(re.findall(r"^#define .*$", code, re.MULTILINE))
            for match in _KERNEL.finditer(code):
                name, exercises, work = match.groups(default="")
                found[name] = Kernel(
                    *(suite, file.stem, name, exercises, work, match.group(), constants)
                )
    return found
