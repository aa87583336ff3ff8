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
from ..model.training import TRAINED, PhaseOrderingSettings
from .evaluate import EvaluationSettings, evaluate
from .programs import run_programs
from .report import Statistics

COLUMNS = {"size": "text size", "instructions": "IR instructions", "time": "time"}
"""Maps the keys of a row's results to the titles of columns."""

ALONE, CHANCE = "model, alone", "one random sequence"


def published(
    out: Path, seed: int, environment: PhaseOrderingSettings, **settings: Any
) -> Experiment:
    """Returns a training with the settings of POSET-RL's public training scripts."""
    return Experiment(
        TRAINED,
        replace(environment, observation="embedding", episode=15),
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


def ratio(results: Mapping[str, Any], column: str, way: str = ALONE) -> float | None:
    """Returns the geomean over programs of a way's ratios to -Oz, or None."""
    if column == "time":
        times = results["time"].values() if way == ALONE else ()
        return geometric_mean(times) if times else None
    by_name = {one["name"]: one["geomean"]["mean"] for one in results[column]["ways"]}
    found: float | None = by_name.get(way)
    return found


def summary(
    seeds: Sequence[Mapping[str, Any]],
    shipped: Mapping[str, Any] | None,
    chance: Mapping[str, Any],
) -> dict[str, dict[str, Any]]:
    """Returns the rows of the comparison, which are dicts from column to ratio.

    In the row with the mean of several seeds, each value is a list of the mean and the
    limits of its 95 % interval.
    """

    def row(results: Mapping[str, Any], way: str = ALONE) -> dict[str, Any]:
        return {column: ratio(results, column, way) for column in COLUMNS}

    rows = {f"seed {number}": row(found) for number, found in enumerate(seeds)}
    mean: dict[str, Any] = {}
    for column in COLUMNS:
        values = [found[column] for found in rows.values()]
        known = [value for value in values if value is not None]
        mean[column] = fmean(known) if known else None
        if len(known) > 1:
            mean[column] = [fmean(known), *few_interval(known)]
    rows[f"mean of {len(seeds)} seeds"] = mean
    if shipped is not None:
        rows["shipped model"] = row(shipped)
    for way in chance["size"]["ways"]:
        if not way["name"].startswith("clang"):
            rows[way["name"]] = row(chance, way["name"])
    return rows


def table_of(rows: Mapping[str, Mapping[str, Any]]) -> Table:
    """Returns the rows of `summary` as a table."""
    table = Table("", title="Ratios to clang -Oz, geomean over programs")
    for title in COLUMNS.values():
        table.add_column(title, justify="right")

    def cell(value: float | Sequence[float] | None) -> str:
        if value is None:
            return "-"
        if isinstance(value, float):
            return f"{value:.4f}"
        mean, low, high = value
        return f"{mean:.4f} ({low:.4f} to {high:.4f})"

    for name, row in rows.items():
        table.add_row(name, *(cell(row[column]) for column in COLUMNS))
    return table
