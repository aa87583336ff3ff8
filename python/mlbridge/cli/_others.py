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
"""Maps each optional command of this project to a hint for its installation."""


def add_commands(app: typer.Typer) -> None:
    """Adds every installed command.

    A missing or broken command raises Unsupported when it is used. All other commands
    still work.
    """
    found = {point.name: point for point in entry_points(group=GROUP)}
    for name in sorted({*found, *_ELSEWHERE}):
        try:
            app.add_typer(_load(name, found.get(name)), name=name)
        except Unsupported as error:
            anything = {"ignore_unknown_options": True, "help_option_names": []}
            app.command(name, hidden=True, context_settings=anything)(_raises(error))


def _load(name: str, point: EntryPoint | None) -> typer.Typer:
    if point is None:
        raise Unsupported(f"mlbridge {name} is not installed: {_ELSEWHERE[name]}")
    where = f"the command {name} of {point.dist.name if point.dist else '?'}"
    try:
        command = point.load()
    # Catch everything, because code of another distribution may raise anything.
    except Exception as error:
        raise Unsupported(f"{where}: {type(error).__name__}: {error}") from error
    if not isinstance(command, typer.Typer):
        found = type(command).__name__
        raise Unsupported(f"{where}: expected a typer.Typer, found a {found}")
    return command


def _raises(error: Unsupported) -> Callable[..., None]:
    def command(arguments: list[str] | None = typer.Argument(None)) -> None:  # noqa: B008
        raise error

    return command
