# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge environment serve``: runs compilers for trainers on other machines."""

import logging
from typing import Annotated

import typer
from rich.highlighter import NullHighlighter
from rich.logging import RichHandler

from mlbridge.envs.serving import serve_compilers
from mlbridge.terminal import errors

app = typer.Typer(
    no_args_is_help=True,
    help="Run compilers for trainers on other machines: docs/guides/training.md.",
)


@app.callback()
def _group() -> None: ...


@app.command()
def serve(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND...", help="The compiler's program and arguments, after --."
        ),
    ],
    at: Annotated[
        list[str],
        typer.Option(
            "--at",
            metavar="SPEC",
            help="Address with one or several ports, a compiler for each:"
            " `grpc://0.0.0.0:50051-50058`. May be repeated.",
        ),
    ],
) -> None:
    """Run a compiler at each address, until Ctrl-C or SIGTERM.

    The compiler must serve an Environment at the address in the variable MLBRIDGE_SPEC.
    A new compiler starts when the trainer disconnects, or when the compiler crashes.

    ```sh
    mlbridge environment serve --at grpc://0.0.0.0:50051-50054 -- ./compiler
    ```
    """
    handler = RichHandler(
        console=errors, show_path=False, highlighter=NullHighlighter(), keywords=[]
    )
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[handler])
    try:
        serve_compilers(command, at)
    except KeyboardInterrupt:
        raise typer.Exit from None
