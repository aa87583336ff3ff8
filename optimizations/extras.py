# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packages that a command needs: asked for before hours of work, not after."""

from mlbridge import extras

FOLDER = "./optimizations"  # The checkout's that has this distribution.


def need(what: str, packages: tuple[str, ...]) -> None:
    """Looks for packages of the extra ``train`` without importing them.

    Raises:
        Unsupported: one is not installed.
    """
    how = extras.how_to_install("train", FOLDER)
    extras.need(what, packages, f"{how}, or there scripts/make-venv dev train")
