# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The part of `make demo` in which a model decides which passes clang runs.

First a small policy is trained for a minute on zlib and Lua. Then stock clang compiles
zstd, on which no policy was trained. Clang uses the policy that is built into the
plug-in, or the small policy if the plug-in contains no policy.

To run it: `.venv/bin/python -m mlbridge_optimizations.phase_ordering`
"""

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

import mlbridge
from mlbridge.envs.machine_code import text_size
from mlbridge.files import spec_of
from mlbridge_optimizations import corpus
from mlbridge_optimizations.commands.demo import Step, Steps, demo_on, side_by_side
from mlbridge_optimizations.corpus import runs, toolchain
from mlbridge_optimizations.evaluation.tables import write_json
from mlbridge_optimizations.training import policy
from mlbridge_optimizations.training.curve import Curve
from mlbridge_optimizations.training.experiment import Experiment
from mlbridge_optimizations.training.settings import TrainingSettings

from .model.training import PhaseOrderingSettings
from .optimization import OPTIMIZATION

BUILD = Path("build").resolve()
CONFIG = BUILD / "release/lib/mlbridge-oz.cfg"
TRAINING, TEST = ("lua", "zlib"), "zstd"
RUNS = 2  # The number of runs per executable. The fastest run is used.


@dataclass(frozen=True)
class Build:
    """The results of compiling and testing the program in one way."""

    text_bytes: int  # The size of the machine code.
    compile_seconds: float  # The wall time to compile all files.
    run_seconds: float  # The user CPU time of the run test.
    problem: str  # How the output differs from an unoptimised run, or "" if equal.


def learn(
    found: corpus.Corpus, out: Path, actions: int, jobs: int, step: Step
) -> Curve:
    """Trains a policy. Raises InvalidArgument if no episode ends within `actions`."""
    names = [program.name for program in found.select("training")]
    environment = PhaseOrderingSettings(
        found.folder,
        leave_out=[name for name in names if name not in TRAINING],
        # In this space, random actions gain little, so learning is visible early.
        actions="passes",
        episode=12,
        max_instructions=1500,
    )
    settings = TrainingSettings(
        out, workers=jobs, steps=actions, learning_rate=1e-3, gamma=0.95, rollout=256
    )

    def show(done: int, total: int, recent: float | None) -> None:
        step.reach(done, "" if recent is None else f"return {recent:.2f}")

    policy.train(Experiment(OPTIMIZATION, environment, settings), show=show)
    curve = Curve(OPTIMIZATION.metric).load(out / "curve.csv")
    if not curve.steps:
        raise mlbridge.InvalidArgument(
            f"no episode ended in {actions} actions by {jobs} compilers: more --actions"
        )
    return curve


def first_and_last(curve: Curve) -> tuple[float, float]:
    """Returns mean sizes relative to -Oz in the first and last 10 % of episodes."""
    count = max(1, len(curve.values) // 10)
    return fmean(curve.values[:count]), fmean(curve.values[-count:])


def has_built_in() -> bool:
    """Returns whether clang's config file selects a policy built into the plug-in."""
    lines = CONFIG.read_text(encoding="utf-8").splitlines()
    return any("-mlbridge-phase-ordering=builtin:" in line for line in lines)


def build(
    found: corpus.Corpus, flags: Sequence[str], folder: Path, jobs: int, step: Step
) -> Build:
    """Compiles, links and tests the program."""
    program = found.programs[TEST]
    folder.mkdir(parents=True, exist_ok=True)

    def compile_one(number: int) -> Path:
        target = folder / f"{number}.o"
        module = program.modules[number]
        toolchain.compile_source(program, module, target, "-Oz", flags)
        step.advance()
        return target

    start = time.perf_counter()
    with ThreadPoolExecutor(jobs) as pool:
        objects = list(pool.map(compile_one, range(len(program.modules))))
    seconds = time.perf_counter() - start
    executable = folder / TEST
    toolchain.link(objects, program.libraries, executable, cpp=program.is_cpp)
    with runs.Tester(found, program) as tester:
        tries = [tester.run(executable) for _ in range(RUNS)]
    step.advance()
    return Build(
        sum(text_size(path.read_bytes(), path.name) for path in objects),
        seconds,
        min(run.seconds for run in tries),
        next((run.problem for run in tries if not run.passed), ""),
    )


