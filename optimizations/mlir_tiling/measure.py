# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs variants of a kernel with the stock mlir-opt and mlir-runner.

All variants are functions of one program. The program runs them alternately, measures
their CPU time without the JIT, and compares all elements of their results with the
results of the source kernel.
"""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mlbridge
from mlbridge.errors import ModelError, OSFailure
from mlbridge_optimizations.corpus import toolchain

from .kernels import NOINLINE, Kernel

OPT, RUNNER = "mlir-opt-22", "mlir-runner-22"
SECONDS = 120.0
"""The time limit of one run of a compiler or of a program."""

LOWERING = (
    "func.func(convert-linalg-to-affine-loops),lower-affine,convert-scf-to-cf,"
    "convert-to-llvm,reconcile-unrealized-casts"
)
"""The passes from loops to LLVM's dialect, without MLIR's optimisations."""

NANOSECONDS_OF_A_CLOCK, NANOSECONDS_OF_A_SAMPLE = 1000, 300_000
"""The unit of `clock`, and the least time of a sample. Shorter kernels are called
several times for a sample."""

Features = dict[str, NDArray[Any]]
Answer = Callable[[Features], NDArray[np.int64]]


@dataclass(frozen=True)
class Measured:
    """The times of variants.

    Attributes:
        nanoseconds: float64 [rounds, variants].
        differences: int64 [variants], the number of elements that differ from the first
            variant's.
    """

    nanoseconds: NDArray[np.float64]
    differences: NDArray[np.int64]

    def ratio(self, variant: int) -> float:
        """Returns the median of a variant's time relative to the first variant's."""
        return float(np.median(self.nanoseconds[:, variant] / self.nanoseconds[:, 0]))

    def shortest(self) -> NDArray[np.float64]:
        """Returns the shortest time of each variant relative to the first variant's.

        Few rounds suffice, because other programs only lengthen times.
        """
        least = self.nanoseconds.min(axis=0)
        return np.asarray(least / least[0])


@cache
def runtime() -> Path:
    """Returns MLIR's library with the functions that print numbers."""
    program = shutil.which(RUNNER)
    if program is None or shutil.which(OPT) is None:
        raise OSFailure(f"{OPT} or {RUNNER} is missing; install mlir-22-tools (Debian)")
    folder = Path(program).resolve().parents[1] / "lib"
    return folder / "libmlir_c_runner_utils.so"


def run(command: Sequence[str | Path], text: str) -> str:
    """Runs a program and returns its output. See `toolchain.run` for errors."""
    return toolchain.run(command, text=text, seconds=SECONDS)[0].decode()


def tile(
    plugin: Path, text: str, spec: str, *options: str, may_fail: bool = False
) -> str:
    """Runs the plug-in's pass on a module, and returns the module's functions.

    If the model fails, raises ModelError or, with `may_fail`, returns nests as they
    are.
    """
    passes = f"builtin.module(func.func(mlbridge-tile{{model={spec}}}))"
    command = [OPT, f"--load-pass-plugin={plugin}", f"--pass-pipeline={passes}"]
    command += ["--mlir-print-local-scope", *options]
    printed, said = toolchain.run(command, text=text, seconds=SECONDS)
    if b"mlbridge-tile: " in said and not may_fail:
        raise ModelError(said.decode(errors="replace").strip()[:2000])
    module = printed.decode()
    return module[module.index("{") + 1 : module.rindex("}")]


def tile_with(
    plugin: Path, text: str, answer: Answer, *, may_fail: bool = False
) -> str:
    """Applies the pass, in which a Python function decides about each nest in turn.

    With `may_fail`, an illegal choice leaves this nest and all later ones as they are.
    Otherwise, it raises ModelError.
    """
    failures: list[BaseException] = []

    def policy(features: Features) -> NDArray[np.int64]:
        try:
            return answer(features)
        except BaseException as error:
            failures.append(error)
            raise

    with tempfile.TemporaryDirectory(prefix="mlb") as folder:
        spec = f"shm:{folder}/m"
        with mlbridge.serving(policy, spec):
            options = ("--mlir-disable-threading",)
            try:
                return tile(plugin, text, spec, *options, may_fail=may_fail)
            finally:
                if failures:
                    raise failures[0]


