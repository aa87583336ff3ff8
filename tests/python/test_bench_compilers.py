# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The benchmarks of servers, of whole compiles, and of the bridge's overhead.

No test depends on the measured times.
"""

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bench_build import build_or_skip, measured, refused, run_bench
from mlbridge import CompilerFailed, InvalidArgument, ModelError, OSFailure, PeerClosed
from mlbridge.doctor import find_llvm_plugin
from mlbridge_benchmarks.common.imitation import Model, Source
from mlbridge_benchmarks.common.processes import placements
from mlbridge_benchmarks.inliner import command as inliner
from mlbridge_benchmarks.loop_distribution import command as loops
from mlbridge_benchmarks.loop_distribution import cost as loop_cost
from mlbridge_benchmarks.overhead import command as overhead
from mlbridge_benchmarks.register_allocation import command as allocation
from mlbridge_benchmarks.serve.command import Load
from mlbridge_benchmarks.serve.command import measure as measure_load
from mlbridge_benchmarks.threads import command as threads
from mlbridge_benchmarks.threads.command import Cell, Round
from mlbridge_optimizations.corpus import toolchain
from mlbridge_optimizations.corpus.manifest import Corpus, Module, Program
from mlbridge_optimizations.corpus.sources import SourceProgram, source_program
from mlbridge_optimizations.corpus.toolchain import CLANG
from mlbridge_optimizations.register_allocation.networks import DialogueNetwork
from programs import FULL, IS_FULL, ROOT
from stock_llvm import children

PROGRAM = ROOT / "tests/lit/Inputs/program.c"


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("serve", "--clients"),
        ("threads", "--threads"),
        ("register-allocation", "--jobs"),
    ],
)
@pytest.mark.parametrize("counts", ["", "0", "1,x"])
def test_counts_that_are_none(command: str, option: str, counts: str) -> None:
    assert "expected N,N,..." in refused(command, option, counts)


def test_loads_are_measured(tmp_path: Path) -> None:
    _, rows = measured(
        tmp_path,
        *("serve", "--clients", "1,4", "--seconds", "0.3", "--model-ms", "1"),
        *("--max-batch", "8", "--max-delay", "0.5", "--build", build_or_skip()),
    )
    loads = [row["load"] for row in rows]
    assert [(load["runner"], load["clients"], load["max_batch"]) for load in loads] == [
        (n, c, b) for n in ("pipe", "shm") for c in (1, 4) for b in (1, 8)
    ]
    for row in rows:
        assert row["decisions_per_second"] > 0
        assert 0 < row["slowest_client"] <= 1
        batch = min(row["load"]["max_batch"], row["load"]["clients"])
        assert 1 <= row["batch_size"] <= batch
        latency = row["latency_ms"]
        # The model takes 1 ms for each reply.
        assert 0.9 <= latency["p50"] <= latency["p90"] <= latency["p99"]
    assert any(row["batch_size"] > 1 for row in rows)


def test_clients_without_a_model_end_the_run() -> None:
    build, before = build_or_skip(), children()
    with pytest.raises(PeerClosed, match="did not get its first answer"):
        # No runner has the name `smoke`, so no model is served.
        measure_load(Load("smoke", 2, 1, 0.0, 1.0, 10, 0.1), build)
    assert children() == before


def test_a_busy_neighbour(tmp_path: Path) -> None:
    _, rows = measured(
        tmp_path,
        *("neighbour", "--trips", "1500", "--floats", "10", "--runner", "shm"),
        *("--build", build_or_skip()),
    )
    assert [(r["placement"], r["busy"]) for r in rows] == [
        (p.name, busy) for p in placements() for busy in (False, True)
    ]
    for row in rows:
        assert row["trips"] == 2000
        assert 0 < row["median_us"] <= row["p99_us"] <= row["max_us"]


@pytest.fixture
def what() -> inliner.Compile:
    build = build_or_skip()
    plugin = find_llvm_plugin()
    if plugin is None or not shutil.which(CLANG):
        pytest.skip("no plug-in or no clang here")
    return inliner.Compile(PROGRAM, (), plugin, build)


def test_the_rule_decides_and_asking_does_not(what: inliner.Compile) -> None:
    steps: list[int] = []
    (row,) = inliner.measure(
        what,
        {"builtin": "builtin:imitation"},
        runs=1,
        count=False,
        advance=lambda: steps.append(1),
    )
    assert row.decisions == inliner.run(what, inliner.RULE).decisions > 0
    assert len(steps) == 4
    assert row.share is None
    assert min(row.cpu_ms, row.cpu_ms_rule, row.cpu_ms_stock) > 0
    assert inliner.run(what, None).decisions == 0


def test_dialogues_that_cannot_be_measured() -> None:
    assert "'flac': expected" in refused("register-allocation", "flac"), (
        "it needs commands"
    )
    with pytest.raises(OSFailure, match="nowhere/node"):
        run_bench("register-allocation", "--models", "nowhere")


def test_dialogues_about_registers(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs scripts/make-venv train")
    plugin = find_llvm_plugin()
    if plugin is None:
        pytest.skip("no plug-in here")
    network = DialogueNetwork()
    network.write(tmp_path / "models", network.start)
    pressure = ROOT / "tests/lit/Inputs/pressure.c"
    program = SourceProgram("pressure", "1", (pressure,), ("-DNO_ASM",))
    with ExitStack() as servers:
        flows = {allocation.STOCK: list[str]()}
        for flow in ("torch-grpc", "onnx-grpc", "onnx", "aot"):
            spec = servers.enter_context(
                allocation.spec_for(flow, tmp_path / "models", tmp_path)
            )
            flows[flow] = allocation.options_for(spec, plugin)
        found = allocation.measure(
            *(program, flows, (1, 2), 1, placements()[-1].client, tmp_path),
            advance=lambda: None,
        )
        # The measurement fails if the flows make different objects.
        flows["free"] = toolchain.plugin_flags(plugin, "regalloc-policy=free")
        with pytest.raises(ModelError, match="free: other objects"):
            allocation.measure(program, flows, (1,), 1, 0, tmp_path, lambda: None)
    rows = allocation.rows_of(found)
    assert [row["jobs"] for row in rows] == [1] * 5 + [2] * 5
    for row in rows:
        is_stock = row["flow"] == allocation.STOCK
        assert (row["requests"] > 100) != is_stock
        assert row["seconds"] > row["allocation"] > 0
    assert rows[1]["faster"] == rows[1]["faster_allocation"] == 1
    bounds = allocation.bounds(rows)
    assert [bound.subject for bound in bounds] == ["onnx: allocation", "onnx: compile"]


def test_loops_by_a_wrapper(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs scripts/make-venv train")
    if find_llvm_plugin() is None:
        pytest.skip("no plug-in here")
    flows = (loops.WRAPPER, "shm", "onnx", loops.STOCK)
    chosen = [word for flow in flows for word in ("--flow", flow)]
    # The benchmark fails if the flows make different objects.
    output, rows = measured(
        tmp_path, "loop-distribution", "--modules", "1", "--rounds", "1", *chosen
    )
    assert tuple(row["flow"] for row in rows) == flows
    wrapper, *others = rows
    assert wrapper["faster"] == 1
    assert wrapper["stages"]["imports"] > wrapper["stages"]["interpreter"] > 0
    assert sum(wrapper["stages"].values()) <= wrapper["milliseconds"]
    assert [row["stages"] for row in others] == [{}] * 3
    assert [row["start_seconds"] > 0 for row in rows] == [False, True, False, False]
    assert "onnx" in output


def test_the_cost_of_passes_for_loops(tmp_path: Path) -> None:
    if find_llvm_plugin() is None or not shutil.which("valgrind"):
        pytest.skip("no plug-in or no valgrind here")
    (tmp_path / "fill.c").write_text(
        "void fill(int *a) { for (int i = 0; i < 99; i++) a[i] = FIRST + i; }\n"
    )
    sizes = {"small.c": 499, "fill.c": 500, "large.c": 5001}
    modules = tuple(Module("", name, 1, size, "") for name, size in sizes.items())
    flags = (*toolchain.UNOPTIMISED, "-DFIRST=1")
    program = Program(
        *("own", "own", "1", "training", flags, (), str(tmp_path), modules),
        *(modules[0], ""),
    )
    corpus = Corpus(tmp_path, toolchain.compiler_version(), {"own": program})
    assert loop_cost.draw(corpus, 1, 0) == [loop_cost.Source(program, modules[1])]
    with pytest.raises(InvalidArgument, match=r"--files: expected at most 1, .* 2"):
        loop_cost.draw(corpus, 2, 0)
    corpus.save()
    output, (row,) = measured(
        tmp_path,
        *("loop-distribution-cost", "--files", 1, "--way", "none"),
        *("--corpus", tmp_path),
    )
    assert (row["program"], row["source"]) == ("own", "fill.c")
    counts = row["instructions"]
    assert 10_000_000 < counts[loop_cost.STOCK] < counts["none"]
    assert "1 files (0 in C++)" in output


def test_a_model_that_defers_is_none(what: inliner.Compile) -> None:
    none = {"onnx": "none"}
    with pytest.raises(ModelError, match="not all decisions"):
        inliner.measure(what, none, runs=1, count=False, advance=lambda: None)
    with pytest.raises(ModelError, match=r"no-such\.onnx"):
        inliner.run(what, "onnx:no-such.onnx")


def test_the_table_and_the_rows(what: inliner.Compile, tmp_path: Path) -> None:
    # Counting instructions takes half a minute.
    count = IS_FULL and shutil.which("valgrind") is not None
    _, (row,) = measured(
        tmp_path,
        *("inliner", what.source, "--runs", "1", "--scheme", "builtin"),
        *("--build", what.modules, "--valgrind" if count else "--no-valgrind"),
    )
    assert (row["scheme"], row["source"]) == ("builtin", "program.c")
    if count:
        # Without a decision, both compiles do nearly the same work.
        assert row["instructions_before_first"] < 1_000_000
        assert 1_000 < row["instructions_per_decision"] < 100_000
        assert row["instructions_rule"] > 10_000_000
        assert 0 < row["share"] < 1


@pytest.fixture
def build() -> Path:
    found = build_or_skip()
    clients = [found / f"{name}-client" for name in ("threads", "compile", "run")]
    for needed in (*clients, plugin_of(found)):
        if not needed.exists():
            pytest.skip(f"this build has no {needed.name}")
    if not shutil.which(CLANG):
        pytest.skip(f"no {CLANG} here")
    pytest.importorskip("emx_onnx_cgen")
    return found


def plugin_of(build: Path) -> Path:
    return build.parent / "lib/MLBridgeLLVM.so"


def bench(build: Path, folder: Path, *arguments: object, **more: Any) -> Any:
    places = ("--build", build, "--plugin", plugin_of(build))
    return measured(folder, *arguments, *places, **more)


@FULL
def test_threads_and_processes(build: Path, tmp_path: Path) -> None:
    sources = [shutil.copy(PROGRAM, tmp_path / name) for name in ("a.c", "b.c")]
    _, rows = bench(
        build,
        tmp_path,
        *("threads", "--threads", "1,2", "--rounds", "1", "--seconds", "0.1"),
        *("--runner", "onnx", "--runner", "aot"),
        *(word for path in sources for word in ("--source", path)),
        plot=True,
    )
    assert [(row["what"], row["runner"], row["count"]) for row in rows] == [
        (what, runner, count)
        for what, runners in (
            ("decisions", ("onnx", "aot")),
            ("compile", ("onnx", "aot", "llvm")),
        )
        for runner in runners
        for count in (1, 2)
    ]
    for row in rows:
        for side in ("threads", "processes"):
            assert row[side]["cpu_us"] > 0
            if row["what"] == "decisions":
                assert row[side]["decisions_per_second"] > 0
                assert row[side]["memory_mib"] > 0
            else:
                assert row[side]["seconds"] > 0
    # Two threads share ONNX Runtime's heap and the model.
    two = next(r for r in rows if (r["runner"], r["count"]) == ("onnx", 2))
    assert two["threads"]["memory_mib"] < two["processes"]["memory_mib"]


def test_a_model_that_fails_ends_the_run(build: Path, tmp_path: Path) -> None:
    before = children()
    source, plugin = Source("a", PROGRAM), plugin_of(build)
    modules = threads.emit_bitcode([source], tmp_path)
    missing = Model("aot", "aot:/nowhere/lib.so")
    for side in threads.SIDES:
        with pytest.raises(ModelError, match="compile-client ended with status 1"):
            threads.compile_modules(build, plugin, missing, modules, 2, side, tmp_path)
    variant = overhead.Variant("+ aot", ("-fpass-plugin=/nowhere",), (), asks=True)
    with pytest.raises(ModelError, match="clang ended with status 1"):
        overhead.compile_once(build, variant, source, tmp_path / "a.o")
    assert children() == before


def test_a_model_decides_what_is_compiled(build: Path, tmp_path: Path) -> None:
    """compile-client runs the plug-in, as clang does."""
    modules = threads.emit_bitcode([Source("a", PROGRAM)], tmp_path)
    digests = []
    for spec in ("", f"record:{tmp_path}/log|none"):
        setting = (plugin_of(build), Model("x", spec), modules, 1, "threads", tmp_path)
        threads.compile_modules(build, *setting)
        digests.append(threads.digest(tmp_path))
    assert digests[0] == digests[1]
    assert (tmp_path / "log").stat().st_size > 0


def test_what_burdens_clang(build: Path, tmp_path: Path) -> None:
    source = shutil.copy(PROGRAM, tmp_path / "a.c")
    runners = ("--runner", "onnx", "--runner", "aot")
    words = ("overhead", "--rounds", "2", "--source", source, *runners)
    output, rows = bench(build, tmp_path, *words)
    assert [(row["source"], row["clang"]) for row in rows] == [
        (source, clang)
        for source in ("start-up", "a.c")
        for clang in ("stock", "plug-in", "+ onnx", "+ aot")
    ]
    for row in rows:
        assert (row["asked"] > 0) == row["clang"].startswith("+")
        assert min(row["ms"], row["cpu_ms"]) > 0
        # clang needs more memory than this, and run-client needs less.
        assert row["rss_mib"] > 20
        assert row["rounds"] == 2
    stock, plugin, onnx, aot = (row["disk_mib"] for row in rows[:4])
    assert stock == 0 < plugin < aot < onnx
    assert "stock clang" in output


def test_embeddings(build: Path, tmp_path: Path) -> None:
    if not (build / "ir2vec-bench").exists():
        pytest.skip("ir2vec-bench is not built")
    module, vocabulary = tmp_path / "a.bc", tmp_path / "small.json"
    toolchain.run([CLANG, "-O0", "-emit-llvm", "-c", PROGRAM, "-o", module])
    vocabulary.write_text('{"Opcodes":{"Add":[1,2]},"Types":{},"Arguments":{}}')
    words = ("--vocabulary", vocabulary, "--rounds", "3", "--build", build)
    output, rows = measured(tmp_path, "ir2vec", module, *words)
    whole = [row for row in rows if "what" in row]
    assert len(whole) == 6
    assert all(0 < row["best_ms"] <= row["ms"] <= row["worst_ms"] for row in whole)
    passes = [row for row in rows if "pass" in row]
    assert max(row["changed"] for row in passes) > 0
    assert all(row["counted"] <= row["functions"] for row in passes)
    assert "small.json has 2 dimensions" in output
    with pytest.raises(CompilerFailed, match="expected top-level entity"):
        run_bench("ir2vec", PROGRAM, *words)


@pytest.mark.parametrize(
    ("command", "client"),
    [
        ("threads", "threads-client"),
        ("overhead", "run-client"),
        ("ir2vec", "ir2vec-bench"),
    ],
)
def test_a_missing_build_says_how_to_get_it(
    command: str, client: str, tmp_path: Path
) -> None:
    with pytest.raises(OSFailure, match=f"no {client} in .*make build"):
        run_bench(command, "--build", tmp_path)


def test_medians() -> None:
    """Tests the statistics of made-up times."""
    cell = Cell([Round(100, 1, 2, 5), Round(300, 1, 3, 6), Round(200, 1, 8, 9)])
    assert cell.rate == 200
    assert cell.cpu == pytest.approx(0.02)
    assert cell.memory_mib == 6
    cells = {("aot", 2, side): cell for side in threads.SIDES}
    assert cell.cores == 3
    assert not threads.is_busy({("aot", 1, "threads"): cell})
    idle = Cell([Round(100, 1, 0.1)])
    assert threads.is_busy({("aot", 1, "threads"): cell, ("aot", 1, "processes"): idle})
    (row,) = threads.rows("decisions", cells)
    assert row["threads"] == row["processes"]
    assert row["threads"]["cpu_us"] == pytest.approx(20_000)
    assert overhead.added([1, 5, 3], [1, 1, 1]) == 2


def test_programs_are_found_in_their_trees(tmp_path: Path) -> None:
    for name in ("bzip2", "zlib"):
        changelog = tmp_path / name / "debian" / "changelog"
        changelog.parent.mkdir(parents=True)
        changelog.write_text(f"{name} (1.0.8-5) unstable")
    for name, size in (("bzip2", 3), ("blocksort", 9), ("spewG", 1)):
        (tmp_path / "bzip2" / f"{name}.c").write_text("x" * size)
    (tmp_path / "zlib" / "inflate.c").touch()
    found = source_program("bzip2", tmp_path).largest_first
    assert [path.stem for path in found] == ["blocksort", "bzip2"]
    assert source_program("zlib", tmp_path).flags[-1] == f"-I{tmp_path}/zlib"
