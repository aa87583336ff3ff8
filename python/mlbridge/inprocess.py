# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The schemes of models that run in this process, for example ``onnx:FILE``.

Users need not import this module, because `ModelRunner` accepts the schemes. A model
file is loaded once for all runners that use it.
"""

import functools
import importlib.util
import os
from pathlib import Path

from mlbridge import _core


@functools.cache
def _wheel_library() -> Path | None:
    """Returns the library in the package onnxruntime, without importing the package."""
    package = importlib.util.find_spec("onnxruntime")
    if package is None or package.origin is None:
        return None
    folder = Path(package.origin).parent / "capi"
    return max(folder.glob("libonnxruntime.so*"), default=None)


def onnxruntime() -> Path | None:
    """Returns the default library of ONNX Runtime for `ModelRunner`.

    It is the value of MLBRIDGE_ONNXRUNTIME, or else the library in the Python package
    onnxruntime. If the result is None, the dynamic loader searches for the library.
    """
    if named := os.environ.get("MLBRIDGE_ONNXRUNTIME"):
        return Path(named)
    return _wheel_library()


@functools.cache
def _schemes(library: str, process: int) -> tuple[_core.Scheme, ...]:
    """Returns schemes per process, because a child cannot use its parent's models."""
    return tuple(_core.in_process_schemes(library))


def schemes() -> list[_core.Scheme]:
    """Returns the schemes of model specs for models in this process."""
    return [*_schemes(str(onnxruntime() or ""), os.getpid())]
