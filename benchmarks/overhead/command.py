# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command ``mlbridge bench overhead``."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Annotated, Any
from urllib.parse import unquote

import typer
from rich.table import Table

from mlbridge import inprocess
from mlbridge.errors import ModelError, OSFailure
from mlbridge.terminal import TableConsole
from mlbridge_benchmarks.common import options as cli
from mlbridge_benchmarks.common import savedmodel
from mlbridge_benchmarks.common.imitation import Source, models
from mlbridge_benchmarks.common.processes import WORKLOADS, find_build, runtimes
from mlbridge_benchmarks.common.tables import plain_table
from mlbridge_optimizations.corpus.sources import unpack
from mlbridge_optimizations.corpus.toolchain import CLANG, plugin_flags

SECONDS = 120.0  # The time limit of one compile.

# A program with a few inlining decisions, so that the model is loaded.
SMALLEST = """\
static int twice(int x) { return x + x; }
static int thrice(int x) { return x + twice(x); }
int f(int x) { return twice(x) + thrice(x) + thrice(x + 1); }
"""


@dataclass(frozen=True)
class Variant:
    """clang with certain options."""

    name: str
    options: tuple[str, ...]
    files: tuple[Path, ...]  # The files that are needed in addition to clang.
    asks: bool  # True if a model decides.

    @property
    def disk_mib(self) -> float:
        """The total size of the files, in MiB."""
        return sum(map(_size, self.files)) / 2**20


def _size(path: Path) -> int:
    """Returns the size of a file, or of all files in a folder."""
    each = path.rglob("*") if path.is_dir() else [path]
    return sum(one.stat().st_size for one in each if one.is_file())


Run = dict[str, float]  # One compile: ms, cpu_ms, rss_mib, and asked (decisions).
Results = dict[tuple[str, str], list[Run]]  # Keys: source name, variant name.


def clang_files() -> tuple[Path, ...]:
    """Returns the stock compiler and the LLVM libraries that it uses."""
    clang = shutil.which(CLANG)
    if clang is None:
        raise OSFailure(f"there is no {CLANG}")
    listed = subprocess.run(["ldd", clang], check=True, capture_output=True, text=True)
    libraries = re.findall(r"=> (\S*lib(?:LLVM|clang)\S*)", listed.stdout)
    return tuple(Path(path).resolve() for path in (clang, *libraries))


def variants(plugin: Path, runners: Sequence[str], folder: Path) -> list[Variant]:
    """Returns stock clang, the plug-in alone, and the plug-in with each runner."""
    made = [
        Variant("stock", (), (), asks=False),
        Variant("plug-in", tuple(plugin_flags(plugin)), (plugin,), asks=False),
    ]
    for model in models(runners, folder):
        path = model.spec.partition(":")[2].partition("?")[0]
        files = [plugin, Path(unquote(path))]
        if model.runner == "onnx" and (runtime := inprocess.onnxruntime()):
            files.append(runtime.resolve())
        if model.runner == savedmodel.TF and (runtime := savedmodel.library()):
            files += runtime.resolve().parent.glob("libtensorflow*.so.2")
        told = (f"inliner={model.spec}", "on-error=fatal", "print-statistics")
        options = tuple(plugin_flags(plugin, *told))
        made.append(Variant(f"+ {model.runner}", options, tuple(files), asks=True))
    return made


def compile_once(build: Path, variant: Variant, source: Source, output: Path) -> Run:
    """Compiles the source and measures it with run-client."""
    command: list[str | Path] = [build / "run-client", CLANG, "-Oz", "-w"]
    command += [*source.flags, *variant.options, "-c", source.path, "-o", output]
    env = {**os.environ, **runtimes(), **savedmodel.variables()}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, env=env
    )
    asked = re.search(r"asked=(\d+) ", done.stderr)
    if done.returncode or (variant.asks and not asked):
        raise ModelError(
            f"{variant.name}, {source.name}: clang ended with status "
            f"{done.returncode}: {done.stderr.strip()}"
        )
    found = json.loads(done.stdout)
    return {
        "ms": 1e3 * found["seconds"],
        "cpu_ms": 1e3 * found["cpu_seconds"],
        "rss_mib": found["rss_kib"] / 1024,
        "asked": int(asked[1]) if asked else 0,
    }


def measure(
    build: Path,
    wanted: Sequence[Variant],
    sources: Sequence[Source],
    *,
    rounds: int,
    folder: Path,
    on_round: Callable[[], None],
) -> Results:
    """Compiles each source with each variant alternately, after a warm-up round."""
    results: Results = {}
    for i in range(rounds + 1):
        for source, variant in product(sources, wanted):
            run = compile_once(build, variant, source, folder / "o.o")
            if i > 0:
                results.setdefault((source.name, variant.name), []).append(run)
        on_round()
    return results


