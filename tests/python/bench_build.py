# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of the benchmarks share."""

import os
from pathlib import Path

import pytest

from mlbridge import OSFailure
from mlbridge_benchmarks.common.processes import find_build

BUILD = os.environ.get("MLBRIDGE_BENCHMARKS")


def build_or_skip() -> Path:
    """Where rtt-client is, for the tests that need it."""
    try:
        return find_build(Path(BUILD) if BUILD else None)
    except OSFailure as missing:
        pytest.skip(str(missing))


def children() -> str:
    """The processes that this one has started and not reaped."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()
