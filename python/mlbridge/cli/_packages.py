# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packages that a command needs: asked for before hours of work, not after."""

from importlib.util import find_spec

from mlbridge.errors import Unsupported
from mlbridge.extras import how_to_install


def need(what: str, packages: tuple[str, ...], extra: str) -> None:
    """Looks for packages without importing them.

    Args:
        what: needs them, for the message.
        packages: as they are imported.
        extra: of this package, that has them.

    Raises:
        Unsupported: one is not installed.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise Unsupported(
            f"{what} needs the Python packages {', '.join(missing)}, which are not "
            f"installed: {how_to_install(extra)}, or there scripts/make-venv dev train"
        )
