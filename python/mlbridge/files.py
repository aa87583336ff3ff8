# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files that a user named, which may be no files."""

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

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
