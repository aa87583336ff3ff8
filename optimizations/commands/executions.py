# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs programs that were compiled in several ways, and prints a comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from mlbridge.terminal import console
from mlbridge_optimizations.evaluation.tables import write_json

from .progress import ProgressBars
from .shared import ExecutionOptions, ProgramOptions


def compare_executions(
    programs: ProgramOptions,
    rows: Mapping[str, Sequence[str]],
    options: ExecutionOptions,
    *,
    title: str,
    heading: str,
) -> None:
    """Compiles and runs programs with the clang flags of each row. Prints a table."""
    from mlbridge_optimizations.corpus.manifest import load
    from mlbridge_optimizations.evaluation.executions import execute, table

    corpus = load(programs.corpus.resolve())
    chosen = corpus.select(programs.split, only=programs.programs or ())
    with ProgressBars() as bars:
        steps = bars.steps("Programs", 2 * len(chosen) * len(rows))
        found = execute(
            *(corpus, chosen, rows),
            rounds=options.rounds,
            counts=options.valgrind,
            jobs=programs.jobs,
            advance=steps,
        )
    console.print(table(found, title, heading))
    plain = {p: {r: asdict(v) for r, v in c.items()} for p, c in found.items()}
    write_json(programs.json, plain)
