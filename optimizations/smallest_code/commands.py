# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands ``mlbridge search``, ``train`` and ``evaluate smallest-code``."""

import os
import shlex
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from typer import Argument, Option

from mlbridge.errors import InvalidArgument
from mlbridge.files import expect_output, locked, with_absolute_paths
from mlbridge.options import with_options
from mlbridge.signals import sigterm_exits
from mlbridge.terminal import console
from mlbridge_optimizations.built import plugin_of
from mlbridge_optimizations.commands.progress import ProgressBars
from mlbridge_optimizations.commands.shared import Binary, Jobs, ModelFile, Plugin
from mlbridge_optimizations.evaluation.tables import write_json
from mlbridge_optimizations.extras import need

from .settings import CLANG_OZ, THRESHOLDS, ImitationOptions, SizesFile

if TYPE_CHECKING:
    from .calls import Calls
    from .evaluate import Comparison
    from .linking import Sizes
    from .searched import SearchedProgram

PACKAGES = ("elftools", "torch", "onnx", "onnxruntime", "onnxscript")


@dataclass(frozen=True)
class SearchOptions:
    """The options of a search."""

    command: Annotated[
        list[str],
        Argument(metavar="-- COMMAND...", help="The build, such as `-- make -j2`."),
    ]
    out: Annotated[
        Path, Option(metavar="FILE", help="Write the decisions to this file.")
    ] = Path("decisions.txt")
    binary: Binary = None
    seconds: Annotated[float, Option(min=0, help="CPU seconds for the search.")] = 1800
    pipelines: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Core set or action space of phase ordering. If given, the search also"
            " chooses the passes of each file, and the functions from which code is"
            " outlined. Only the plug-in can replay these decisions.",
        ),
    ] = None
    seed: Annotated[int, Option(min=0, max=2**32 - 1, help="Random seed.")] = 1
    resume: Annotated[
        bool, Option("--resume", help="Start with the decisions in --out.")
    ] = False
    folder: Annotated[
        Path,
        Option(
            help="Folder for the build's bitcode. The folder of an earlier search is"
            " emptied first."
        ),
    ] = Path("build/smallest-code")
    plugin: Plugin = None
    jobs: Jobs = os.cpu_count() or 1


def _search(context: typer.Context, options: SearchOptions) -> None:
    """Search for the inlining decisions that make a program smallest.

    The search sets CC, CXX and PATH to wrappers of clang -Oz. COMMAND must use these
    compilers and build the program from scratch. The wrappers give each function its
    own section, and link with lld, which removes unused sections. The search reverses
    decisions of clang's inliner, and keeps the reversals that make the linked program
    smaller. Stock clang can replay the decisions, so later builds need no plug-in. With
    --pipelines, later builds need the plug-in.

    ```sh
    make clean
    mlbridge search smallest-code --seconds 600 -- make -j2
    ```
    """
    need("mlbridge search smallest-code", ("elftools",))
    from mlbridge_optimizations.corpus.user_build import run_build
    from mlbridge_optimizations.corpus.wrapper import COMPILE, LINK

    from .decisions import Decisions
    from .flags import replay_flags
    from .linking import Sizes, rebuild_from_source
    from .searched import SearchedProgram

    plugin = plugin_of(options.plugin)
    # Find mistakes before the build and the search.
    if options.out.resolve().is_relative_to(options.folder.resolve()):
        raise InvalidArgument(f"--out {options.out} is in --folder, which is emptied")
    expect_output(options.out)
    if options.resume:
        Decisions.read(options.out)
    with sigterm_exits(), locked(options.folder):
        build = run_build(options.command, options.folder)
        link = build.program(options.binary)
        program = SearchedProgram(options.folder.resolve(), build, link)
        with ProgressBars() as bars:
            _find_decisions(program, plugin, options, bars)
        program.save(options.out)
        flags = replay_flags(options.out, plugin)
        made = options.folder / program.name
        found = rebuild_from_source(build, link, flags, made, options.jobs)
    console.print(_size_table(Sizes.of(program.link.output), found))
    console.print(f"The program with these decisions is {made}.")
    console.print(f"Compile with: {shlex.join([*COMPILE, *flags])}", soft_wrap=True)
    console.print(f"Link with: {shlex.join(LINK)}", soft_wrap=True)


