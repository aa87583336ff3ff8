# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge serve``: serves a Python function or an ONNX model to compilers."""

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
            help="ONNX file, or Python function MODULE:FUNCTION. The module may be in "
            "the current folder.",
        ),
    ],
    at: Annotated[
        list[str],
        typer.Option(
            "--at",
            metavar="SPEC",
            help="Address to listen at: `pipe:/tmp/advisor`. May be repeated.",
        ),
    ],
    max_batch: Annotated[
        int,
        typer.Option(min=1, help="Largest number of requests in one batch."),
    ] = 32,
    max_delay: Annotated[
        float,
        typer.Option(
            min=0,
            max=1000,
            metavar="MS",
            help="Longest wait for more requests to join a batch, in milliseconds, up"
            " to 1000.",
        ),
    ] = 0.0,
    sessions: Annotated[
        int | None,
        typer.Option(min=1, help="Stop when this many compilers have disconnected."),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(min=0, help="Stop if no request arrives for this many seconds."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop if the model fails on a request.")
    ] = False,
) -> None:
    """Serve a model to any number of compilers, until Ctrl-C or SIGTERM.

    The model is an ONNX file or a Python function. The function receives the features
    of one request as a dict of NumPy arrays. It returns the decision, for example a
    bool or an int, or None if the compiler should decide:

    ```python
    # policy.py
    def decide(features):
        return features["callee_basic_block_count"] < 8
    ```

    ```sh
    mlbridge serve policy:decide --at pipe:/tmp/advisor
    ```

    A function with the decorator `mlbridge.batched` receives a list of requests and
    returns a list of replies. An ONNX model is batched if the first dimension of its
    inputs is free:

    ```sh
    mlbridge serve inliner.onnx --at pipe:/tmp/advisor --max-batch 32 --max-delay 0.5
    ```

    The metadata of an ONNX model may define how a decision is made from its outputs.
    Otherwise, the reply contains all outputs. docs/guides/serving.md has the details.
    """
    policy = _load(model)
    # Disable highlighting, whose time is quadratic in the length of a message.
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
        # SIGTERM is a normal way to stop a service, so it exits with 0 like Ctrl-C.
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
            raise typer.BadParameter(
                f"cannot load the model '{name}': {error}"
            ) from error
    found = find_object(name, "MODULE:FUNCTION or FILE.onnx")
    if not callable(found):
        raise typer.BadParameter(f"'{name}' cannot be called")
    policy: Policy = found
    return policy


class _StatusLine:
    """A status line of a running server, with the rates of the last half second."""

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
            f"once  latency {median:.0f} µs, p90 {p90:.0f}, p99 {p99:.0f}, "
            f"{self._mean:.1f} in the policy  {counts.errors} failed",
            no_wrap=True,
            overflow="ellipsis",
        )
