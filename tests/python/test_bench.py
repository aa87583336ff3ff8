# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`mlbridge bench rtt`, but for its times, which no test depends on."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_build import build_or_skip, measured, refused, run_bench
from mlbridge import InvalidArgument, ModelError, OSFailure, PeerClosed
from mlbridge_benchmarks.common.processes import Placement, Sweep, Worker, placements
from mlbridge_benchmarks.rtt import report
from mlbridge_benchmarks.rtt.measurement import Results, Series, Subject
from mlbridge_benchmarks.rtt.runners import RUNNERS
from mlbridge_benchmarks.rtt.workload import LENGTHS, Workload, parse_lengths


def between_processes(build: Path) -> list[str]:
    """The runners of this file; models in one process are test_bench_inprocess.py's."""
    grpc = (build / "grpc-floor-server").exists()
    return ["pipe", "shm", *(["grpc"] if grpc else [])]


def test_a_run_measures_every_row(tmp_path: Path) -> None:
    folder = build_or_skip()
    output, rows = measured(
        tmp_path,
        *("rtt", "--sweeps", "1", "--lengths", "7,500,20000", "--build", folder),
        *(word for name in between_processes(folder) for word in ("--runner", name)),
        plot="plot.png",
    )
    expected = {
        (runner.name, serdes, policy, placement.name)
        for runner in RUNNERS.values()
        if (folder / "grpc-floor-server").exists() or not runner.name.startswith("grpc")
        for serdes in runner.serdes
        for policy in ("echo", "fc")
        for placement in placements()
    }
    keys = ("runner", "serdes", "python", "placement")
    assert {tuple(row[key] for key in keys) for row in rows} == expected
    assert len(rows) == len(expected)
    for row in rows:
        check_row(row)
    assert "raw pipe floor" in output
    assert "raw futex floor" in output


def check_row(row: dict[str, Any]) -> None:
    assert set(row["us"]) == set(row["us_mean"]) == set(row["us_p99"]) == {"500"}
    assert row["sweeps"] == 1
    # Warm, the C++ side takes no memory from the heap.
    assert row["allocations_per_message"] == 0 or RUNNERS[row["runner"]].allocates
    for key in ("sweep_ms", "floor_ms", "dot_ms", "stdlib_ms", "sweep_mean_ms"):
        assert row[key] > 0, key
    # Times are written to 0.1 us, of which a short sweep takes few.
    rounding = 0.00005 / row["sweep_ms"] + 0.00005 / row["floor_ms"]
    ratio = row["sweep_ms"] / row["floor_ms"]
    assert row["ratio"] == pytest.approx(ratio, rel=0.001 + rounding)


def test_rows_and_placements_can_be_chosen(tmp_path: Path) -> None:
    _, rows = measured(
        tmp_path,
        *("rtt", "--sweeps", "2", "--lengths", "100:300:100"),
        *("--serdes", "bitstream", "--placement", "one-core", "--fresh"),
        *("--runner", "pipe", "--build", build_or_skip()),
        plot="plot.png",
    )
    assert [row["python"] for row in rows] == ["echo", "fc"]
    assert {row["placement"] for row in rows} == {"one-core"}
    assert {row["features"] for row in rows} == {"fresh"}
    assert all("stdlib_ms" not in row for row in rows)
    assert list(rows[0]["us"]) == ["100", "200", "300"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--lengths", "0"),
        ("--lengths", "5:1:1"),
        ("--lengths", "many"),
        ("--serdes", "yaml"),
        ("--placement", "three-cores"),
        ("--sweeps", "0"),
    ],
)
def test_wrong_use_is_said(arguments: tuple[str, str]) -> None:
    assert arguments[0] in refused("rtt", *arguments)


def test_a_missing_build_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(OSFailure, match="make build"):
        run_bench("rtt", "--build", tmp_path)


def test_wrong_answers_are_found() -> None:
    work = Workload.make((10, 1000, 50_000))
    right = work.features[np.array(work.lengths) - 1]
    work.check("echo", right)
    products = [np.dot(work.weights[:n], work.features[:n]) for n in work.lengths]
    work.check("fc", np.array(products, np.float32))

    for wrong in (np.nextafter(right[2], np.float32(9)), np.nan, right[1]):
        answers = right.copy()
        answers[2] = wrong
        with pytest.raises(ModelError, match="a wrong answer of echo to 50000"):
            work.check("echo", answers)
    # One feature too few.
    short = [
        np.dot(work.weights[: n - 1], work.features[: n - 1]) for n in work.lengths
    ]
    with pytest.raises(ModelError, match="a wrong answer of fc to 10 "):
        work.check("fc", np.array(short, np.float32))


def test_a_worker_that_ends_is_said() -> None:
    command = [sys.executable, "-c", "input(); raise SystemExit(7)"]
    with (
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process,
        pytest.raises(PeerClosed, match="a model ended with status 7"),
    ):
        Worker("a model", process).sweep()


def test_lengths() -> None:
    assert parse_lengths("3,1,2") == (3, 1, 2)
    assert parse_lengths("500:50000:500") == LENGTHS
    assert len(LENGTHS) == 100


def test_statistics_and_limits() -> None:
    """From made-up times, since these can be foretold."""

    def series(*sweeps: tuple[float, float]) -> Series:
        none = np.zeros(2, np.float32)
        return Series([Sweep(np.array(sweep), none, 3) for sweep in sweeps])

    runner = RUNNERS["pipe"]
    echo, fc = Subject(runner, "bitstream", "echo"), Subject(runner, "bitstream", "fc")
    results = Results(
        Placement("two-cores", 0, 1),
        (500, 5000),
        False,
        {
            echo: series((1.0, 20.0), (3.0, 10.0), (2.0, 90.0)),
            fc: series((50.0, 50.0)),
        },
        {"pipe": series((11.0, 89.0))},
        {"dot": series((8.0, 20.0))},
    )
    row = report.row(results, echo)
    assert row["sweep_ms"] == pytest.approx((2.0 + 20.0) / 1e3)
    assert row["sweep_mean_ms"] == pytest.approx((2.0 + 40.0) / 1e3)
    assert row["floor_ms"] == pytest.approx(0.1)
    assert row["ratio"] == pytest.approx(0.22)
    assert row["us"] == {"500": 2.0, "5000": 20.0}
    assert row["us_p99"]["5000"] == pytest.approx(88.6)
    assert row["allocations_per_message"] == pytest.approx(1.5)

    against = {
        (bound.subject, bound.against): (bound.found, bound.holds)
        for bound in report.bounds(results)
    }
    assert against == {
        ("pipe bitstream echo", "raw pipe floor"): (pytest.approx(0.22), True),
        ("pipe bitstream fc", "echo + NumPy dot alone"): (pytest.approx(2.0), False),
        ("all", "allocations a message"): (1.5, False),
    }


def test_every_runner_can_be_asked_with_its_spec() -> None:
    from mlbridge import create_model_runner

    has_grpc = find_spec("mlbridge._grpc") is not None

    for runner in RUNNERS.values():
        if runner.name.startswith("grpc") and not has_grpc:
            continue
        path = "127.0.0.1:1" if runner.by_port else "/tmp/nobody"
        for serdes in runner.serdes:
            create_model_runner(runner.spec.format(path=path, serdes=serdes))
    with pytest.raises(InvalidArgument):
        create_model_runner(RUNNERS["pipe"].spec.format(path="/tmp/x", serdes="morse"))
