# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adds the commands that other distributions declare in ``mlbridge.commands``."""

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points

import typer

from mlbridge.errors import Unsupported
from mlbridge.extras import how_to_install

GROUP = "mlbridge.commands"

_ELSEWHERE = dict.fromkeys(
    ("corpus", "evaluate", "search", "train"),
    how_to_install("train", "./optimizations"),
) | {
    "bench": "the benchmarks run only in a checkout of ML-Compiler-Bridge: "
    "`make setup build` there, and then .venv/bin/mlbridge bench"
}
"""Maps each optional command of this project to how to install it."""


def add_commands(app: typer.Typer) -> None:
    """Adds each installed command. A missing command reports how to install it."""
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
            f"the command {point.name} of {point.dist.name if point.dist else '?'}: "
            f"expected a typer.Typer, found a {type(command).__name__}"
        )
    return command


def _missing(name: str) -> Callable[..., None]:
    def command(arguments: list[str] | None = typer.Argument(None)) -> None:  # noqa: B008
        raise Unsupported(f"mlbridge {name} is not installed: {_ELSEWHERE[name]}")

    return command
