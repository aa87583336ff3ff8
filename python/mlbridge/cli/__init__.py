# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line ``mlbridge``; each command has a file of its own."""

import sys
from typing import Annotated

import typer
from rich.text import Text

from mlbridge import __version__
from mlbridge.cli._compile import compile_
from mlbridge.cli._doctor import doctor
from mlbridge.cli._export import export
from mlbridge.cli._inspect import inspect
from mlbridge.cli._log import log
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
    help="""The model side of ML-Compiler-Bridge: any compiler asks any ML model.

Start here:

- `mlbridge doctor` shows what this machine has, and how to install the rest.
- `mlbridge serve policy:decide --at pipe:/tmp/advisor` answers compilers with
  the function `decide` of `policy.py`.
- `clang-22 -O2 -fpass-plugin=MLBridgeLLVM.so -mllvm
  -mlbridge-inliner=pipe:/tmp/advisor a.c` asks it whether to inline.
- `mlbridge compile policy.onnx -o libpolicy.so` compiles a model to machine code, for
  `aot:libpolicy.so`.
- `mlbridge log zlib.log` shows what a compiler recorded.
- `mlbridge export ppo.zip --to inliner.onnx` turns a trained policy into a file that
  runs in the compiler; `mlbridge inspect inliner.onnx` shows its contents.
- `mlbridge corpus fetch` compiles real programs to bitcode, `mlbridge train NAME`
  trains an optimisation on it, and `mlbridge evaluate NAME` measures the result.
- `mlbridge bench rtt` measures the cost of a request on this machine.
""",
)
for command in (doctor, serve, log, export, inspect):
    app.command()(command)
app.command("compile")(compile_)
app.add_typer(vocabulary, name="vocabulary")
add_commands(app)


def main() -> None:
    """Runs the command line; exits with 1 after an error, with 2 after wrong use."""
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
