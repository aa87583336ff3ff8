# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of the report: what is measured, by which commands, and what is shown."""

from mlbridge_benchmarks.common.savedmodel import TF, TF_AOT

from .schema import MLBRIDGE, Column, OptionalRow, Part, Step, View

COUNT_LINES = "scripts/count-integration-lines"


def bench(name: str, *options: str) -> tuple[str, ...]:
    """Returns a command of ``mlbridge bench`` that writes its rows."""
    return (MLBRIDGE, "bench", name, *options, "--json", "{json}")


FLOW = Column("flow", "flow", is_text=True)
CORPUS = Step("corpus", (MLBRIDGE, "corpus", "fetch"), ("--program", "bzip2"))
FUNCTIONS = Step(
    "functions",
    (
        *(MLBRIDGE, "search", "register-allocation-functions"),
        *("--functions", "{folder}/functions"),
    ),
    ("--program", "bzip2"),
)
_RTT_QUICK = ("--sweeps", "1", "--lengths", "500,5000,50000", "--runner", "pipe")


def _trips(step: str) -> tuple[View, ...]:
    columns = (
        Column("runner", "runner", is_text=True),
        Column("SerDes", "serdes", is_text=True),
        Column("model", "python", is_text=True),
        Column("ms per sweep", "sweep_ms"),
        Column("/ floor", "ratio"),
        Column("p99", "sweep_p99_ms"),
        *(Column(f"µs at {n}", f"us.{n}") for n in (500, 5000, 50000)),
    )
    return tuple(
        View((step,), caption, columns, {"placement": placement})
        for placement, caption in (
            ("two-cores", "compiler and model on two cores"),
            ("one-core", "compiler and model on one core"),
        )
    )


_INSIDE = View(
    ("rtt",),
    "models in the compiler's process",
    (
        Column("runner", "runner", is_text=True),
        Column("model", "model", is_text=True),
        Column("floats", "floats", is_text=True),
        Column("direct call, µs", "floor_us"),
        Column("runner, µs", "us"),
        Column("/ direct call", "ratio"),
    ),
    having="floor_us",
)

_TRAININGS = tuple(
    Step(
        f"allocation-training-{spec}-{workers}",
        (
            *(MLBRIDGE, "train", "register-allocation", "--form", "dialogue"),
            *("--engine", "rllib", "--gamma", "0.999", "--max-ranges", "200"),
            *("--functions", "{folder}/functions", "--out", "{out}"),
            *("--spec", spec, "--workers", str(workers)),
            *("--steps", "4000", "--rollout", "1000"),
        ),
        ("--steps", "200", "--rollout", "100"),
        {"flow": spec, "workers": workers},
    )
    for workers in (1, 2)
    for spec in ("grpc", "pipe", "shm")
)

_COMPILES = (
    FLOW,
    Column("s", "seconds"),
    Column("CPU s", "cpu_seconds"),
    Column("times as fast", "faster.total"),
    Column("geomean", "faster.geomean"),
    Column("by CPU time", "faster.total_cpu"),
    Column("/ clang -Oz", "of_clang.total"),
    Column("start, s", "start_seconds"),
    Column("CPU / with a server", "of_served.cpu"),
    Column("95 %: from", "of_served.low"),
    Column("to", "of_served.high"),
)

_TF_AOT = (
    "The model as TensorFlow's machine code (tf-aot) was not measured, because "
    "TensorFlow 2.15 was not installed: run `VENV=build/venvs/tf-aot scripts/make-venv "
    "tf-aot`, then measure this part again with --again."
)
_TF = (
    "The model in TensorFlow's library (tf) was not measured, because TensorFlow was "
    "not installed when the bridge was built: run `VENV=build/venvs/keras "
    "scripts/make-venv keras`, then make a new build/release, and measure this part "
    "again with --again."
)

