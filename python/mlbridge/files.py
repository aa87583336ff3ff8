# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Paths: of files that a user named, in model specs, of temporary folders."""

import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self
from urllib.parse import quote

from mlbridge.errors import InvalidArgument

_KINDS: Mapping[Callable[[int], bool], str] = {
    stat.S_ISDIR: "a folder",
    stat.S_ISFIFO: "a FIFO",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
}


def expect_regular_file(path: str | os.PathLike[str]) -> None:
    """Refuses what is no regular file, for who is about to open it.

    Opening a FIFO waits for another process, and reading a device such as /dev/zero
    never ends.

    Raises:
        InvalidArgument: it is something else.
        OSError: there is nothing, or it cannot be looked at.
    """
    mode = Path(path).stat().st_mode
    if stat.S_ISREG(mode):
        return
    found = (what for is_kind, what in _KINDS.items() if is_kind(mode))
    raise InvalidArgument(
        f"{os.fspath(path)}: expected a regular file, found "
        f"{next(found, 'a file of another kind')}"
    )


def spec_of(scheme: str, path: str | os.PathLike[str]) -> str:
    """The model spec of a file or a socket, whatever characters its name has.

    With the absolute path, no part of which can be taken for a label.
    """
    return f"{scheme}:{quote(os.fsencode(Path(path).absolute()), safe='/')}"


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
