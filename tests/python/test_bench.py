# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`mlbridge bench rtt`. No test depends on the measured times."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from bench_build import build_or_skip, measured, refused, run_bench
from mlbridge import InvalidArgument, ModelError, ModelRunner, OSFailure, PeerClosed
from mlbridge_benchmarks.common import savedmodel
from mlbridge_benchmarks.common.processes import Placement, Sweep, Worker, placements
from mlbridge_benchmarks.common.tables import bounds_table
from mlbridge_benchmarks.rtt import inprocess, report
from mlbridge_benchmarks.rtt.measurement import MLIR_PLUGIN, Results, Series, Subject
from mlbridge_benchmarks.rtt.models import MLP, InProcessModel, ModelCache
from mlbridge_benchmarks.rtt.runners import RUNNERS
from mlbridge_benchmarks.rtt.workload import LENGTHS, Workload, parse_lengths
from programs import run_program

GENERATED = ("aot", savedmodel.TF_AOT)


def test_a_run_measures_every_row(tmp_path: Path) -> None:
    folder = build_or_skip()
    has_grpc = (folder / "grpc-floor-server").exists()
    runners = ["pipe", "shm", *(["grpc"] if has_grpc else [])]
    output, rows = measured(
        tmp_path,
        *("rtt", "--sweeps", "1", "--lengths", "7,500,20000", "--build", folder),
        *(word for name in runners for word in ("--runner", name)),
        plot=True,
    )
    keys = ("runner", "serdes", "python", "placement")
    assert sorted(tuple(row[key] for key in keys) for row in rows) == sorted(
        (runner.name, serdes, policy, placement.name)
        for runner in RUNNERS.values()
        if has_grpc or not runner.name.startswith("grpc")
        for serdes in runner.serdes
        for policy in ("echo", "fc")
        for placement in placements()
    )
    for row in rows:
        assert set(row["us"]) == set(row["us_mean"]) == set(row["us_p99"]) == {"500"}
        assert row["sweeps"] == 1
        # After the first requests, the C++ side allocates nothing.
        assert row["allocations_per_message"] == 0 or RUNNERS[row["runner"]].allocates
        for key in ("sweep_ms", "floor_ms", "dot_ms", "stdlib_ms", "sweep_mean_ms"):
            assert row[key] > 0, key
        # Times are rounded to 0.1 us, which changes the ratio of a short sweep.
        rounding = 0.00005 / row["sweep_ms"] + 0.00005 / row["floor_ms"]
        ratio = row["sweep_ms"] / row["floor_ms"]
        assert row["ratio"] == pytest.approx(ratio, rel=0.001 + rounding)
    assert "raw pipe floor" in output
    assert "raw futex floor" in output


def test_rows_and_placements_can_be_chosen(tmp_path: Path) -> None:
    _, rows = measured(
        tmp_path,
        *("rtt", "--sweeps", "2", "--lengths", "100:300:100"),
        *("--serdes", "bitstream", "--placement", "one-core", "--fresh"),
        *("--runner", "pipe", "--build", build_or_skip()),
        plot=True,
    )
    assert [row["python"] for row in rows] == ["echo", "fc"]
    assert {row["placement"] for row in rows} == {"one-core"}
    assert {row["features"] for row in rows} == {"fresh"}
    assert all("stdlib_ms" not in row for row in rows)
    assert list(rows[0]["us"]) == ["100", "200", "300"]


def test_a_pass_of_mlir_opt(tmp_path: Path) -> None:
    folder = build_or_skip()
    if not (folder / MLIR_PLUGIN).exists() or not shutil.which("mlir-opt-22"):
        pytest.skip("this build has no MLIR: needs libmlir-22-dev and mlir-22-tools")
    _, rows = measured(
        tmp_path,
        *("rtt", "--sweeps", "1", "--lengths", "7,500", "--placement", "one-core"),
        *("--runner", "shm", "--serdes", "bitstream", "--mlir", "--build", folder),
    )
    assert [row["python"] for row in rows] == ["echo", "fc"]
    assert all(row["allocations_per_message"] == 0 for row in rows)


