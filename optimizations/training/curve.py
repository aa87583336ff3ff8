# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a policy got better: a file of numbers, a plot, and TensorBoard's own form."""

import csv
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COLUMNS = ("steps", "return", "ratio")

Show = Callable[[int, float | None], None]
"""Is told the actions so far, and the mean return of the last episodes."""


@dataclass
class Curve:
    """The episodes of a training, in the order in which they ended.

    Attributes:
        steps: of all workers so far.
        returns: the sum of an episode's rewards.
        ratios: size / -Oz of the state in which it ended.
    """

    steps: list[int] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    board: Any = None
    """A tensorboardX SummaryWriter, if there is one."""

    def add(self, steps: int, total: float, ratio: float) -> None:
        """One more episode."""
        self.steps.append(steps)
        self.returns.append(total)
        self.ratios.append(ratio)
        if self.board is not None:
            self.board.add_scalar("episode/return", total, steps)
            self.board.add_scalar("episode/ratio", ratio, steps)

    def recent(self, episodes: int = 100) -> float | None:
        """The mean return of the last episodes."""
        last = self.returns[-episodes:]
        return sum(last) / len(last) if last else None

    @classmethod
    def load(cls, path: Path, until: int | None = None) -> "Curve":
        """What `write` wrote, up to so many steps; an empty one where there is none."""
        curve = cls()
        if path.is_file():
            with path.open(newline="", encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    if until is None or int(row["steps"]) <= until:
                        curve.steps.append(int(row["steps"]))
                        curve.returns.append(float(row["return"]))
                        curve.ratios.append(float(row["ratio"]))
        return curve

    def log_to(self, folder: Path) -> None:
        """Keeps TensorBoard's files there, too."""
        from tensorboardX import SummaryWriter

        self.board = SummaryWriter(str(folder))

    def write(self, folder: Path, title: str) -> None:
        """Writes curve.csv, and curve.png with moving means."""
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "curve.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows(zip(self.steps, self.returns, self.ratios, strict=True))
        if self.board is not None:
            self.board.flush()
        if not self.steps:
            return

        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        window = max(1, min(100, len(self.steps) // 5))
        figure = Figure(figsize=(11, 4), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(1, 2)
        for panel, values, label in (
            (panels[0], self.returns, "return"),
            (panels[1], self.ratios, "size / -Oz at the end"),
        ):
            means = [
                sum(values[i - window : i]) / window
                for i in range(window, len(values) + 1)
            ]
            panel.plot(self.steps, values, ".", color="0.85", label="an episode")
            panel.plot(self.steps[window - 1 :], means, label=f"mean of {window}")
            panel.set(xlabel="actions", ylabel=label)
            panel.grid(visible=True, alpha=0.25)
        panels[1].axhline(1, color="green", linestyle="--", label="-Oz")
        panels[1].legend(fontsize="small")
        figure.suptitle(title)
        figure.savefig(folder / "curve.png", dpi=120)


def ratio_of(info: dict[str, Any]) -> float:
    """Size / -Oz of the state in which an episode ended; 1 where there is no code."""
    size = info.get("final_text_size", info.get("text_size", 0))
    stock = info.get("oz_text_size", 0)
    return float(size / stock) if stock else 1.0
