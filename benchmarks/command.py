# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench``: what asking a model costs; see docs/benchmarks.md."""

import typer

from mlbridge.signals import sigterm_exits
from mlbridge_benchmarks.inliner.command import inliner_command
from mlbridge_benchmarks.overhead.command import overhead_command
from mlbridge_benchmarks.phase_ordering.compile_time_command import compile_time_command
from mlbridge_benchmarks.phase_ordering.gym_command import gym_command
from mlbridge_benchmarks.phase_ordering.training_command import training_command
from mlbridge_benchmarks.rtt.command import rtt
from mlbridge_benchmarks.rtt.neighbour import neighbour_command
from mlbridge_benchmarks.serve.command import serve
from mlbridge_benchmarks.threads.command import threads_command

app = typer.Typer(
    no_args_is_help=True, help="Measure what asking a model costs on this machine."
)


@app.callback()
def _options(context: typer.Context) -> None:
    # Servers and compilers have sessions of their own, and only this process ends them.
    context.with_resource(sigterm_exits())


app.command()(rtt)
app.command()(serve)
app.command("neighbour")(neighbour_command)
app.command("inliner")(inliner_command)
app.command("threads")(threads_command)
app.command("overhead")(overhead_command)
app.command("compile-time")(compile_time_command)
app.command("training")(training_command)
app.command("gym")(gym_command)