def features_of(plugin: Path, kernel: Kernel) -> Features:
    """Returns the features that a model receives for a kernel's nest."""
    seen: list[Features] = []

    def answer(features: Features) -> NDArray[np.int64]:
        seen.append({name: np.array(value) for name, value in features.items()})
        return np.array(features["choices"][0], np.int64)

    tile_with(plugin, kernel.function("kernel"), answer)
    if len(seen) != 1:
        raise ModelError(f"{kernel.name}: expected one nest, found {len(seen)}")
    return seen[0]


def apply_choices(
    plugin: Path, kernel: Kernel, choices: Sequence[NDArray[np.int64]]
) -> str:
    """Returns functions ``v0``, ``v1``, ..., each a kernel with one of the choices."""
    rows = iter(choices)
    text = "".join(kernel.function(f"v{number}") for number in range(len(choices)))
    return tile_with(plugin, text, lambda features: next(rows))


def _fill(kernel: Kernel, operand: str, value: str) -> str:
    """Returns loops that set all elements of a buffer."""
    shape = kernel.shapes[operand]
    dims = [f"%d{number}" for number in range(len(shape))]
    loops = "".join(
        f"affine.for {dim} = 0 to {size} {{\n"
        for dim, size in zip(dims, shape, strict=True)
    )
    if value == "index":
        total = " + ".join(f"{3 * n + 5} * d{n}" for n in range(len(dims)))
        names = ", ".join(f"d{n}" for n in range(len(dims)))
        made = (
            f"%i = affine.apply affine_map<({names}) -> (({total}) mod 17 - 8)>"
            f"({', '.join(dims)})\n%j = arith.index_cast %i : index to i64\n"
            f"%x = arith.sitofp %j : i64 to {kernel.element}\n"
        )
    else:
        made = f"%x = arith.constant {value} : {kernel.element}\n"
    at = f"%{operand}[{', '.join(dims)}] : {kernel.memref(operand)}"
    return f"{loops}{made}affine.store %x, {at}\n{'}' * len(dims)}\n"


def _helpers(kernel: Kernel) -> str:
    """Returns functions that set an output to 0 and compare two outputs.

    LLVM must not inline them into ``main``. Otherwise, compilation would take longer,
    and LLVM 22's InstCombine would not end for some kernels.
    """
    shape, memref = kernel.shapes["O"], kernel.memref("O")
    dims = [f"%d{number}" for number in range(len(shape))]
    at = f"[{', '.join(dims)}] : {memref}"
    loops = "".join(
        f"affine.for {dim} = 0 to {size} {{\n"
        for dim, size in zip(dims, shape, strict=True)
    )
    return (
        f"func.func @zero(%O: {memref}) {NOINLINE} {{\n{_fill(kernel, 'O', '0.0')}"
        "return\n}\n"
        f"func.func @difference(%a: {memref}, %b: {memref}, %n: memref<i64>)"
        f" {NOINLINE} {{\n%z = arith.constant 0 : i64\n"
        f"affine.store %z, %n[] : memref<i64>\n"
        f"{loops}%x = affine.load %a{at}\n%y = affine.load %b{at}\n"
        f"%c = arith.cmpf une, %x, %y : {kernel.element}\n"
        "%e = arith.extui %c : i1 to i64\n%m = affine.load %n[] : memref<i64>\n"
        f"%s = arith.addi %m, %e : i64\naffine.store %s, %n[] : memref<i64>\n"
        f"{'}' * len(dims)}\nreturn\n}}\n"
    )


