# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python objects that a command line names: ``MODULE:OBJECT``."""

import importlib
import sys
from pathlib import Path
from typing import Any

import typer


def find_object(name: str, expected: str = "MODULE:OBJECT") -> Any:
    """What MODULE:OBJECT names; importable from the current folder, too.

    Raises:
        typer.BadParameter: there is no such object.
    """
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise typer.BadParameter(f"expected {expected}, found '{name}'")
    # As `python -m` does; a console script's path does not begin here.
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise typer.BadParameter(f"there is no module '{module_name}' here") from None
    for part in path.split("."):
        if not hasattr(found, part):
            raise typer.BadParameter(f"module '{module_name}' has no '{path}'")
        found = getattr(found, part)
    return found
