# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures all choices about kernels (brute force).

Models are trained on the table. For each kernel, it has the features of the nest, and
the time of each choice relative to the untiled kernel.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlbridge.errors import Error, ModelError, OSFailure
from mlbridge_optimizations.evaluation import tables
from mlbridge_optimizations.show import quiet

from .kernels import Kernel
from .measure import (
    apply_choices,
    features_of,
    measure,
)

COLUMNS = 44
"""The columns of `choice_features` (compilers/mlir/ChoiceFeatures.h)."""


@dataclass(frozen=True)
class Entry:
    """A kernel's measured choices.

    Attributes:
        kind: the kind of kernel.
        choices: the measured choices, [c, 2n+1]. The first choice leaves the nest as it
            is.
        features: the features of each choice, [c, columns].
        ratios: the time of each choice relative to the untiled kernel, [c].
        nanoseconds: the time of a call of the untiled kernel.
        again: the ratio of the times of two equal variants, which shows the noise.
        is_complete: whether all legal choices were measured.
        error: why the kernel could not be measured, or an empty string.
    """

    kernel: str
    kind: str
    choices: list[list[int]] = field(default_factory=list)
    features: list[list[float]] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    nanoseconds: float = 0.0
    again: float = 1.0
    is_complete: bool = True
    error: str = ""

    @property
    def rows(self) -> NDArray[np.float32]:
        """The features as float32 [c, columns]."""
        return np.array(self.features, np.float32)


def measure_kernel(kernel: Kernel, plugin: Path, rounds: int, most: int = 0) -> Entry:
    """Measures all choices about a kernel.

    If ``most`` is not 0, measures at most ``most`` random choices. Raises ModelError if
    a variant computes other results than the source kernel, and OSFailure if MLIR's
    programs are missing.
    """
    kind = kernel.pattern.kind
    try:
        seen = features_of(plugin, kernel)
        total = len(seen["choices"])
        numbers = np.arange(total)
        if 0 < most < total:
            draw = np.random.default_rng(kernel.iterations)
            numbers = np.sort(draw.choice(numbers[1:], most - 1, replace=False))
            numbers = np.concatenate([[0], numbers])
        choices = seen["choices"][numbers]
        functions = apply_choices(plugin, kernel, [*choices, choices[0]])
        found = measure(kernel, functions, len(choices) + 1, rounds=rounds)
    except OSFailure:
        raise  # A program is missing, so no kernel can be measured.
    except Error as error:
        return Entry(kernel.name, kind, error=str(error))
    if found.differences.any():
        raise ModelError(
            f"{kernel.name}: the results of {np.flatnonzero(found.differences)} differ"
            " from those of the source"
        )
    *ratios, again = np.round(found.shortest(), 5).tolist()
    features = np.round(seen["choice_features"][numbers].astype(np.float64), 4)
    return Entry(
        *(kernel.name, kind, choices.tolist(), features.tolist(), ratios),
        *(float(found.nanoseconds[:, 0].min()), again, len(choices) == total),
    )


def make_table(
    kernels: Iterable[Kernel],
    plugin: Path,
    file: Path,
    *,
    rounds: int,
    most: int = 0,
    advance: Callable[[Entry], None] = quiet,
) -> list[Entry]:
    """Measures kernels that a file lacks, and appends them to the file.

    Measures all choices about a kernel. If `most` is not 0, measures at most `most`
    random choices. Kernels whose measurement failed are measured again.

    Returns the added entries, also those of kernels that could not be measured.
    """
    known = set[str]()
    if file.is_file():
        known = {entry.kernel for entry in read_table(file) if not entry.error}
    return tables.extend_table(
        file,
        (kernel for kernel in kernels if kernel.name not in known),
        lambda kernel: measure_kernel(kernel, plugin, rounds, most),
        advance,
    )


def _entry(**members: Any) -> Entry:
    """Makes an entry. Raises ValueError if a model cannot learn from its numbers."""
    entry = Entry(**members)
    if entry.error:
        return entry
    ratios, rows = np.array(entry.ratios, np.float64), entry.rows
    count = len(np.array(entry.choices, np.int64))
    if ratios.shape != (count,) or rows.shape != (count, COLUMNS):
        raise ValueError(
            f"expected {COLUMNS} features and a ratio for each of {count} choices,"
            f" found shapes {rows.shape} and {ratios.shape}"
        )
    if not (np.isfinite(rows).all() and np.isfinite(ratios).all() and min(ratios) > 0):
        raise ValueError("expected finite features, and finite ratios above 0")
    return entry


def read_table(file: Path) -> Iterator[Entry]:
    """Yields the entries of a file. See `tables.read_table` for errors."""
    return tables.read_table(file, _entry, "search mlir-tiling-times")
