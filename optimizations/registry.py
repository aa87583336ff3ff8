# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which optimisations there are, and what a file describes that is none of these."""

import importlib
import importlib.util
import logging
import pkgutil
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import mlbridge_optimizations
from mlbridge.errors import InvalidArgument, Malformed
from mlbridge_optimizations.optimization import Optimization

logger = logging.getLogger("mlbridge.optimizations")

GROUP = "mlbridge.optimizations"
"""Entry points by which other distributions bring theirs: NAME = module:OBJECT."""

MODULE = "optimization"
"""The file of an optimisation's folder that describes it."""


def known() -> dict[str, Optimization[Any]]:
    """Those of this distribution, a folder each, and those of others, by name."""
    found: dict[str, Optimization[Any]] = {}
    package = mlbridge_optimizations.__name__
    for folder in pkgutil.iter_modules(mlbridge_optimizations.__path__):
        name = f"{package}.{folder.name}"
        if folder.ispkg and importlib.util.find_spec(f"{name}.{MODULE}"):
            described = _of(importlib.import_module(f"{name}.{MODULE}"))
            found[described.name] = described
    for point in entry_points(group=GROUP):
        # Leave a broken one out, and keep the others.
        try:
            described = _checked(point.load(), point.value)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            logger.warning("%s (%s) is left out: %s", point.name, point.value, why)
            continue
        if described.name in found:
            logger.warning("a second %s (%s) is left out", described.name, point.value)
        else:
            found[described.name] = described
    return found


def of_file(path: Path) -> Optimization[Any]:
    """The one that a Python file describes.

    Raises:
        InvalidArgument: there is none.
        Malformed: the file cannot be run.
    """
    return _of(_load(path))


def _of(module: ModuleType) -> Optimization[Any]:
    """The one that a module has."""
    found = [one for one in vars(module).values() if isinstance(one, Optimization)]
    if len(found) != 1:
        raise InvalidArgument(
            f"{module.__file__}: expected one Optimization, found {len(found)}"
        )
    return found[0]


def _checked(found: object, source: str) -> Optimization[Any]:
    if not isinstance(found, Optimization):
        raise InvalidArgument(
            f"{source}: expected an Optimization, found a {type(found).__name__}"
        )
    return found


def _load(path: Path) -> ModuleType:
    """Runs a file, as a module by its own name, beside which others are found."""
    path = path.resolve()
    if path.stem in sys.stdlib_module_names:
        raise InvalidArgument(
            f"{path}: Python has a module '{path.stem}' of its own: rename the file"
        )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InvalidArgument(f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise Malformed(f"{path}: {type(error).__name__}: {error}") from error
    _keep_in_checkpoints(module)
    return module


def _keep_in_checkpoints(module: ModuleType) -> None:
    """Has networks of the module be loaded where the file is not."""
    if importlib.util.find_spec("cloudpickle") is not None:
        import cloudpickle

        cloudpickle.register_pickle_by_value(module)
