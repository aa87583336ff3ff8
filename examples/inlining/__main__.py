# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`make demo`, or `.venv/bin/python -m examples.inlining` in the project's folder."""

import json
import os
import subprocess
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import mlbridge

from . import corpus, report
from .evaluate import (
    SERDES,
    UnexpectedStatistics,
    build_by_policy,
    build_stock,
    compare_bzip2,
)
from .policy import Policy
from .progress import Steps
from .record import read_table, record
from .toolchain import ToolFailed
from .train import Epoch, Settings, train

BUILD = corpus.ROOT / "build"

# What may go wrong outside of this program, each with a text that says what.
FAILURES = (
    mlbridge.Error,
    ToolFailed,
    UnexpectedStatistics,
    OSError,
    subprocess.SubprocessError,
)


def demo(
    steps: Steps, settings: Settings, jobs: int, plugin: Path, model_dir: Path
) -> report.Outcome:
    """All of it, from the sources to the comparison; reads as what happens."""
    work = BUILD / "demo"

    with steps.step("Fetch bzip2, zlib and Lua", 1) as step:
        programs = corpus.fetch(BUILD / "workloads")
        step.advance()

    # bzip2's decisions are not learned from: the table compares with them.
    units = {}
    files = sum(len(program.sources) for program in programs.values())
    with steps.step("Record what LLVM inlines", files) as step:
        for name, program in programs.items():
            into = work / "record" / name
            units[name] = record(program, plugin, into, jobs, step.advance)

    with steps.step("Train a network to do likewise", settings.epochs) as step:
        lessons = [unit for name in corpus.TRAINING for unit in units[name]]

        def show(epoch: Epoch) -> None:
            step.advance(f"{epoch.validation.accuracy:.1%} agree")

        training = train(read_table(lessons), settings, show)
        training.network.save(model_dir / "inliner.pt")
        report.plot_curve(training, model_dir / "learning-curve.png")

    test = programs[corpus.TEST]
    files = len(test.sources)
    with steps.step(f"Compile {test.name} with clang -Oz", files) as step:
        stock = build_stock(test, work / "stock", jobs, step.advance)

    policy = Policy(training.network)
    builds = []
    for serdes in SERDES:
        with steps.step(f"Compile {test.name} by the model, {serdes}", files) as step:
            into = work / serdes
            builds.append(
                build_by_policy(test, policy, serdes, plugin, into, step.advance)
            )

    inputs = [*sorted(test.folder.glob("sample*.ref")), test.folder / "manual.ps"]
    inputs.append(corpus.concatenate_sources(programs.values(), work / "sources.txt"))
    results = []
    with steps.step("Run both on real data", len(inputs) * len(builds)) as step:
        for build in builds:
            differences = compare_bzip2(stock, build, inputs, step.advance)
            results.append(report.Result(build, differences))

    return report.Outcome(
        settings=settings,
        programs=list(programs.values()),
        tables={name: read_table(units[name]) for name in programs},
        training=training,
        stock=stock,
        results=results,
        inputs=inputs,
        seconds=steps.seconds,
    )


def main(
    seed: Annotated[
        int, typer.Option(help="Seeds the network's weights and the validation split.")
    ] = Settings.seed,
    derived: Annotated[
        bool,
        typer.Option(help="Give the network the margin of threshold over cost, too."),
    ] = Settings.derived,
    jobs: Annotated[
        int, typer.Option(min=1, help="Compilers at once, where none is timed.")
    ] = os.cpu_count() or 1,
    plugin: Annotated[
        Path, typer.Option(help="The LLVM plug-in.", exists=True, dir_okay=False)
    ] = BUILD / "release" / "lib" / "MLBridgeLLVM.so",
    model_dir: Annotated[
        Path, typer.Option(help="Where the trained network and its curve go.")
    ] = BUILD / "demo" / "model",
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write all figures to a file, too.")
    ] = None,
) -> None:
    """Compile bzip2 with a stock clang that inlines by a model trained a moment ago.

    Fails if the model's decisions differ too often from LLVM's at the same states, or
    if its bzip2 is of another size than clang's, or does anything else.
    """
    console = Console()
    settings = Settings(seed=seed, derived=derived)
    model_dir.mkdir(parents=True, exist_ok=True)
    try:
        with Steps(console) as steps:
            outcome = demo(steps, settings, jobs, plugin.resolve(), model_dir)
    except FAILURES as failure:
        console.print(f"demo: {failure}", style="red", markup=False, highlight=False)
        raise typer.Exit(1) from None

    console.print()
    console.print(report.data_table(outcome))
    console.print()
    console.print(report.result_table(outcome))
    console.print(f"The network and its learning curve are in {model_dir}.")
    if json_file:
        figures = json.dumps(report.figures(outcome), indent=2)
        json_file.write_text(figures + "\n", encoding="utf-8")
    promises = report.promises(outcome.stock, outcome.results)
    broken = [promise for promise in promises if not promise.kept]
    for promise in broken:
        console.print(f"Not so: {promise}", style="bold red")
    if broken:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
