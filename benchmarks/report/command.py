# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench report``: measures tables and figures of the bridge's paper."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from typer import Option

from mlbridge.errors import ModelError, Timeout
from mlbridge.extras import need
from mlbridge.options import with_options
from mlbridge.terminal import TableConsole
from mlbridge_benchmarks.common import options as cli
from mlbridge_benchmarks.common.processes import ROOT
from mlbridge_benchmarks.common.tables import plain_table

from . import machine
from .measure import Results, steps_of
from .page import Section, duration, write
from .parts import NAMES, PARTS
from .schema import Part


@dataclass(frozen=True)
class _Options:
    part: Annotated[cli.Names, cli.only("--part", NAMES, "part")] = None
    again: Annotated[
        bool, Option("--again", help="Also measure finished parts again.")
    ] = False
    quick: Annotated[
        bool,
        Option(
            "--quick",
            help="Use the smallest inputs, to test the commands. "
            "The figures then mean nothing.",
        ),
    ] = False
    folder: Annotated[
        Path | None,
        Option(
            metavar="FOLDER",
            file_okay=False,
            help="The folder of the results and the page. [default: build/report; with"
            " --quick: build/report-quick]",
        ),
    ] = None


def _report(context: typer.Context, by: _Options) -> None:
    """Reproduce the tables and figures of the bridge's paper, and write one page.

    A part is a table or a figure. Each part runs other commands, mostly `mlbridge
    bench` commands, and keeps their rows in the folder. A finished part is not measured
    again, so the same command continues an interrupted report. All parts together take
    hours.

    The page, `report.html`, needs no network. It shows our results beside published
    results whose source a reader can check. If a part fails, the report continues, the
    page shows the reason, and the command ends with status 1.

    ```sh
    mlbridge bench report
    mlbridge bench report --part overhead --part gym --again
    mlbridge bench report --part integration-lines --quick
    ```
    """
    need("bench report", ("jinja2", "matplotlib"), cli.HOW_TO_INSTALL)
    console = TableConsole(highlight=False)
    chosen = cli.choice("--part", by.part, NAMES)
    default = ROOT / "build" / ("report-quick" if by.quick else "report")
    results = Results(by.folder or default)
    parts = [part for part in PARTS if part.name in chosen]
    failures = _measure(console, results, parts, by)
    target = results.folder / "report.html"
    sections = write(results, target, quick=by.quick)
    _print(console, [s for s in sections if s.part.name in chosen])
    console.print(f"measured in {duration(results.seconds(parts))}")
    console.print(f"page: {target}", soft_wrap=True)
    for failure in failures:
        console.print(f"[red]{escape(failure)}[/]")
    if failures:
        raise typer.Exit(1)


def _measure(
    console: Console, results: Results, parts: list[Part], by: _Options
) -> list[str]:
    """Runs the steps that are not finished. Returns the failures."""
    done: set[str] = set()
    failed: dict[str, str] = {}
    about: dict[str, str] = {}
    with cli.progress_on(console) as progress:
        steps = steps_of(parts)
        task = progress.add_task("report", total=len(steps))
        for part in parts:
            for step in part.steps:
                if step.name in failed:
                    break
                if step.name in done:
                    continue
                progress.update(task, description=f"{part.place}: {step.name}")
                done.add(step.name)
                if by.again or not results.is_finished(step, quick=by.quick):
                    about = about or machine.describe()
                    try:
                        results.run(step, about, quick=by.quick)
                    except (ModelError, Timeout) as error:
                        # The next steps of the part need this step.
                        failed[step.name] = f"{part.name}: {error}"
                        break
                progress.advance(task)
    return list(failed.values())


def _print(console: Console, sections: list[Section]) -> None:
    """Prints the state of the parts."""
    table = plain_table("report", ("in the paper", "part", "state"), ("took",))
    for section in sections:
        part = section.part
        table.add_row(part.place, part.name, section.state, section.duration)
    console.print(table)


report_command = with_options(_report, _Options)