def _find_decisions(
    program: "SearchedProgram", plugin: Path, options: SearchOptions, bars: ProgressBars
) -> None:
    """Searches a program, and writes the decisions to ``options.out``."""
    from .decisions import Decisions
    from .file_search import FileProgress, FileSearch
    from .pipelines import read_pipelines
    from .search import Progress, search

    program.link_module()
    before = Decisions.read(options.out) if options.resume else Decisions()
    seconds, space, pipelines = options.seconds, None, dict[str, str]()
    if options.pipelines:
        # Keep a third of the time for the search of single files.
        seconds, space = seconds * 2 / 3, program.folder / "pipelines.json"
        pipelines = read_pipelines(options.pipelines, space)
    task = bars.add_task("CPU seconds", total=seconds)

    def show(state: Progress | FileProgress) -> None:
        ratio = state.best / state.stock if state.stock else 1.0
        bars.update(task, completed=state.seconds, description=f"Size {ratio:.4f}")

    search(
        program.module,
        options.out,
        plugin=plugin,
        seconds=seconds,
        seed=options.seed,
        start=options.out if options.resume else None,
        flips=program.flips,
        pipelines=space,
        is_shared=program.link.is_shared,
        show=show,
    )
    decisions = Decisions.read(options.out).with_files_of(before)
    decisions.save(options.out)
    if options.pipelines:
        task = bars.add_task("CPU seconds", total=options.seconds - seconds)
        FileSearch(
            program,
            decisions,
            plugin=plugin,
            pipelines=pipelines,
            seconds=options.seconds - seconds,
            seed=options.seed,
            show=show,
        ).run(lambda decisions: decisions.save(options.out))


def _size_table(stock: "Sizes", found: "Sizes") -> Table:
    table = Table("section", title="Linked code in bytes")
    for column in ("clang -Oz", "with decisions", "ratio"):
        table.add_column(column, justify="right")
    for name, before, after in (
        (".text", stock.text, found.text),
        (".eh_frame", stock.eh_frame, found.eh_frame),
    ):
        ratio = f"{after / before:.4f}" if before else "-"
        table.add_row(name, f"{before:,}", f"{after:,}", ratio)
    return table


Folders = Annotated[
    list[Path],
    Argument(
        metavar="FOLDER...",
        help="Result folders of earlier searches (the --folder of `mlbridge search"
        " smallest-code`).",
    ),
]


@dataclass(frozen=True)
class TrainOptions:
    """The options of a training's files."""

    folders: Folders
    out: ModelFile = Path("build/smallest-code/model.onnx")
    plugin: Plugin = None
    jobs: Jobs = os.cpu_count() or 1


@dataclass(frozen=True)
class EvaluateOptions:
    """The options of a comparison."""

    folders: Folders
    model: Annotated[
        str | None,
        Option(
            metavar="SPEC",
            help="Model to compare. [default: for each program, a model trained on the"
            " other programs]",
        ),
    ] = None
    json: SizesFile = None
    plugin: Plugin = None
    jobs: Jobs = os.cpu_count() or 1


def _train(
    context: typer.Context, options: TrainOptions, settings: ImitationOptions
) -> None:
    """Train a model of inlining on the decisions that searches have found.

    The command compiles each program again with the decisions that its search found,
    and logs all calls. In training, the weight of a call is the number of bytes that
    its decision saves.

    ```sh
    mlbridge train smallest-code build/one build/two --out size.onnx
    ```
    """
    need("mlbridge train smallest-code", PACKAGES)
    import numpy as np

    from .calls import Calls
    from .imitation import train, write

    options.out.parent.mkdir(parents=True, exist_ok=True)
    expect_output(options.out)
    programs, calls = _recorded(
        options.folders, plugin_of(options.plugin), options.jobs
    )
    network = train(calls, settings)
    write(network, options.out, Calls.join(calls), settings.seed)
    table = Table("program", title="Calls")
    for column in ("calls", "tried", "decided unlike LLVM"):
        table.add_column(column, justify="right")
    for name, one in zip(_names(programs, options.folders), calls, strict=True):
        counts = (len(one.keys), np.isfinite(one.gains).sum(), one.differ.sum())
        table.add_row(name, *map(str, counts))
    console.print(table)
    console.print(f"The model is {options.out}.")


