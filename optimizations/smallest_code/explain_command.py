# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command ``mlbridge explain smallest-code``."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from mlbridge.errors import InvalidArgument
from mlbridge.files import expect_output, locked
from mlbridge.options import with_options
from mlbridge.signals import sigterm_exits
from mlbridge.terminal import console
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.commands.shared import (
    Binary,
    CorpusFolder,
    Jobs,
    Plugin,
)
from mlbridge_optimizations.extras import need
from mlbridge_optimizations.page import write_page

if TYPE_CHECKING:
    from .decisions import Decisions
    from .linking import BuiltProgram


TEMPLATE = Path(__file__).with_name("explain.html")


@dataclass(frozen=True)
class ExplainOptions:
    """The options of an explanation."""

    command: Annotated[
        list[str] | None,
        Argument(metavar="-- COMMAND...", help="The build, such as `-- make -j2`."),
    ] = None
    search_folder: Annotated[
        Path | None,
        Option(
            metavar="FOLDER",
            help="Folder of an earlier search: the --folder of `mlbridge search"
            " smallest-code`. Its program replaces COMMAND. Its decisions are used"
            " unless --decisions or --flags is given.",
        ),
    ] = None
    corpus_program: Annotated[
        str | None,
        Option(metavar="NAME", help="Program of the corpus, in place of COMMAND."),
    ] = None
    corpus: CorpusFolder = Path("build/corpus")
    binary: Binary = None
    decisions: Annotated[
        Path | None,
        Option(metavar="FILE", exists=True, help="Replay the decisions of this file."),
    ] = None
    flags: Annotated[
        str,
        Option(
            metavar="FLAGS",
            help='Further flags of clang, such as "-mllvm -inline-threshold=25".',
        ),
    ] = ""
    out: Annotated[
        Path, Option(metavar="FILE.html", dir_okay=False, help="HTML page to write.")
    ] = Path("explained.html")
    rows: Annotated[
        int, Option(min=1, help="Rows of each table to print. The page has all rows.")
    ] = 15
    folder: Annotated[
        Path,
        Option(help="Folder for builds. COMMAND is built in its folder `build`."),
    ] = Path("build/smallest-code-explained")
    plugin: Plugin = None
    jobs: Jobs = os.cpu_count() or 1


def _explain(context: typer.Context, options: ExplainOptions) -> None:
    """Show what decisions change in a program, compared with clang -Oz.

    The command compiles and links the program with clang -Oz, and again with decisions,
    a model or other flags. It prints the sizes of the program, its files and its
    functions. It also prints which calls were inlined, and which functions were
    outlined. It writes all tables to an HTML page (`--out`).

    ```sh
    make clean
    mlbridge explain smallest-code --decisions decisions.txt -- make -j2
    mlbridge explain smallest-code --search-folder build/smallest-code
    ```
    """
    need("mlbridge explain smallest-code", ("elftools", "jinja2", "yaml"))
    from .decisions import Decisions
    from .explain import compile_with, name_callees
    from .explain_tables import tables_of

    given = (options.command, options.search_folder, options.corpus_program)
    if sum(map(bool, given)) != 1:
        raise InvalidArgument(
            "expected one of -- COMMAND, --search-folder and --corpus-program"
        )
    decisions, flags = _flags(options)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    expect_output(options.out)
    with sigterm_exits(), locked(options.folder), ProgressBars() as bars:
        program = _built(options)
        units = program.build.linked(program.link)
        advance = bars.steps("Compiling", 2 * len(units))
        folder = options.folder / "compiled"
        ways: dict[str, tuple[list[str], Decisions]] = {
            "stock": ([], Decisions()),
            "flags": (flags, decisions),
        }
        before, after = (
            compile_with(program, *way, folder / name, options.jobs, advance)
            for name, way in ways.items()
        )
    name_callees(after, before)
    name_callees(before, after)
    tables = tables_of(before, after, decisions)
    console.print(f"Flags: {shlex.join(flags)}", soft_wrap=True)
    for table in tables:
        console.print(table.in_terminal(options.rows))
    write_page(
        options.out,
        TEMPLATE,
        program=program.name,
        flags=shlex.join(flags),
        tables=tables,
    )
    console.print(f"The page is {options.out}.")


def _built(options: ExplainOptions) -> "BuiltProgram":
    """Returns the program. Builds it, unless it is in the folder of a search."""
    from mlbridge_optimizations.corpus.manifest import load
    from mlbridge_optimizations.corpus.user_build import run_build

    from .linking import BuiltProgram
    from .searched import SearchedProgram

    if options.search_folder:
        return SearchedProgram.open(options.search_folder)
    if options.corpus_program:
        program = load(options.corpus.resolve()).program(options.corpus_program)
        return BuiltProgram.of_corpus(program, options.folder)
    folder = options.folder.resolve() / "build"
    build = run_build(options.command or [], folder)
    return BuiltProgram(folder, build, build.program(options.binary))


def _flags(options: ExplainOptions) -> "tuple[Decisions, list[str]]":
    """Returns the decisions, and the flags to compare with clang -Oz."""
    from .decisions import Decisions
    from .flags import replay_flags
    from .searched import SearchedProgram

    try:
        decisions, flags = Decisions(), shlex.split(options.flags)
    except ValueError as error:
        raise InvalidArgument(f"--flags {options.flags}: {error}") from None
    path = options.decisions
    if path is None and options.search_folder and not flags:
        path = SearchedProgram.open(options.search_folder).decisions
    if path:
        decisions = Decisions.read(path)
        flags += replay_flags(path, options.plugin)
    if not flags:
        raise InvalidArgument("expected --decisions or --flags")
    return decisions, flags


COMMANDS = {"explain smallest-code": with_options(_explain, ExplainOptions)}
