# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Says which package is missing, and what to install."""

from collections.abc import Iterator
from contextlib import contextmanager

from mlbridge.errors import Unsupported
from mlbridge.extras import how_to_install


@contextmanager
def needed(what: str) -> Iterator[None]:
    """Makes a typed error of a package that is not installed.

    Args:
        what: is done within, for the message.

    Raises:
        Unsupported: a package was imported that is not there.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise Unsupported(
            f"{what} needs the Python package '{error.name}', which is not installed: "
            f"{how_to_install('export')} (or scripts/make-venv export there) has what "
            "exporting needs; the policy's own framework and modules come from you"
        ) from error
