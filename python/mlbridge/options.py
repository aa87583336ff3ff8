# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes commands from dataclasses: each field is an option of the command."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

import typer

from mlbridge.errors import InvalidArgument


def with_options(
    handler: Callable[..., None],
    *kinds: type,
    text: str = "",
    defaults: Mapping[str, Any] | None = None,
) -> Callable[..., None]:
    """Returns a function for ``typer.Typer.command``, with one option per field.

    The type of each field must be ``Annotated`` with ``typer.Option`` or
    ``typer.Argument``. The default of the field is the default of the option.

    Args:
        handler: is called with the context and an instance of each dataclass.
        kinds: the dataclasses.
        text: the help of the command. The default is the docstring of `handler`.
        defaults: maps names of fields to defaults that replace the fields' defaults.

    Raises:
        InvalidArgument: a kind is not a dataclass, or two kinds share a field name.
    """
    keyword, empty = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    owners: dict[str, type] = {}
    parameters = [inspect.Parameter("context", keyword, annotation=typer.Context)]
    for kind in kinds:
        if not is_dataclass(kind):
            raise InvalidArgument(f"expected a dataclass of options, found {kind!r}")
        hints = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            name, default = field.name, field.default
            if owners.setdefault(name, kind) is not kind:
                first = owners[name].__name__
                raise InvalidArgument(
                    f"{kind.__name__}.{name}: {first} has an option of that name:"
                    " rename the field"
                )
            if field.default_factory is not MISSING:
                default = field.default_factory()
            default = (defaults or {}).get(
                name, empty if default is MISSING else default
            )
            parameters.append(
                inspect.Parameter(
                    name, keyword, default=default, annotation=hints[name]
                )
            )

    def command(context: typer.Context, **values: Any) -> None:
        def made(kind: type) -> Any:
            return kind(**{n: v for n, v in values.items() if owners[n] is kind})

        handler(context, *map(made, kinds))

    command.__annotations__ = {p.name: p.annotation for p in parameters}
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__name__ = handler.__name__.strip("_")
    command.__doc__ = text or handler.__doc__
    return command


def is_said(context: typer.Context, name: str) -> bool:
    """Returns whether an option was given on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def as_click(name: str, command: Callable[..., None]) -> Any:
    """Makes a click command from a function, for a group that loads commands lazily."""
    app = typer.Typer(
        add_completion=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command(name)(command)
    return typer.main.get_command(app)
