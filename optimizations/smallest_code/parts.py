# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures by how much each part of size optimisation shrinks linked programs.

A row is a way to compile a program. Each result is kept in the program's folder, so
that a later run does not measure it again.
"""

import json
import os
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import geometric_mean

from mlbridge.errors import CompilerFailed, Timeout
from mlbridge.files import spec_of
from mlbridge_optimizations.corpus.toolchain import mllvm, plugin_flags
from mlbridge_optimizations.evaluation.tables import write_json
from mlbridge_optimizations.phase_ordering.environment.actions import ActionSpace

from .decisions import Decisions
from .file_search import FileProgress, FileSearch
from .flags import FEATURES, model_flags, plugin_replay_flags, threshold_flags
from .linking import BuiltProgram, Sizes, rebuild, write_callee_files
from .search import Progress, search
from .searched import CALLEE_FILES, SearchedProgram
from .settings import CLANG_OZ

ICF = "lld --icf=safe, beside"
MODELS = "models of inlining and order, outliner"
WITHOUT_INLINING = "the same, without inlining"
WITHOUT_ORDER = "the same, without order"
WITHOUT_OUTLINER = "the same, without outliner"
SIMPLE_RULE = "simple rule of inlining"
RULE_FILE = "simple-rule.onnx"
RANDOM_ORDER = "random order instead, best of 8"
RANDOM_ORDER_FILE = "random-order.onnx"
INLINING = "searched inlining"
ORDER = "searched inlining and pipeline"
ALL = "searched: all parts"

Show = Callable[[Progress | FileProgress], None]


def stock_rows(plugin: Path, folder: Path) -> dict[str, list[str]]:
    """Returns the flags of the rows that need no search.

    The program's ``folder`` has the simple rule, the random order, and the number of
    files that emit each function.
    """

    def fallback(name: str) -> list[str]:
        """Makes clang replay an empty file, so the fallback makes all decisions."""
        return mllvm(
            [
                f"-cgscc-inline-replay={os.devnull}",
                "-cgscc-inline-replay-scope=Module",
                f"-cgscc-inline-replay-fallback={name}",
            ]
        )

    outline = ["-enable-machine-outliner=always"]
    merged = [*outline, "-enable-linkonceodr-outlining"]
    order = "phase-ordering=builtin:phase_ordering_oz"
    model, callee_files = "builtin:smallest_code", folder / CALLEE_FILES
    rule = spec_of("onnx", folder / RULE_FILE)
    random_order = spec_of("onnx", folder / RANDOM_ORDER_FILE)

    def sized(*options: str) -> list[str]:
        """Lets the models decide. A model that fails is an error."""
        files = f"inliner-callee-files={callee_files}"
        return plugin_flags(plugin, f"size={model}", files, "on-error=fatal", *options)

    return {
        CLANG_OZ: [],
        "never inline": fallback("NeverInline"),
        "always inline": fallback("AlwaysInline"),
        **threshold_flags(),
        "mergefunc": mllvm(["-enable-merge-functions"]),
        "IR outliner": mllvm(["-ir-outliner"]),
        "IR outliner, merged too": mllvm(
            ["-ir-outliner", "-enable-linkonceodr-ir-outlining"]
        ),
        "outliner": mllvm(outline),
        "outliner, merged too": mllvm(merged),
        "outliner, merged too, from 4": mllvm(
            [*merged, "-outliner-benefit-threshold=4"]
        ),
        "phase-ordering model": plugin_flags(plugin, order),
        "the same, best of 8": plugin_flags(plugin, order, "search=8"),
        SIMPLE_RULE: model_flags(rule, plugin, callee_files),
        "model of inlining": model_flags(model, plugin, callee_files),
        "the same, files unknown": plugin_flags(
            plugin, f"inliner={model}", "on-error=fatal", *FEATURES
        ),
        MODELS: sized(),
        WITHOUT_INLINING: sized("inliner=none"),
        WITHOUT_ORDER: sized("phase-ordering=none"),
        WITHOUT_OUTLINER: [
            *sized(),
            *mllvm(["-enable-machine-outliner=never"]),
        ],
        "the same, guarded": sized("size-guard"),
        "all models, best of 8": sized("search=8"),
        RANDOM_ORDER: sized(f"phase-ordering={random_order}", "search=8"),
        ICF: ["-Wl,--icf=safe"],
    }


class Results:
    """The sizes of a program by row, in a file of the program's folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "parts.json"
        self.sizes: dict[str, Sizes | None] = {}
        if self._path.is_file():
            text = self._path.read_text(encoding="utf-8")
            for name, size in json.loads(text).items():
                self.sizes[name] = Sizes(**size) if size else None

    def add(self, name: str, size: Sizes | None) -> None:
        """Keeps a result. ``size`` is None if the compiler failed or timed out."""
        self.sizes[name] = size
        plain = {row: one and asdict(one) for row, one in self.sizes.items()}
        write_json(self._path, plain)


