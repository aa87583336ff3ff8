# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command ``mlbridge search size``."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from typer import Argument, Option

from mlbridge.options import with_options
from mlbridge.terminal import console
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.commands.shared import Jobs, Plugin, plugin_of
from mlbridge_optimizations.extras import need


@dataclass(frozen=True)
class SizeOptions:
    """The options of a search."""

    command: Annotated[
        list[str],
        Argument(metavar="-- COMMAND...", help="The build, such as `-- make -j2`."),
    ]
    out: Annotated[
        Path, Option(metavar="FILE", help="Write the decisions to this file.")
    ] = Path("decisions.txt")
    program: Annotated[
        str | None,
        Option(help="File name of the program, if the build links several."),
    ] = None
    seconds: Annotated[float, Option(min=0, help="CPU time of the search.")] = 1800
    seed: Annotated[int, Option(min=0, help="Random seed.")] = 1
    resume: Annotated[
        bool, Option("--resume", help="Start with the decisions in --out.")
    ] = False
    folder: Annotated[
        Path, Option(help="Folder for the build's bitcode. It is emptied first.")
    ] = Path("build/size")
    plugin: Plugin = None
    jobs: Jobs = os.cpu_count() or 1


def _search(context: typer.Context, options: SizeOptions) -> None:
    """Search the inlining decisions with which a program is smallest.

    COMMAND builds the program from scratch, through the compilers in CC, CXX and PATH.
    Here, they are clang -Oz with sections for functions, and lld removes unused
    sections. The search reverses decisions of clang's inliner, and keeps the reversals
    that make the linked program smaller. Stock clang replays the decisions, so later
    builds need no plug-in.

    ```sh
    make clean
    mlbridge search size --seconds 600 -- make -j2
    ```
    """
    need("mlbridge search size", ("elftools",))
    from .build import link_units, run_build
    from .search import Progress, Sizes, replay, replay_flags, search
    from .wrapper import COMPILE, LINK

    plugin = plugin_of(options.plugin)
    build = run_build(options.command, options.folder)
    link = build.program(options.program)
    program = options.folder / "program.bc"
    link_units(build.units_of(link), program)
    with ProgressBars() as bars:
        task = bars.add_task("CPU seconds", total=options.seconds)

        def show(state: Progress) -> None:
            ratio = state.best / state.stock if state.stock else 1.0
            bars.update(task, completed=state.seconds, description=f"Size {ratio:.4f}")

        search(
            program,
            options.out,
            plugin=plugin,
            seconds=options.seconds,
            seed=options.seed,
            start=options.out if options.resume else None,
            is_shared=link.is_shared,
            show=show,
        )
    stock = Sizes.of(link.output)
    made = options.folder / link.output.name
    found = replay(build, link, options.out, made, options.jobs)
    table = Table("section", title="Linked code in bytes")
    for column in ("clang -Oz", "with decisions", "ratio"):
        table.add_column(column, justify="right")
    for name, before, after in (
        (".text", stock.text, found.text),
        (".eh_frame", stock.eh_frame, found.eh_frame),
    ):
        ratio = f"{after / before:.4f}" if before else "-"
        table.add_row(name, f"{before:,}", f"{after:,}", ratio)
    console.print(table)
    flags = shlex.join([*COMPILE, *replay_flags(options.out.resolve())])
    console.print(f"The program with these decisions is {made}.")
    console.print(f"Compile with: {flags}", soft_wrap=True)
    console.print(f"Link with: {shlex.join(LINK)}", soft_wrap=True)


COMMANDS = {"search size": with_options(_search, SizeOptions)}
