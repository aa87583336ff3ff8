# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Describes the choice of tiles to `mlbridge train` and `mlbridge evaluate`."""

from typing import Any, NoReturn

from mlbridge.errors import Unsupported
from mlbridge_optimizations.optimization import NoSettings, Optimization

from .commands import COMMANDS


def _no_env(settings: NoSettings, worker: int) -> NoReturn:
    raise Unsupported(
        "the choice of tiles has no environment, because all candidates can be"
        " measured; learn from their times with `mlbridge train polyhedral-tiling`"
    )


OPTIMIZATION: Optimization[Any] = Optimization(
    "polyhedral-tiling",
    "Which schedules, tile sizes and loop orders C kernels get.",
    make_env=_no_env,
    commands=COMMANDS,
)
