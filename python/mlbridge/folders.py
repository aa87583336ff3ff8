# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Temporary folders that a forked child does not remove."""

import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Self


class OwnFolder:
    """A temporary folder of the process that makes it; its name begins as it is told.

    It is removed by `close`, when this object is forgotten, or at the end of the
    process. tempfile.TemporaryDirectory does so in a forked child too, whose parent
    goes on using it.
    """

    def __init__(self, prefix: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        self._remove = weakref.finalize(self, _remove, self.path, os.getpid())

    def close(self) -> None:
        """Removes it, with all that is in it."""
        self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)
