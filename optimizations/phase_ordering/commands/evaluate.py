# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge evaluate``: a model beside baselines, and whether programs still work."""

from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from typer import Argument, Option

from mlbridge.errors import InvalidArgument
from mlbridge.files import spec_of
from mlbridge.options import with_options
from mlbridge.terminal import console, errors
from mlbridge_optimizations.commands.progress import progress_bars, stages_on
from mlbridge_optimizations.extras import need

from ..environment.settings import CorpusFolder, Plugin, Programs, Timeout
from ..evaluation.settings import Compared

if TYPE_CHECKING:
    from mlbridge_optimizations.corpus import Corpus

    from ..evaluation.evaluate import Evaluation


@dataclass(frozen=True)
class What:
    """What is compared, and on which programs."""

    model: Annotated[Path, Argument(exists=True, dir_okay=False)]
    corpus: CorpusFolder = Path("build/corpus")
    split: Annotated[str, Option(help="held-out or training.")] = "held-out"
    core: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="The core set to compare with. [default: core.json beside the model,"
            " if there is one]",
        ),
    ] = None
    vocabulary: Annotated[
        Path | None, Option(help="Of the model's embeddings, if it has any.")
    ] = None


@dataclass(frozen=True)
class How:
    """How that is done, and what is written."""

    runs: Annotated[
        int,
        Option(min=0, help="Run the programs so often, too: their outputs and times."),
    ] = 0
    jobs: Annotated[int, Option("--jobs", "-j", help="Compilers at once.")] = 1
    measured: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Sizes that are in it are not measured again, and new ones are added.",
        ),
    ] = None
    json: Annotated[
        Path | None, Option(metavar="FILE", help="Write everything as JSON.")
    ] = None
    plot: Annotated[Path | None, Option(metavar="FILE.png", help="Draw it.")] = None


