# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of the runners' characteristics and of their times in the report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlbridge_benchmarks.common.savedmodel import TF_AOT
from mlbridge_benchmarks.common.tables import number

from .tables import PageTable

Rows = Mapping[str, Sequence[Mapping[str, Any]]]

ANOTHER, INSIDE = "another process", "the compiler"
EXPORTS = "any that exports ONNX"
TENSORFLOW_AOT = "TensorFlow AOT"


@dataclass(frozen=True)
class Characteristics:
    """What a runner can do, in words of docs/reference/model-specs.md."""

    spec: str
    place: str
    training: str
    frameworks: str
    needs: str


RUNNERS = (
    Characteristics("pipe:", ANOTHER, "yes", "any in Python or C++", "nothing"),
    Characteristics("shm:", ANOTHER, "yes", "any in Python or C++", "nothing"),
    Characteristics("grpc:", f"{ANOTHER} or machine", "yes", "any", "gRPC"),
    Characteristics("onnx:", INSIDE, "no", EXPORTS, "ONNX Runtime"),
    Characteristics("aot:", INSIDE, "no", EXPORTS, "nothing; to build, a C compiler"),
    Characteristics("tf:", INSIDE, "no", "TensorFlow", "TensorFlow's C library"),
    Characteristics(
        TENSORFLOW_AOT, INSIDE, "no", "TensorFlow", "nothing; to build, TensorFlow"
    ),
    Characteristics("aoti:", INSIDE, "no", "PyTorch", "PyTorch's C++ libraries"),
    Characteristics("tvm:", INSIDE, "no", "any that TVM imports", "TVM's runtime"),
)

TITLES = [
    *("runner", "the model runs in", "training", "model's framework", "needs"),
    *("µs at 500 floats", "start in clang, CPU ms"),
]


def _name(spec: str) -> str:
    """Returns the runner's name in the rows of the benchmarks."""
    return TF_AOT if spec == TENSORFLOW_AOT else spec.rstrip(":")


def _trip(rows: Rows, spec: str) -> str:
    """Returns the time of one request to the model `fc` with 500 floats."""
    name = _name(spec)
    for row in rows.get("rtt", ()):
        served = str(row["runner"])
        is_served = (row.get("python"), row.get("serdes")) == ("fc", "bitstream")
        if is_served and served in (name, f"{name}-stream-tcp"):
            found = row["us"].get("500")
            return number(found) if found else ""
        if (served, row.get("model"), row.get("floats")) == (name, "fc", "500"):
            return number(row["us"])
    return ""


def _start(rows: Rows, spec: str) -> str:
    """Returns the CPU time that the model's first decision adds to clang."""
    for row in rows.get("overhead", ()):
        if (row["source"], row["clang"]) == ("start-up", f"+ {_name(spec)}"):
            return number(row["added_cpu_ms"])
    return ""


def runner_table(rows: Rows) -> PageTable:
    """Returns the table. ``rows`` maps the name of each measured step to its rows."""
    cells = [
        [
            *(one.spec, one.place, one.training, one.frameworks, one.needs),
            *(_trip(rows, one.spec), _start(rows, one.spec)),
        ]
        for one in RUNNERS
    ]
    return PageTable("runners", TITLES, cells, numbers={5, 6})
