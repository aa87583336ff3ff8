# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests programs whose files were compiled with chosen pipelines."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from mlbridge_optimizations.corpus import runs, toolchain
from mlbridge_optimizations.corpus.manifest import Corpus
from mlbridge_optimizations.show import Show, quiet

from ..environment.compiler import TIMEOUT, EpisodeOptions, SequenceRunner
from ..environment.measure import space_of
from .evaluate import Evaluation, Way


def run_programs(
    corpus: Corpus,
    evaluation: Evaluation,
    way: Way,
    prologue: str,
    *,
    repeat: int = 3,
    timeout: float = TIMEOUT,
    show: Show = quiet,
) -> dict[str, tuple[runs.Run, runs.Run]]:
    """Tests each program, compiled with -Oz and with a way's choices.

    Files that were not evaluated, or for which the way failed, are compiled with -Oz.
    Maps each program to its fastest run with -Oz and its fastest run with the way.
    """
    chosen = dict(zip(evaluation.files, way.chosen, strict=True))
    found: dict[str, tuple[runs.Run, runs.Run]] = {}
    names = sorted(set(evaluation.programs))
    with tempfile.TemporaryDirectory(prefix="mlbridge-programs-") as name:
        folder = Path(name)
        for done, program in enumerate(names, 1):
            stock, ours = folder / f"{program}-Oz", folder / program
            toolchain.executable(corpus.programs[program], stock, "-Oz")
            _link(corpus, program, chosen, prologue, folder, ours, timeout)
            with runs.Tester(corpus, corpus.programs[program]) as tester:
                pairs = [(tester.run(stock), tester.run(ours)) for _ in range(repeat)]
            of_stock, of_ours = zip(*pairs, strict=True)
            found[program] = (_least(of_stock), _least(of_ours))
            show(done, len(names))
    return found


def _least(every: Sequence[runs.Run]) -> runs.Run:
    """Returns the first failed run, or the fastest run if all have passed."""
    failed = [run for run in every if not run.passed]
    return failed[0] if failed else min(every, key=lambda run: run.seconds)


def _link(
    corpus: Corpus,
    program: str,
    chosen: Mapping[str, str | None],
    prologue: str,
    folder: Path,
    to: Path,
    timeout: float,
) -> None:
    about = corpus.programs[program]
    modules = about.modules
    pipelines = [chosen.get(module.path) for module in modules]
    space, numbers = space_of((p for p in pipelines if p is not None), prologue)
    objects: list[Path] = []
    options = EpisodeOptions.of(space, folder / f"{program}.json")
    with SequenceRunner(options, timeout=timeout) as runner:
        for module, pipeline in zip(modules, pipelines, strict=True):
            objects.append(folder / f"{program}-{len(objects)}.o")
            path = corpus.folder.resolve() / module.path
            if pipeline is None:
                toolchain.compile_bitcode(path, objects[-1], "-Oz")
            else:
                runner.write(path, [numbers[pipeline]], objects[-1])
    toolchain.link(objects, about.libraries, to, cpp=about.is_cpp)
