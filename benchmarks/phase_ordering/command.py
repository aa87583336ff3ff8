# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands ``mlbridge bench compile-time``, ``gym`` and ``training``."""

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
    """The options that all three commands have."""

    rounds: cli.Rounds = 5
    flow: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="Only this flow. May be repeated."),
    ] = None
    steps: Annotated[int, Option(min=1, help="Actions per episode.")] = 15
    seed: Annotated[
        int, Option(min=0, help="Random seed of the drawn modules and of new weights.")
    ] = 0
    corpus: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="The corpus. [default: build/corpus]"),
    ] = None
    vocabulary: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="IR2Vec vocabulary in LLVM's JSON format. Used by policies"
            " with the feature `embedding`."
            " [default: build/ir2vec/ir2vec-300d.json]",
        ),
    ] = None
    plugin: cli.Plugin = None
    json_file: cli.JsonFile = None
    plot_file: Annotated[
        Path | None, cli.plot_file("build/NAME.png for `mlbridge bench NAME`")
    ] = None

    @property
    def corpus_folder(self) -> Path:
        """The folder of the corpus."""
        return self.corpus or ROOT / "build" / "corpus"

    def compiler(self, actions: str = "oz", reward: str = "none") -> "EpisodeOptions":
        """Returns the options of the compilers."""
        from mlbridge_optimizations.phase_ordering.environment import compiler

        from .task import SEEN

        vocabulary = cli.find_vocabulary(self.vocabulary)
        plugin = cli.find_plugin(self.plugin)
        return compiler.EpisodeOptions(
            actions, SEEN, reward, self.steps, vocabulary=vocabulary, plugin=plugin
        )

    def write(self, rows: Any, name: str, draw: Callable[[Path], None]) -> None:
        """Writes the plot and, if requested, the rows."""
        cli.write_rows(CONSOLE, rows, self.json_file)
        path = self.plot_file or ROOT / "build" / f"{name}.png"
        cli.write_plot(CONSOLE, path, draw)

    def write_compiles(self, results: "Results", name: str) -> None:
        """Writes the results of whole compiles with `write`."""
        from . import compile_time

        draw = partial(compile_time.plot, results)
        self.write(compile_time.rows(results), name, draw)


@dataclass(frozen=True)
class Compiled:
    """The options of ``compile-time`` and ``gym``."""

    modules: Annotated[
        int, Option(min=0, help="Modules to draw from the corpus, 0 for all.")
    ] = 20
    model: Annotated[
        Path | None,
        Option(
            metavar="FILE.onnx",
            exists=True,
            help="A model of `mlbridge train phase-ordering`. Its own number of actions"
            " replaces --steps. [default: a network with random weights]",
        ),
    ] = None


def need_packages(command: str, flow: list[str] | None, model: Path | None) -> None:
    """Raises an error if a package that the flows or the model need is missing."""
    packages = PACKAGES + (() if model else POLICY_PACKAGES)
    if not flow or "aot" in flow:
        packages += AOT_PACKAGES
    need(command, packages, cli.HOW_TO_INSTALL)


@dataclass(frozen=True)
class Most:
    """The maximum size of a module."""

    most: Annotated[
        int,
        Option(
            min=0,
            help="Omit modules with more instructions than this. With 0, omit none.",
        ),
    ] = 6000


