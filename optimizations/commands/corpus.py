# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command ``mlbridge corpus``, which makes and uses bitcode of real programs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from mlbridge.errors import InvalidArgument
from mlbridge.terminal import console, errors
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.commands.shared import Programs
from mlbridge_optimizations.plot import panels_of

if TYPE_CHECKING:
    from mlbridge_optimizations.corpus import Corpus, Program

app = typer.Typer(
    no_args_is_help=True,
    help="Make and use a corpus of real programs as bitcode: docs/guides/corpus.md.",
)

Folder = Annotated[Path, typer.Option(help="Corpus folder.", file_okay=False)]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", help="Parallel compilers.")]
DEFAULT = Path("build/corpus")


@app.command()
def fetch(
    folder: Folder = DEFAULT,
    program: Programs = None,
    packages: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the unpacked Debian packages. [default: build/workloads]",
            file_okay=False,
        ),
    ] = None,
    jobs: Jobs = None,
) -> None:
    """Make a corpus from Debian source packages, or add missing programs to it.

    ```sh
    mlbridge corpus fetch
    mlbridge corpus fetch --program bzip2 --program lua --folder small
    ```
    """
    from mlbridge_optimizations import corpus

    with ProgressBars() as bars:
        fetched = corpus.fetch(
            folder, programs=program, packages=packages, jobs=jobs, show=bars.show_stage
        )
    count = len(fetched.corpus.programs)
    console.print(f"{len(fetched.made)} programs compiled; {folder} has {count}.")
    for name, problem in sorted(fetched.failed.items()):
        errors.print(f"{name}: {problem}", style="yellow", soft_wrap=True)
    if fetched.failed and not fetched.corpus.programs:
        raise typer.Exit(1)


@app.command("list")
def list_(folder: Folder = DEFAULT) -> None:
    """List programs and their versions in the corpus.

    The list has all programs that `mlbridge corpus fetch` can compile, and your own
    programs. It only counts the programs that csmith generated.
    """
    from mlbridge_optimizations import corpus

    try:
        here = corpus.load(folder).programs
    except InvalidArgument:
        here = {}
    table = Table("program", "package", "split", "version here")
    for name, recipe in corpus.RECIPES.items():
        version = here[name].version if name in here else "-"
        table.add_row(name, recipe.package, corpus.split_of(name), version)
    for name, program in here.items():
        if program.package == corpus.OWN:
            table.add_row(name, corpus.OWN, program.split, program.version)
    generated = sum(program.split == "generated" for program in here.values())
    console.print(table)
    if generated:
        console.print(f"and {generated} programs of csmith")


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Name of the program in the corpus.")],
    build: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Command that builds the program from scratch. {cc} and {cxx} stand"
            " for the compilers to use, which are also in CC, CXX and PATH.",
        ),
    ] = None,
    compile_commands: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="Compile database (compile_commands.json) to use instead of --build.",
        ),
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            metavar="ARGUMENTS",
            help="Arguments of a test run of the program. <FILE, >FILE and =STATUS name"
            " its stdin, its stdout and its expected exit status. {tree} stands for"
            " --source. May be repeated.",
        ),
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            metavar="FILE",
            help="File of output that the runs write besides stdout. The tests compare"
            " it, too. May be repeated.",
        ),
    ] = None,
    source: Annotated[
        Path,
        typer.Option(
            help="The program's folder, in which the build runs.", file_okay=False
        ),
    ] = Path(),
    binary: Annotated[
        str | None,
        typer.Option(help="File name of the program, if the build links several."),
    ] = None,
    leave_out: Annotated[
        list[str] | None,
        typer.Option(
            "--leave-out",
            metavar="GLOB",
            help="Sources to omit, such as 'tests/*'. May be repeated.",
        ),
    ] = None,
    libraries: Annotated[
        str, typer.Option(help="Further linker flags, in addition to the build's.")
    ] = "",
    split: Annotated[
        str,
        typer.Option(
            help="Part of the corpus: training, training-size, held-out or"
            " held-out-allocation."
        ),
    ] = "training",
    folder: Folder = DEFAULT,
    jobs: Jobs = None,
) -> None:
    """Add your own program to a corpus, from its build or its compile database.

    Each C or C++ source becomes a module of bitcode. The program is compiled without
    optimisation and run once for each --run. Its outputs become the expected outputs of
    its test.

    ```sh
    mlbridge corpus add mine --source src --build "make clean all CC={cc}" \
      --run "-9 <{tree}/sample.txt >packed" --run "-d <packed"
    ```
    """
    from mlbridge_optimizations import corpus
    from mlbridge_optimizations.corpus.recipes import words

    own = corpus.Own(
        *(name, source, build, binary, compile_commands),
        *(tuple(leave_out or ()), words(libraries), tuple(run or ())),
        *(tuple(output or ()), split),
    )
    with ProgressBars() as bars:
        added = corpus.add(folder, own, jobs=jobs, show=bars.show_stage)
    console.print(
        f"{folder} has {name}: {len(added.modules)} modules,"
        f" {added.linked.instructions:,} instructions."
    )


