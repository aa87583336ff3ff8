# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of the benchmarks share."""

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
    """Where rtt-client is, for the tests that need it."""
    try:
        return find_build(Path(BUILD) if BUILD else None)
    except OSFailure as missing:
        pytest.skip(str(missing))


def run_bench(*arguments: object) -> str:
    """What a benchmark prints; it is to succeed, and to leave no process."""
    before = children()
    words = [str(argument) for argument in arguments]
    outcome = CliRunner().invoke(app, words, catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    assert children() == before
    return outcome.output


def measured(
    folder: Path, *arguments: object, plot: str | None = None
) -> tuple[str, list[dict[str, Any]]]:
    """What a benchmark prints, and its rows; with `plot` it makes that file, too."""
    found, files = folder / "rows.json", ["--json", folder / "rows.json"]
    if plot is not None:
        files += ["--plot", folder / "plot.png"]
    output = run_bench(*arguments, *files)
    assert plot is None or (folder / plot).read_bytes().startswith(b"\x89PNG")
    return output, json.loads(found.read_text())


def refused(*arguments: str) -> str:
    """What a benchmark says of options that it does not take, in one line."""
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 2
    return " ".join(outcome.output.split())
