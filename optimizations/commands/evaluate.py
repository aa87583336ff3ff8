# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge evaluate``: what a trained model is worth."""

from collections import Counter
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer
from rich.progress import TaskID
from rich.table import Table

from mlbridge.errors import InvalidArgument
from mlbridge.terminal import console, errors
from mlbridge_optimizations.commands.progress import progress_bars
from mlbridge_optimizations.extras import need

app = typer.Typer(
    no_args_is_help=True,
    help="What a trained model is worth, on programs that it has not seen.",
)

CorpusFolder = Annotated[Path, typer.Option(help="Its folder.")]

Programs = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="This one only, whatever its split; may be repeated.",
    ),
]

Timeout = Annotated[
    float,
    typer.Option(
        min=1,
        help="Seconds for a sequence on a module of up to 10,000 instructions; a"
        " larger one has more in proportion.",
    ),
]


@app.callback()
def _group() -> None: ...


@app.command("phase-ordering")
def phase_ordering(
    model: Annotated[Path, typer.Argument(exists=True, dir_okay=False)],
    corpus: CorpusFolder = Path("build/corpus"),
    split: Annotated[str, typer.Option(help="held-out or training.")] = "held-out",
    program: Programs = None,
    core: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The core set to compare with. [default: core.json beside the model,"
            " if there is one]",
        ),
    ] = None,
    tries: Annotated[int, typer.Option(min=1, help="K of the best of K.")] = 8,
    seed: Annotated[int, typer.Option(help="Of what is drawn.")] = 0,
    max_instructions: Annotated[
        int | None, typer.Option(help="Leave larger modules out.")
    ] = None,
    vocabulary: Annotated[
        Path | None, typer.Option(help="Of the model's embeddings, if it has any.")
    ] = None,
    timeout: Timeout = 120,
    runs: Annotated[
        int,
        typer.Option(
            min=0, help="Run the programs so often, too: their outputs and times."
        ),
    ] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Compilers at once.")] = 1,
    measured: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Sizes that are in it are not measured again, and new ones are added.",
        ),
    ] = None,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write everything as JSON.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw it.")
    ] = None,
) -> None:
    """Compare a model of phase ordering with stock clang and with cheap baselines.

    ```sh
    mlbridge evaluate phase-ordering build/phase-ordering/coreset/model.onnx --runs 3
    ```
    """
    drawing = ("matplotlib",) if plot is not None else ()
    need(
        "mlbridge evaluate phase-ordering",
        ("gymnasium", "elftools", "onnxruntime", *drawing),
    )
    from mlbridge_optimizations.corpus import manifest
    from mlbridge_optimizations.phase_ordering import evaluate, programs, report
    from mlbridge_optimizations.phase_ordering.coreset import CoreSet
    from mlbridge_optimizations.phase_ordering.model import Model

    found_model = Model(model)
    _check_vocabulary(found_model, vocabulary)
    beside = core or model.with_name("core.json")
    core_set = CoreSet.load(beside) if core or beside.is_file() else None
    corpus_found = manifest.load(corpus.resolve())
    with progress_bars() as bars:
        tasks: dict[str, TaskID] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage)
            bars.update(tasks[stage], completed=done, total=total)

        found = evaluate.evaluate(
            corpus_found,
            split,
            found_model,
            core_set,
            evaluate.EvaluationSettings(
                tries,
                seed,
                programs=tuple(program or ()),
                most=max_instructions,
                timeout=timeout,
            ),
            vocabulary=vocabulary,
            jobs=jobs,
            log=measured,
            show=show,
        )
    statistics = report.Statistics(found)
    console.print(statistics.table())
    for line in statistics.pairs():
        console.print(line)
    if core_set is None:
        console.print(
            f"There is no {beside}: nothing to compare with but random sequences of the"
            " model's own actions.",
            soft_wrap=True,
        )
    console.print(
        "'emitted' are the objects made for a file in order to choose, -Oz's among"
        " them; the last state of a sequence counts. Random ones are the mean of 5."
    )
    for failure in found.failures:
        errors.print(
            f"{failure.kind} on {failure.file}: {failure.pipeline or 'any sequence'}",
            style="yellow",
            soft_wrap=True,
        )
    about: dict[str, object] = {
        "model": {"file": model.name, "sha256": found_model.digest},
        "compiler": corpus_found.compiler,
        "split": None if program else split,
        "core_set": None if core_set is None else beside.name,
        "tries": tries,
        "seed": seed,
    }
    # Before anything is run: that may take long, and fail.
    if json is not None:
        json.write_text(statistics.to_json(**about) + "\n", encoding="utf-8")
    if plot is not None:
        statistics.plot(plot)
    if not runs:
        return
    with progress_bars() as bars:
        task = bars.add_task("Running")
        ran = programs.run_programs(
            corpus_found,
            found,
            found.ways[0],
            found_model.task.actions.prologue,
            repeat=runs,
            timeout=timeout,
            show=lambda done, total: bars.update(task, completed=done, total=total),
        )
    seconds = {p: [r.seconds for r in both] for p, both in ran.items()}
    console.print(report.run_table(seconds, ["-Oz", "model, alone"]))
    for name, both in ran.items():
        for outcome in both:
            if not outcome.passed:
                errors.print(f"{name}: {outcome.problem}", style="red")
    if json is not None:
        about["runs"] = {p: [vars(r) for r in both] for p, both in ran.items()}
        json.write_text(statistics.to_json(**about) + "\n", encoding="utf-8")
    if any(not outcome.passed for both in ran.values() for outcome in both):
        raise typer.Exit(1)


