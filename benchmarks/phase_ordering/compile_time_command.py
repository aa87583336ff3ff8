# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench compile-time``."""

import tempfile
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mlbridge.extras import need
from mlbridge.terminal import TableConsole
from mlbridge_benchmarks.common.checkout import ROOT
from mlbridge_benchmarks.common.options import (
    HOW_TO_INSTALL,
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
from mlbridge_benchmarks.common.tables import bounds_table

PACKAGES = ("gymnasium", "elftools", "onnx", "onnxruntime")
POLICY_PACKAGES = ("torch", "onnxscript")
AOT_PACKAGES = ("emx_onnx_cgen",)


def need_packages(command: str, flow: list[str] | None, model: Path | None) -> None:
    """Looks for what the flows need, and a random network if there is no model.

    Args:
        command: that needs it, for the message.
        flow: those that are wanted; None for all.
        model: that was given, if any.

    Raises:
        Unsupported: one is not installed.
    """
    packages = PACKAGES + (() if model else POLICY_PACKAGES)
    if not flow or "aot" in flow:
        packages += AOT_PACKAGES
    need(command, packages, HOW_TO_INSTALL)


def compile_time_command(
    modules: Modules = 20,
    rounds: Rounds = 5,
    flow: Flows = None,
    model: ModelFile = None,
    steps: Annotated[
        int, typer.Option(min=1, help="Actions of an episode of the random network.")
    ] = 15,
    seed: Seed = 0,
    most: Annotated[
        int, typer.Option(min=0, help="Instructions of a module; 0: no limit.")
    ] = 6000,
    corpus: CorpusFolder = None,
    vocabulary: Vocabulary = None,
    plugin: Plugin = None,
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Compile modules by a policy of phase ordering: in the original flow, and in ours.

    The original flow is POSET-RL's: a driver in Python, and for each action an opt that
    runs its passes and an llvm-ir2vec that looks at what came of it. Ours is clang with
    the plug-in, and the model behind gRPC, pipes or shared memory, or in the process by
    ONNX Runtime (onnx) or as machine code (aot). "clang -Oz" is stock. Each compile is
    from bitcode to object. All flows have to take the same actions, and ours have to
    make the same objects.

    The flows compile each module in turns. "s" are seconds for all modules, each by its
    median, "CPU s" those of the cores, servers included. "faster" is how much faster
    than the original flow all of them are, and the geomean over modules, each by its
    median of pairs of the same round; "/ -Oz" is the same against stock clang, as a
    part of its time. What is started once for all modules is in "start" and nowhere
    else: a server with its model, or, of the original flow, the model in its driver. A
    model in the compiler's process is loaded by each compile, and that is counted.

    ```sh
    mlbridge bench compile-time
    mlbridge bench compile-time --modules 0 --most 0 --flow aot --flow 'clang -Oz'
    ```
    """
    need_packages("bench compile-time", flow, model)
    from mlbridge_benchmarks.phase_ordering import compile_time, plot
    from mlbridge_benchmarks.phase_ordering.task import SEEN, Sample, prepare
    from mlbridge_optimizations.phase_ordering import CompilerOptions

    console = TableConsole(highlight=False)
    names = choice("--flow", flow, compile_time.FLOWS)
    options = CompilerOptions(
        observation=SEEN,
        reward="none",
        steps=steps,
        vocabulary=find_vocabulary(vocabulary),
        plugin=find_plugin(plugin),
    )
    sample = Sample.draw(
        corpus or ROOT / "build" / "corpus", modules, seed, most or None
    )
    with (
        tempfile.TemporaryDirectory(prefix="mlb") as temporary,
        progress_on(console) as progress,
    ):
        folder = Path(temporary)
        task = progress.add_task("the model", total=None)
        deployed = prepare(folder, model, options, seed)
        made = compile_time.flows(names, deployed, folder)
        total = rounds * len(sample.files) * len(names)
        progress.update(task, description="compiles", total=total)
        results = compile_time.measure(
            sample,
            made,
            rounds=rounds,
            folder=folder,
            on_compile=lambda: progress.advance(task),
        )
    console.print(f"{sample}, {rounds} rounds; {deployed.steps} actions at most each")
    console.print(compile_time.table(results))
    console.print(compile_time.agreement(results))
    if found := compile_time.bounds(results):
        console.print(bounds_table(found))
    write_rows(console, compile_time.rows(results), json_file)
    path = plot_file or ROOT / "build" / "compile-time.png"
    write_plot(console, path, partial(plot.save_compile_time, results))