@pytest.mark.parametrize(
    "arguments",
    [
        *("--lengths 0", "--lengths 5:1:1", "--lengths many", "--serdes yaml"),
        *("--placement three-cores", "--sweeps 0"),
    ],
)
def test_wrong_use_is_said(arguments: str) -> None:
    option, value = arguments.split()
    assert option in refused("rtt", option, value)


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
        replies = right.copy()
        replies[2] = wrong
        with pytest.raises(ModelError, match="a wrong answer of echo to 50000"):
            work.check("echo", replies)
    few = [np.dot(work.weights[: n - 1], work.features[: n - 1]) for n in work.lengths]
    with pytest.raises(ModelError, match="a wrong answer of fc to 10 "):
        work.check("fc", np.array(few, np.float32))


def test_a_worker_that_ends_is_said() -> None:
    command = [sys.executable, "-c", "input(); raise SystemExit(7)"]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(command, stdin=pipe, stdout=pipe) as process,
        pytest.raises(PeerClosed, match="a model ended with status 7"),
    ):
        Worker("a model", process).sweep()


def test_lengths() -> None:
    assert parse_lengths("3,1,2") == (3, 1, 2)
    assert parse_lengths("500:50000:500") == LENGTHS
    assert len(LENGTHS) == 100
    assert inprocess.lengths_of((7, 500)) == (7, 500)
    assert inprocess.lengths_of(LENGTHS) == (500, *range(5_000, 50_001, 5_000))


