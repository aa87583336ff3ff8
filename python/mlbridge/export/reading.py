# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a broken file makes of its loader: one typed error."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mlbridge.errors import Error, Malformed


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
