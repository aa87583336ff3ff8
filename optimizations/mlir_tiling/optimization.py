# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Describes the tiling of MLIR's loop nests for `mlbridge train` and the registry."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from mlbridge_optimizations.optimization import Metric, Optimization

from .commands import COMMANDS, NAME, TIMES

if TYPE_CHECKING:
    from .environment import TilingEnv


@dataclass(frozen=True)
class TilingSettings:
    """The options of the environment."""

    times: Annotated[
        Path, Option(help="Times of `mlbridge search mlir-tiling-times`.")
    ] = TIMES

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", self.times.resolve())


def _make_env(settings: TilingSettings, worker: int) -> "TilingEnv":
    from .environment import TilingEnv
    from .table import read_table

    return TilingEnv(list(read_table(settings.times)))


def ratio_of(total: float, info: Mapping[str, Any]) -> float:
    """Returns the time relative to the untiled kernel's."""
    return float(info.get("ratio", 1.0))


OPTIMIZATION = Optimization(
    NAME,
    "Which tile sizes, loop orders and unroll factors MLIR's loops get.",
    make_env=_make_env,
    settings=TilingSettings,
    commands=COMMANDS,
    metric=Metric("ratio", "time / untiled time", ratio_of, 1.0, is_cost=True),
)
