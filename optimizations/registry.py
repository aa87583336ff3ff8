# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds optimisations in this distribution, in other distributions and in files."""

import importlib
import importlib.util
import logging
import pkgutil
import sys
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import mlbridge_optimizations
from mlbridge.errors import InvalidArgument, Malformed
from mlbridge_optimizations.optimization import Optimization

logger = logging.getLogger("mlbridge.optimizations")

GROUP = "mlbridge.optimizations"
"""The group of the entry points through which other Python packages register
optimisations. An entry point has the form NAME = module:OBJECT."""

MODULE = "optimization"
"""The module that describes the optimisation in a folder."""

VARIABLE = "OPTIMIZATION"
"""The variable that a module with several optimisations must define."""


def known() -> dict[str, Optimization[Any]]:
    """Returns the optimisations of all installed distributions, by name."""
    found: dict[str, Optimization[Any]] = {}
    package = mlbridge_optimizations.__name__
    for folder in pkgutil.iter_modules(mlbridge_optimizations.__path__):
        name = f"{package}.{folder.name}.{MODULE}"
        if folder.ispkg and importlib.util.find_spec(name):
            described = _of(importlib.import_module(name))
            found[described.name] = described
    for point in entry_points(group=GROUP):
        # Skip a broken entry point, so that the other optimisations still work.
        try:
            one = point.load()
            why = f"expected an Optimization, found a {type(one).__name__}"
        except (Exception, SystemExit) as error:
            one, why = None, f"{type(error).__name__}: {error}"
        if not isinstance(one, Optimization):
            logger.warning("%s (%s) is left out: %s", point.name, point.value, why)
        elif one.name in found:
            logger.warning("a second %s (%s) is left out", one.name, point.value)
        else:
            found[one.name] = one
    return found


def of_file(path: Path) -> Optimization[Any]:
    """Runs a file and returns its optimisation. Raises InvalidArgument or Malformed."""
    return _of(_load(path))


def _of(module: ModuleType) -> Optimization[Any]:
    found = {k: one for k, one in vars(module).items() if isinstance(one, Optimization)}
    if len(found) == 1:
        return next(iter(found.values()))
    if VARIABLE not in found:
        raise InvalidArgument(
            f"{module.__file__}: expected an Optimization in the variable {VARIABLE},"
            f" found {'one in ' + ', '.join(found) if found else 'none'}"
        )
    return found[VARIABLE]


def _load(path: Path) -> ModuleType:
    """Runs a file as a module with its name. It may import files of its folder."""
    path = path.resolve()
    if not path.is_file():
        raise InvalidArgument(f"there is no file {path}")
    _expect_free_name(path)
    # Name the loader, because a link NAME.py may point to a file of any name.
    spec = importlib.util.spec_from_file_location(
        path.stem, path, loader=SourceFileLoader(path.stem, str(path))
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        sys.path.remove(str(path.parent))
        del sys.modules[path.stem]
        raise Malformed(f"{path}: {type(error).__name__}: {error}") from error
    # Pickle the module by value, so that checkpoints do not need the file.
    if importlib.util.find_spec("cloudpickle") is not None:
        import cloudpickle

        cloudpickle.register_pickle_by_value(module)
    return module


def _expect_free_name(path: Path) -> None:
    """Raises InvalidArgument if the file would hide a standard or installed module."""
    owner = "Python" if path.stem in sys.stdlib_module_names else None
    # Ignore names that no module can have, such as my.spills.py.
    with suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(path.stem)
        if not owner and spec is not None and spec.submodule_search_locations:
            owner = spec.origin
    if owner is not None:
        raise InvalidArgument(
            f"{path} would hide the module '{path.stem}' of {owner}: rename the file"
        )