@app.command()
def stats(
    folder: Folder = DEFAULT,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE.png", help="Plot the sizes of the modules."),
    ] = None,
) -> None:
    """Show how many modules, functions and instructions a corpus has."""
    from mlbridge_optimizations import corpus
    from mlbridge_optimizations.corpus.manifest import SPLITS

    found = corpus.load(folder)
    table = Table("program", "version", "split", title=found.compiler)
    for column in ("modules", "functions", "instructions", "largest module"):
        table.add_column(column, justify="right")
    rows = found.all_but_generated()
    for program in rows:
        table.add_row(*_row(program.name, program.version, program.split, [program]))
    table.add_section()
    for split in SPLITS:
        members = [program for program in rows if program.split == split]
        if members:
            table.add_row(*_row(f"all {split}", "", split, members))
    console.print(table)
    if plot is not None:
        _plot_sizes(found, plot)
        console.print(f"The plot is in {plot}.")


def _plot_sizes(corpus: "Corpus", path: Path) -> None:
    programs = corpus.all_but_generated()
    splits = sorted({program.split for program in programs}, reverse=True)
    colours = {split: f"C{number}" for number, split in enumerate(splits)}
    with panels_of(path, size=(8, 1 + 0.3 * len(programs))) as (axes,):
        for row, program in enumerate(programs):
            sizes = [m.instructions for m in program.modules if m.functions]
            colour = colours[program.split]
            axes.plot(sizes, [row] * len(sizes), "o", color=colour, alpha=0.4)
        for split, colour in colours.items():
            axes.plot([], [], "o", color=colour, label=split)
        axes.set_yticks(range(len(programs)), [program.name for program in programs])
        axes.set_xscale("log")
        axes.set_xlabel("instructions in a module, before optimisation")
        axes.grid(visible=True, alpha=0.25)
        axes.legend(loc="best", fontsize="small")


def _row(name: str, version: str, split: str, programs: "list[Program]") -> list[str]:
    modules = [m for p in programs for m in p.modules if m.functions]
    sizes = [module.instructions for module in modules]
    functions = sum(module.functions for module in modules)
    numbers = (len(modules), functions, sum(sizes), max(sizes, default=0))
    return [name, version, split, *(f"{number:,}" for number in numbers)]


@app.command()
def csmith(
    count: Annotated[int, typer.Option(min=1, help="Number of programs.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first program.")] = 0,
    folder: Folder = DEFAULT,
    jobs: Jobs = None,
) -> None:
    """Add random C programs for tests. No optimisation may change their output.

    ```sh
    mlbridge corpus csmith --count 200 --seed 1
    ```
    """
    from mlbridge_optimizations import corpus

    with ProgressBars() as bars:
        advance = bars.steps("Generating", count)
        corpus.generate(folder, count, seed, jobs=jobs, show=advance)
    console.print(f"{folder} has csmith-{seed} and so on: {count} programs.")


@app.command()
def run(
    folder: Folder = DEFAULT,
    program: Programs = None,
    level: Annotated[str, typer.Option(help="Optimisation level of clang.")] = "-Oz",
) -> None:
    """Run the programs on test inputs, and compare their outputs with those at -O0.

    ```sh
    mlbridge corpus run --program bzip2
    ```
    """
    from mlbridge_optimizations import corpus

    found = corpus.load(folder)
    wanted = program or [
        each.name
        for each in found.select()
        if each.steps or each.name in corpus.RECIPES
    ]
    table = Table("program", "user s", "result", title=f"clang {level}")
    with ProgressBars() as bars:
        advance = bars.steps("Running", len(wanted))
        failures = 0
        for name in wanted:
            outcome = corpus.run_stock(found, name, level)
            failures += not outcome.passed
            result = "as expected" if outcome.passed else outcome.problem
            table.add_row(name, f"{outcome.seconds:.2f}", result)
            advance()
    console.print(table)
    if failures:
        raise typer.Exit(1)