def _evaluate(context: typer.Context, what: What, compared: Compared, how: How) -> None:
    """Compare a model of phase ordering with stock clang and with cheap baselines.

    ```sh
    mlbridge evaluate phase-ordering build/phase-ordering/coreset/model.onnx --runs 3
    ```
    """
    drawing = ("matplotlib",) if how.plot is not None else ()
    need(
        "mlbridge evaluate phase-ordering",
        ("gymnasium", "elftools", "onnxruntime", *drawing),
    )
    from mlbridge import ir2vec
    from mlbridge_optimizations.corpus import manifest

    from ..evaluation import evaluate, report
    from ..model.coreset import CoreSet
    from ..model.model import Model

    model = Model(what.model)
    if (wanted := model.vocabulary) is not None:
        if what.vocabulary is None:
            raise InvalidArgument(
                f"the model sees embeddings by {wanted['name']}: name it with"
                " --vocabulary"
            )
        if (vocabulary := ir2vec.load(what.vocabulary)).hash != wanted["hash"]:
            raise InvalidArgument(
                f"{what.vocabulary}: expected the model's vocabulary, {wanted['hash']},"
                f" found {vocabulary.hash}"
            )
    beside = what.core or what.model.with_name("core.json")
    core_set = CoreSet.load(beside) if what.core or beside.is_file() else None
    corpus = manifest.load(what.corpus.resolve())
    with progress_bars() as bars:
        found = evaluate.evaluate(
            corpus,
            what.split,
            model,
            core_set,
            evaluate.EvaluationSettings(**vars(compared)),
            vocabulary=what.vocabulary,
            jobs=how.jobs,
            log=how.measured,
            show=stages_on(bars),
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
        said = f"{failure.kind} on {failure.file}: {failure.pipeline or 'any sequence'}"
        errors.print(said, style="yellow", soft_wrap=True)
    about: dict[str, object] = {
        "model": {"file": what.model.name, "sha256": model.digest},
        "compiler": corpus.compiler,
        "split": None if compared.programs else what.split,
        "core_set": None if core_set is None else beside.name,
        "tries": compared.tries,
        "seed": compared.seed,
    }
    # Before anything is run: that may take long, and fail.
    if how.json is not None:
        how.json.write_text(statistics.to_json(**about) + "\n", encoding="utf-8")
    if how.plot is not None:
        statistics.plot(how.plot)
    if how.runs:
        prologue = model.task.actions.prologue
        ran = _ran(how, compared.timeout, corpus, found, prologue)
        if how.json is not None:
            about["runs"] = {p: [vars(r) for r in both] for p, both in ran.items()}
            how.json.write_text(statistics.to_json(**about) + "\n", encoding="utf-8")
        if any(not outcome.passed for both in ran.values() for outcome in both):
            raise typer.Exit(1)


def _ran(
    how: How, timeout: float, corpus: "Corpus", found: "Evaluation", prologue: str
) -> dict[str, Any]:
    """The programs as -Oz and as the model has compiled them, run and shown."""
    from ..evaluation import programs, report

    with progress_bars() as bars:
        show = partial(stages_on(bars), "Running")
        ran: dict[str, Any] = programs.run_programs(
            corpus,
            found,
            found.ways[0],
            prologue,
            repeat=how.runs,
            timeout=timeout,
            show=show,
        )
    seconds = {p: [r.seconds for r in both] for p, both in ran.items()}
    console.print(report.run_table(seconds, ["-Oz", "model, alone"]))
    for name, both in ran.items():
        for outcome in both:
            if not outcome.passed:
                errors.print(f"{name}: {outcome.problem}", style="red")
    return ran


@dataclass(frozen=True)
class Tried:
    """Whose outputs are compared, and of which programs."""

    model: Annotated[
        list[str] | None,
        Argument(
            metavar="[MODEL]...",
            help="A spec, or the name of an .onnx file: compiled by clang with it.",
        ),
    ] = None
    corpus: CorpusFolder = Path("build/corpus")
    split: Annotated[
        str | None,
        Option(help="held-out, training or generated. [default: all but generated]"),
    ] = None
    programs: Programs = None
    random: Annotated[int, Option(min=0, help="Random policies, too.")] = 0
    seed: Annotated[int, Option(min=0, help="Of the first of these.")] = 0
    timeout: Timeout = 120
    plugin: Plugin = None
    jobs: Annotated[int, Option("--jobs", "-j", help="Programs at once.")] = 1
    out: Annotated[Path, Option(help="The folder for results and reproducers.")] = Path(
        "build/outputs"
    )


def _outputs(context: typer.Context, tried: Tried) -> None:
    """Compare what programs write, by any policy, with what they write without it.

    A random policy takes actions by chance, of one of the spaces oz, odg and passes.
    What is known already, in `results.jsonl`, is not tried again.

    ```sh
    mlbridge evaluate outputs policy.onnx --random 50
    mlbridge evaluate outputs --random 50 --split generated --jobs 2
    ```
    """
    if not tried.model and not tried.random:
        raise InvalidArgument("name a model, or ask for random policies: --random 50")
    need("mlbridge evaluate outputs", ("gymnasium", "elftools"))
    from mlbridge_optimizations.corpus import manifest

    from ..evaluation.outputs import OutputsSettings, check_outputs

    specs = tuple(
        spec_of("onnx", name) if Path(name).is_file() else name
        for name in tried.model or ()
    )
    found = manifest.load(tried.corpus.resolve())
    chosen = found.select(tried.split, only=tried.programs or ())
    with progress_bars() as bars:
        show = partial(stages_on(bars), "Programs")
        told = OutputsSettings(
            specs,
            tried.random,
            tried.seed,
            tried.out,
            timeout=tried.timeout,
            plugin=tried.plugin,
        )
        outcomes = check_outputs(found, chosen, told, jobs=tried.jobs, show=show)
    table = Table("what came of it", "times", title="Outputs against -O0")
    counted: Counter[str] = Counter()
    for outcome in outcomes:
        counted["programs compiled by a policy"] += outcome.policies
        counted["of these, different executables"] += outcome.executables
        counted.update(f"output: {finding.kind}" for finding in outcome.findings)
        counted.update(f"compiler: {failure.kind}" for failure in outcome.failures)
        counted["programs that could not be tried"] += bool(outcome.error)
    table.add_row("programs", f"{len(outcomes):,}")
    for result, times in counted.items():
        if times:
            table.add_row(result, f"{times:,}")
    console.print(table)
    for outcome in outcomes:
        if outcome.error:
            errors.print(f"{outcome.program}: {outcome.error}", style="red")
        for each in (*outcome.findings, *outcome.failures):
            said = f"{each.policy}: {each.kind}: {each.problem} {each.see}"
            said = f"{outcome.program}, {said}"
            errors.print(said, style="yellow", soft_wrap=True, markup=False)
    if not all(outcome.is_good for outcome in outcomes):
        raise typer.Exit(1)


COMMANDS = {
    "evaluate phase-ordering": with_options(_evaluate, What, Compared, How),
    "evaluate outputs": with_options(_outputs, Tried),
}
