# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench compile-time``, ``gym`` and ``training``."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from mlbridge.extras import need
from mlbridge.options import with_options
from mlbridge.terminal import TableConsole
from mlbridge_benchmarks.common import options as cli
from mlbridge_benchmarks.common.processes import ROOT
from mlbridge_benchmarks.common.tables import bounds_table

if TYPE_CHECKING:
    from mlbridge_optimizations.phase_ordering.environment.compiler import (
        EpisodeOptions,
    )

    from .compile_time import Results

PACKAGES = ("gymnasium", "elftools", "onnx", "onnxruntime")
POLICY_PACKAGES = ("torch", "onnxscript")
AOT_PACKAGES = ("emx_onnx_cgen",)
TRAINERS = ("torch", "gymnasium", "stable_baselines3", "elftools", "onnxruntime")

CONSOLE = TableConsole(highlight=False)


@dataclass(frozen=True)
class Setting:
    """Of all of them."""

    rounds: cli.Rounds = 5
    flow: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="Only this flow; may be repeated."),
    ] = None
    steps: Annotated[
        int, Option(min=1, help="Actions of an episode, where no model says so.")
    ] = 15
    seed: Annotated[
        int, Option(min=0, help="Of the modules that are drawn, and of weights.")
    ] = 0
    corpus: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="The corpus. [default: build/corpus]"),
    ] = None
    vocabulary: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="IR2Vec's, in LLVM's form. [default: build/ir2vec/ir2vec-300d.json]",
        ),
    ] = None
    plugin: cli.Plugin = None
    json_file: cli.JsonFile = None
    plot_file: Annotated[Path | None, cli.plot_file("in build")] = None

    @property
    def corpus_folder(self) -> Path:
        """Where the corpus is."""
        return self.corpus or ROOT / "build" / "corpus"

    def compiler(self, actions: str = "oz", reward: str = "none") -> "EpisodeOptions":
        """Of the compilers."""
        from mlbridge_optimizations.phase_ordering.environment import compiler

        from .task import SEEN

        vocabulary = cli.find_vocabulary(self.vocabulary)
        plugin = cli.find_plugin(self.plugin)
        return compiler.EpisodeOptions(
            actions, SEEN, reward, self.steps, vocabulary=vocabulary, plugin=plugin
        )

    def write(self, rows: Any, name: str, draw: Callable[[Path], None]) -> None:
        """Writes the rows, if that is wanted, and the plot."""
        cli.write_rows(CONSOLE, rows, self.json_file)
        path = self.plot_file or ROOT / "build" / f"{name}.png"
        cli.write_plot(CONSOLE, path, draw)

    def write_compiles(self, results: "Results", name: str) -> None:
        """The same of whole compiles."""
        from . import compile_time

        draw = partial(compile_time.plot, results)
        self.write(compile_time.rows(results), name, draw)


@dataclass(frozen=True)
class Compiled:
    """Of those that compile modules by a model."""

    modules: Annotated[
        int, Option(min=0, help="How many are drawn from the corpus; 0: all.")
    ] = 20
    model: Annotated[
        Path | None,
        Option(
            metavar="FILE.onnx",
            exists=True,
            help="What decides, as `mlbridge train phase-ordering` writes it. "
            "[default: a network of random weights]",
        ),
    ] = None


def need_packages(command: str, flow: list[str] | None, model: Path | None) -> None:
    """Looks for what the flows need, and a random network if there is no model."""
    packages = PACKAGES + (() if model else POLICY_PACKAGES)
    if not flow or "aot" in flow:
        packages += AOT_PACKAGES
    need(command, packages, cli.HOW_TO_INSTALL)


@dataclass(frozen=True)
class Most:
    """How large the modules may be."""

    most: Annotated[
        int, Option(min=0, help="Instructions of a module; 0: no limit.")
    ] = 6000


def measure_flows(
    setting: Setting,
    compiled: Compiled,
    known: tuple[str, ...],
    actions: str,
    most: int | None,
    **more: Any,
) -> "Results":
    """Compiles a sample by all flows in turns, and prints what came of it.

    ``more`` is for ``compile_time.measure``. Without a model a random network decides.
    """
    from . import compile_time, gym_flow
    from .task import Sample, prepare

    names = cli.choice("--flow", setting.flow, known)
    options = setting.compiler(actions)
    sample = Sample.draw(setting.corpus_folder, compiled.modules, setting.seed, most)
    with (
        tempfile.TemporaryDirectory(prefix="mlb") as temporary,
        cli.progress_on(CONSOLE) as progress,
    ):
        folder = Path(temporary)
        task = progress.add_task("the model", total=None)
        deployed = prepare(folder, compiled.model, options, setting.seed)
        inside = [name for name in names if name not in gym_flow.OUTSIDE]
        made = compile_time.flows(inside, deployed, folder)
        made |= gym_flow.flows(names, deployed, sample.modules)
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
    CONSOLE.print(f"{sample}, {setting.rounds} rounds; {steps} actions at most each")
    CONSOLE.print(compile_time.table(results))
    CONSOLE.print(compile_time.agreement(results))
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

    results = measure_flows(
        setting, compiled, compile_time.FLOWS, "oz", size.most or None
    )
    if found := compile_time.bounds(results):
        CONSOLE.print(bounds_table(found))
    setting.write_compiles(results, "compile-time")


compile_time_command = with_options(_compile_time, Setting, Compiled, Most)


@dataclass(frozen=True)
class Actions:
    """What the random network chooses from."""

    actions: Annotated[
        str, Option(help="The space of the random network's actions.")
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
    from . import gym_flow, task

    flows, most = gym_flow.FLOWS, task.MOST
    results = measure_flows(
        setting, compiled, flows, space.actions, most, base=gym_flow.GYM
    )
    setting.write_compiles(results, "gym")


gym_command = with_options(_gym, Setting, Compiled, Actions, defaults={"steps": 45})


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
    need("bench training", TRAINERS, cli.HOW_TO_INSTALL)
    from . import training
    from .task import Sample

    names = cli.choice("--flow", setting.flow, training.FLOWS)
    numbers = cli.parse_counts("--workers", by.workers)
    options = setting.compiler(reward=training.REWARD)
    sample = Sample.draw(setting.corpus_folder, by.modules, setting.seed)
    with (
        tempfile.TemporaryDirectory(prefix="mlb") as temporary,
        cli.progress_on(CONSOLE) as progress,
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
    CONSOLE.print(
        f"{sample}, {results.states} actions, {setting.rounds} rounds; learning: "
        f"{by.iterations} iterations of {by.iteration_steps} actions"
    )
    CONSOLE.print(training.table(results))
    CONSOLE.print(
        "after the same actions the size of the code is the same in all of our flows; "
        f"of {results.compared} comparisons {results.different} found another size in "
        "the original flow"
    )
    for (name, count), runs in results.played.items():
        if name == training.ORIGINAL and count == 1:
            CONSOLE.print(f"{runs[0].known:.1%} of the states were in the cache")
    if found := training.bounds(results):
        CONSOLE.print(bounds_table(found))
    draw = partial(training.plot, results)
    setting.write(training.rows(results), "training", draw)


training_command = with_options(_training, Setting, Learning, defaults={"rounds": 3})