def test_statistics_and_limits() -> None:
    """Tests the statistics of made-up times."""

    def series(*sweeps: tuple[float, float]) -> Series:
        none = np.zeros(2, np.float32)
        return Series([Sweep(np.array(sweep), none, 3) for sweep in sweeps])

    runner = RUNNERS["pipe"]
    echo, fc = Subject(runner, "bitstream", "echo"), Subject(runner, "bitstream", "fc")
    results = Results(
        Placement("two-cores", 0, 1),
        (500, 5000),
        False,
        {echo: series((1.0, 20.0), (3.0, 10.0), (2.0, 90.0)), fc: series((50.0, 50.0))},
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
    has_grpc = find_spec("mlbridge._grpc") is not None
    for runner in RUNNERS.values():
        if runner.name.startswith("grpc") and not has_grpc:
            continue
        path = "127.0.0.1:1" if runner.by_port else "/tmp/nobody"
        for serdes in runner.serdes:
            ModelRunner(runner.spec.format(path=path, serdes=serdes))
    with pytest.raises(InvalidArgument):
        ModelRunner(RUNNERS["pipe"].spec.format(path="/tmp/x", serdes="morse"))


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the clients, in a folder without cached models."""
    found = build_or_skip()
    if missing := inprocess.available(found)["aot"]:
        pytest.skip(missing)
    folder = tmp_path_factory.mktemp("benchmarks")
    for path in found.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    return folder


def test_a_run_in_one_process_measures_every_row(build: Path, tmp_path: Path) -> None:
    runtimes = [name for name, why in inprocess.available(build).items() if not why]
    if "MLBRIDGE_TEST_TENSORFLOW" not in os.environ:
        # Skip TensorFlow's models, which take half a minute to compile.
        runtimes = [name for name in runtimes if name not in savedmodel.SETS]
    output, rows = measured(
        tmp_path,
        *("rtt", "--sweeps", "1", "--lengths", "7", "--build", build),
        *(word for name in runtimes for word in ("--runner", name)),
        *("--plot", tmp_path / "plot.png"),
    )
    assert [(row["model"], row["runner"], row["floats"]) for row in rows] == [
        (model, runtime, floats)
        for model, floats in (("echo", "7"), ("fc", "7"), ("mlp", "300"))
        for runtime in runtimes
    ]
    for row in rows:
        assert min(row["floor_us"], row["us"]) > 0
        assert row["our_allocations"] == 0
        # ONNX Runtime allocates in each evaluation, but generated code never does.
        assert (row["runtime_allocations"] == 0) == (row["runner"] in GENERATED)
    assert "our allocations a call" in output
    assert (tmp_path / "plot-inprocess.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "plot.png").exists()
    again = ModelCache(build / "models", Workload.make((7, LENGTHS[-1])))
    model = InProcessModel("fc", 7)
    again.compile_all([model], jobs=1, on_start=lambda _: pytest.fail("compiles again"))
    assert again.compiled(model).exists()


def test_the_models_are_what_they_are_called(tmp_path: Path) -> None:
    work = Workload.make((40, 400))
    cache = ModelCache(tmp_path, work)
    for name, length in (("echo", 40), ("fc", 40), ("mlp", MLP[0])):
        model = InProcessModel(name, length)
        runner = ModelRunner(f"onnx:{cache.onnx(model)}")
        reply = runner.evaluate({"x": work.features[:length]}, np.float32, many=True)
        model.check(work, reply)
        with pytest.raises(ModelError, match=f"a wrong answer of {name}"):
            model.check(work, reply + np.float32(0.01))
    with pytest.raises(ModelError, match="expected 15 numbers, found 1"):
        InProcessModel("mlp", MLP[0]).check(work, reply[:1])


def test_a_client_that_fails(build: Path) -> None:
    command: list[str | Path] = [build / "inprocess-client", "0", "/dev/null", "3"]
    process = run_program(command, input="aot 7 /nowhere/lib.so\n")
    assert process.returncode == 1
    assert "/dev/null" in process.stderr


def made_up(
    runtime: str, model: str, floor: list[float], more: float
) -> list[inprocess.Measured]:
    """Measurements for lengths 500, 1000, ...; times in us."""
    return [
        inprocess.Measured(
            runtime,
            model,
            500 * (i + 1),
            10,
            np.array([us, us + 9, us]) * 1e3,
            (np.array([us, us + 9, us]) + more) * 1e3,
            15.0,
            15.0 if runtime == "onnx" else 16.0,
        )
        for i, us in enumerate(floor)
    ]


def test_statistics_and_limits_in_one_process() -> None:
    """Tests the statistics of made-up times."""
    found = [
        *made_up("onnx", "fc", [1.0, 3.0], 0.4),
        *made_up("aot", "fc", [0.5, 1.0], 0.3),
        *made_up("onnx", "mlp", [3.0], 0.2),
        *made_up("aot", "mlp", [3.5], 0.1),
    ]
    rows = {(r["runner"], r["model"], r["floats"]): r for r in inprocess.rows(found)}
    sweep = rows["onnx", "fc", "sweep"]
    assert sweep["floor_us"] == pytest.approx(4.0)
    assert sweep["us"] == pytest.approx(4.8)
    assert sweep["difference_us"] == pytest.approx(0.4)
    assert sweep["ratio"] == pytest.approx(1.2)
    limits = {
        (b.subject, b.against): (round(b.found, 9), b.holds)
        for b in inprocess.bounds(found)
    }
    assert limits == {
        ("onnx fc of 500", "floor, µs more"): (0.4, True),
        ("onnx fc, sweep", "floor"): (1.2, False),
        ("aot fc, worst", "floor, µs more"): (0.3, False),
        ("aot mlp, worst", "floor, µs more"): (0.1, True),
        ("aot mlp", "onnx"): (1.125, False),
        ("onnx", "our allocations a call"): (0, True),
        ("aot", "our allocations a call"): (1, False),
    }
    console = Console(width=100)
    with console.capture() as capture:
        console.print(inprocess.table(found))
        console.print(bounds_table(inprocess.bounds(found)))
    text = capture.get()
    assert "sweep" in text
    assert "missed" in text
