# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares in-process models with direct calls of their runtimes."""

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from mlbridge import inprocess
from mlbridge.extras import how_to_install, pip_install
from mlbridge_benchmarks.common import savedmodel
from mlbridge_benchmarks.common.processes import Worker, runtimes, started
from mlbridge_benchmarks.common.tables import Bound, number, plain_table
from mlbridge_optimizations.plot import finish, panels_of

from .report import shown
from .workload import LENGTHS, POLICIES, Workload

RUNTIMES = ("onnx", "aot", savedmodel.TF, savedmodel.TF_AOT)
"""The runners, in the order of the tables. ``tf-aot`` has the scheme ``aot``."""
BATCHES_A_SWEEP = 5
# If there are more lengths than this, only the first and every tenth length are
# measured, because each length is a separate model that takes seconds to compile.
MOST_LENGTHS = 12
# Limits relative to the runner's floor: the extra time of the shortest request, the
# ratio of sweeps, and the extra time of any request.
FIRST_LIMIT_US = {"onnx": 0.5}
SWEEP_LIMIT = {"onnx": 1.15}
CALL_LIMIT_US = {"aot": 0.2, savedmodel.TF_AOT: 0.2}


@dataclass(frozen=True)
class Measured:
    """The times of one model in one runtime. The floor and the runner take turns."""

    runtime: str
    model: str
    floats: int
    calls: int  # The number of calls in a batch.
    # The time per call, for each batch.
    floor_ns: NDArray[np.float64]
    runner_ns: NDArray[np.float64]
    floor_allocations: float
    runner_allocations: float

    @cached_property
    def floor_us(self) -> float:
        """The median time of a direct call."""
        return float(np.median(self.floor_ns)) / 1e3

    @cached_property
    def difference_us(self) -> float:
        """The median difference of paired batches, which noise affects equally."""
        return float(np.median(self.runner_ns - self.floor_ns)) / 1e3

    @property
    def runner_us(self) -> float:
        """The time of a call through the runner: the floor plus the difference."""
        return self.floor_us + self.difference_us

    @property
    def our_allocations(self) -> float:
        """The runner's heap allocations without its runtime's allocations."""
        return self.runner_allocations - self.floor_allocations


def lengths_of(lengths: Sequence[int]) -> tuple[int, ...]:
    """Returns the lengths for which models are made."""
    if len(lengths) <= MOST_LENGTHS:
        return tuple(lengths)
    return tuple(dict.fromkeys((lengths[0], *lengths[9::10])))


@contextmanager
def _client(build: Path, batches: int, features: Path) -> Iterator[Any]:
    """Yields a function that sends a line to inprocess-client and returns the reply."""
    core = max(os.sched_getaffinity(0))
    variables = runtimes() | savedmodel.variables()
    name = "inprocess-client"
    command: list[str | Path] = [build / name, str(core), features, str(batches)]
    with started(command, variables=variables) as process:
        worker = Worker(name, process)

        def ask(line: str) -> Any:
            worker.send(line)
            return json.loads(worker.line())

        yield ask


def available(build: Path) -> dict[str, str]:
    """Maps each runtime to the reason why it is missing, or "" if it is available."""
    client = build / "inprocess-client"
    if not client.exists():
        return dict.fromkeys(RUNTIMES, "this build has no inprocess-client")
    if find_spec("onnx") is None or find_spec("emx_onnx_cgen") is None:
        return dict.fromkeys(RUNTIMES, f"needs {how_to_install('compile')}")
    with _client(build, 1, Path(os.devnull)) as ask:
        kinds = ask("kinds")
    missing = {
        name: "" if _scheme(name) in kinds else "not in this build" for name in RUNTIMES
    }
    missing["onnx"] = missing["onnx"] or (
        "" if inprocess.onnxruntime() else f"`{pip_install('onnxruntime')}`"
    )
    for name in savedmodel.SETS:
        missing[name] = missing[name] or savedmodel.missing(name)
    return missing


def _scheme(runtime: str) -> str:
    return "aot" if runtime == savedmodel.TF_AOT else runtime


def measure(
    runtimes: Sequence[str],
    lengths: Sequence[int],
    batches: int,
    build: Path,
    on_start: Callable[[str, int], Callable[[], None]],
) -> list[Measured]:
    """Measures the sweep's two policies and a network in each runtime.

    Each length has its own model. The models are cached in the folder of
    inprocess-client and, for TensorFlow, in `savedmodel.MODELS`.
    """
    # Import this here, because `mlbridge bench` also works without the package onnx.
    from .models import MLP, InProcessModel, ModelCache

    models = [InProcessModel(name, n) for name in POLICIES for n in lengths]
    models.append(InProcessModel("mlp", MLP[0]))
    # Include the longest length, so that each run draws the same features and uses the
    # same cached models.
    work = Workload.make((*lengths, LENGTHS[-1]))
    cache = ModelCache(build / "models", work)
    if "aot" in runtimes:
        cache.compile_all(
            models,
            jobs=len(os.sched_getaffinity(0)),
            on_start=partial(on_start, "compiling models"),
        )
    find: dict[str, Callable[[InProcessModel], Path]] = {
        "onnx": cache.onnx,
        "aot": cache.compiled,
    }
    for name in savedmodel.SETS:
        if name in runtimes:
            on_done = on_start(f"{name}: TensorFlow's models", 1)
            made = savedmodel.make(name, map(cache.onnx, models))
            find[name] = dict(zip(models, made, strict=True)).__getitem__
            on_done()

    on_done = on_start("in process", len(models) * len(runtimes))
    found = []
    with tempfile.TemporaryDirectory(prefix="mlb") as folder:
        work.save(Path(folder))
        with _client(build, batches, Path(folder) / "features.f32") as ask:
            # Wake the core. The first model is measured again below.
            first, name = models[0], runtimes[0]
            ask(f"{_scheme(name)} {first.length} {find[name](first)}")
            for model, runtime in product(models, runtimes):
                file = find[runtime](model)
                got = ask(f"{_scheme(runtime)} {model.length} {file}")
                floor, runner = got["floor"], got["runner"]
                for side in (floor, runner):
                    model.check(work, np.array(side["answer"], np.float32))
                one = Measured(
                    *(runtime, model.name, model.length, got["calls"]),
                    *(np.array(floor["ns"]), np.array(runner["ns"])),
                    *(floor["allocations"], runner["allocations"]),
                )
                found.append(one)
                on_done()
    return found


