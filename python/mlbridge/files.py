# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Helpers for files, temporary folders and model specs with paths."""

import fcntl
import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self
from urllib.parse import quote, unquote

from mlbridge.errors import InvalidArgument

_KINDS: Mapping[Callable[[int], bool], str] = {
    stat.S_ISDIR: "a folder",
    stat.S_ISFIFO: "a FIFO",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
}


def expect_regular_file(path: str | os.PathLike[str]) -> None:
    """Raises InvalidArgument if a path is not a regular file.

    Call this before opening a file from a user: opening a FIFO would wait for another
    process, and reading a device such as /dev/zero would never end.

    Raises:
        InvalidArgument: the path is a folder, a FIFO, a socket or a device.
        OSError: the path does not exist or is not accessible.
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
    """Returns the model spec for a path. Special characters are escaped.

    The path is made absolute, because a relative path may look like another kind of
    spec.
    """
    return f"{scheme}:{quote(os.fsencode(Path(path).absolute()), safe='/')}"


def with_absolute_paths(spec: str) -> str:
    """Returns a model spec in which the paths of existing files are absolute.

    Call this if another program opens the model in another folder.
    """
    return "|".join(map(_with_absolute_path, spec.split("|")))


def _with_absolute_path(spec: str) -> str:
    scheme, _, rest = spec.partition(":")
    path, question, options = rest.partition("?")
    name = unquote(path)
    return spec_of(scheme, name) + question + options if Path(name).is_file() else spec


def expect_output(path: Path, *inputs: Path) -> None:
    """Raises InvalidArgument if `path` cannot be a new file, or is one of the inputs.

    Call this before a long computation of the file.
    """
    folder = path.resolve().parent
    if not folder.is_dir():
        raise InvalidArgument(f"{path}: there is no folder {folder}")
    if not path.exists():
        return
    expect_regular_file(path)
    if any(one.exists() and path.samefile(one) for one in inputs):
        raise InvalidArgument(f"{path} is read by this command: name another output")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Creates a folder if needed, and locks it.

    Raises InvalidArgument if another process has locked it. The folder must not be
    removed during the lock, but may be emptied.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidArgument(
                f"{folder} is used by another process: name another folder"
            ) from None
        yield
    finally:
        os.close(descriptor)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary path for the caller to write, and then moves it to `path`.

    `path` is replaced atomically. If the body raises, `path` does not change. If `path`
    is a symbolic link, its target is replaced. InvalidArgument is raised if `path` is,
    for example, a device, or its folder does not exist.
    """
    expect_output(path)
    if path.is_symlink():
        path = path.resolve()
    try:
        temporary = tempfile.TemporaryDirectory(prefix=".mlbridge-", dir=path.parent)
    except OSError as error:  # Name the file that the caller knows.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    with temporary as folder:
        made = Path(folder) / path.name
        yield made
        made.replace(path)


class OwnFolder:
    """A temporary folder whose name starts with `prefix`.

    The folder is removed by `close`, by garbage collection of this object, or when the
    process exits. Unlike with tempfile.TemporaryDirectory, a forked child does not
    remove the folder of its parent.
    """

    def __init__(self, prefix: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        self._remove = weakref.finalize(self, _remove, self.path, os.getpid())

    def close(self) -> None:
        """Removes the folder and its contents."""
        self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)
