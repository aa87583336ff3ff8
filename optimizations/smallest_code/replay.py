# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The flags with which clang replays a file of decisions."""

from pathlib import Path

from mlbridge_optimizations.built import plugin_of
from mlbridge_optimizations.corpus.toolchain import mllvm, plugin_flags

from .decisions import Decisions


def replay_flags(decisions: Path) -> list[str]:
    """Returns the flags with which stock clang replays decisions.

    The calls need locations, which -Rpass=^$ and -fdebug-info-for-profiling add.
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


def flags_to_replay(decisions: Path, plugin: Path | None = None) -> list[str]:
    """Returns the flags with which clang replays decisions.

    Only decisions that stock clang cannot replay need the plug-in. The default is the
    file that `mlbridge doctor` finds. Raises InvalidArgument if there is no such file.
    """
    if Decisions.read(decisions).needs_plugin:
        return plugin_replay_flags(decisions, plugin_of(plugin))
    return replay_flags(decisions)
