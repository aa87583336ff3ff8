# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench loop-distribution-cost``: instructions that the passes add to clang.

The passes decide how loops are distributed and vectorised. They run without a model,
or with the plug-in's built-in models.
"""

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from mlbridge.errors import InvalidArgument, Unsupported
from mlbridge.terminal import TableConsole
from mlbridge_benchmarks.common import cachegrind
from mlbridge_benchmarks.common import options as cli
from mlbridge_benchmarks.common.processes import ROOT
from mlbridge_benchmarks.common.tables import Bound, bounds_table, plain_table
from mlbridge_optimizations.corpus import manifest, toolchain
from mlbridge_optimizations.corpus.manifest import Corpus, Module, Program

STOCK = "clang -O3"
# The limits on the instructions, relative to stock clang's.
LIMITS = {"none": 1.02, "distribution": 1.05, "both": 1.05}
# The limits of a file's size, in IR instructions before optimisation.
SIZES = (500, 5000)


@dataclass(frozen=True)
class Source:
    """A source file of a program."""

    program: Program
    module: Module


@dataclass(frozen=True)
class Row:
    """The executed instructions of a file's compiles, by way."""

    program: str
    source: str
    instructions: Mapping[str, int]

    def ratio(self, way: str) -> float:
        """Returns the instructions relative to stock clang's."""
        return self.instructions[way] / self.instructions[STOCK]


def ways(plugin: Path) -> dict[str, list[str]]:
    """Returns clang's flags for each way to compile."""
    distribution = "loop-distribution=builtin:loop_distribution"
    factors = "loop-factors=builtin:loop_factors"
    none = ("loop-distribution=none", "loop-factors=none")
    return {
        STOCK: [],
        "plug-in": toolchain.plugin_flags(plugin),
        "none": toolchain.plugin_flags(plugin, *none),
        "distribution": [f"--config={plugin.parent / 'mlbridge-o3.cfg'}"],
        "both": toolchain.plugin_flags(plugin, distribution, factors),
    }


def draw(corpus: Corpus, count: int, seed: int) -> list[Source]:
    """Draws programs, and a file of each program. The sizes of files are limited.

    Raises InvalidArgument if the corpus has too few programs with such files.
    """
    least, most = SIZES
    random = np.random.default_rng(seed)
    found: list[Source] = []
    programs = corpus.all_but_generated()
    for index in random.permutation(len(programs)):
        program = programs[index]
        files = [m for m in program.modules if least <= m.instructions <= most]
        if files:
            found.append(Source(program, files[random.integers(len(files))]))
    if len(found) < count:
        raise InvalidArgument(
            f"--files: expected at most {len(found)}, the number of programs in"
            f" {corpus.folder} with such files, found {count}"
        )
    return found[:count]


def measure(
    source: Source, flags: Mapping[str, Sequence[str]], advance: Callable[[], None]
) -> Row:
    """Compiles a file in each way. clang runs in one process."""
    counts = {}
    with tempfile.TemporaryDirectory(prefix="mlbridge-bench-") as name:
        log, target = Path(name, "log"), Path(name, "file.o")
        for way, more in flags.items():
            command = toolchain.source_command(
                *(source.program, [source.module], "-O3"),
                [*more, "-c", "-o", str(target)],
            )
            toolchain.run(
                cachegrind.counting(command, log),
                folder=Path(source.program.root),
                seconds=cachegrind.SECONDS,
            )
            counts[way] = cachegrind.instructions(log)
            advance()
    return Row(source.program.name, source.module.source, counts)


def means(rows: Sequence[Row]) -> dict[str, float]:
    """Returns the geometric mean of each way's ratios."""
    return {
        way: geometric_mean(row.ratio(way) for row in rows)
        for way in rows[0].instructions
    }


def table(rows: Sequence[Row], title: str) -> Table:
    """Returns each way's mean and greatest ratio."""
    shown = plain_table(title, ["way"], ("geomean", "worst", "worst file"))
    for way, mean in means(rows).items():
        worst = max(rows, key=lambda row, way=way: row.ratio(way))  # type: ignore[misc]
        file = f"{worst.program}: {Path(worst.source).name}"
        cells = (f"{worst.ratio(way):.4f}", file) if way != STOCK else ("", "")
        shown.add_row(way, f"{mean:.4f}", *cells)
    return shown


def bounds(rows: Sequence[Row]) -> list[Bound]:
    """Returns the limits on the ratios."""
    found = means(rows)
    return [
        Bound(way, "geomean", STOCK, found[way], limit)
        for way, limit in LIMITS.items()
        if way in found
    ]


def cost_command(
    files: Annotated[
        int, typer.Option(min=1, help="Files to compile, one of each program.")
    ] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Seed that selects the files.")] = 0,
    way: Annotated[
        cli.Names, cli.only("--way", tuple(ways(Path()))[1:], "way to compile")
    ] = None,
    corpus: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="The corpus. [default: build/corpus]"),
    ] = None,
    plugin: cli.Plugin = None,
    json_file: cli.JsonFile = None,
) -> None:
    """Count the instructions that clang -O3 executes with the passes for loops.

    The plug-in has two passes for loops: one chooses how a loop is distributed, and one
    chooses factors such as the vector width. Valgrind counts the executed instructions
    of whole compiles. Each file has 500 to 5,000 IR instructions before optimisation.
    The ways to compile are:

    - "clang -O3": The stock compiler, which is always measured.
    - "plug-in": The plug-in is loaded, but no option for loops is given.
    - "none": Both passes run without a model, so LLVM's heuristics decide.
    - "distribution": One pass runs, with the built-in model of mlbridge-o3.cfg.
    - "both": Both passes run, each with its built-in model.
    """
    console = TableConsole(highlight=False)
    if not (shutil.which("valgrind") and shutil.which("setarch")):
        raise Unsupported("valgrind or setarch is not installed")
    known = ways(cli.find_plugin(plugin))
    chosen = cli.choice("--way", way, tuple(known)[1:])
    flags = {one: known[one] for one in (STOCK, *chosen)}
    given = manifest.load(corpus or ROOT / "build" / "corpus")
    sources = draw(given, files, seed)
    with cli.progress_on(console) as progress:
        advance = cli.begin(progress, "compiles", len(sources) * len(flags))
        rows = [measure(source, flags, advance) for source in sources]
    cpp = sum(manifest.is_cpp(row.source) for row in rows)
    title = f"{len(rows)} files ({cpp} in C++), instructions / {STOCK}"
    console.print(table(rows, title))
    if limits := bounds(rows):
        console.print(bounds_table(limits))
    plain: list[dict[str, Any]] = [
        {
            "program": row.program,
            "source": row.source,
            "instructions": dict(row.instructions),
        }
        for row in rows
    ]
    cli.write_rows(console, plain, json_file)
