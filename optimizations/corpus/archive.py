# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads archives of objects (.a).

`ar x` cannot be used, because it extracts members with the same name to one file, and
does not extract the members of thin archives.
"""

import os
from pathlib import Path

from mlbridge.errors import InvalidArgument, Malformed

_ARCHIVE, _THIN = b"!<arch>\n", b"!<thin>\n"
_HEADER = 60
_INDEXES = (b"/", b"/SYM64/", b"__.SYMDEF", b"__.SYMDEF SORTED")


def is_archive(path: Path) -> bool:
    """Returns whether a file is an archive."""
    with path.open("rb") as file:
        return file.read(len(_ARCHIVE)) in (_ARCHIVE, _THIN)


def objects_of(path: Path) -> list[bytes]:
    """Returns the contents of an object, or of the members of an archive, in order.

    Raises InvalidArgument if there is no such file, or Malformed.
    """
    try:
        data = path.read_bytes()
        if data[: len(_ARCHIVE)] not in (_ARCHIVE, _THIN):
            return [data]
        return _members(data, path.parent)
    except FileNotFoundError as error:
        raise InvalidArgument(
            f"{error.filename}: the build linked this file, but it does not exist"
            " any more; keep it"
        ) from None
    except ValueError as error:
        raise Malformed(f"{path}: expected an archive: {error}") from error


def _members(data: bytes, folder: Path) -> list[bytes]:
    is_thin = data.startswith(_THIN)
    found: list[bytes] = []
    names = b""  # The table of long names.
    at = len(_ARCHIVE)
    while at < len(data):
        header, start = data[at : at + _HEADER], at + _HEADER
        if header[-2:] != b"`\n":
            raise ValueError(f"no header at byte {at}")
        name, size = header[:16].rstrip(), int(header[48:58])
        body = data[start : start + size]
        has_body = True
        if name == b"//":
            names = body
        elif name.startswith(b"#1/"):  # BSD: the name precedes the contents.
            length = int(name[3:])
            if body[:length].rstrip(b"\0") not in _INDEXES:
                found.append(body[length:])
        elif name not in _INDEXES and is_thin:
            has_body = False
            if name[1:].isdigit():
                first = int(name[1:])
                name = names[first : names.index(b"/\n", first)]
            found += objects_of(folder / os.fsdecode(name.removesuffix(b"/")))
        elif name not in _INDEXES:
            found.append(body)
        if has_body and start + size > len(data):
            raise ValueError(f"no {size} bytes at byte {start}")
        # Each member starts at an even byte.
        at = start + (size + size % 2 if has_body else 0)
    return found