def _main(kernel: Kernel, variants: int, rounds: int, calls: int) -> str:
    """Returns the function ``main``, which prints times and then differences."""
    operands = sorted(kernel.shapes)
    memref, inputs = kernel.memref("O"), [o for o in operands if o != "O"]
    given = ", ".join(f"%{one}" for one in operands)
    lines = [f"%{one} = memref.alloc() : {kernel.memref(one)}" for one in operands]
    lines += [_fill(kernel, one, "index") for one in inputs]
    lines += [
        f"func.call @zero(%O) : ({memref}) -> ()",
        f"%ref = memref.alloc() : {memref}",
        "%n = memref.alloc() : memref<i64>",
        "%c0 = arith.constant 0 : index",
        "%c1 = arith.constant 1 : index",
        f"%rounds = arith.constant {rounds} : index",
        f"%calls = arith.constant {calls} : index",
        # The first round fills the caches, so its times are dropped.
        "scf.for %round = %c0 to %rounds step %c1 {",
    ]
    for number in range(variants):
        lines.append(
            f"%a{number} = func.call @clock() : () -> i64\n"
            "scf.for %call = %c0 to %calls step %c1 {\n"
            f"func.call @v{number}({given}) : ({kernel.arguments}) -> ()\n}}\n"
            f"%b{number} = func.call @clock() : () -> i64\n"
            f"%t{number} = arith.subi %b{number}, %a{number} : i64\n"
            f"func.call @printI64(%t{number}) : (i64) -> ()\n"
            "func.call @printNewline() : () -> ()"
        )
    lines.append("}")
    for number in range(variants):
        lines += [
            f"func.call @zero(%O) : ({memref}) -> ()",
            f"func.call @v{number}({given}) : ({kernel.arguments}) -> ()",
        ]
        if number == 0:
            lines.append(f"memref.copy %O, %ref : {memref} to {memref}")
        lines.append(
            f"func.call @difference(%O, %ref, %n) : ({memref}, {memref}, memref<i64>)"
            f" -> ()\n%s{number} = affine.load %n[] : memref<i64>\n"
            f"func.call @printI64(%s{number}) : (i64) -> ()\n"
            "func.call @printNewline() : () -> ()"
        )
    return "func.func @main() {\n" + "\n".join(lines) + "\nreturn\n}\n"


_DECLARATIONS = """
func.func private @clock() -> i64
func.func private @printI64(i64)
func.func private @printNewline()
"""


def calls_of(kernel: Kernel, nanoseconds: float = 0.0) -> int:
    """Returns how often a kernel is called for one sample."""
    expected = nanoseconds or 0.5 * kernel.iterations
    return max(1, round(NANOSECONDS_OF_A_SAMPLE / expected))


def measure(
    kernel: Kernel, functions: str, variants: int, *, rounds: int, calls: int = 0
) -> Measured:
    """Runs the functions ``v0``, ``v1``, ... alternately."""
    calls = calls or calls_of(kernel)
    main = _main(kernel, variants, rounds + 1, calls)
    text = functions + _DECLARATIONS + _helpers(kernel) + main
    lowered = run([OPT, f"--pass-pipeline=builtin.module({LOWERING})"], text)
    printed = run(
        [
            *(RUNNER, "-O3", "-e", "main", "--entry-point-result=void"),
            f"--shared-libs={runtime()}",
        ],
        lowered,
    )
    numbers = np.array(printed.split(), np.int64)
    if len(numbers) != (rounds + 2) * variants:
        raise ModelError(f"{kernel.name}: expected times, found {printed[:200]!r}")
    times = numbers[: (rounds + 1) * variants].reshape(rounds + 1, variants)
    # Count a time of 0 as one tick of the clock.
    nanoseconds = times[1:].clip(1) * NANOSECONDS_OF_A_CLOCK / calls
    return Measured(nanoseconds, numbers[-variants:])
