# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the pipelines that a search tries."""

from pathlib import Path

from mlbridge.errors import InvalidArgument, SchemaMismatch
from mlbridge_optimizations.phase_ordering.environment.actions import ActionSpace
from mlbridge_optimizations.phase_ordering.model.coreset import CoreSet

from .decisions import STOCK


def read_pipelines(path: Path, space: Path) -> dict[str, str]:
    """Reads pipelines by name, and writes them to ``space`` as an action space.

    The file is an action space, or a core set, as in models/phase-ordering-oz. Raises
    InvalidArgument if it cannot be read, or Malformed.
    """
    try:
        found = ActionSpace.load(path)
    except SchemaMismatch:
        found = CoreSet.load(path).actions
    names = [action.name for action in found.actions]
    if STOCK in names or any("\n" in name for name in names):
        raise InvalidArgument(
            f"{path}: expected names in one line, and other names than '{STOCK}'"
        )
    found.save(space)
    return {
        action.name: found.pipeline([number])
        for number, action in enumerate(found.actions)
    }
