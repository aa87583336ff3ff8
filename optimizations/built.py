# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that the plug-ins and programs of a build exist."""

from pathlib import Path

from mlbridge.built import find_built
from mlbridge.errors import InvalidArgument


def built_of(
    given: Path | None,
    name: str,
    *,
    option: str = "--plugin",
    package: str = "",
    variable: str = "",
) -> Path:
    """Returns ``given``, or the file that `find_built` finds.

    Raises InvalidArgument if the file does not exist. The error names the option and
    the Debian package that the build needs.
    """
    found = given or find_built(name, variable)
    if found is None or not found.is_file():
        needs = f", which needs {package}," if package else ""
        raise InvalidArgument(
            f"{found or name}: found no such file; build it with `make build`{needs}"
            f" or name it with {option}"
        )
    return found.resolve()


def plugin_of(given: Path | None) -> Path:
    """Returns ``given``, or the plug-in that `mlbridge doctor` finds.

    Raises InvalidArgument if the file does not exist.
    """
    return built_of(given, "MLBridgeLLVM.so", variable="MLBRIDGE_LLVM_PLUGIN")
