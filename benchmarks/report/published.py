# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The published figures beside which the report shows ours.

Each figure has a source that a reader can check. The project has no copy of the paper's
text, so figures without such a source are missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PAPER = "https://doi.org/10.48550/arXiv.2311.10800"
"""The paper."""

PAGE = "docs/reference/benchmarks.md, which cites the paper"
LIMITS = "benchmarks/phase_ordering/compile_time.py, which cites the paper"
TALK = "https://compilers.cse.iith.ac.in/publications/ml-llvm-tools/, by its authors"
CODE = (
    "the paper's reference implementation at commit 336ade4, measured by this project "
    "on two idle cores of another machine, so compare it only roughly; its gRPC uses "
    "Protobuf, and its echo replies with a constant"
)


@dataclass(frozen=True)
class Figure:
    """A published value of a column, for all rows or for the rows with certain values.

    Attributes:
        part: the name of the part.
        key: the key of the column.
        row: maps keys to the values that identify the rows. Empty if our source does
            not state the row.
        value: the published value.
        source: who published it.
    """

    part: str
    key: str
    row: dict[str, Any]
    value: float
    source: str


def _flows(part: str, key: str, value: float, *flows: str) -> list[Figure]:
    return [Figure(part, key, {"flow": flow}, value, PAGE) for flow in flows]


def _code(serdes: str, model: str, value: float, runner: str = "pipe") -> Figure:
    row = {"runner": runner, "serdes": serdes, "python": model}
    row["placement"] = "two-cores"
    return Figure("rtt", "sweep_ms", row, value, CODE)


FIGURES = (
    *_flows("compile-time", "faster.total", 4.4, "gRPC"),
    *_flows("compile-time", "faster.total", 4.7, "pipe, JSON", "pipe, bitstream"),
    Figure("compile-time", "faster.total", {"flow": "onnx"}, 7.2, LIMITS),
    Figure("register-allocation", "faster", {"flow": "onnx", "jobs": 1}, 12.5, TALK),
    Figure(
        *("register-allocation", "faster_allocation", {"flow": "onnx", "jobs": 1}),
        *(20, PAGE),
    ),
    Figure("loop-distribution", "faster", {}, 16, PAGE),
    Figure("training", "faster_than_original", {}, 1.8, PAGE),
    _code("bitstream", "echo", 39.6),
    _code("bitstream", "fc", 33.1),
    _code("json", "echo", 1015),
    _code("json", "fc", 1028),
    _code("bitstream", "echo", 26.7, "grpc-unary-tcp"),
    _code("bitstream", "fc", 30.8, "grpc-unary-tcp"),
)


def figure_of(part: str, key: str, row: Mapping[str, Any]) -> Figure | None:
    """Returns the published figure of a part's column in one of our rows."""
    for figure in FIGURES:
        if (figure.part, figure.key) != (part, key) or not figure.row:
            continue
        if all(row.get(name) == value for name, value in figure.row.items()):
            return figure
    return None


def figures_of(part: str) -> list[Figure]:
    """Returns all published figures of a part."""
    return [figure for figure in FIGURES if figure.part == part]
