# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs exported files, for tests that compare exports with their frameworks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
from numpy.typing import NDArray


def metadata(path: Path) -> dict[str, str]:
    return {entry.key: entry.value for entry in onnx.load(path).metadata_props}


def run(path: Path, features: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Maps features by name to outputs by name, each of shape [N, ...]."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(features)), strict=True))
