# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Converts errors of PyTorch and its exporter to one line about the user's module."""

import re
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from torch import nn

from mlbridge.errors import Error, InvalidArgument
from mlbridge.export.policy import Port
from mlbridge.printable import name, words

_PLACE = re.compile(r'File "([^"]+)", line (\d+), in \w+\n\s*(.+)')
"""A line of the user's code in a message of PyTorch's exporter."""
_SENTENCE_END = re.compile(r"\.\s|\n")
_ABOUT_TYPES = re.compile(r"dtype|Overload|cast|\b(Long|Int|Float)\b")
_LIBRARIES = (
    str(Path(__file__).parents[1]),
    *map(sysconfig.get_path, ("stdlib", "purelib", "platlib")),
)


@contextmanager
def running(module: nn.Module, ports: Sequence[Port]) -> Iterator[None]:
    """Converts any exception of the body, which runs or converts a module.

    The new exception is InvalidArgument. Errors of the bridge are not converted.
    """
    try:
        yield
    except Error:
        raise
    except Exception as error:
        raise InvalidArgument(_description(module, ports, error)) from error


def _description(module: nn.Module, ports: Sequence[Port], error: Exception) -> str:
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    text = f"{type(cause).__name__}: {cause}"
    what = words(_SENTENCE_END.split(text, maxsplit=1)[0])
    integers = [port for port in ports if port.dtype.kind != "f"]
    if integers and _ABOUT_TYPES.search(text):
        first = integers[0]
        what += (
            f"; '{name(first.name)}' arrives as {first.dtype}: use .float() if the "
            "network computes with floats"
        )
    return f"{type(module).__name__} cannot be exported: {_place(cause)}{what}"


def _place(cause: BaseException) -> str:
    """Returns the last line of the user's code that an exception names, or ""."""
    found = [
        (frame.filename, str(frame.lineno), frame.line or "")
        for frame in traceback.extract_tb(cause.__traceback__)
    ]
    found += _PLACE.findall(str(cause))
    for file, line, code in reversed(found):
        if not file.startswith(("<", *_LIBRARIES)):
            return f"{name(Path(file).name)}:{line}: `{words(code.strip())}`: "
    return ""
