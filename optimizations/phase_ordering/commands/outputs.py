# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge evaluate outputs``: programs still do what they should."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer
from rich.table import Table
from typer import Argument, Option

from mlbridge.errors import InvalidArgument
from mlbridge.terminal import console, errors
from mlbridge_optimizations.commands.options import with_options
from mlbridge_optimizations.commands.progress import progress_bars
from mlbridge_optimizations.extras import need
from mlbridge_optimizations.phase_ordering.settings import (
    CorpusFolder,
    Programs,
    Timeout,
)


@dataclass(frozen=True)
class What:
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
    program: Programs = None
    random: Annotated[int, Option(min=0, help="Random policies, too.")] = 0
    seed: Annotated[int, Option(min=0, help="Of the first of these.")] = 0
    timeout: Timeout = 120
    jobs: Annotated[int, Option("--jobs", "-j", help="Programs at once.")] = 1
    out: Annotated[Path, Option(help="The folder for results and reproducers.")] = Path(
        "build/outputs"
    )


def _outputs(context: typer.Context, what: What) -> None:
    """Compare what programs write, by any policy, with what they write without it.

    A random policy takes actions by chance, of one of the spaces oz, odg and passes.
    What is known already, in `results.jsonl`, is not tried again.

    ```sh
    mlbridge evaluate outputs policy.onnx --random 50
    mlbridge evaluate outputs --random 50 --split generated --jobs 2
    ```
    """
    if not what.model and not what.random:
        raise InvalidArgument("name a model, or ask for random policies: --random 50")
    need("mlbridge evaluate outputs", ("gymnasium", "elftools"))
    from mlbridge_optimizations.corpus import manifest
    from mlbridge_optimizations.phase_ordering.evaluation.outputs import (
        OutputsSettings,
        check_outputs,
    )

    specs = tuple(
        f"onnx:{quote(str(Path(name).resolve()), safe='/')}"
        if Path(name).is_file()
        else name
        for name in what.model or ()
    )
    found = manifest.load(what.corpus.resolve())
    chosen = found.select(what.split, only=what.program or ())
    with progress_bars() as bars:
        task = bars.add_task("Programs", total=len(chosen))
        outcomes = check_outputs(
            found,
            chosen,
            OutputsSettings(specs, what.random, what.seed, what.out, what.timeout),
            jobs=what.jobs,
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
    for result, times in counted.items():
        if times:
            table.add_row(result, f"{times:,}")
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


COMMAND = with_options(_outputs, What)
