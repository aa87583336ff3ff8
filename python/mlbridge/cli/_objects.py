# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the Python object that MODULE:OBJECT on a command line names."""

import importlib
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any

import typer


def find_object(name: str, expected: str = "MODULE:OBJECT") -> Any:
    """Returns the object MODULE:OBJECT. The current folder is searched for MODULE, too.

    Raises:
        typer.BadParameter: the module cannot be imported, or the object does not exist.
    """
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise typer.BadParameter(f"expected {expected}, found '{name}'")
    # A console script does not search the current folder, so it is added here.
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            why = f"cannot import '{module_name}': {error}"
            raise typer.BadParameter(why) from error
        raise typer.BadParameter(f"there is no module '{module_name}' here") from None
    except (Exception, SystemExit) as error:
        why = f"{type(error).__name__}: {error}"
        raise typer.BadParameter(f"cannot import '{module_name}': {why}") from error
    try:
        return attrgetter(path)(module)
    except AttributeError:
        # Print the module's file, because another module of this name may hide the
        # user's file.
        file = getattr(module, "__file__", None) or "part of Python"
        why = f"module '{module_name}' ({file}) has no '{path}'"
        raise typer.BadParameter(why) from None
