# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws PNG plots with panels side by side."""

from collections.abc import Iterator, Sequence
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
    """Yields `count` panels for the body of a ``with`` to fill. Then writes the PNG.

    ``size`` is in inches. If ``shared`` is true, the panels share the value axis.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size or (6.5 * count, 5), layout="constrained")
    FigureCanvasAgg(figure)
    yield figure.subplots(1, count, sharey=shared, squeeze=False)[0]
    figure.savefig(path, dpi=130, metadata={"Software": None})


def draw_bars(
    panel: Any,
    names: Sequence[str],
    values: Sequence[float],
    colours: Sequence[str],
    number: str,
    label: str,
) -> None:
    """Draws one bar per name, from top to bottom, and writes the value at its end."""
    panel.bar_label(panel.barh(names, values, color=colours), fmt=number, padding=3)
    panel.invert_yaxis()
    panel.margins(x=0.15)
    panel.set_xlabel(label)


def finish(panel: Any, *, legend: bool = True, **labels: Any) -> None:
    """Sets a panel's labels and scales, and draws a grid and a legend."""
    panel.set(**labels)
    panel.grid(visible=True, which="both", alpha=0.25)
    if legend:  # Place the legend to the right of the curves.
        panel.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
