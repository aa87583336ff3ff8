# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks for missing packages before long work starts."""

from mlbridge import extras

FOLDER = "./optimizations"  # This distribution's folder in the checkout.


def need(what: str, packages: tuple[str, ...]) -> None:
    """Raises Unsupported if a package is not installed, without importing it."""
    how = extras.how_to_install("train", FOLDER)
    extras.need(what, packages, f"{how}, or there scripts/make-venv dev train")
