# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The learning curve of a policy, as CSV, as a plot and in TensorBoard's format."""

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlbridge.errors import Malformed
from mlbridge_optimizations.optimization import Metric
from mlbridge_optimizations.plot import finish, panels_of

ShowReturn = Callable[[int, int, float | None], None]
"""Receives the number of finished actions, the number of all actions of the training,
and the mean return of recent episodes."""


@dataclass
class Curve:
    """The episodes of a training, in the order in which they ended."""

    metric: Metric = field(default_factory=Metric)
    steps: list[int] = field(default_factory=list)  # Actions of all workers so far.
    returns: list[float] = field(default_factory=list)  # Sums of rewards.
    values: list[float] = field(default_factory=list)  # Values of the metric.
    board: Any = None  # A tensorboardX SummaryWriter, or None.

    def add(self, steps: int, total: float, info: Mapping[str, Any]) -> None:
        """Adds an episode with the sum of its rewards, and its last info."""
        self.add_value(steps, total, self.metric.value(total, info))

    def add_value(self, steps: int, total: float, value: float) -> None:
        """Adds an episode with a known value of the metric."""
        self.steps.append(steps)
        self.returns.append(total)
        self.values.append(value)
        if self.board is not None:
            self.board.add_scalar("episode/return", total, steps)
            self.board.add_scalar(f"episode/{self.metric.name}", value, steps)

    def recent(self, episodes: int = 100) -> float | None:
        """Returns the mean return of the last episodes, or None without episodes."""
        last = self.returns[-episodes:]
        return sum(last) / len(last) if last else None

    def load(self, path: Path, until: int | None = None) -> "Curve":
        """Adds a file's episodes up to step `until`. Raises Malformed if damaged."""
        if not path.is_file():
            return self
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            try:
                for row in rows:
                    steps, total = int(row["steps"]), float(row["return"])
                    value = float(row[self.metric.name])
                    if until is None or steps <= until:
                        self.add_value(steps, total, value)
            except (KeyError, TypeError, ValueError, csv.Error) as error:
                where = f"{path}, line {rows.line_num}"
                raise Malformed(f"{where}: {type(error).__name__}: {error}") from error
        return self

    def log_to(self, folder: Path) -> None:
        """Also writes all further episodes to TensorBoard files."""
        from tensorboardX import SummaryWriter

        self.board = SummaryWriter(str(folder))

    def write(self, folder: Path, title: str) -> None:
        """Writes curve.csv, and curve.png, which has moving means."""
        folder.mkdir(parents=True, exist_ok=True)
        columns: dict[str, list[Any]] = {"steps": self.steps, "return": self.returns}
        columns[self.metric.name] = self.values
        with (folder / "curve.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
        if self.board is not None:
            self.board.flush()
        if self.steps:
            self._plot(folder / "curve.png", title)

    def _plot(self, path: Path, title: str) -> None:
        window = max(1, min(100, len(self.steps) // 5))
        shown = {"return": self.returns}
        if self.metric.name not in shown:
            shown[self.metric.label or self.metric.name] = self.values
        stock, name = self.metric.stock, self.metric.stock_label
        count = len(shown)
        with panels_of(path, count, size=(5.5 * count, 4)) as panels:
            for panel, (label, values) in zip(panels, shown.items(), strict=True):
                means = [
                    sum(values[i - window : i]) / window
                    for i in range(window, len(values) + 1)
                ]
                panel.plot(self.steps, values, ".", color="0.85", label="an episode")
                panel.plot(self.steps[window - 1 :], means, label=f"mean of {window}")
                finish(panel, legend=False, xlabel="actions", ylabel=label)
            if stock is not None:
                panels[-1].axhline(stock, color="green", linestyle="--", label=name)
            finish(panels[-1])
            panels[0].figure.suptitle(title)
