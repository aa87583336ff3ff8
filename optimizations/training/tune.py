# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Searches for better settings with Ray Tune, in short trainings."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ray import tune as ray_tune

from mlbridge.errors import ModelError
from mlbridge_optimizations.show import quiet
from mlbridge_optimizations.training import policy
from mlbridge_optimizations.training.experiment import Experiment
from mlbridge_optimizations.training.rllib import cluster

# Run trials in the working directory of this process, because the command of a compiler
# may be a relative path. Ray reads this variable.
os.environ.setdefault("RAY_CHDIR_TO_TRIAL_DIR", "0")

SHARE = 4
"""The number of steps of a training divided by the number of steps of a trial."""

SPACE: dict[str, Any] = {
    "learning_rate": ray_tune.loguniform(1e-4, 2e-3),
    "gamma": ray_tune.choice([0.9, 0.97, 0.99, 1.0]),
    "entropy": ray_tune.choice([0.0, 0.005, 0.02]),
    "hidden": ray_tune.choice(["64,64", "128,128", "256"]),
}


def tune(
    experiment: Experiment,
    trials: int,
    *,
    address: str | None = None,
    show: Callable[[int], None] = quiet,
) -> tuple[Experiment, list[tuple[str, ...]]]:
    """Tries random settings. Returns the best settings, and a table row per trial.

    A trial uses the engine, the algorithm and the seed of the training that follows.
    The best trial has the highest mean return in its last episodes. ModelError is
    raised if every trial fails. The nodes of a cluster run one trial on each core.
    """
    settings = experiment.settings
    steps = max(1, settings.steps // SHARE)
    # With RLlib and no workers, the compiler runs in the trial's own process.
    workers = 1 if settings.engine == "sb3" else 0
    short = experiment.changed(workers=workers, steps=steps)

    def trial(drawn: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory(prefix="mlbridge-tune-") as folder:
            curve = policy.learn(short.changed(**drawn, out=Path(folder))).curve
        ray_tune.report({"mean_return": curve.recent() or float("-inf")})

    search = ray_tune.search.BasicVariantGenerator(random_state=settings.seed)
    with (
        tempfile.TemporaryDirectory(prefix="mlbridge-tune-") as storage,
        cluster(settings.workers, address),
    ):
        results = ray_tune.Tuner(
            trial,
            param_space=SPACE,
            tune_config=ray_tune.TuneConfig(
                metric="mean_return", mode="max", num_samples=trials, search_alg=search
            ),
            run_config=ray_tune.RunConfig(
                storage_path=storage, verbose=0, callbacks=[_Ended(show)]
            ),
        ).fit()
    found: list[tuple[float, dict[str, Any]]] = [
        (result.metrics["mean_return"], result.config)
        for result in (results[n] for n in range(len(results)))
        if result.metrics and result.config and "mean_return" in result.metrics
    ]
    if not found:
        raise ModelError(f"every trial failed, such as: {results.errors[:1]}")
    found.sort(key=lambda pair: -pair[0])
    rows: list[tuple[str, ...]] = [
        (
            f"{config['learning_rate']:.2g}",
            *(str(config[name]) for name in ("gamma", "entropy", "hidden")),
            f"{mean:.3f}",
        )
        for mean, config in found
    ]
    return experiment.changed(**found[0][1]), rows


class _Ended(ray_tune.Callback):
    def __init__(self, show: Callable[[int], None]) -> None:
        self._show, self._ended = show, 0

    def on_trial_complete(self, *_: Any, **__: Any) -> None:
        self._ended += 1
        self._show(self._ended)

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out the progress bar, because Tune pickles the callback."""
        return {"_show": quiet, "_ended": self._ended}
