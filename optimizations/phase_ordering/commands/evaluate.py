# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge evaluate``: compares a model with baselines, and tests the programs."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from typer import Argument, Option

from mlbridge.errors import InvalidArgument
from mlbridge.files import spec_of
from mlbridge.options import with_options
from mlbridge.terminal import console, errors
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.commands.shared import (
    CorpusFolder,
    Jobs,
    Plugin,
    Programs,
)
from mlbridge_optimizations.evaluation.tables import write_json
from mlbridge_optimizations.extras import need

from ..environment.settings import Compared, Timeout

if TYPE_CHECKING:
    from mlbridge_optimizations.corpus import Corpus

    from ..evaluation.evaluate import Evaluation


@dataclass(frozen=True)
class What:
    """The model, the baselines and the programs."""

    model: Annotated[Path, Argument(exists=True, dir_okay=False, help="ONNX file.")]
    corpus: CorpusFolder = Path("build/corpus")
    split: Annotated[str, Option(help="Part of the corpus: held-out or training.")] = (
        "held-out"
    )
    core: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Core set to compare with. [default: core.json in the model's folder,"
            " if present]",
        ),
    ] = None
    vocabulary: Annotated[
        Path | None,
        Option(
            help="IR2Vec vocabulary in LLVM's JSON format. Required if the model uses"
            " embeddings."
        ),
    ] = None


@dataclass(frozen=True)
class How:
    """How to evaluate, and where to write the results."""

    rounds: Annotated[
        int,
        Option(
            min=0,
            help="How often each program is run to compare outputs and times. 0: do not"
            " run the programs.",
        ),
    ] = 0
    jobs: Jobs = 1
    measured: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="File of measured sizes. Sizes that it contains are not measured"
            " again, and new sizes are appended.",
        ),
    ] = None
    json: Annotated[
        Path | None, Option(metavar="FILE", help="JSON file for all results.")
    ] = None
    plot: Annotated[
        Path | None, Option(metavar="FILE.png", help="Image file for a plot.")
    ] = None


