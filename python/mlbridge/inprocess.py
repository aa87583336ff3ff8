# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The specs of models in this process: ``onnx:FILE``, as a compiler runs them.

`ModelRunner` understands them without a call of this module. A file is loaded once for
all runners that use it.
"""

import functools
import importlib.util
import os
from pathlib import Path

from mlbridge import _core


@functools.cache
def _wheel_library() -> Path | None:
    """The library of the Python package onnxruntime; does not import the package."""
    package = importlib.util.find_spec("onnxruntime")
    if package is None or package.origin is None:
        return None
    folder = Path(package.origin).parent / "capi"
    return max(folder.glob("libonnxruntime.so*"), default=None)


def onnxruntime() -> Path | None:
    """The library of ONNX Runtime that `ModelRunner` uses if a spec names none.

    The environment variable MLBRIDGE_ONNXRUNTIME or else the Python package
    onnxruntime names it. None leaves the search to the dynamic loader.
    """
    if named := os.environ.get("MLBRIDGE_ONNXRUNTIME"):
        return Path(named)
    return _wheel_library()


@functools.cache
def _schemes(library: str, process: int) -> tuple[_core.Scheme, ...]:
    """Cached per process: a forked child cannot use the models they have loaded."""
    return tuple(_core.in_process_schemes(library))


def schemes() -> list[_core.Scheme]:
    """The schemes of model specs for models in this process."""
    return [*_schemes(str(onnxruntime() or ""), os.getpid())]
