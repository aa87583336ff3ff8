# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Callbacks that report the progress of long work."""

from collections.abc import Callable

Show = Callable[[int, int], None]  # Receives finished pieces and their total.
ShowStage = Callable[[str, int, int], None]  # A `Show` that also receives a stage.


def quiet(*_: object) -> None:
    """Shows nothing."""
