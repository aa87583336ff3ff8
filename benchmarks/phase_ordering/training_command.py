# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench training``."""

import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from mlbridge.extras import need
from mlbridge.options import with_options
from mlbridge.terminal import TableConsole
from mlbridge_benchmarks.common.options import (
    HOW_TO_INSTALL,
    choice,
    parse_counts,
    progress_on,
)
from mlbridge_benchmarks.common.tables import bounds_table

from .options import Setting

PACKAGES = ("torch", "gymnasium", "stable_baselines3", "elftools", "onnxruntime")


@dataclass(frozen=True)
class Learning:
    """What is stepped, and learned."""

    modules: Annotated[
        int, Option(min=1, help="How many are drawn from the corpus.")
    ] = 8
    episodes: Annotated[
        int, Option(min=1, help="On each of them, where nobody learns.")
    ] = 2
    workers: Annotated[str, Option(metavar="N,N,...", help="Compilers at once.")] = (
        "1,2"
    )
    iterations: Annotated[
        int, Option(min=0, help="Of the learner; 0: nobody learns.")
    ] = 5
    iteration_steps: Annotated[
        int, Option(min=4, help="Actions of an iteration, of all workers.")
    ] = 60


def _training(context: typer.Context, setting: Setting, by: Learning) -> None:
    """Step environments of phase ordering, and train on them, in both flows.

    In the original flow each step starts an opt that runs an action's passes, an
    llvm-ir2vec that makes the observation, and a clang whose object is measured for the
    reward. Ours is one opt with the plug-in, which stays. Both have the same caches: of
    states by their sequence, of sizes by the hash of the IR, and of what -Oz makes.

    First episodes of random actions, drawn once, are played and nobody learns. Workers
    are threads with an environment each, which is new for each round: the caches are
    empty, and compilers have to be started. Then a DQN of Stable-Baselines3 learns for
    so many iterations. It explores at random, so that it takes the same actions in all
    flows. The size of the machine code after each action is compared; in ours it has
    to be the same.

    "faster" is than the original flow with as many workers, "/ one" than the same flow
    with one worker: medians of pairs of the same round. "CPU ms" is what a step takes
    of the cores, in all processes together. Other work on the machine slows a flow that
    starts processes more than one that does not; CPU is what it disturbs least.

    ```sh
    mlbridge bench training
    mlbridge bench training --flow original --flow shm --iterations 0
    ```
    """
    need("bench training", PACKAGES, HOW_TO_INSTALL)
    from . import training
    from .task import Sample

    console = TableConsole(highlight=False)
    names = choice("--flow", setting.flow, training.FLOWS)
    numbers = parse_counts("--workers", by.workers)
    options = setting.compiler(reward=training.REWARD)
    sample = Sample.draw(setting.corpus_folder, by.modules, setting.seed)
    with (
        tempfile.TemporaryDirectory(prefix="mlb") as temporary,
        progress_on(console) as progress,
    ):
        folder = Path(temporary)
        where = training.Setting(options, folder)
        parts = setting.rounds * len(numbers) * len(names)
        parts *= 1 + bool(by.iterations)
        task = progress.add_task("training", total=parts)
        results = training.measure(
            where,
            names,
            numbers,
            training.episodes(sample, by.episodes, where, setting.seed),
            rounds=setting.rounds,
            iterations=by.iterations,
            iteration_steps=by.iteration_steps,
            seed=setting.seed,
            on_part=lambda: progress.advance(task),
        )
    console.print(
        f"{sample}, {results.states} actions, {setting.rounds} rounds; learning: "
        f"{by.iterations} iterations of {by.iteration_steps} actions"
    )
    console.print(training.table(results))
    console.print(
        "after the same actions the size of the code is the same in all of our flows; "
        f"of {results.compared} comparisons {results.different} found another size in "
        "the original flow"
    )
    for (name, count), runs in results.played.items():
        if name == training.ORIGINAL and count == 1:
            console.print(f"{runs[0].known:.1%} of the states were in the cache")
    if found := training.bounds(results):
        console.print(bounds_table(found))
    draw = partial(training.plot, results)
    setting.write(console, training.rows(results), "training", draw)


training_command = with_options(_training, Setting, Learning, defaults={"rounds": 3})
