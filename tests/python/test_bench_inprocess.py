# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`mlbridge bench rtt` of models in one process, but for its times."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from bench_build import build_or_skip, children, run_bench
from mlbridge import ModelError, ModelRunner
from mlbridge_benchmarks.common.tables import bounds_table
from mlbridge_benchmarks.rtt import inprocess
from mlbridge_benchmarks.rtt.models import MLP, InProcessModel, ModelCache
from mlbridge_benchmarks.rtt.workload import LENGTHS, Workload


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The clients in a folder of their own, where no models are kept yet."""
    found = build_or_skip()
    if missing := inprocess.available(found)["aot"]:
        pytest.skip(missing)
    folder = tmp_path_factory.mktemp("benchmarks")
    for path in found.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    return folder


def test_a_run_measures_every_row(build: Path, tmp_path: Path) -> None:
    before = children()
    runtimes = [name for name, why in inprocess.available(build).items() if not why]
    output = run_bench(
        *("rtt", "--sweeps", "1", "--lengths", "7", "--build", str(build)),
        *(word for name in runtimes for word in ("--runner", name)),
        *("--json", str(tmp_path / "rows.json")),
        *("--plot", str(tmp_path / "plot.png")),
    )
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [(row["model"], row["runner"], row["floats"]) for row in rows] == [
        (model, runtime, floats)
        for model, floats in (("echo", "7"), ("fc", "7"), ("mlp", "300"))
        for runtime in runtimes
    ]
    for row in rows:
        assert row["floor_us"] > 0
        assert row["us"] > 0
        assert row["our_allocations"] == 0
        # ONNX Runtime takes memory for each evaluation; generated code never does.
        assert (row["runtime_allocations"] == 0) == (row["runner"] == "aot")
    assert "our allocations a call" in output
    assert (tmp_path / "plot-inprocess.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "plot.png").exists()
    assert children() == before

    made = {path.name: path.stat().st_mtime_ns for path in (build / "models").iterdir()}
    again = ModelCache(build / "models", Workload.make((7, LENGTHS[-1])))
    again.compile_all([InProcessModel("fc", 7)], jobs=1, on_start=nothing_left)
    assert again.compiled(InProcessModel("fc", 7)).name in made


def nothing_left(count: int) -> Callable[[], None]:
    pytest.fail(f"{count} models are compiled again")


def test_the_models_are_what_they_are_called(tmp_path: Path) -> None:
    work = Workload.make((40, 400))
    cache = ModelCache(tmp_path, work)
    for name, length in (("echo", 40), ("fc", 40), ("mlp", MLP[0])):
        model = InProcessModel(name, length)
        runner = ModelRunner(f"onnx:{cache.onnx(model)}")
        answer = runner.evaluate({"x": work.features[:length]}, np.float32, many=True)
        model.check(work, answer)
        with pytest.raises(ModelError, match=f"a wrong answer of {name}"):
            model.check(work, answer + np.float32(0.01))
    with pytest.raises(ModelError, match="expected 15 numbers, found 1"):
        InProcessModel("mlp", MLP[0]).check(work, answer[:1])


def test_a_client_that_fails_is_said(
    build: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    process = subprocess.run(
        [build / "inprocess-client", "0", "/dev/null", "3"],
        input="aot 7 /nowhere/lib.so\n",
        capture_output=True,
        text=True,
    )
    assert process.returncode == 1
    assert "/dev/null" in process.stderr


def test_many_lengths_are_thinned_out() -> None:
    assert inprocess.lengths_of((7, 500)) == (7, 500)
    thinned = inprocess.lengths_of(LENGTHS)
    assert thinned == (500, *range(5_000, 50_001, 5_000))


def measured(
    runtime: str, model: str, floor: list[float], more: float
) -> list[inprocess.Measured]:
    """Of lengths 500, 1000, ...; times in us."""
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


def test_statistics_and_limits() -> None:
    """From made-up times, since these can be foretold."""
    found = [
        *measured("onnx", "fc", [1.0, 3.0], 0.4),
        *measured("aot", "fc", [0.5, 1.0], 0.3),
        *measured("onnx", "mlp", [3.0], 0.2),
        *measured("aot", "mlp", [3.5], 0.1),
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
        ("onnx fc of 500", "floor, us more"): (0.4, True),
        ("onnx fc, sweep", "floor"): (1.2, False),
        ("aot fc, worst", "floor, us more"): (0.3, False),
        ("aot mlp, worst", "floor, us more"): (0.1, True),
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
