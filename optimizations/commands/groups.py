# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Command groups with a command for each optimisation: ``mlbridge train NAME``."""

import logging
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from mlbridge.errors import Error, InvalidArgument
from mlbridge.options import as_click
from mlbridge_optimizations.optimization import Optimization, guarded
from mlbridge_optimizations.registry import known, of_file

logger = logging.getLogger("mlbridge.optimizations")

Make = Callable[[Optimization[Any]], Callable[..., None] | None]


def group_of(verb: str, make: Make, text: str) -> typer.Typer:
    """Makes ``mlbridge VERB``, with a command for each known optimisation.

    NAME can also be a Python file that describes an optimisation. ``make`` returns the
    function of an optimisation's command, or None. If the optimisation itself defines a
    command with this name, its command is used instead. ``text`` is the group's help.
    """

    class Group(TyperGroup):
        """Finds the optimisations when they are first needed."""

        @cached_property
        def known(self) -> dict[str, Callable[..., None]]:
            found: dict[str, Callable[..., None]] = {}
            for described in known().values():
                try:
                    made = _of(verb, make, described)
                except Error as error:
                    logger.warning("%s is left out: %s", described.name, error)
                    continue
                for name in made.keys() & found.keys():
                    logger.warning(
                        "a second %s %s, of %s, is left out", verb, name, described.name
                    )
                found = made | found
            return found

        def list_commands(self, ctx: Any) -> list[str]:
            return sorted(self.known)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if cmd_name.endswith(".py"):
                described = of_file(Path(cmd_name))
                try:
                    found = _of(verb, make, described).get(described.command)
                except InvalidArgument as error:
                    raise InvalidArgument(f"{cmd_name}: {error}") from error
            else:
                found = self.known.get(cmd_name)
            if found is None and not ctx.resilient_parsing:
                names = ", ".join(self.list_commands(ctx))
                ctx.fail(
                    f"there is no {cmd_name!r} to {verb}, only {names}; or name a"
                    " Python file that describes an optimisation: ./mine.py"
                )
            if found is None:
                return None
            return guarded(f"{cmd_name}: its options", as_click, cmd_name, found)

    of_files = (
        "COMMAND is a command below, or a file that describes your own optimisation:"
        f" `mlbridge {verb} ./mine.py`."
    )
    app = typer.Typer(cls=Group, no_args_is_help=True, help=f"{text}\n\n{of_files}")

    @app.callback()
    def _group() -> None: ...

    return app


def decision_of(described: Optimization[Any]) -> str:
    """Returns a sentence that describes the model's decision, for a command's help."""
    return f"The model decides {described.help[:1].lower()}{described.help[1:]}"


def _of(
    verb: str, make: Make, described: Optimization[Any]
) -> dict[str, Callable[..., None]]:
    """Maps names to the command from ``make`` and to the optimisation's own commands.

    Raises InvalidArgument if the name of a command does not begin with the
    optimisation's name.
    """
    general = guarded("settings", make, described)
    found = {} if general is None else {described.command: general}
    for words, command in described.commands.items():
        first, _, name = words.partition(" ")
        if name != described.name and not name.startswith(f"{described.name}-"):
            raise InvalidArgument(
                f"command {words!r}: expected VERB {described.name} or VERB"
                f" {described.name}-WHAT"
            )
        if first == verb:
            found[name] = command
    return found
