# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains POSET-RL's agents with several seeds, and compares them with other rows.

The results of each row of the comparison are in a file, so that interrupted work can
continue.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any

import numpy as np
from rich.table import Table

from mlbridge.errors import ModelError
from mlbridge_optimizations.corpus.manifest import Corpus
from mlbridge_optimizations.evaluation.statistics import few_interval
from mlbridge_optimizations.evaluation.tables import write_json
from mlbridge_optimizations.optimization import MODEL
from mlbridge_optimizations.show import Show, ShowStage, quiet
from mlbridge_optimizations.training import policy
from mlbridge_optimizations.training.experiment import Experiment
from mlbridge_optimizations.training.settings import TrainingSettings

from ..model.model import Model, Task
from ..model.training import ONCE, TRAINED, PhaseOrderingSettings
from .evaluate import Evaluation, EvaluationSettings, Way, evaluate
from .programs import run_programs
from .report import Statistics

COLUMNS = {"size": "text size", "instructions": "IR instructions", "time": "time"}
"""Maps the keys of a row's results to the titles of columns."""

ALONE = "model, alone"
_MEAN = "mean of"


def published(
    out: Path,
    seed: int,
    environment: PhaseOrderingSettings,
    *,
    repeat: bool = False,
    **settings: Any,
) -> Experiment:
    """Returns a training with the settings of POSET-RL's public training scripts.

    With `repeat`, an agent may take an action again.
    """
    observation = "embedding" if repeat else "embedding,actions"
    return Experiment(
        TRAINED if repeat else ONCE,
        replace(environment, observation=observation, episode=15),
        TrainingSettings(
            out / f"seed-{seed}",
            algo="dqn",
            seed=seed,
            hidden="64,64",
            learning_rate=1e-4,
            batch=512,
            exploration=20_000,
            epsilon=0.01,
            **settings,
        ),
    )


def train(experiment: Experiment, show: Show = quiet) -> Path:
    """Begins or continues a training, unless it is finished. Returns the model's file.

    Raises InvalidArgument if the folder has a training with other settings.
    """
    out, steps = experiment.settings.out, experiment.settings.steps
    model = out / f"{MODEL}.onnx"
    if model.is_file() and experiment.as_begun(["steps"]).settings.steps >= steps:
        experiment.check()
        return model
    checkpoints = ("checkpoint", "checkpoint.old", "checkpoint.zip")
    resume = any((out / name).exists() for name in checkpoints)
    trained = policy.train(
        experiment, resume=resume, show=lambda done, total, _: show(done, total)
    )
    return trained[MODEL].path


@dataclass(frozen=True)
class Comparison:
    """How to compare models and random sequences, on one part of a corpus."""

    corpus: Corpus
    split: str
    settings: EvaluationSettings
    rounds: int  # The number of runs of each program. If 0, there are no times.
    jobs: int
    out: Path  # The folder of the results.
    vocabulary: Path

    def of_model(self, name: str, file: Path, show: ShowStage = quiet) -> Any:
        """Returns a model's results. Reads or writes the file NAME.json."""
        model = Model(file)
        # Try one sequence, because several tries are shown only for random sequences.
        settings = replace(self.settings, tries=1)
        by = {"model": model.digest, "rounds": self.rounds}
        return self._kept(name, by, model, settings, show)

    def of_chance(self, name: str, task: Task, show: ShowStage = quiet) -> Any:
        """Returns the results of random sequences of a task's actions."""
        by = {"model": task.to_json(), "rounds": 0}
        return self._kept(name, by, task, self.settings, show)

    def _kept(
        self,
        name: str,
        by: dict[str, Any],
        model: Model | Task,
        settings: EvaluationSettings,
        show: ShowStage,
    ) -> Any:
        file = self.out / f"{name}.json"
        about = {
            **by,
            "split": self.split,
            "compiler": self.corpus.compiler,
            "settings": asdict(settings),
        }
        about = json.loads(json.dumps(about, default=str))
        if file.is_file():
            known = json.loads(file.read_text(encoding="utf-8"))
            if known["with"] == about:
                return known
        found = evaluate(
            *(self.corpus, self.split, model, None, settings),
            vocabulary=self.vocabulary,
            jobs=self.jobs,
            log=self.out / "measured.jsonl",
            show=show,
        )
        statistics = Statistics(found)
        by_instructions = statistics.instructions()
        if by_instructions is None:
            raise ModelError(f"{name}: the compiler failed on every file")
        times = {}
        if by["rounds"] and isinstance(model, Model):
            ran = run_programs(
                *(self.corpus, found, found.ways[0], model.task.actions.prologue),
                repeat=self.rounds,
                timeout=settings.timeout,
                show=lambda done, total: show("Running", done, total),
            )
            for program, (stock, ours) in ran.items():
                if not (stock.passed and ours.passed):
                    why = stock.problem or ours.problem
                    raise ModelError(f"{name}: {program}: {why}")
                # A program may be too short for the clock.
                if stock.seconds and ours.seconds:
                    times[program] = ours.seconds / stock.seconds
        results = {
            "with": about,
            "size": statistics.to_dict(),
            "instructions": by_instructions.to_dict(),
            "time": times,
        }
        write_json(file, results)
        return results