def _row(found: Sequence[Measured], floats: str) -> dict[str, Any]:
    """Returns the row of one request, or the sum of a sweep's requests."""
    floor = sum(m.floor_us for m in found)
    runner = sum(m.runner_us for m in found)
    return {
        **{"runner": found[0].runtime, "model": found[0].model, "floats": floats},
        **{"floor_us": round(floor, 4), "us": round(runner, 4)},
        "difference_us": round((runner - floor) / len(found), 4),  # Per call.
        "ratio": round(runner / floor, 4),
        "our_allocations": max(m.our_allocations for m in found),
        "runtime_allocations": max(m.floor_allocations for m in found),
    }


def _groups(found: Sequence[Measured]) -> dict[tuple[str, str], list[Measured]]:
    order = list(dict.fromkeys(m.model for m in found))
    groups: dict[tuple[str, str], list[Measured]] = {}
    for m in sorted(found, key=lambda m: order.index(m.model)):
        groups.setdefault((m.model, m.runtime), []).append(m)
    return groups


def rows(found: Sequence[Measured]) -> list[dict[str, Any]]:
    """Returns a row per request, and a sum for each sweep."""
    made = []
    for group in _groups(found).values():
        made += [_row([m], str(m.floats)) for m in group]
        if len(group) > 1:
            made.append(_row(group, "sweep"))
    return made


def bounds(found: Sequence[Measured]) -> list[Bound]:
    """Returns the runners' times and allocations with their limits."""
    made = []

    def add(subject: str, against: str, value: float, limit: float) -> None:
        made.append(Bound(subject, "in process", against, value, limit))

    for (model, runtime), group in _groups(found).items():
        subject, more = f"{runtime} {model}", [m.difference_us for m in group]
        if model != "mlp" and (limit := FIRST_LIMIT_US.get(runtime)):
            first = f"{subject} of {group[0].floats}"
            add(first, "floor, µs more", more[0], limit)
        if model != "mlp" and (limit := SWEEP_LIMIT.get(runtime)):
            add(f"{subject}, sweep", "floor", _row(group, "")["ratio"], limit)
        if limit := CALL_LIMIT_US.get(runtime):
            add(f"{subject}, worst", "floor, µs more", max(more), limit)
    networks = {m.runtime: m.runner_us for m in found if m.model == "mlp"}
    aot = networks.pop("aot", None)
    if aot is not None and networks:
        least, other = min((us, name) for name, us in networks.items())
        add("aot mlp", other, aot / least, 1)
    for runtime in dict.fromkeys(m.runtime for m in found):
        most = max(m.our_allocations for m in found if m.runtime == runtime)
        add(runtime, "our allocations a call", most, 0)
    return made


def _us(value: float) -> str:
    return f"{value:.3f}" if value < 10 else number(value)


def table(found: Sequence[Measured]) -> Table:
    """Returns a table. A row has the time of a call, or the sum of a sweep's calls."""
    shown_table = plain_table(
        "in process: µs a call, of a sweep their sum",
        ("model", "floats", "runner"),
        ("floor", "runner", "more", "/floor", "mallocs", "runtime's"),
    )
    lengths = sorted({m.floats for m in found if m.model != "mlp"})
    wanted = {*shown(lengths), "sweep"} if lengths else set()
    for row in rows(found):
        if row["model"] != "mlp" and row["floats"] not in wanted:
            continue
        shown_table.add_row(
            *(row[name] for name in ("model", "floats", "runner")),
            *(_us(row[name]) for name in ("floor_us", "us")),
            *(f"{row['difference_us']:.3f}", number(row["ratio"])),
            *(f"{row[f'{whose}_allocations']:g}" for whose in ("our", "runtime")),
        )
    return shown_table


def plot(found: Sequence[Measured], path: Path) -> None:
    """Plots one panel per policy. Dashed curves are the floors."""
    policies = [name for name in dict.fromkeys(m.model for m in found) if name != "mlp"]
    with panels_of(path, len(policies), shared=True) as panels:
        for panel, policy in zip(panels, policies, strict=True):
            runtimes = dict.fromkeys(m.runtime for m in found)
            for colour, runtime in enumerate(runtimes):
                mine = [m for m in found if (m.model, m.runtime) == (policy, runtime)]
                lengths = [m.floats for m in mine]
                ours, floor = [m.runner_us for m in mine], [m.floor_us for m in mine]
                panel.plot(lengths, ours, f"C{colour}", label=runtime)
                label = f"{runtime}, direct call"
                panel.plot(lengths, floor, f"C{colour}--", label=label)
            is_last = panel is panels[-1]
            labels = {"title": policy, "xlabel": "float32s in a request"}
            finish(panel, legend=is_last, yscale="log", **labels)
        panels[0].set_ylabel("median call, µs (lower is better)")
