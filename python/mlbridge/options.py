# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes commands whose options are the fields of dataclasses."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, get_type_hints

import typer

from mlbridge.errors import InvalidArgument


def with_options(
    handler: Callable[..., None],
    *kinds: type,
    text: str = "",
    defaults: Mapping[str, Any] | None = None,
) -> Callable[..., None]:
    """Returns a function for ``typer.Typer.command`` with the options of dataclasses.

    The ``Annotated`` type of a field makes it an option, or with ``typer.Argument`` an
    argument. The field's default is the option's.

    Args:
        handler: called with the context and an instance of each dataclass.
        kinds: the dataclasses.
        text: the command's help; by default the handler's docstring.
        defaults: defaults of options, instead of the fields' defaults.

    Raises:
        InvalidArgument: a kind is no dataclass, or two have a field of the same name.
    """
    owners: dict[str, type] = {}
    for kind in kinds:
        if not is_dataclass(kind):
            raise InvalidArgument(f"expected a dataclass of options, found {kind!r}")
        for field in fields(kind):
            if owners.setdefault(field.name, kind) is not kind:
                first = owners[field.name].__name__
                raise InvalidArgument(
                    f"{kind.__name__}.{field.name}: {first} has an option of that name:"
                    " rename the field"
                )

    def command(context: typer.Context, **values: Any) -> None:
        def made(kind: type) -> Any:
            return kind(**{n: v for n, v in values.items() if owners[n] is kind})

        handler(context, *map(made, kinds))

    annotations: dict[str, Any] = {"context": typer.Context}
    parameters = [_parameter("context", typer.Context)]
    for kind in kinds:
        hints = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            annotations[field.name] = hints[field.name]
            default = (defaults or {}).get(field.name, _default(field))
            parameters.append(_parameter(field.name, hints[field.name], default))
    command.__annotations__ = annotations
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__name__ = handler.__name__.strip("_")
    command.__doc__ = text or handler.__doc__
    return command


def is_said(context: typer.Context, name: str) -> bool:
    """True if an option was given on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def as_click(name: str, command: Callable[..., None]) -> Any:
    """Makes a command of a function, for a group that makes its commands lazily."""
    app = typer.Typer(
        add_completion=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command(name)(command)
    return typer.main.get_command(app)


def _default(field: "Field[Any]") -> Any:
    if field.default is not MISSING:
        return field.default
    if field.default_factory is not MISSING:
        return field.default_factory()
    return inspect.Parameter.empty


def _parameter(
    name: str, kind: Any, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
    )