def added(values: Sequence[float], base: Sequence[float]) -> float:
    """Returns the median difference between runs of the same round."""
    return median(a - b for a, b in zip(values, base, strict=True))


def table(rows: Sequence[dict[str, Any]]) -> Table:
    """Returns the rows as a table. Each source is named once."""
    title = "what the plug-in and its models add to clang -Oz"
    columns = ("asked", "MiB", "ms", "+", "CPU ms", "+", "RSS", "+")
    names = ("ms", "added_ms", "cpu_ms", "added_cpu_ms", "rss_mib", "added_rss_mib")
    shown, last = plain_table(title, ("", "clang"), columns), ""
    for row in rows:
        source = row["source"] if row["source"] != last else ""
        last = row["source"]
        asked, size = str(row["asked"] or ""), f"{row['disk_mib']:.2f}"
        numbers = [f"{row[name]:.1f}" for name in names]
        shown.add_row(source, row["clang"], asked, size, *numbers)
    return shown


def rows(results: Results, wanted: Sequence[Variant]) -> list[dict[str, Any]]:
    """Returns a row per source and variant.

    The prefix "added_" marks differences from stock clang.
    """
    made = []
    sizes = {variant.name: variant.disk_mib for variant in wanted}
    for (source, name), runs in results.items():
        base = results[source, wanted[0].name]
        ms, base_ms = (median(run["ms"] for run in each) for each in (runs, base))
        row: dict[str, Any] = {
            **{"source": source, "clang": name, "disk_mib": round(sizes[name], 3)},
            **{"asked": runs[-1]["asked"], "rounds": len(runs)},
            "ratio": round(ms / base_ms, 4),
        }
        for what in ("ms", "cpu_ms", "rss_mib"):
            ours, theirs = ([run[what] for run in each] for each in (runs, base))
            row[what] = round(median(ours), 2)
            row[f"added_{what}"] = round(added(ours, theirs), 2)
        made.append(row)
    return made


MODULE = ("bzip2", "compress.c")


def overhead_command(
    runner: cli.ModelRunner = None,
    source: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.c",
            exists=True,
            help="The module to compile. [default: bzip2's compress.c]",
        ),
    ] = None,
    rounds: cli.Rounds = 25,
    plugin: cli.Plugin = None,
    json_file: cli.JsonFile = None,
    build: cli.Build = None,
) -> None:
    """Measure the size, start-up time and memory that the plug-in adds to clang.

    The benchmark compiles two files with stock clang, with the plug-in alone, and with
    the imitation inliner in each in-process runner. The first file has only three tiny
    functions, so its compile time is the start-up time. Its few inlining decisions make
    the plug-in load the model. The second file is a whole module.

    The runners "tf" and "tf-aot" need TensorFlow. "tf" loads a SavedModel with
    TensorFlow's library, and "tf-aot" runs the same model compiled to machine code.

    "asked" is the number of decisions. "MiB" is the added size on disk. "RSS" is the
    peak memory in MiB, including shared libraries. Columns with "+" show the median
    difference from stock clang. Other load on the machine affects CPU time less
    than wall time ("ms").

    ```sh
    mlbridge bench overhead
    mlbridge bench overhead --runner aot --source x.c
    ```
    """
    console = TableConsole(highlight=False)
    found_build = find_build(build, ["run-client"])
    lacks = partial(cli.missing_in, found_build)
    chosen = cli.available(console, "--runner", runner, cli.MODEL_RUNNERS, lacks)
    found_plugin = cli.find_plugin(plugin)
    if source:
        module = Source(source.name, source)
    else:
        name, file = MODULE
        program = unpack([name], WORKLOADS)[name]
        module = Source(file, program.folder / file, program.flags)
    with (
        tempfile.TemporaryDirectory(prefix="mlb") as temporary,
        cli.progress_on(console, auto_refresh=False) as progress,
    ):
        folder = Path(temporary)
        smallest = folder / "smallest.c"
        smallest.write_text(SMALLEST)
        wanted = variants(found_plugin, chosen, folder)
        results = measure(
            found_build,
            wanted,
            [Source("start-up", smallest), module],
            rounds=rounds,
            folder=folder,
            on_round=cli.begin(progress, "compiles", rounds + 1),
        )
        made = rows(results, wanted)
    console.print(table(made))
    stock = clang_files()
    sizes = sum(path.stat().st_size for path in stock) / 2**20
    console.print(f"stock clang: {sizes:.1f} MiB in {len(stock)} files")
    cli.write_rows(console, made, json_file)