Cell = float | tuple[float, float, float] | None
"""A ratio to -Oz, with the limits of its 95 % interval if there is an interval."""

Rows = dict[str, dict[str, Cell]]
"""Maps the names of rows, and then the keys of `COLUMNS`, to ratios."""


def ratio(results: Mapping[str, Any], column: str, way: str = ALONE) -> Cell:
    """Returns the geomean over programs of a way's ratios to -Oz, or None.

    The intervals of sizes and instructions resample the files.
    """
    if column == "time":
        times = results["time"].values() if way == ALONE else ()
        return geometric_mean(times) if times else None
    for one in results[column]["ways"]:
        if one["name"] == way:
            found = one["geomean"]
            return found["mean"], found["low"], found["high"]
    return None


def _mean(cells: Sequence[Cell]) -> Cell:
    """Returns the mean of several seeds' ratios, with Student's interval."""
    means = [cell[0] if isinstance(cell, tuple) else cell for cell in cells]
    known = [mean for mean in means if mean is not None]
    return (fmean(known), *few_interval(known)) if len(known) > 1 else None


def _mean_by_files(seeds: Sequence[Mapping[str, Any]], column: str) -> Cell:
    """Returns the mean of the seeds' ratios, with an interval that resamples files."""
    if column == "time":
        return None
    first = seeds[0][column]
    # The number of instructions is unknown for a file on which the compiler failed.
    if any(found[column]["files"] != first["files"] for found in seeds):
        return None
    ways = [
        Way(str(seed), 1, 0, np.array(one["sizes"], float))
        for seed, found in enumerate(seeds)
        for one in found[column]["ways"]
        if one["name"] == ALONE
    ]
    oz = np.array(first["oz"], float)
    statistics = Statistics(Evaluation(first["files"], first["programs"], oz, ways))
    found = statistics.mean_of(ways)
    return found.mean, found.low, found.high


def summary(
    seeds: Sequence[Mapping[str, Any]],
    shipped: Mapping[str, Any] | None,
    chance: Mapping[str, Any],
) -> Rows:
    """Returns the rows of the comparison.

    The mean of several seeds has two rows. The interval of the first row shows how much
    the mean depends on the seed, and the interval of the second how much it depends on
    the files.
    """

    def row(results: Mapping[str, Any], way: str = ALONE) -> dict[str, Cell]:
        return {column: ratio(results, column, way) for column in COLUMNS}

    rows = {f"seed {number}": row(found) for number, found in enumerate(seeds)}
    if len(seeds) > 1:
        alone, name = list(rows.values()), f"{_MEAN} {len(seeds)} seeds"
        rows[name] = {key: _mean([each[key] for each in alone]) for key in COLUMNS}
        rows[f"{name}, by files"] = {k: _mean_by_files(seeds, k) for k in COLUMNS}
    if shipped is not None:
        rows["shipped model"] = row(shipped)
    for way in chance["size"]["ways"]:
        if not way["name"].startswith("clang"):
            rows[way["name"]] = row(chance, way["name"])
    return rows


def verdicts(rows: Rows) -> dict[str, str]:
    """Maps columns to a comparison of the agents with -Oz.

    The agents differ clearly from -Oz if all intervals of their mean do, or if the
    interval of the only agent does.
    """
    agents = [row for name, row in rows.items() if name.startswith(_MEAN)]
    agents = agents or [rows["seed 0"]]
    said = {}
    for column in COLUMNS:
        cells = [row[column] for row in agents]
        intervals = [cell[1:] for cell in cells if isinstance(cell, tuple)]
        if not intervals:
            continue
        said[column] = "not clearly different from -Oz"
        if all(high < 1 for _, high in intervals):
            said[column] = "smaller than with -Oz"
        elif all(low > 1 for low, _ in intervals):
            said[column] = "larger than with -Oz"
    return said


def table_of(rows: Rows) -> Table:
    """Returns the rows of `summary` as a table."""
    table = Table("", title="Ratios to clang -Oz, geomean over programs")
    for title in COLUMNS.values():
        table.add_column(title, justify="right")

    def text(cell: Cell) -> str:
        if cell is None:
            return "-"
        if isinstance(cell, float):
            return f"{cell:.4f}"
        mean, low, high = cell
        return f"{mean:.4f} ({low:.4f} to {high:.4f})"

    for name, row in rows.items():
        table.add_row(name, *(text(row[column]) for column in COLUMNS))
    return table
