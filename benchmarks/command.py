# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command ``mlbridge bench``; see docs/reference/benchmarks.md."""

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from mlbridge.options import as_click
from mlbridge.signals import sigterm_exits

COMMANDS = {
    "rtt": "rtt.command:rtt",
    "serve": "serve.command:serve",
    "neighbour": "rtt.neighbour:neighbour_command",
    "inliner": "inliner.command:inliner_command",
    "register-allocation": "register_allocation.command:allocation_command",
    "loop-distribution": "loop_distribution.command:loops_command",
    "loop-distribution-cost": "loop_distribution.cost:cost_command",
    "threads": "threads.command:threads_command",
    "overhead": "overhead.command:overhead_command",
    "ir2vec": "ir2vec.command:ir2vec_command",
    "compile-time": "phase_ordering.command:compile_time_command",
    "training": "phase_ordering.command:training_command",
    "gym": "phase_ordering.command:gym_command",
    "report": "report.command:report_command",
}


class _Benchmarks(TyperGroup):
    """Imports a benchmark only when it runs, so that `mlbridge` starts fast."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module, _, function = COMMANDS[cmd_name].partition(":")
        found = getattr(import_module(f"mlbridge_benchmarks.{module}"), function)
        return as_click(cmd_name, found)


app = typer.Typer(
    cls=_Benchmarks,
    no_args_is_help=True,
    help="Run benchmarks of requests, compiles and trainings on this machine.",
)


@app.callback()
def _options(context: typer.Context) -> None:
    # Exit on SIGTERM, so that this process ends its servers and compilers.
    context.with_resource(sigterm_exits())
