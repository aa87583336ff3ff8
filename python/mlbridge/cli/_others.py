# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adds the commands that other distributions declare in ``mlbridge.commands``."""

import logging
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points

import typer

from mlbridge.errors import Unsupported
from mlbridge.extras import how_to_install

logger = logging.getLogger("mlbridge")

GROUP = "mlbridge.commands"

_ELSEWHERE = dict.fromkeys(
    ("corpus", "evaluate", "explain", "search", "train"),
    how_to_install("train", "./optimizations"),
) | {
    "bench": "the benchmarks run only in a checkout of ML-Compiler-Bridge: "
    "`make setup build` there, and then .venv/bin/mlbridge bench"
}
"""Maps each optional command of this project to a hint for its installation."""


def add_commands(app: typer.Typer) -> None:
    """Adds every installed command.

    A missing or broken command raises Unsupported when it is used. All other commands
    still work. A command is left out with a warning if its name is already used.
    """
    own = {str(group.name) for group in app.registered_groups}
    for command in app.registered_commands:
        own.add(str(command.name or getattr(command.callback, "__name__", "")))
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        first = None if point.name in own else found.setdefault(point.name, point)
        if first is None or first.value != point.value:
            logger.warning("a second %s is left out", _where(point))
    for name in sorted({*found, *_ELSEWHERE}):
        try:
            app.add_typer(_load(name, found.get(name)), name=name)
        except Unsupported as error:
            anything = {"ignore_unknown_options": True, "help_option_names": []}
            app.command(name, hidden=True, context_settings=anything)(_raises(error))


def _load(name: str, point: EntryPoint | None) -> typer.Typer:
    if point is None:
        raise Unsupported(f"mlbridge {name} is not installed: {_ELSEWHERE[name]}")
    where = f"the {_where(point)}"
    try:
        command = point.load()
    # Catch everything, because code of another distribution may raise anything.
    except (Exception, SystemExit) as error:
        raise Unsupported(f"{where}: {type(error).__name__}: {error}") from error
    if not isinstance(command, typer.Typer):
        found = type(command).__name__
        raise Unsupported(f"{where}: expected a typer.Typer, found a {found}")
    return command


def _where(point: EntryPoint) -> str:
    return f"command {point.name} of {point.dist.name if point.dist else '?'}"


def _raises(error: Unsupported) -> Callable[..., None]:
    def command(arguments: list[str] | None = typer.Argument(None)) -> None:  # noqa: B008
        raise error

    return command
