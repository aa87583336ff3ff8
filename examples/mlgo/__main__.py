# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run `.venv/bin/python -m examples.mlgo` in the project's folder."""

import subprocess
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

import mlbridge
from mlbridge.envs.machine_code import text_size
from mlbridge.interactive import AdvisorName

from .policies import policies

# The optimisation levels, which are the same as in mlbridge.envs.
LEVELS: dict[AdvisorName, str] = {
    "inliner": "-Oz",
    "eviction": "-O2",
    "priority": "-O2",
}


def main(
    modules: Annotated[list[Path], typer.Argument(help="C files, or LLVM IR.")],
    advisor: Annotated[
        AdvisorName, typer.Option(help="The LLVM decision that the policy makes.")
    ] = "inliner",
    policy: Annotated[
        str,
        typer.Option(
            help="Inliner: stock, never, small or random. Eviction: first,"
            " lightest or random. Priority: largest, heaviest or random."
        ),
    ] = "random",
    flag: Annotated[
        list[str] | None, typer.Option(help="A flag for clang, such as -DNDEBUG.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    clang: Annotated[str, typer.Option(help="The stock compiler.")] = "clang-22",
) -> None:
    """Compile with stock clang and a policy in Python, and compare the machine code.

    Stock LLVM 22 can use an external policy without a plug-in. Example:

        .venv/bin/python -m examples.mlgo --advisor eviction --policy lightest x.c y.c

    To try an idea, add a function to examples/mlgo/policies.py. To train a policy, use
    the Gymnasium environments in docs/reference/environments.md.
    """
    console = Console()
    known = policies(advisor, seed)
    if policy not in known:
        raise typer.BadParameter(
            f"{policy}: the {advisor} has {', '.join(known)}", param_hint="--policy"
        )
    table = Table("module", "decisions", "text", "stock", "difference")
    for column in table.columns[1:]:
        column.justify = "right"
    asked, ours, theirs = 0, 0, 0
    for module in track(modules, "Compiling", console=console, transient=True):
        flags = [LEVELS[advisor], "-w", *(flag or [])]
        command = [clang, *flags, "-c", str(module), "-o", "-"]
        result, stock = compile_both(command, advisor, known[policy])
        size = text_size(result.stdout, module.name)
        stock_size = text_size(stock, module.name)
        row(table, module.name, result.decisions, size, stock_size)
        asked += result.decisions
        ours, theirs = ours + size, theirs + stock_size
    table.add_section()
    row(table, "all", asked, ours, theirs)
    console.print(table)


def compile_both(
    command: list[str], advisor: AdvisorName, policy: mlbridge.Policy
) -> tuple[mlbridge.CompileResult, bytes]:
    """Compiles with the policy, and with LLVM alone for the returned object."""
    decides: dict[str, Any] = {advisor: policy}
    try:
        result = mlbridge.compile_with_policy(command, **decides)
        stock = subprocess.run(command, capture_output=True, check=True, timeout=300)
    except (mlbridge.Error, subprocess.SubprocessError) as failure:
        typer.echo(str(failure), err=True)
        raise typer.Exit(1) from None
    return result, stock.stdout


def row(table: Table, name: str, decisions: int, size: int, stock: int) -> None:
    """Adds a row to the table."""
    difference = f"{size / stock - 1:+.2%}" if stock else ""
    table.add_row(name, f"{decisions:,}", f"{size:,}", f"{stock:,}", difference)


if __name__ == "__main__":
    typer.run(main)
