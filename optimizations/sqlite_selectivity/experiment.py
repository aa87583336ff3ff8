# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a model on a database, and writes it with its learning curve."""

import csv
from collections.abc import Callable
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path

import torch

from mlbridge.export import Metadata, Training, export
from mlbridge_optimizations.plot import finish, panels_of
from mlbridge_optimizations.show import ShowStage, quiet

from .drift import KEY, profile
from .features import features_of, find_extension
from .learning import Epoch, Examples, examples_of, pool_of, train
from .networks import SelectivityModel
from .settings import LearningOptions
from .synopsis import known_of, summarise
from .tables import expressions, read_tables

_CHECKED = 8
"""The number of random requests for which the model is compared with PyTorch."""


def _counter(show: ShowStage, stage: str, total: int) -> Callable[[], None]:
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        show(stage, done, total)

    return advance


def train_model(
    database: Path,
    extension: Path | None,
    folder: Path,
    options: LearningOptions,
    show: ShowStage = quiet,
) -> Epoch:
    """Writes model.onnx, curve.csv and curve.png. Returns the errors at the end."""
    torch.manual_seed(options.seed)
    library = find_extension(extension)
    tables = read_tables(database, options.rows, options.seed)
    ask = partial(features_of, database, library)
    known = known_of(tables, ask, _counter(show, "Tables", len(tables)))
    total = sum(len([*expressions(table)]) for table in tables)
    synopsis = summarise(known, options.seed, _counter(show, "Summaries", total))
    model = SelectivityModel(synopsis, options)
    advance = _counter(show, "Conditions", len(tables))
    parts = []
    for table in tables:
        own = [one for one in known if one.table is table]
        if own:
            parts.append(examples_of(model, pool_of(table, own, ask, options), options))
        advance()
    joined = (torch.cat([getattr(p, f.name) for p in parts]) for f in fields(Examples))
    curve = train(model, Examples(*joined), options, show)
    about = Metadata(
        reward="-|log(estimate / selectivity)|",
        training=Training(seed=options.seed),
        more={KEY: profile(tables)},
    )
    folder.mkdir(parents=True, exist_ok=True)
    export(
        *(model, folder / "model.onnx"),
        features=model.features,
        decide="",
        batch=1,
        metadata=about,
        requests=_CHECKED,
    )
    _write_curve(curve, folder)
    return curve[-1]


def _write_curve(curve: list[Epoch], folder: Path) -> None:
    with (folder / "curve.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Epoch)])
        writer.writeheader()
        writer.writerows(asdict(epoch) for epoch in curve)
    with panels_of(folder / "curve.png") as (panel,):
        numbers = range(1, len(curve) + 1)
        panel.plot(numbers, [e.median for e in curve], label="median")
        panel.plot(numbers, [e.most for e in curve], label="90 %")
        panel.axhline(curve[0].base_most, linestyle="--", label="90 %, no network")
        finish(panel, yscale="log", xlabel="epochs", ylabel="error, as a factor")
