# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plot: a PNG with panels side by side."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def panels_of(
    path: Path,
    count: int = 1,
    *,
    size: tuple[float, float] | None = None,
    shared: bool = False,
) -> Iterator[Any]:
    """So many panels, which the body fills; then the PNG is written.

    The size is in inches. If the panels are ``shared``, they have one scale of values.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size or (6.5 * count, 5), layout="constrained")
    FigureCanvasAgg(figure)
    yield figure.subplots(1, count, sharey=shared, squeeze=False)[0]
    figure.savefig(path, dpi=130, metadata={"Software": None})
