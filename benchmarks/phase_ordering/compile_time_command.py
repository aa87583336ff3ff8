# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench compile-time``."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from mlbridge.options import with_options
from mlbridge.terminal import TableConsole
from mlbridge_benchmarks.common.options import choice, progress_on
from mlbridge_benchmarks.common.tables import bounds_table
from mlbridge_benchmarks.phase_ordering.options import Compiled, Setting, need_packages

if TYPE_CHECKING:
    from mlbridge_benchmarks.phase_ordering.compile_time import Flow, Results
    from mlbridge_benchmarks.phase_ordering.task import Deployed, Sample
    from mlbridge_optimizations.phase_ordering.compiler.compiler import CompilerOptions


@dataclass(frozen=True)
class Most:
    """How large the modules may be."""

    most: Annotated[
        int, typer.Option(min=0, help="Instructions of a module; 0: no limit.")
    ] = 6000


def measure_flows(
    console: Console,
    setting: Setting,
    model: Path | None,
    options: "CompilerOptions",
    sample: "Sample",
    names: Sequence[str],
    make: "Callable[[Deployed, Path], Mapping[str, Flow]]",
    **more: Any,
) -> "Results":
    """Compiles a sample by all flows in turns, and prints what came of it.

    ``make`` makes the flows of a model and a folder; ``more`` is for
    ``compile_time.measure``. Without a model a random network decides.
    """
    from mlbridge_benchmarks.phase_ordering import compile_time
    from mlbridge_benchmarks.phase_ordering.task import prepare

    with (
        tempfile.TemporaryDirectory(prefix="mlb") as temporary,
        progress_on(console) as progress,
    ):
        folder = Path(temporary)
        task = progress.add_task("the model", total=None)
        deployed = prepare(folder, model, options, setting.seed)
        made = make(deployed, folder)
        total = setting.rounds * len(sample.files) * len(names)
        progress.update(task, description="compiles", total=total)
        results = compile_time.measure(
            sample,
            {name: made[name] for name in names},
            rounds=setting.rounds,
            folder=folder,
            on_compile=lambda: progress.advance(task),
            **more,
        )
    console.print(
        f"{sample}, {setting.rounds} rounds; {deployed.steps} actions at most each"
    )
    console.print(compile_time.table(results))
    console.print(compile_time.agreement(results))
    return results


def _compile_time(
    context: typer.Context, setting: Setting, compiled: Compiled, size: Most
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
    need_packages("bench compile-time", setting.flow, compiled.model)
    from mlbridge_benchmarks.phase_ordering import compile_time
    from mlbridge_benchmarks.phase_ordering.task import Sample

    console = TableConsole(highlight=False)
    names = choice("--flow", setting.flow, compile_time.FLOWS)
    options = setting.compiler()
    sample = Sample.draw(
        setting.corpus_folder, compiled.modules, setting.seed, size.most or None
    )
    results = measure_flows(
        console,
        setting,
        compiled.model,
        options,
        sample,
        names,
        partial(compile_time.flows, names),
    )
    if found := compile_time.bounds(results):
        console.print(bounds_table(found))
    rows = compile_time.rows(results)
    draw = partial(compile_time.plot, results)
    setting.write(console, rows, "compile-time", draw)


compile_time_command = with_options(_compile_time, Setting, Compiled, Most)
