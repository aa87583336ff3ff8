# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Groups of commands, one for each optimisation: ``mlbridge train NAME``."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from mlbridge.options import as_click
from mlbridge_optimizations.optimization import Optimization
from mlbridge_optimizations.registry import known, of_file

Make = Callable[[Optimization[Any]], Callable[..., None] | None]


def group_of(verb: str, make: Make, text: str) -> typer.Typer:
    """``mlbridge VERB``, with a command for each optimisation that there is.

    Its names are those of the optimisations; a Python file that describes one is taken
    as well. Commands that an optimisation has of its own come first.

    Args:
        verb: the group's name.
        make: the command of an optimisation, for `typer.Typer.command`; None: it has
            none.
        text: its help.
    """

    class Group(TyperGroup):
        """Looks for optimisations when it is asked, once."""

        @cached_property
        def known(self) -> dict[str, Callable[..., None]]:
            """The commands of all optimisations, by name."""
            return _commands(verb, make)

        def list_commands(self, ctx: Any) -> list[str]:
            """All that there is."""
            return sorted(self.known)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            """One of these, or of the file of that name."""
            if cmd_name.endswith(".py"):
                described = of_file(Path(cmd_name))
                found = _of(verb, make, described).get(described.name)
            else:
                found = self.known.get(cmd_name)
            if found is None and not ctx.resilient_parsing:
                names = ", ".join(self.list_commands(ctx))
                ctx.fail(
                    f"there is no {cmd_name!r} to {verb}, only {names}; or name a"
                    " Python file that describes an optimisation: ./mine.py"
                )
            return None if found is None else as_click(cmd_name, found)

    of_files = (
        "NAME is one of these, or a Python file that describes an optimisation of your"
        f" own: mlbridge {verb} ./mine.py."
    )
    app = typer.Typer(cls=Group, no_args_is_help=True, help=f"{text}\n\n{of_files}")

    @app.callback()
    def _group() -> None: ...

    return app


def _commands(verb: str, make: Make) -> dict[str, Callable[..., None]]:
    found: dict[str, Callable[..., None]] = {}
    for described in known().values():
        found |= _of(verb, make, described)
    return found


def _of(
    verb: str, make: Make, described: Optimization[Any]
) -> dict[str, Callable[..., None]]:
    general = make(described)
    found = {} if general is None else {described.name: general}
    for said, command in described.commands.items():
        first, _, name = said.partition(" ")
        if first == verb:
            found[name] = command
    return found
