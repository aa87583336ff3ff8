# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench gym``."""

import tempfile
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mlbridge.terminal import TableConsole
from mlbridge_benchmarks.common.checkout import ROOT
from mlbridge_benchmarks.common.options import (
    CorpusFolder,
    Flows,
    JsonFile,
    ModelFile,
    Modules,
    PlotFile,
    Plugin,
    Rounds,
    Seed,
    Vocabulary,
    choice,
    find_plugin,
    find_vocabulary,
    progress_on,
    write_plot,
    write_rows,
)
from mlbridge_benchmarks.phase_ordering.compile_time_command import need_packages


def gym_command(
    modules: Modules = 20,
    rounds: Rounds = 5,
    flow: Flows = None,
    model: ModelFile = None,
    actions: Annotated[
        str, typer.Option(help="The space of the random network's actions.")
    ] = "passes",
    steps: Annotated[
        int, typer.Option(min=1, help="Actions of an episode of the random network.")
    ] = 45,
    seed: Seed = 0,
    corpus: CorpusFolder = None,
    vocabulary: Vocabulary = None,
    plugin: Plugin = None,
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Run a policy of single passes through Gymnasium, and inside the compiler.

    Through Gymnasium, a loop in Python asks the model and steps
    `mlbridge/PhaseOrdering-v0`. Inside, each compile is a clang with the plug-in, which
    loads the model itself. All make objects of the same bitcode, by the same actions.
    "Gymnasium" starts a compiler for each module, as the others do; "kept" has one for
    all modules of a round, "rewards" also measures the size of the code after each
    step, as in training. The columns are those of `mlbridge bench compile-time`.
    """
    need_packages("bench gym", flow, model)
    from mlbridge_benchmarks.phase_ordering import compile_time, gym_flow, plot
    from mlbridge_benchmarks.phase_ordering.task import SEEN, Sample, prepare
    from mlbridge_optimizations.phase_ordering import CompilerOptions

    console = TableConsole(highlight=False)
    names = choice("--flow", flow, gym_flow.FLOWS)
    options = CompilerOptions(
        actions,
        SEEN,
        reward="none",
        steps=steps,
        vocabulary=find_vocabulary(vocabulary),
        plugin=find_plugin(plugin),
    )
    sample = Sample.draw(corpus or ROOT / "build" / "corpus", modules, seed)
    with (
        tempfile.TemporaryDirectory(prefix="mlb") as temporary,
        progress_on(console) as progress,
    ):
        folder = Path(temporary)
        task = progress.add_task("the model", total=None)
        deployed = prepare(folder, model, options, seed)
        outside = (gym_flow.GYM, gym_flow.KEPT, gym_flow.REWARDED)
        made = compile_time.flows(
            [name for name in names if name not in outside], deployed, folder
        )
        for name in set(outside) & set(names):
            made[name] = gym_flow.GymFlow(
                deployed,
                sample.modules,
                rewarded=name == gym_flow.REWARDED,
                kept=name != gym_flow.GYM,
            )
        ordered = {name: made[name] for name in names}
        total = rounds * len(sample.files) * len(names)
        progress.update(task, description="compiles", total=total)
        results = compile_time.measure(
            sample,
            ordered,
            base=gym_flow.GYM,
            rounds=rounds,
            folder=folder,
            on_compile=lambda: progress.advance(task),
        )
    console.print(f"{sample}, {rounds} rounds; {deployed.steps} actions at most each")
    console.print(compile_time.table(results))
    console.print(compile_time.agreement(results))
    write_rows(console, compile_time.rows(results), json_file)
    path = plot_file or ROOT / "build" / "gym.png"
    write_plot(console, path, partial(plot.save_compile_time, results))
