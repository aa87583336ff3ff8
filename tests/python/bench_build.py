# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Helpers for the tests of the benchmarks."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mlbridge import OSFailure
from mlbridge_benchmarks.command import app
from mlbridge_benchmarks.common.processes import find_build
from stock_llvm import children

BUILD = os.environ.get("MLBRIDGE_BENCHMARKS")


def build_or_skip() -> Path:
    """Returns the folder of rtt-client. Skips the test if the client is not built."""
    try:
        return find_build(Path(BUILD) if BUILD else None)
    except OSFailure as missing:
        pytest.skip(str(missing))


def run_bench(*arguments: object) -> str:
    """Returns the output of a benchmark, which must succeed and leave no process."""
    before = children()
    outcome = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    assert children() == before
    return outcome.output


def measured(
    folder: Path, *arguments: object, plot: bool = False
) -> tuple[str, list[dict[str, Any]]]:
    """Returns a benchmark's output and rows. With `plot`, it also draws plot.png."""
    rows, drawn = folder / "rows.json", folder / "plot.png"
    output = run_bench(*arguments, "--json", rows, *(("--plot", drawn) if plot else ()))
    assert not plot or drawn.read_bytes().startswith(b"\x89PNG")
    return output, json.loads(rows.read_text())


def refused(*arguments: str) -> str:
    """Returns the one-line message with which a benchmark refuses options."""
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 2
    return " ".join(outcome.output.split())
