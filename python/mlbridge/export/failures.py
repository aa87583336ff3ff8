# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a missing package or a broken file raises, as one typed error."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mlbridge.errors import Error, Malformed, Unsupported
from mlbridge.extras import how_to_install


@contextmanager
def reading(path: Path, expected: str) -> Iterator[None]:
    """Makes Malformed of what the body raises, which loads a file.

    A broken file may make its loader, and what is in a pickle, raise anything. Errors
    of the bridge and of the operating system stay what they are.

    Args:
        path: of the file.
        expected: what should be in it.
    """
    try:
        yield
    except (Error, OSError):
        raise
    except Exception as error:
        raise Malformed(
            f"{path}: expected {expected}: {type(error).__name__}: {error}"
        ) from error


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