@app.command()
def outputs(
    model: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL]...",
            help="A spec, or the name of an .onnx file: compiled by clang with it.",
        ),
    ] = None,
    corpus: CorpusFolder = Path("build/corpus"),
    split: Annotated[
        str | None,
        typer.Option(
            help="held-out, training or generated. [default: all but generated]"
        ),
    ] = None,
    program: Programs = None,
    random: Annotated[int, typer.Option(min=0, help="Random policies, too.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Of the first of these.")] = 0,
    timeout: Timeout = 120,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Programs at once.")] = 1,
    out: Annotated[
        Path, typer.Option(help="The folder for results and reproducers.")
    ] = Path("build/outputs"),
) -> None:
    """Compare what programs write, by any policy, with what they write without it.

    A random policy takes actions by chance, of one of the spaces oz, odg and passes.
    What is known already, in `results.jsonl`, is not tried again.

    ```sh
    mlbridge evaluate outputs policy.onnx --random 50
    mlbridge evaluate outputs --random 50 --split generated --jobs 2
    ```
    """
    if not model and not random:
        raise InvalidArgument("name a model, or ask for random policies: --random 50")
    need("mlbridge evaluate outputs", ("gymnasium", "elftools"))
    from mlbridge_optimizations.corpus import manifest
    from mlbridge_optimizations.phase_ordering.outputs import (
        OutputsSettings,
        check_outputs,
    )

    specs = tuple(
        f"onnx:{quote(str(Path(name).resolve()), safe='/')}"
        if Path(name).is_file()
        else name
        for name in model or ()
    )
    found = manifest.load(corpus.resolve())
    chosen = found.select(split, only=program or ())
    with progress_bars() as bars:
        task = bars.add_task("Programs", total=len(chosen))
        outcomes = check_outputs(
            found,
            chosen,
            OutputsSettings(specs, random, seed, out, timeout),
            jobs=jobs,
            show=lambda done, total: bars.update(task, completed=done, total=total),
        )
    table = Table("what came of it", "times", title="Outputs against -O0")
    counted: Counter[str] = Counter()
    for outcome in outcomes:
        counted["programs compiled by a policy"] += outcome.policies
        counted["of these, different executables"] += outcome.executables
        counted.update(f"output: {finding.kind}" for finding in outcome.findings)
        counted.update(f"compiler: {failure.kind}" for failure in outcome.failures)
        counted["programs that could not be tried"] += bool(outcome.error)
    table.add_row("programs", f"{len(outcomes):,}")
    for what, times in counted.items():
        if times:
            table.add_row(what, f"{times:,}")
    console.print(table)
    for outcome in outcomes:
        if outcome.error:
            errors.print(f"{outcome.program}: {outcome.error}", style="red")
        for each in (*outcome.findings, *outcome.failures):
            errors.print(
                f"{outcome.program}, {each.policy}: {each.kind}: {each.problem}"
                f" {each.see}",
                style="yellow",
                soft_wrap=True,
                markup=False,
            )
    if not all(outcome.is_good for outcome in outcomes):
        raise typer.Exit(1)


def _check_vocabulary(model: object, vocabulary: Path | None) -> None:
    from mlbridge_optimizations import ir2vec

    wanted = getattr(model, "vocabulary", None)
    if wanted is None:
        return
    if vocabulary is None:
        raise InvalidArgument(
            f"the model sees embeddings by {wanted['name']}: name it with --vocabulary"
        )
    found = ir2vec.load(vocabulary).hash
    if found != wanted["hash"]:
        raise InvalidArgument(
            f"{vocabulary}: expected the model's vocabulary, {wanted['hash']}, found"
            f" {found}"
        )
