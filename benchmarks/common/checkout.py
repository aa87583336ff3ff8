# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the benchmarks find what the checkout has."""

from pathlib import Path

from mlbridge.errors import OSFailure

ROOT = Path(__file__).resolve().parents[2]
"""Of the checkout, which has the plug-in and the models."""


def in_checkout(path: str) -> Path:
    """A file of the checkout.

    Raises:
        OSFailure: it is not there.
    """
    found = ROOT / path
    if not found.exists():
        raise OSFailure(f"there is no {path} in {ROOT}, which has to be a checkout")
    return found
