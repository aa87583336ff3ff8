# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Commands of other distributions: entry points of the group ``mlbridge.commands``."""

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points

import typer

from mlbridge.errors import Unsupported
from mlbridge.extras import how_to_install

GROUP = "mlbridge.commands"

_OPTIMIZATIONS = how_to_install("train", "./optimizations")
_BENCHMARKS = (
    "the benchmarks run in the checkout of ML-Compiler-Bridge only: `make setup build`"
    " there, and then .venv/bin/mlbridge bench"
)
_ELSEWHERE = {
    "bench": _BENCHMARKS,
    "corpus": _OPTIMIZATIONS,
    "evaluate": _OPTIMIZATIONS,
    "search": _OPTIMIZATIONS,
    "train": _OPTIMIZATIONS,
}
"""Where those of this project come from that are not installed."""


def add_commands(app: typer.Typer) -> None:
    """Adds every command that a distribution brings, and says where others are."""
    found = {point.name: point for point in entry_points(group=GROUP)}
    for name in sorted({*found, *_ELSEWHERE}):
        if name in found:
            app.add_typer(_load(found[name]), name=name)
        else:
            anything = {"ignore_unknown_options": True, "help_option_names": []}
            app.command(name, hidden=True, context_settings=anything)(_missing(name))


def _load(point: EntryPoint) -> typer.Typer:
    command = point.load()
    if not isinstance(command, typer.Typer):
        raise Unsupported(
            f"the command {point.name} of {point.dist.name if point.dist else '?'} is"
            f" no typer.Typer, but a {type(command).__name__}"
        )
    return command


def _missing(name: str) -> Callable[..., None]:
    def command(arguments: list[str] | None = typer.Argument(None)) -> None:  # noqa: B008
        raise Unsupported(f"mlbridge {name} is not installed: {_ELSEWHERE[name]}")

    return command