def _write_simple_rule(program: BuiltProgram, plugin: Path, jobs: int) -> None:
    """Writes the rule with which the training of the model of inlining starts."""
    from .rule import ONE_USE, write_rule

    searched = SearchedProgram(program.folder, program.build, program.link)
    calls = searched.record("none", plugin, jobs)
    write_rule(ONE_USE, program.folder / RULE_FILE, calls)


def write_random_order(program: BuiltProgram) -> None:
    """Writes the model of `RANDOM_ORDER`, which chooses each action at random."""
    from .random_models import write_order

    seed = zlib.crc32(program.name.encode()) % 1000
    actions = len(ActionSpace.load("oz").actions)
    write_order(program.folder / RANDOM_ORDER_FILE, actions, seed)


def measure_stock_rows(
    program: BuiltProgram,
    plugin: Path,
    jobs: int,
    advance: Callable[[], None] = lambda: None,
) -> Results:
    """Measures the rows that need no search, except rows with a known result."""
    results = Results(program.folder)
    to = program.folder / "linked"
    write_callee_files(program.link, program.folder / CALLEE_FILES)
    if SIMPLE_RULE not in results.sizes:
        _write_simple_rule(program, plugin, jobs)
    write_random_order(program)
    for name, flags in stock_rows(plugin, program.folder).items():
        if name not in results.sizes:
            try:
                size = rebuild(program.build, program.link, flags, to, jobs)
            except (CompilerFailed, Timeout):
                size = None
            results.add(name, size)
        advance()
    return results


def search_parts(
    built: BuiltProgram,
    pipelines: Mapping[str, str],
    space: Path,
    *,
    plugin: Path,
    seconds: float,
    jobs: int,
    show: Show = lambda _: None,
) -> Results:
    """Searches a program in three stages. Skips stages with a known result.

    Each stage has a third of the ``seconds`` of CPU time, and starts with the decisions
    of the previous stage. ``space`` is the file of the ``pipelines``. Afterwards,
    `SearchedProgram.open` can read the folder, with the decisions of the first stage.
    """
    results = Results(built.folder)
    program = SearchedProgram(built.folder, built.build, built.link)
    program.link_module()
    files = [program.folder / f"stage{stage}.txt" for stage in (1, 2, 3)]
    search_calls = partial(
        search,
        program.module,
        plugin=plugin,
        seconds=seconds / 3,
        is_shared=program.link.is_shared,
        show=show,
    )

    def add(row: str, decisions: Path) -> None:
        flags = plugin_replay_flags(decisions, plugin)
        to = program.folder / "linked"
        results.add(row, rebuild(program.build, program.link, flags, to, jobs))

    if INLINING not in results.sizes:
        search_calls(files[0], flips=program.flips)
        add(INLINING, files[0])
    if ORDER not in results.sizes:
        search_calls(files[1], start=files[0], pipelines=space)
        add(ORDER, files[1])
    program.save(files[0])
    if ALL not in results.sizes:
        last = FileSearch(
            program,
            Decisions.read(files[1]),
            plugin=plugin,
            pipelines=pipelines,
            seconds=seconds / 3,
            show=show,
        )
        last.run(lambda decisions: decisions.save(files[2])).save(files[2])
        add(ALL, files[2])
    return results


def ratio(sizes: Mapping[str, Sizes | None], row: str) -> float | None:
    """Returns the linked .text of a row, relative to clang -Oz.

    Returns None if one of the sizes is unknown.
    """
    stock, found = sizes.get(CLANG_OZ), sizes.get(row)
    return found.text / stock.text if stock and found else None


def best_threshold(programs: Iterable[Mapping[str, Sizes | None]]) -> str | None:
    """Returns the row of the threshold with the least geometric mean, or None."""
    means = {}
    for row in threshold_flags():
        found = [ratio(sizes, row) for sizes in programs]
        known = [one for one in found if one]
        if known and len(known) == len(found):
            means[row] = geometric_mean(known)
    return min(means, key=means.__getitem__, default=None)
