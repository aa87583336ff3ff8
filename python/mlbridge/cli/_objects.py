# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the Python objects that a command line names: ``MODULE:OBJECT``."""

import importlib
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any

import typer


def find_object(name: str, expected: str = "MODULE:OBJECT") -> Any:
    """Returns the object MODULE:OBJECT; the module may lie in the current folder.

    Raises:
        typer.BadParameter: there is no such object.
    """
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise typer.BadParameter(f"expected {expected}, found '{name}'")
    # As `python -m` does; a console script's path starts elsewhere.
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise typer.BadParameter(f"there is no module '{module_name}' here") from None
    try:
        return attrgetter(path)(module)
    except AttributeError:
        raise typer.BadParameter(f"module '{module_name}' has no '{path}'") from None
