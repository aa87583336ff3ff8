# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run `make demo` or `.venv/bin/python -m mlbridge_optimizations.inlining`."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import mlbridge
from mlbridge import aot
from mlbridge.files import spec_of
from mlbridge_optimizations.commands.demo import Steps, demo_on
from mlbridge_optimizations.evaluation.tables import write_json

from . import corpus, report
from .evaluate import (
    SERVED,
    UnexpectedStatistics,
    build_by_model,
    build_by_served_model,
    build_stock,
    compare_bzip2,
    compare_objects,
)
from .export import write_onnx
from .policy import Policy
from .record import read_table, record
from .train import Epoch, Settings, train

BUILD = Path("build").resolve()

# Exceptions that are printed without a traceback.
FAILURES = (mlbridge.Error, UnexpectedStatistics, OSError, subprocess.SubprocessError)


def demo(
    steps: Steps, settings: Settings, jobs: int, plugin: Path, model_dir: Path
) -> report.Outcome:
    """Runs the whole demo and returns its results."""
    work = BUILD / "demo"
    with steps.step("Fetch bzip2, zlib and Lua", 1) as step:
        programs = corpus.fetch(BUILD / "workloads")
        step.advance()
    # Record bzip2's decisions for the comparison, but do not train on them.
    units = {}
    files = sum(len(program.sources) for program in programs.values())
    with steps.step("Record what LLVM inlines", files) as step:
        for name, program in programs.items():
            into = work / "record" / name
            units[name] = record(program, plugin, into, jobs, step.advance)
    with steps.step("Train a network on these decisions", settings.epochs) as step:
        lessons = [unit for name in corpus.TRAINING for unit in units[name]]

        def show(epoch: Epoch) -> None:
            step.advance(f"{epoch.validation.accuracy:.1%} agree")

        table = read_table(lessons)
        training = train(table, settings, show)
        training.network.save(model_dir / "inliner.pt")
        write_onnx(training.network, model_dir / "inliner.onnx", table, settings.seed)
        report.plot_curve(training, model_dir / "learning-curve.png")
    test = programs[corpus.TEST]
    files = len(test.sources)
    with steps.step(f"Compile {test.name} with clang -Oz", files) as step:
        stock = build_stock(test, work / "stock", jobs, step.advance)
    # Use the same model in another process, with ONNX Runtime, and as machine code.
    policy = Policy(training.network)
    builds = []
    for way, serdes in SERVED.items():
        with steps.step(f"By the model, {way}", files) as step:
            by = (plugin, work / serdes, step.advance)
            builds.append(build_by_served_model(test, policy, way, *by))
    model, library = model_dir / "inliner.onnx", work / "libinliner.so"
    with steps.step("Compile the model to machine code", 1) as step:
        aot.compile_model(model, library)
        step.advance()
    for scheme, file in {"onnx": model, "aot": library}.items():
        with steps.step(f"By the model, {scheme}", files) as step:
            by = (plugin, work / scheme, step.advance)
            builds.append(build_by_model(test, scheme, spec_of(scheme, file), *by))
    inputs = [*sorted(test.folder.glob("sample*.ref")), test.folder / "manual.ps"]
    inputs.append(corpus.concatenate_sources(programs.values(), work / "sources.txt"))
    with steps.step("Run it on real data", len(inputs)) as step:
        differences = [compare_bzip2(stock, builds[0], inputs, step.advance)]
    differences += [compare_objects(builds[0], other) for other in builds[1:]]
    return report.Outcome(
        settings=settings,
        programs=list(programs.values()),
        tables={name: read_table(units[name]) for name in programs},
        training=training,
        stock=stock,
        builds=[
            replace(build, differences=tuple(found))
            for build, found in zip(builds, differences, strict=True)
        ],
        inputs=inputs,
        seconds=steps.seconds,
    )


def main(
    seed: Annotated[
        int, typer.Option(help="Random seed for the weights and the validation.")
    ] = Settings.seed,
    derived: Annotated[
        bool, typer.Option(help="Add the margin of threshold over cost as an input.")
    ] = Settings.derived,
    jobs: Annotated[
        int, typer.Option(min=1, help="Parallel compilers in steps that are not timed.")
    ] = os.cpu_count() or 1,
    plugin: Annotated[
        Path, typer.Option(help="The LLVM plug-in.", exists=True, dir_okay=False)
    ] = BUILD / "release" / "lib" / "MLBridgeLLVM.so",
    model_dir: Annotated[
        Path, typer.Option(help="Folder of the trained network and its curve.")
    ] = BUILD / "demo" / "model",
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write all results to a file.")
    ] = None,
) -> None:
    """Compile bzip2 with a stock clang that inlines with a newly trained model.

    The model runs in another process, then in the compiler with ONNX Runtime, and then
    as machine code. The demo fails if the model's decisions differ too often from
    LLVM's, if this bzip2 differs from clang's bzip2 in size or behaviour, or if the
    object files depend on where the model runs.
    """
    console = Console()
    settings = Settings(seed=seed, derived=derived)
    model_dir.mkdir(parents=True, exist_ok=True)
    with demo_on(console, *FAILURES) as steps:
        outcome = demo(steps, settings, jobs, plugin.resolve(), model_dir)
    console.print("", report.data_table(outcome), "", report.result_table(outcome))
    console.print(f"The network and its learning curve are in {model_dir}.")
    write_json(json_file, report.figures(outcome))
    conditions = report.conditions(outcome.stock, outcome.builds)
    violated = [condition for condition, holds in conditions.items() if not holds]
    for condition in violated:
        console.print(f"Failed: {condition}", style="bold red")
    if violated:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
