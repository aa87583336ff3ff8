# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge serve``: answers compilers by a function or a model file."""

import logging
import signal
import time
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.highlighter import NullHighlighter
from rich.live import Live
from rich.logging import RichHandler
from rich.text import Text

from mlbridge.batching import Batched
from mlbridge.cli._objects import find_object
from mlbridge.errors import InvalidArgument
from mlbridge.extras import pip_install
from mlbridge.onnx import load_onnx
from mlbridge.server import Statistics
from mlbridge.server import serve as serve_policy
from mlbridge.terminal import console, errors
from mlbridge.types import Policy


def serve(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A function, MODULE:FUNCTION, importable from the current folder; or "
            "an .onnx file.",
        ),
    ],
    at: Annotated[
        list[str],
        typer.Option(
            "--at",
            metavar="SPEC",
            help="The address, such as `pipe:/tmp/advisor`. May be repeated.",
        ),
    ],
    max_batch: Annotated[
        int,
        typer.Option(min=1, help="Maximum number of requests per call of the model."),
    ] = 32,
    max_delay: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="MS",
            help="Milliseconds that a request may wait for a batch to fill.",
        ),
    ] = 0.0,
    sessions: Annotated[
        int | None,
        typer.Option(min=1, help="Stop after this number of sessions has ended."),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(min=0, help="Stop after this many seconds without a request."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop when the policy fails.")
    ] = False,
) -> None:
    """Answer any number of compilers with one model, until Ctrl-C.

    A function gets the features of a request, a dict of NumPy arrays by name. It
    returns a number, a bool, a string, a list or array of them, a dict of several
    outputs, or None to leave the decision to the compiler:

    ```python
    # policy.py
    def decide(features):
        return features["callee_basic_block_count"] < 8
    ```

    ```sh
    mlbridge serve policy:decide --at pipe:/tmp/advisor
    ```

    A function marked with `mlbridge.batched` gets a list of the requests that wait at
    the same moment, and returns a list of replies. An .onnx model whose inputs have a
    free first dimension is batched, too. So one process serves many compilers:

    ```sh
    mlbridge serve inliner.onnx --at pipe:/tmp/advisor --max-batch 32 --max-delay 0.5
    ```

    For an .onnx model, its metadata `mlbridge.decide` selects the reply; without it,
    the reply is the model's outputs. Compilers without this library need a bare pipe
    with a fixed SerDes: `pipe:/tmp/advisor?serdes=json`. Ctrl-C and
    SIGTERM stop the server after the current requests are answered.
    """
    policy = _load(model)
    # Highlighting takes time quadratic in a message's length.
    handler = RichHandler(
        console=errors, show_path=False, highlighter=NullHighlighter(), keywords=[]
    )
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[handler])
    statistics = Statistics()
    try:
        with Live(
            get_renderable=_StatusLine(", ".join(at), statistics),
            console=errors,
            refresh_per_second=4,
            transient=True,
        ):
            serve_policy(
                policy,
                at,
                sessions=sessions,
                timeout=timeout,
                on_error="raise" if strict else "reply",
                max_batch=max_batch,
                max_delay=max_delay / 1000,
                measure_latency=True,
                statistics=statistics,
            )
    except SystemExit as end:
        # A service manager's stop is as clean as Ctrl-C.
        if end.code != 128 + signal.SIGTERM:
            raise
    console.print(str(statistics))


def _load(name: str) -> Policy | Batched:
    """Loads the policy MODULE:FUNCTION or FILE.onnx."""
    if name.endswith(".onnx"):
        try:
            return load_onnx(name)
        except FileNotFoundError:
            raise typer.BadParameter(f"there is no file '{name}'") from None
        except InvalidArgument as error:
            raise typer.BadParameter(str(error)) from None
        except ImportError:
            raise typer.BadParameter(
                f"an .onnx model needs onnxruntime: {pip_install('onnxruntime')}"
            ) from None
        except Exception as error:
            raise typer.BadParameter(f"'{name}' is no model: {error}") from error
    found = find_object(name, "MODULE:FUNCTION or FILE.onnx")
    if not callable(found):
        raise typer.BadParameter(f"'{name}' cannot be called")
    policy: Policy = found
    return policy


class _StatusLine:
    """One line about a running server, with rates over the last half second."""

    def __init__(self, at: str, statistics: Statistics) -> None:
        self._at = at
        self._statistics = statistics
        self._last = (time.monotonic(), 0, 0.0)
        self._rate = self._mean = 0.0

    def __call__(self) -> RenderableType:
        counts = self._statistics
        now, requests, spent = time.monotonic(), counts.requests, counts.policy_seconds
        then, before, spent_before = self._last
        if now - then >= 0.5:
            self._rate = (requests - before) / (now - then)
            if requests > before:
                self._mean = 1e6 * (spent - spent_before) / (requests - before)
            self._last = (now, requests, spent)
        median, p90, p99 = (1e6 * seconds for seconds in counts.latencies)
        return Text(
            f"{self._at}  {counts.open} compilers now, {counts.sessions} in all  "
            f"{requests} requests, {self._rate:.0f}/s, {counts.batch_size:.1f} at "
            f"once  latency {median:.0f} us, p90 {p90:.0f}, p99 {p99:.0f}, "
            f"{self._mean:.1f} in the policy  {counts.errors} failed",
            no_wrap=True,
            overflow="ellipsis",
        )