def result_table(builds: dict[str, Build]) -> Table:
    """Returns a table with one column for each way to compile."""
    rows = {
        "text size": [f"{it.text_bytes:,} B" for it in builds.values()],
        "compile time": [f"{it.compile_seconds:.1f} s" for it in builds.values()],
        "run time": [f"{it.run_seconds:.2f} s" for it in builds.values()],
        "writes what -O0 writes": [it.problem or "yes" for it in builds.values()],
    }
    return side_by_side(f"{TEST}, not seen in training", list(builds), rows)


def demo(steps: Steps, out: Path, actions: int, jobs: int) -> dict[str, Any]:
    """Runs the demo and returns its results."""
    wanted = [*TRAINING, TEST]
    with steps.step("Fetch and compile zlib, Lua and zstd", 1) as step:
        fetched = corpus.fetch(BUILD / "corpus", programs=wanted, jobs=jobs)
        step.advance()
    for name, problem in fetched.failed.items():
        raise mlbridge.CompilerFailed(f"{name}: {problem}")
    found = fetched.corpus
    with steps.step("Learn to order passes", actions) as step:
        curve = learn(found, out, actions, jobs, step)
    is_built_in = has_built_in()
    flags = [f"--config={CONFIG}"]
    if not is_built_in:
        spec = spec_of("onnx", out / "model.onnx")
        flags += ["-mllvm", f"-mlbridge-phase-ordering={spec}"]
    flags += ["-mllvm", "-mlbridge-on-error=fatal"]
    builds = {}
    for name, more in {"clang -Oz": [], "by the policy": flags}.items():
        files = len(found.programs[TEST].modules)
        with steps.step(f"Compile and run {TEST}, {name}", files + 1) as step:
            folder = out / name.replace(" ", "-")
            builds[name] = build(found, more, folder, jobs, step)
    return {"curve": curve, "is_built_in": is_built_in, "builds": builds}


def main(
    actions: Annotated[
        int, typer.Option(min=64, help="Actions in the short training.")
    ] = 4096,
    jobs: Annotated[int, typer.Option(min=1, help="Compilers in parallel.")] = (
        os.cpu_count() or 1
    ),
    out: Annotated[
        Path, typer.Option(help="Folder for the trained model and its curve.")
    ] = BUILD / "demo/phase-ordering",
    json_file: Annotated[
        Path | None, typer.Option("--json", help="JSON file for all figures.")
    ] = None,
) -> None:
    """Compile zstd with a stock clang in which a policy decides which passes run.

    The demo shows the size of the compiled zstd. The demo fails if zstd's output
    differs from the output of an unoptimised zstd.
    """
    console = Console()
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with demo_on(console, mlbridge.Error, OSError) as steps:
        found = demo(steps, out, actions, jobs)
    builds = found["builds"]
    first, last = first_and_last(found["curve"])
    console.print(
        f"\nThe short training began at {first:.3f} of -Oz's size, and ended at"
        f" {last:.3f}: {out}/curve.png"
    )
    console.print(
        "zstd was compiled by the policy built into the plug-in, which was trained on"
        " far more."
        if found["is_built_in"]
        else "There is no policy in this plug-in (its build lacked"
        " models/phase-ordering-oz/model.onnx):\nzstd was compiled by the policy of the"
        " short training, which is worse than -Oz."
    )
    console.print("", result_table(builds))
    figures = {
        "policy": "built in" if found["is_built_in"] else "of the short training",
        "training": {"first": first, "last": last},
        "builds": {name: asdict(each) for name, each in builds.items()},
    }
    write_json(json_file, figures)
    if any(each.problem for each in builds.values()):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