def measure_flows(
    setting: Setting,
    compiled: Compiled,
    known: tuple[str, ...],
    actions: str,
    most: int | None,
    **more: Any,
) -> "Results":
    """Compiles a sample with all flows alternately, and prints the results.

    ``more`` is passed to ``compile_time.measure``.
    """
    from . import compile_time, gym_flow
    from .task import Sample, prepare

    names = cli.available(CONSOLE, "--flow", setting.flow, known)
    options = setting.compiler(actions)
    sample = Sample.draw(setting.corpus_folder, compiled.modules, setting.seed, most)
    with (
        tempfile.TemporaryDirectory(prefix="mlb") as temporary,
        cli.progress_on(CONSOLE) as progress,
    ):
        folder = Path(temporary)
        advance = cli.begin(progress, "the model", 1)
        deployed = prepare(folder, compiled.model, options, setting.seed)
        inside = [name for name in names if name not in gym_flow.OUTSIDE]
        made = compile_time.flows(inside, deployed, folder)
        made |= gym_flow.flows(names, deployed, sample.modules)
        advance()
        total = setting.rounds * len(sample.files) * len(names)
        results = compile_time.measure(
            sample,
            {name: made[name] for name in names},
            rounds=setting.rounds,
            folder=folder,
            on_compile=cli.begin(progress, "compiles", total),
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
    """Compile modules with a phase-ordering policy, without and with the bridge.

    A flow is a way to compile a module from bitcode to an object. The flow "original"
    is POSET-RL's: for each action, a Python driver starts opt for the passes and
    llvm-ir2vec for the features. In our flows, each module is compiled by a new clang
    process with the plug-in. The model runs in another process or in clang. In clang,
    it runs through ONNX Runtime ("onnx") or as machine code. The machine code comes
    from `mlbridge compile` ("aot") or from TensorFlow's compiler ("tf-aot", which needs
    TensorFlow 2.15). The flows with another process are "gRPC", "pipe, JSON", "pipe,
    bitstream" and "shm". The flow "clang -Oz" is the stock compiler. All other flows
    must choose the same actions, and all of our flows must produce the same objects.

    "s" is the sum of the modules' median times. "CPU s" is the sum of CPU times,
    including those of the servers. "faster" is the speed-up over the original flow, in
    total and as a geomean over modules. "/ -Oz" is the time relative to stock clang.
    "start" is the time to start the server or to load the original flow's model. Other
    columns exclude this time. However, each compile with an in-process model includes
    loading the model.

    The last table compares results with our limits. Its rows "CPU, 95 %" are for flows
    whose model is in clang. Such a row divides the flow's CPU time by the CPU time of
    the best flow with another process, and shows the upper end of the ratio's 95 %
    interval.

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
    """The options of ``gym``."""

    actions: Annotated[
        str,
        Option(
            help="Action space of the random network, as for `mlbridge train"
            " phase-ordering`."
        ),
    ] = "passes"


def _gym(
    context: typer.Context, setting: Setting, compiled: Compiled, space: Actions
) -> None:
    """Compare two ways to run a policy: in a Gymnasium loop, and inside the compiler.

    The actions of the phase-ordering policy are single passes. A flow is a way to
    compile a module. All flows with the policy take the same actions:

    - "Gymnasium": A Python loop runs the model and steps `mlbridge/PhaseOrdering-v0`.
      Each module is compiled by a new compiler process.
    - "Gymnasium, kept": The same loop, with one compiler process for all modules of a
      round.
    - "Gymnasium, rewards": Like "Gymnasium, kept", but the compiler also measures the
      code size after each step, as in training.
    - "onnx": Each module is compiled by a new clang process. Its plug-in loads the
      model and runs it with ONNX Runtime.
    - "aot": Like "onnx", but the model is machine code.
    - "clang -Oz": The stock compiler, without a policy.

    `mlbridge bench compile-time --help` explains the columns.
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
    """The options of ``training``."""

    modules: Annotated[int, Option(min=1, help="Modules to draw from the corpus.")] = 8
    episodes: Annotated[
        int, Option(min=1, help="Episodes per module without a learner.")
    ] = 2
    workers: Annotated[
        str, Option(metavar="N,N,...", help="Numbers of parallel workers to compare.")
    ] = "1,2"
    iterations: Annotated[
        int, Option(min=0, help="Iterations of the learner, 0 for none.")
    ] = 5
    iteration_steps: Annotated[
        int, Option(min=4, help="Actions of all workers in an iteration.")
    ] = 60


def _training(context: typer.Context, setting: Setting, by: Learning) -> None:
    """Measure the speed of steps and trainings in phase-ordering environments.

    A flow is a way to run the environment. In the flow "original", each step starts opt
    for the action's passes, llvm-ir2vec for the observation, and clang to measure the
    code size for the reward. In our flows, one opt process with the plug-in does all of
    this. Our flows ("gRPC", "pipe, JSON", "pipe, bitstream" and "shm") differ only in
    the transport and the message format between opt and Python. All flows have the same
    caches.

    First, the flows play the same random episodes without a learner. Each worker is a
    thread with an environment. Every round starts new environments with empty caches.
    Then a DQN of Stable-Baselines3 learns. It always explores, so it takes the same
    actions in all flows. The code size after each action must be the same in all of our
    flows.

    "faster" is the speed-up over the original flow with the same number of workers. "/
    one" is the speed-up over the same flow with one worker. "CPU ms" is the CPU time of
    a step in all processes. Other load on the machine affects it less than
    the other times.

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
        results = training.measure(
            where,
            names,
            numbers,
            training.episodes(sample, by.episodes, where, setting.seed),
            rounds=setting.rounds,
            iterations=by.iterations,
            iteration_steps=by.iteration_steps,
            seed=setting.seed,
            on_part=cli.begin(progress, "training", parts),
        )
    CONSOLE.print(
        f"{sample}, {results.states} actions, {setting.rounds} rounds; learning: "
        f"{by.iterations} iterations of {by.iteration_steps} actions"
    )
    CONSOLE.print(training.table(results))
    CONSOLE.print(
        "after the same actions the size of the code is the same in all of our flows; "
        f"{results.different} of {results.compared} sizes differ in the original flow"
    )
    for (name, count), runs in results.played.items():
        if name == training.ORIGINAL and count == 1:
            CONSOLE.print(f"{runs[0].known:.1%} of the states were in the cache")
    if found := training.bounds(results):
        CONSOLE.print(bounds_table(found))
    draw = partial(training.plot, results)
    setting.write(training.rows(results), "training", draw)


training_command = with_options(_training, Setting, Learning, defaults={"rounds": 3})
