# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models in this process: ``onnx:FILE``, as a compiler runs them.

Specs with these schemes are understood by `ModelRunner`; nothing of this module has to
be called for that. A file is loaded once, whatever number of runners ask it.
"""

import functools
import importlib.util
import os
from pathlib import Path

from mlbridge import _core


@functools.cache
def _wheel_library() -> Path | None:
    """The library in the Python package onnxruntime, which is not imported."""
    package = importlib.util.find_spec("onnxruntime")
    if package is None or package.origin is None:
        return None
    folder = Path(package.origin).parent / "capi"
    return max(folder.glob("libonnxruntime.so*"), default=None)


def onnxruntime() -> Path | None:
    """The library of ONNX Runtime that `ModelRunner` uses unless a spec names one.

    The environment's MLBRIDGE_ONNXRUNTIME, else that of the Python package; None where
    there is neither, and the loader has to know one.
    """
    if named := os.environ.get("MLBRIDGE_ONNXRUNTIME"):
        return Path(named)
    return _wheel_library()


@functools.cache
def _schemes(library: str, process: int) -> tuple[_core.Scheme, ...]:
    """They hold what they have loaded, which a forked child cannot use."""
    return tuple(_core.in_process_schemes(library))


def schemes() -> list[_core.Scheme]:
    """The schemes of model specs for models in this process."""
    return [*_schemes(str(onnxruntime() or ""), os.getpid())]
