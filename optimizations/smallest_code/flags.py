# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The flags of clang for models of inlining, for thresholds and for decision files."""

from pathlib import Path

from mlbridge_optimizations.built import plugin_of
from mlbridge_optimizations.corpus.toolchain import mllvm, plugin_flags

from .decisions import Decisions
from .settings import THRESHOLDS

FEATURES = ("inliner-include-linkage", "inliner-include-default")
"""The plug-in's options that add the features on which models are trained."""


def model_flags(spec: str, plugin: Path, callee_files: Path) -> list[str]:
    """Returns clang's flags for a model of inlining."""
    options = (f"inliner={spec}", f"inliner-callee-files={callee_files}")
    return plugin_flags(plugin, *options, "on-error=fatal", *FEATURES)


def threshold_flags() -> dict[str, list[str]]:
    """Maps a name for each fixed threshold of the inliner to clang's flags."""
    return {f"threshold {n}": mllvm([f"-inline-threshold={n}"]) for n in THRESHOLDS}


def stock_replay_flags(decisions: Path) -> list[str]:
    """Returns the flags with which stock clang replays decisions.

    The calls need locations, which -Rpass=none and -fdebug-info-for-profiling add.
    """
    return mllvm(
        [
            f"-cgscc-inline-replay={decisions.resolve()}",
            "-cgscc-inline-replay-scope=Module",
            "-cgscc-inline-replay-fallback=Original",
            "-cgscc-inline-replay-format=LineColumnDiscriminator",
        ]
    )


def plugin_replay_flags(decisions: Path, plugin: Path) -> list[str]:
    """Returns the flags with which clang and the plug-in replay decisions."""
    return plugin_flags(plugin, f"size=decisions:{decisions.resolve()}")


def replay_flags(decisions: Path, plugin: Path | None = None) -> list[str]:
    """Returns the flags with which clang replays decisions.

    Only decisions that stock clang cannot replay need the plug-in. By default,
    ``plugin`` is the file that `mlbridge doctor` finds. Raises InvalidArgument if there
    is no such file.
    """
    if Decisions.read(decisions).needs_plugin:
        return plugin_replay_flags(decisions, plugin_of(plugin))
    return stock_replay_flags(decisions)
