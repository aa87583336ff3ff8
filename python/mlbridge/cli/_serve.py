# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge serve``: answers compilers with a function."""

import importlib
import logging
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.live import Live
from rich.logging import RichHandler
from rich.text import Text

from mlbridge.cli._terminal import console, errors
from mlbridge.server import Statistics, sigterm_raises
from mlbridge.server import serve as serve_policy
from mlbridge.types import Policy


def serve(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FUNCTION",
            help="The policy, importable from here: from features to a decision.",
        ),
    ],
    at: Annotated[
        str, typer.Option("--at", metavar="SPEC", help="Where: `pipe:/tmp/advisor`.")
    ],
    sessions: Annotated[
        int | None,
        typer.Option(min=1, help="Stop when so many compilers have come and gone."),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(min=0, help="Give up after so many seconds without a question."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop when the policy fails.")
    ] = False,
) -> None:
    """Answer compilers with a Python function, until Ctrl-C.

    The function gets the features of a question, a dict of NumPy arrays by name, and
    returns a number, a bool, a string, a list or an array of them, a dict of several
    outputs, or None to leave the decision to the compiler:

    ```python
    # policy.py
    def decide(features):
        return features["callee_basic_block_count"] < 8
    ```

    ```sh
    mlbridge serve policy:decide --at pipe:/tmp/advisor
    ```

    Foreign compilers, which know bare pipes only, speak the SerDes that the spec names:
    `--at "pipe:/tmp/advisor?serdes=json"`.
    """
    function = _load(policy)
    logging.basicConfig(
        level=logging.INFO,
        format="%(message)s",
        handlers=[RichHandler(console=errors, show_path=False)],
    )
    statistics = Statistics()
    with (
        # A service manager's stop is as clean as Ctrl-C.
        sigterm_raises(KeyboardInterrupt()),
        Live(
            get_renderable=_StatusLine(at, statistics),
            console=errors,
            refresh_per_second=4,
            transient=True,
        ),
    ):
        serve_policy(
            function,
            at,
            sessions=sessions,
            timeout=timeout,
            on_error="raise" if strict else "reply",
            statistics=statistics,
        )
    console.print(str(statistics))


def _load(name: str) -> Policy:
    """The function that MODULE:FUNCTION names."""
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise typer.BadParameter(f"expected MODULE:FUNCTION, found '{name}'")
    # As `python -m` does; a console script's path does not begin here.
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise typer.BadParameter(f"there is no module '{module_name}' here") from None
    for part in path.split("."):
        if not hasattr(found, part):
            raise typer.BadParameter(f"module '{module_name}' has no '{path}'")
        found = getattr(found, part)
    if not callable(found):
        raise typer.BadParameter(f"'{name}' cannot be called")
    policy: Policy = found
    return policy


class _StatusLine:
    """One line about a running server."""

    def __init__(self, at: str, statistics: Statistics) -> None:
        self._at = at
        self._statistics = statistics
        self._last = (time.monotonic(), 0, 0.0)
        self._rate = self._mean = 0.0

    def __call__(self) -> RenderableType:
        now, questions = time.monotonic(), self._statistics.questions
        spent = self._statistics.policy_seconds
        then, before, spent_before = self._last
        if now - then >= 0.5:
            self._rate = (questions - before) / (now - then)
            if questions > before:
                self._mean = 1e6 * (spent - spent_before) / (questions - before)
            self._last = (now, questions, spent)
        counts = self._statistics
        return Text(
            f"{self._at}  {counts.open} compilers now, {counts.sessions} in all  "
            f"{questions} questions, {self._rate:.0f}/s, {self._mean:.1f} us in the "
            f"policy  {counts.errors} failed",
            no_wrap=True,
            overflow="ellipsis",
        )
