# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options that the benchmarks of phase ordering have in common."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from typer import Option

from mlbridge.extras import need
from mlbridge_benchmarks.common.options import (
    HOW_TO_INSTALL,
    JsonFile,
    Plugin,
    Rounds,
    find_plugin,
    find_vocabulary,
    write_plot,
    write_rows,
)
from mlbridge_benchmarks.common.processes import ROOT

if TYPE_CHECKING:
    from mlbridge_optimizations.phase_ordering.compiler.compiler import CompilerOptions

PACKAGES = ("gymnasium", "elftools", "onnx", "onnxruntime")
POLICY_PACKAGES = ("torch", "onnxscript")
AOT_PACKAGES = ("emx_onnx_cgen",)


@dataclass(frozen=True)
class Setting:
    """Of all of them."""

    rounds: Rounds = 5
    flow: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="Only this flow; may be repeated."),
    ] = None
    steps: Annotated[
        int, Option(min=1, help="Actions of an episode, where no model says so.")
    ] = 15
    seed: Annotated[
        int, Option(min=0, help="Of the modules that are drawn, and of weights.")
    ] = 0
    corpus: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="The corpus. [default: build/corpus]"),
    ] = None
    vocabulary: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="IR2Vec's, in LLVM's form. [default: build/ir2vec/ir2vec-300d.json]",
        ),
    ] = None
    plugin: Plugin = None
    json_file: JsonFile = None
    plot_file: Annotated[
        Path | None,
        Option("--plot", metavar="FILE", help="Where it goes. [default: in build]"),
    ] = None

    @property
    def corpus_folder(self) -> Path:
        """Where the corpus is."""
        return self.corpus or ROOT / "build" / "corpus"

    def compiler(self, actions: str = "oz", reward: str = "none") -> "CompilerOptions":
        """Of the compilers."""
        from mlbridge_optimizations.phase_ordering.compiler.compiler import (
            CompilerOptions,
        )

        from .task import SEEN

        return CompilerOptions(
            actions,
            SEEN,
            reward,
            steps=self.steps,
            vocabulary=find_vocabulary(self.vocabulary),
            plugin=find_plugin(self.plugin),
        )

    def write(
        self,
        console: Console,
        rows: Sequence[dict[str, Any]],
        name: str,
        draw: Callable[[Path], None],
    ) -> None:
        """Writes the rows, if that is wanted, and the plot."""
        write_rows(console, rows, self.json_file)
        path = self.plot_file or ROOT / "build" / f"{name}.png"
        write_plot(console, path, draw)


@dataclass(frozen=True)
class Compiled:
    """Of those that compile modules by a model."""

    modules: Annotated[
        int, Option(min=0, help="How many are drawn from the corpus; 0: all.")
    ] = 20
    model: Annotated[
        Path | None,
        Option(
            metavar="FILE.onnx",
            exists=True,
            help="What decides, as `mlbridge train phase-ordering` writes it. "
            "[default: a network of random weights]",
        ),
    ] = None


def need_packages(command: str, flow: list[str] | None, model: Path | None) -> None:
    """Looks for what the flows need, and a random network if there is no model."""
    packages = PACKAGES + (() if model else POLICY_PACKAGES)
    if not flow or "aot" in flow:
        packages += AOT_PACKAGES
    need(command, packages, HOW_TO_INSTALL)
