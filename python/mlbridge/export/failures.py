# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Converts exceptions for missing packages or broken files to the bridge's errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mlbridge.errors import Error, Malformed, Unsupported
from mlbridge.extras import how_to_install


@contextmanager
def reading(path: Path, expected: str) -> Iterator[None]:
    """Converts any exception of the body, which loads a file, to Malformed.

    Errors of the bridge and of the operating system are not converted. `expected`
    describes the expected content in the message.
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
    """Converts a ModuleNotFoundError of the body to Unsupported.

    `what` describes the body in the message.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise Unsupported(
            f"{what} needs the Python package '{error.name}', which is not installed: "
            f"run {how_to_install('export')} (or scripts/make-venv export there) for "
            "the packages of the export; install the policy's framework yourself"
        ) from error