def _evaluate(context: typer.Context, what: What, compared: Compared, how: How) -> None:
    """Compare a model with clang -Oz and baselines by code size and by IR instructions.

    ```sh
    mlbridge evaluate phase-ordering build/phase-ordering/coreset/model.onnx --rounds 3
    ```
    """
    packages = ("gymnasium", "elftools", "onnxruntime")
    drawing = ("matplotlib",) if how.plot is not None else ()
    need("mlbridge evaluate phase-ordering", (*packages, *drawing))
    from mlbridge import ir2vec
    from mlbridge_optimizations.corpus import manifest

    from ..evaluation import evaluate, report
    from ..model.coreset import CoreSet
    from ..model.model import Model

    model = Model(what.model)
    if (wanted := model.vocabulary) is not None:
        if what.vocabulary is None:
            raise InvalidArgument(
                f"the model uses embeddings by {wanted['name']}: give its file with"
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
    with ProgressBars() as bars:
        found = evaluate.evaluate(
            corpus,
            what.split,
            model,
            core_set,
            evaluate.EvaluationSettings(**vars(compared)),
            vocabulary=what.vocabulary,
            jobs=how.jobs,
            log=how.measured,
            show=bars.show_stage,
        )
    statistics = report.Statistics(found)
    by_instructions = statistics.instructions()
    for each in filter(None, (statistics, by_instructions)):
        console.print(each.table())
        for line in each.pairs():
            console.print(line)
    if core_set is None:
        console.print(
            f"There is no {beside}: the only baselines are random sequences of the"
            " model's own actions.",
            soft_wrap=True,
        )
    console.print(
        "'emitted' is the number of objects made for a file before the choice, with"
        " -Oz's object. Sizes are those after a whole sequence. Rows with random"
        " sequences show the mean of 5 draws."
    )
    for failure in found.failures:
        text = f"{failure.kind} on {failure.file}: {failure.pipeline or 'any sequence'}"
        errors.print(text, style="yellow", soft_wrap=True)
    about: dict[str, object] = {
        "model": {"file": what.model.name, "sha256": model.digest},
        "compiler": corpus.compiler,
        "split": None if compared.programs else what.split,
        "core_set": None if core_set is None else beside.name,
        "tries": compared.tries,
        "seed": compared.seed,
    }
    about |= statistics.to_dict()
    if by_instructions is not None:
        about["instructions"] = by_instructions.to_dict()
    # Write the results now, because the runs below may take long and fail.
    write_json(how.json, about)
    if how.plot is not None:
        statistics.plot(how.plot)
    if how.rounds:
        prologue = model.task.actions.prologue
        ran = _ran(how, compared.timeout, corpus, found, prologue)
        about["runs"] = {p: [vars(r) for r in both] for p, both in ran.items()}
        write_json(how.json, about)
        if any(not outcome.passed for both in ran.values() for outcome in both):
            raise typer.Exit(1)


def _ran(
    how: How, timeout: float, corpus: "Corpus", found: "Evaluation", prologue: str
) -> dict[str, Any]:
    """Runs the programs that -Oz and the model have compiled, and shows times."""
    from ..evaluation.programs import run_programs

    with ProgressBars() as bars:
        ran: dict[str, Any] = run_programs(
            corpus,
            found,
            found.ways[0],
            prologue,
            repeat=how.rounds,
            timeout=timeout,
            show=bars.stage("Running"),
        )
    table = Table("program", title="User time of the run tests, s")
    for name in ("-Oz", "model, alone", "model, alone / -Oz"):
        table.add_column(name, justify="right")
    for name, both in ran.items():
        stock, ours = (run.seconds for run in both)
        ratio = ours / stock if stock else float("nan")
        table.add_row(name, f"{stock:.2f}", f"{ours:.2f}", f"{ratio:.3f}")
    console.print(table)
    for name, both in ran.items():
        for outcome in both:
            if not outcome.passed:
                errors.print(f"{name}: {outcome.problem}", style="red")
    return ran


@dataclass(frozen=True)
class Tried:
    """The policies and programs to test."""

    model: Annotated[
        list[str] | None,
        Argument(
            metavar="[MODEL]...",
            help="Model specs or ONNX files with which clang compiles the programs.",
        ),
    ] = None
    corpus: CorpusFolder = Path("build/corpus")
    split: Annotated[
        str | None,
        Option(
            help="Part of the corpus: held-out, training or generated. [default: the"
            " first two parts]"
        ),
    ] = None
    programs: Programs = None
    random: Annotated[int, Option(min=0, help="Number of random policies.")] = 0
    seed: Annotated[int, Option(min=0, help="Seed of the first random policy.")] = 0
    timeout: Timeout = 120
    plugin: Plugin = None
    jobs: Jobs = 1
    out: Annotated[Path, Option(help="Folder for results and reproducers.")] = Path(
        "build/phase-ordering/outputs"
    )


def _outputs(context: typer.Context, tried: Tried) -> None:
    """Check that programs print the same output with a policy as without optimisation.

    A random policy picks random actions from one of the action spaces oz, odg and
    passes. Results that are already in `results.jsonl` are not computed again.

    ```sh
    mlbridge evaluate phase-ordering-outputs policy.onnx --random 50
    mlbridge evaluate phase-ordering-outputs --random 50 --split generated --jobs 2
    ```
    """
    if not tried.model and not tried.random:
        raise InvalidArgument("name a model, or ask for random policies: --random 50")
    need("mlbridge evaluate phase-ordering-outputs", ("gymnasium", "elftools"))
    from mlbridge_optimizations.corpus import manifest

    from ..evaluation.outputs import OutputsSettings, check_outputs

    specs = tuple(
        spec_of("onnx", name) if Path(name).is_file() else name
        for name in tried.model or ()
    )
    settings = OutputsSettings(
        specs, tried.random, tried.seed, tried.out, tried.timeout, tried.plugin
    )
    found = manifest.load(tried.corpus.resolve())
    chosen = found.select(tried.split, only=tried.programs or ())
    with ProgressBars() as bars:
        show = bars.stage("Programs")
        outcomes = check_outputs(found, chosen, settings, jobs=tried.jobs, show=show)
    table = Table("result", "times", title="Outputs against -O0")
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
        for it in (*outcome.findings, *outcome.failures):
            text = f"{outcome.program}, {it.policy}: {it.kind}: {it.problem} {it.see}"
            errors.print(text, style="yellow", soft_wrap=True, markup=False)
    if not all(outcome.is_good for outcome in outcomes):
        raise typer.Exit(1)


COMMANDS = {
    "evaluate phase-ordering": with_options(_evaluate, What, Compared, How),
    "evaluate phase-ordering-outputs": with_options(_outputs, Tried),
}
