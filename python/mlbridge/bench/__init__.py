# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge bench``: what asking a model costs; see docs/benchmarks.md."""

import typer

from mlbridge.bench._command import rtt

app = typer.Typer(
    no_args_is_help=True, help="Measure what asking a model costs on this machine."
)
app.command()(rtt)


@app.callback()
def _keep_the_command_name() -> None: ...
