# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Callbacks that report the progress of long work."""

from collections.abc import Callable

Show = Callable[[int, int], None]  # Gets the number of finished pieces and the total.
ShowStage = Callable[[str, int, int], None]  # The same, after the name of a stage.


def quiet(*_: object) -> None:
    """Shows nothing."""