def _names(programs: list["SearchedProgram"], folders: list[Path]) -> list[str]:
    """Returns the programs' names, or the folders of programs with the same name."""
    counts = Counter(program.name for program in programs)
    return [
        program.name if counts[program.name] == 1 else str(folder)
        for program, folder in zip(programs, folders, strict=True)
    ]


def _recorded(
    folders: list[Path], plugin: Path, jobs: int
) -> "tuple[list[SearchedProgram], list[Calls]]":
    """Compiles searched programs with the searches' decisions, and logs the calls."""
    from .searched import open_all

    programs = open_all(folders)
    calls = []
    with sigterm_exits(), ProgressBars() as bars:
        advance = bars.steps("Logging calls", len(programs))
        for program in programs:
            calls.append(program.record(f"decisions:{program.decisions}", plugin, jobs))
            advance()
    return programs, calls


def _evaluate(
    context: typer.Context, options: EvaluateOptions, settings: ImitationOptions
) -> None:
    """Compare the linked sizes that inlining models and simple rules achieve.

    The programs come from earlier searches. Without --model, the command trains a model
    for each program on all other programs.
    """
    need("mlbridge evaluate smallest-code", PACKAGES)
    from . import evaluate

    if options.model and ":" not in options.model:
        raise InvalidArgument(
            f"--model {options.model}: expected a model spec, such as onnx:rule.onnx"
        )
    plugin = plugin_of(options.plugin)
    programs, calls = _recorded(options.folders, plugin, options.jobs)
    if options.model is None and len(programs) < 2:
        raise InvalidArgument("expected two programs or more, or --model")
    given = options.model and with_absolute_paths(options.model)
    names = _names(programs, options.folders)
    found = []
    with (
        sigterm_exits(),
        TemporaryDirectory(prefix="mlbridge-size-") as folder,
        ProgressBars() as bars,
    ):
        rule = evaluate.one_use(calls[0], Path(folder))
        advance = bars.steps("Policies", len(programs) * (len(THRESHOLDS) + 4))
        for index, program in enumerate(programs):
            model = given or evaluate.train_without(
                index, calls, Path(folder), settings
            )
            models = {evaluate.RULE: rule, evaluate.MODEL: model}
            flags = evaluate.flags_of(program, models, plugin)
            sizes = evaluate.compare(program, flags, options.jobs, advance)
            found.append(replace(sizes, program=names[index]))
    console.print(_ratio_table(found))
    plain = {
        one.program: {name: asdict(size) for name, size in one.sizes.items()}
        for one in found
    }
    write_json(options.json, plain)


def _ratio_table(found: "list[Comparison]") -> Table:
    from .evaluate import mean_ratio

    policies = [policy for policy in found[0].sizes if policy != CLANG_OZ]
    table = Table(title="Linked .text, relative to clang -Oz")
    table.add_column("program", no_wrap=True)
    for column in ("bytes", *policies):
        table.add_column(column, justify="right")
    for one in found:
        ratios = [f"{one.ratio(policy):.4f}" for policy in policies]
        table.add_row(one.program, f"{one.sizes[CLANG_OZ].text:,}", *ratios)
    means = [f"{mean_ratio(found, policy):.4f}" for policy in policies]
    table.add_row("geometric mean", "", *means)
    return table


COMMANDS = {
    "search smallest-code": with_options(_search, SearchOptions),
    "train smallest-code": with_options(_train, TrainOptions, ImitationOptions),
    "evaluate smallest-code": with_options(
        _evaluate, EvaluateOptions, ImitationOptions
    ),
}
