# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench compile-time`` and ``mlbridge bench gym``."""

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

from .options import Compiled, Setting, need_packages

if TYPE_CHECKING:
    from mlbridge_optimizations.phase_ordering.compiler.compiler import CompilerOptions

    from .compile_time import Flow, Results
    from .task import Deployed, Sample


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
    from . import compile_time
    from .task import prepare

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
    steps = deployed.compiler.steps
    console.print(f"{sample}, {setting.rounds} rounds; {steps} actions at most each")
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
    from . import compile_time
    from .task import Sample

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


@dataclass(frozen=True)
class Actions:
    """What the random network chooses from."""

    actions: Annotated[
        str, typer.Option(help="The space of the random network's actions.")
    ] = "passes"


def _gym(
    context: typer.Context, setting: Setting, compiled: Compiled, space: Actions
) -> None:
    """Run a policy of single passes through Gymnasium, and inside the compiler.

    Through Gymnasium, a loop in Python asks the model and steps
    `mlbridge/PhaseOrdering-v0`. Inside, each compile is a clang with the plug-in, which
    loads the model itself. All make objects of the same bitcode, by the same actions.
    "Gymnasium" starts a compiler for each module, as the others do; "kept" has one for
    all modules of a round, "rewards" also measures the size of the code after each
    step, as in training. The columns are those of `mlbridge bench compile-time`.
    """
    need_packages("bench gym", setting.flow, compiled.model)
    from . import compile_time, gym_flow
    from .task import Sample

    console = TableConsole(highlight=False)
    names = choice("--flow", setting.flow, gym_flow.FLOWS)
    options = setting.compiler(space.actions)
    sample = Sample.draw(setting.corpus_folder, compiled.modules, setting.seed)
    outside = (gym_flow.GYM, gym_flow.KEPT, gym_flow.REWARDED)

    def make(deployed: "Deployed", folder: Path) -> "Mapping[str, Flow]":
        inside = [name for name in names if name not in outside]
        made = compile_time.flows(inside, deployed, folder)
        for name in set(outside) & set(names):
            made[name] = gym_flow.GymFlow(
                deployed,
                sample.modules,
                rewarded=name == gym_flow.REWARDED,
                kept=name != gym_flow.GYM,
            )
        return made

    results = measure_flows(
        console,
        setting,
        compiled.model,
        options,
        sample,
        names,
        make,
        base=gym_flow.GYM,
    )
    draw = partial(compile_time.plot, results)
    setting.write(console, compile_time.rows(results), "gym", draw)


gym_command = with_options(_gym, Setting, Compiled, Actions, defaults={"steps": 45})