PARTS: tuple[Part, ...] = (
    Part(
        "compile-time",
        "Table 2",
        "Phase ordering: time of whole compiles",
        "The same modules are compiled by POSET-RL's original flow, which starts a "
        "process for each action, and by clang with the plug-in and each runner. "
        "“times as fast” is relative to the original flow. “CPU / with a server” is "
        "the CPU time relative to the best flow whose model is in another process.",
        (
            CORPUS,
            Step(
                "compile-time",
                (*bench("compile-time"), "--plot", "{plot}"),
                ("--modules", "1", "--rounds", "1"),
            ),
        ),
        (View(("compile-time",), "bitcode to object by a policy", _COMPILES),),
        (OptionalRow("flow", TF_AOT, _TF_AOT),),
    ),
    Part(
        "register-allocation",
        "Table 3",
        "Register allocation: models behind gRPC and in the compiler",
        "Four agents allocate registers step by step. “times as fast” is relative to "
        "PyTorch behind gRPC with the same number of parallel compilers.",
        (
            Step(
                "register-allocation",
                bench("register-allocation"),
                ("--rounds", "1", "--jobs", "1"),
            ),
        ),
        (
            View(
                ("register-allocation",),
                "clang -O2 with each flow",
                (
                    FLOW,
                    Column("parallel compilers", "jobs"),
                    Column("compile, s", "seconds"),
                    Column("times as fast", "faster"),
                    Column("allocation, s", "allocation"),
                    Column("allocation: times as fast", "faster_allocation"),
                    Column("decisions", "requests"),
                ),
            ),
        ),
    ),
    Part(
        "loop-distribution",
        "Text",
        "Loop distribution: time of whole compiles",
        "The original flow, “wrapper”, starts a Python process for each module.",
        (
            Step(
                "loop-distribution",
                bench("loop-distribution"),
                ("--modules", "1", "--rounds", "1"),
            ),
        ),
        (
            View(
                ("loop-distribution",),
                "one kernel in each file",
                (
                    FLOW,
                    Column("ms per compile", "milliseconds"),
                    Column("times as fast", "faster"),
                    Column("/ clang -O3", "of_clang"),
                    Column("server's start, s", "start_seconds"),
                ),
            ),
        ),
    ),
    Part(
        "integration-lines",
        "Table 4",
        "Lines of code of each integration",
        "Counted are lines of C and C++ without comments. Our integrations were "
        "written for the bridge, so there is no version without it.",
        (Step("integration-lines", (COUNT_LINES, "--json", "{json}")),),
        (
            View(
                ("integration-lines",),
                "lines of each integration",
                (
                    Column("integration", "integration", is_text=True),
                    Column("API", "api", is_text=True),
                    Column("lines that use the bridge", "bridge"),
                    Column("all lines", "all"),
                ),
            ),
        ),
    ),
    Part(
        "overhead",
        "Table 5",
        "What the plug-in adds to clang: size, time and memory",
        "Each “+” is the median difference from stock clang in the same round. clang "
        "itself is not built, so its own build time is not measured.",
        (Step("overhead", bench("overhead"), ("--rounds", "1")),),
        (
            View(
                ("overhead",),
                "clang -Oz",
                (
                    Column("clang", "clang", is_text=True),
                    Column("source", "source", is_text=True),
                    Column("decisions", "asked"),
                    Column("MiB on disk", "disk_mib"),
                    Column("ms", "ms"),
                    Column("+", "added_ms"),
                    Column("CPU ms", "cpu_ms"),
                    Column("+", "added_cpu_ms"),
                    Column("RSS, MiB", "rss_mib"),
                    Column("+", "added_rss_mib"),
                ),
            ),
        ),
        (
            OptionalRow("clang", f"+ {TF_AOT}", _TF_AOT),
            OptionalRow("clang", f"+ {TF}", _TF),
        ),
    ),
    Part(
        "runners",
        "Table 6",
        "The runners and their characteristics",
        "Measured values come from Figure 5c and Table 5 of this report.",
    ),
    Part(
        "training",
        "Figure 5a",
        "Phase ordering: speed of training",
        "The original flow starts three processes for each step. Our flow makes all "
        "steps in one opt with the plug-in.",
        (
            CORPUS,
            Step(
                "training",
                (*bench("training"), "--plot", "{plot}"),
                (
                    *("--modules", "1", "--episodes", "1", "--rounds", "1"),
                    *("--iterations", "0", "--steps", "3"),
                ),
            ),
        ),
        (
            View(
                ("training",),
                "steps of random episodes, without a learner",
                (
                    FLOW,
                    Column("workers", "workers"),
                    Column("steps/s", "steps_per_second"),
                    Column("times as fast", "faster_than_original"),
                    Column("/ one worker", "faster_than_one_worker"),
                    Column("CPU ms per step", "cpu_ms_per_step"),
                ),
            ),
        ),
    ),
    Part(
        "allocation-training",
        "Figure 5b",
        "Register allocation: time of training",
        "PPO of RLlib trains four networks. The time includes the start of RLlib.",
        (CORPUS, FUNCTIONS, *_TRAININGS),
        (
            View(
                tuple(step.name for step in _TRAININGS),
                "4,000 actions or more",
                (FLOW, Column("workers", "workers"), Column("s", "seconds")),
            ),
        ),
    ),
    Part(
        "rtt",
        "Figure 5c",
        "Round trips between LLVM's side and a model",
        "A sweep has one round trip for each N of 500, 1000, ... 50,000 float32s.",
        (
            Step(
                "rtt",
                (*bench("rtt"), "--plot", "{plot}"),
                (*_RTT_QUICK, "--placement", "one-core"),
            ),
        ),
        (*_trips("rtt"), _INSIDE),
        (OptionalRow("runner", TF_AOT, _TF_AOT), OptionalRow("runner", TF, _TF)),
    ),
    Part(
        "mlir",
        "Figure 5d",
        "Round trips between a pass of MLIR and a model",
        "As Figure 5c, but the compiler is the stock mlir-opt with a pass.",
        (
            Step(
                "mlir",
                (*bench("rtt", "--mlir"), "--plot", "{plot}"),
                (*_RTT_QUICK, "--placement", "one-core"),
            ),
        ),
        _trips("mlir"),
    ),
    Part(
        "pluto",
        "Figure 5e",
        "Round trips between Pluto and a model",
        "Pluto uses the C API, whose requests Figure 5c measures through C++.",
        not_done="Debian has no package of Pluto, so mlbridge bench rtt has no "
        "client of Pluto. compilers/polyhedral/Pluto.cpp is built where CMake finds "
        "libpluto.",
    ),
    Part(
        "gym",
        "Figure 6",
        "A policy in a Gymnasium loop and inside the compiler",
        "All flows take the same actions, each of which is one pass. “times as fast” "
        "is relative to the Gymnasium loop with a compiler for each module.",
        (
            CORPUS,
            Step(
                "gym",
                (*bench("gym"), "--plot", "{plot}"),
                ("--modules", "1", "--rounds", "1", "--steps", "4"),
            ),
        ),
        (View(("gym",), "bitcode to object by a policy", _COMPILES),),
    ),
)

NAMES = tuple(part.name for part in PARTS)
