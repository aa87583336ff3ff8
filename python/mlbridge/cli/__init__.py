# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line ``mlbridge``. Each command has its own file in this folder."""

import sys
from typing import Annotated

import typer
from rich.text import Text

from mlbridge import __version__
from mlbridge.cli._compile import compile_
from mlbridge.cli._doctor import doctor
from mlbridge.cli._environment import app as environment
from mlbridge.cli._export import export
from mlbridge.cli._inspect import inspect
from mlbridge.cli._log import app as log
from mlbridge.cli._others import add_commands
from mlbridge.cli._serve import serve
from mlbridge.cli._vocabulary import app as vocabulary
from mlbridge.errors import Error
from mlbridge.printable import lines
from mlbridge.terminal import console, errors

app = typer.Typer(
    name="mlbridge",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Train, export, compile and serve the ML models that decide in compilers.

The most frequent commands:

- `mlbridge doctor` lists the installed parts, and how to install the missing ones.
- `mlbridge serve policy:decide --at pipe:/tmp/advisor` serves the function `decide` of
  `policy.py` to compilers. Clang then requests its inlining decisions with
  `-fpass-plugin=MLBridgeLLVM.so -mllvm -mlbridge-inliner=pipe:/tmp/advisor`.
- `mlbridge log zlib.log` shows the decisions that a compiler recorded in `zlib.log`.
- `mlbridge export ppo.zip --to inliner.onnx` converts a trained policy to an ONNX file.
- `mlbridge inspect inliner.onnx` shows the inputs and outputs of an ONNX file.
- `mlbridge compile policy.onnx -o libpolicy.so` compiles a model to machine code.
- `mlbridge corpus fetch` compiles real programs to bitcode for training.
- `mlbridge train NAME` trains a model for the optimisation NAME.
- `mlbridge evaluate NAME` compares a trained model with baselines.
- `mlbridge bench rtt` measures the time of one request on this machine.
""",
)
for command in (doctor, serve, export, inspect):
    app.command()(command)
app.add_typer(log, name="log")
app.command("compile")(compile_)
app.add_typer(environment, name="environment")
app.add_typer(vocabulary, name="vocabulary")
add_commands(app)


def main() -> None:
    """Runs the command line. Exits with 1 after an error and with 2 for wrong usage."""
    try:
        app()
    except (Error, OSError) as error:
        errors.print(Text.assemble(("error: ", "bold red"), lines(str(error))))
        sys.exit(1)


def _show_version(wanted: bool) -> None:
    if wanted:
        console.print(f"mlbridge {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None: ...
