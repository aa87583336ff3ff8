# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mlbridge-polyhedral, which tiles loop nests with stock isl, and its policies."""

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlbridge
import test_docs
from programs import (
    BUILD,
    FULL,
    IS_FULL,
    PATIENCE,
    ROOT,
    raising,
    run_program,
    shell_script,
    until,
)

TOOL = BUILD / "compilers/polyhedral/mlbridge-polyhedral"
KERNELS = ROOT / "optimizations/polyhedral_tiling/kernels"
FEATURES = 29
WARNING = "mlbridge-polyhedral: warning: "

pytestmark = pytest.mark.skipif(
    not TOOL.exists(), reason="mlbridge-polyhedral is not built: needs libisl-dev"
)

NAMES = sorted(path.stem for path in KERNELS.glob("*.json"))
SMALL = {"T": 4, "N": 19}
"""Values of the parameters. They are so small that a kernel runs for microseconds."""
QUICK = ("matmul", "jacobi_2d", "cholesky", "trisolv_many", "fdtd_2d")


def tool(
    kernel: str | Path, *options: str | Path, status: int = 0
) -> subprocess.CompletedProcess[str]:
    """Runs the tool on a kernel with small parameters."""
    path = kernel if isinstance(kernel, Path) else KERNELS / f"{kernel}.json"
    names = json.loads(path.read_text()).get("parameters", {}) if path.exists() else {}
    given = [f"-p{name}={SMALL[name]}" for name in names if name in SMALL]
    done = run_program([TOOL, path, *given, *options], timeout=500)
    assert done.returncode == status, done.stderr
    return done


def candidates_of(kernel: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(tool(kernel, "--list").stdout)[
        "candidates"
    ]
    return found


def random_choice(draw: random.Random, schedule: int, depth: int) -> str:
    """Returns a random choice, which may be missing from the tool's menu."""
    sizes = [draw.choice([0, 1, 2, 3, 5, 8, 16]) for _ in range(depth)]
    order = draw.sample(range(depth), depth)
    text = ":".join(",".join(map(str, numbers)) for numbers in (sizes, order))
    return f"{schedule}:{text}"


def verify_random_choices(kernel: str, count: int, seed: int) -> None:
    draw = random.Random(seed)
    found = candidates_of(kernel)
    depths = {
        int(one["choice"][0]): one["choice"].count(",") // 2 + 1 for one in found[1:]
    }
    options = []
    for _ in range(count):
        schedule = draw.choice(sorted(depths))
        options.append(f"--choice={random_choice(draw, schedule, depths[schedule])}")
    lines = tool(kernel, "--verify", *options).stdout.splitlines()
    assert len(lines) == count
    assert all(line.endswith("same results") for line in lines), lines


@pytest.mark.parametrize("kernel", QUICK)
def test_random_choices(kernel: str) -> None:
    verify_random_choices(kernel, 3, seed=len(kernel))


@FULL
@pytest.mark.parametrize("kernel", NAMES)
def test_more_random_choices(kernel: str) -> None:
    """Tests 1,023 random decisions in total."""
    verify_random_choices(kernel, 33, seed=0)


def test_random_policies(tmp_path: Path) -> None:
    """Each policy decides about one kernel."""
    draw = random.Random(0)
    place = f"shm:{tmp_path / 'm'}"
    seen: list[int] = []

    def policy(features: mlbridge.Features) -> np.int32:
        rows, described = features["candidates"], features["candidate_features"]
        assert described.shape == (len(rows), FEATURES)
        assert np.isfinite(described).all()
        seen.append(draw.randrange(len(rows)))
        return np.int32(seen[-1])

    count = 200 if IS_FULL else 6
    with mlbridge.serving(policy, place, on_error="raise"):
        for number in range(count):
            kernel = draw.choice(NAMES) if IS_FULL else QUICK[number % len(QUICK)]
            done = tool(kernel, "--model", place, "--verify")
            assert done.stdout.endswith("same results\n")
            assert done.stderr == ""
    assert len(seen) == count
    assert len(set(seen)) > 3


def test_other_results_are_found(tmp_path: Path) -> None:
    """The verification fails for a compiler that breaks the tiled function."""
    call = "mlbridge_variant_1(A, B, C);"
    script = f'sed -i \'s/{call}/{call} C[0][0] += 1e-9;/\' "$3"\n/usr/bin/gcc "$@"'
    shell_script(tmp_path / "gcc", script)
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    options = ["-pN=19", "--choice=2:4,4,4", "--verify"]
    done = run_program([TOOL, KERNELS / "matmul.json", *options], env=path)
    assert done.returncode == 1
    assert done.stdout == "matmul 2:4,4,4:0,1,2: other results\n"


def constant(value: Any) -> Callable[[mlbridge.Features], Any]:
    return lambda features: value


def slow(features: mlbridge.Features) -> np.int32:
    time.sleep(1)
    return np.int32(1)


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (constant(np.int32(9999)), "expected the index of one of 36 candidates"),
        (constant(np.int32(-1)), "found -1"),
        (constant(np.int64(2**40)), "1099511627776"),
        (constant(np.float32(0.5)), "0.5"),
        (constant(np.float32(np.nan)), "nan"),
        (constant(np.ones(3, np.int32)), "3"),
        (constant("text"), "found a str"),
        (raising(lambda features: ValueError("no")), "no"),
        (slow, "Timeout"),
    ],
)
def test_a_model_that_fails(
    tmp_path: Path, policy: Callable[[mlbridge.Features], Any], says: str
) -> None:
    place = f"shm:{tmp_path / 'm'}"
    with mlbridge.serving(policy, place):
        done = tool("matmul", "--model", f"{place}?timeout=300ms")
    assert done.stdout == tool("matmul").stdout
    assert done.stderr.count(WARNING) == 1
    assert done.stderr.endswith("; the original order is kept\n")
    assert says in done.stderr


@pytest.mark.parametrize(
    ("spec", "is_failure"),
    [
        ("shm:{}/gone?connect=50ms", True),
        ("pipe:{}/gone?connect=50ms", True),
        ("onnx:{}/gone.onnx", True),
        ("nonsense:x", True),
        ("none", False),
    ],
)
def test_no_model(tmp_path: Path, spec: str, is_failure: bool) -> None:
    done = tool("matmul", "--model", spec.format(tmp_path))
    assert done.stdout == tool("matmul").stdout
    assert done.stderr.count(WARNING) == is_failure


def test_a_model_that_dies(tmp_path: Path) -> None:
    """The server's process ends while the tool waits."""
    name = tmp_path / "m"
    program = (
        "import os, sys, mlbridge\n"
        "mlbridge.serve(lambda features: os._exit(3), f'shm:{sys.argv[1]}')\n"
    )
    server = subprocess.Popen([ROOT / ".venv/bin/python", "-c", program, str(name)])
    try:
        done = tool("matmul", "--model", f"shm:{name}?connect=20s&timeout=20s")
        assert server.wait(20) == 3
    finally:
        server.kill()
        server.wait()
    assert done.stdout == tool("matmul").stdout
    assert done.stderr.count(WARNING) == 1
    assert "PeerClosed" in done.stderr


def test_candidates() -> None:
    found = candidates_of("matmul")
    choices = [one["choice"] for one in found]
    assert choices[0] == "0"
    assert len(choices) == len(set(choices)) == 36
    assert {len(one["features"]) for one in found} == {FEATURES}
    # The innermost loop of i, k, j reads and writes rows, so it is vectorized.
    by_choice = {one["choice"]: one["features"] for one in found}
    vectorizable = 11
    assert by_choice["2:0,0,0:0,2,1"][vectorizable] == pytest.approx(1)
    assert by_choice["2:0,0,0:0,1,2"][vectorizable] < 0.1


def test_code_is_portable(tmp_path: Path) -> None:
    """The C function compiles without warnings, also by another compiler."""
    path = tmp_path / "k.c"
    for kernel, choice in (("matmul", "1:8,8,8:0,2,1"), ("seidel_2d", "1:4,4,4")):
        tool(kernel, "--choice", choice, "--output", path)
        for compiler in ("gcc", "clang-22"):
            flags = ["-std=c11", "-Wall", "-Werror", "-c", "-o"]
            run_program([compiler, *flags, tmp_path / "k.o", path], check=True)


def test_run_prints_times() -> None:
    done = tool("mvt", "--choice", "1:8,8", "--run", "--rounds", "3")
    first, second = done.stdout.splitlines()
    pattern = r"mvt {}: same results, \S+ ms, \S+ of the original order.s time"
    assert re.fullmatch(pattern.format("0"), first)
    assert re.fullmatch(pattern.format("1:8,8:0,1"), second)


def test_measure() -> None:
    found = json.loads(tool("transpose", "--measure", "--rounds", "2").stdout)
    assert all(one["same"] and one["nanoseconds"] for one in found["candidates"])
    assert len(found["again"]) == 2


GOOD: dict[str, Any] = {
    "name": "k",
    "parameters": {"N": 8},
    "arrays": {"A": ["N", "N"], "x": ["N"]},
    "statements": [
        {
            "domain": "S[i, j] : 0 <= i, j < N",
            "schedule": "[i, j]",
            "body": "x[i] += A[i][j]",
        }
    ],
}


LONGER = {
    "domain": "T[i, j] : 0 <= i, j < N",
    "schedule": "[i, j, 1]",
    "body": "x[i] = 1",
}


def changed(**about: Any) -> dict[str, Any]:
    """Returns the valid kernel with changed members, which may be in its statement."""
    statement = {**GOOD["statements"][0]}
    kernel = {**GOOD, "statements": [statement]}
    for name, value in about.items():
        (statement if name in statement else kernel)[name] = value
    return kernel


@pytest.mark.parametrize(
    ("kernel", "says"),
    [
        ("{", "expected a JSON object"),
        ("[]", "expected a JSON object"),
        (changed(name="a b"), "expected a name for a kernel"),
        (changed(name=3), 'expected "name", a string'),
        (changed(parameters={"N": "x"}), "parameter 'N': expected an integer"),
        (changed(parameters={}), "unknown parameter 'N'"),
        (changed(arrays={"A": 3}), "expected a list of extents"),
        (changed(arrays={"A": []}), "expected an extent"),
        (changed(arrays={"A": [-1]}), "the extent -1"),
        (changed(arrays={"A": [2**40]}), "the extent 1099511627776"),
        (changed(arrays={"c0": [1]}), "expected a name for an array"),
        (changed(arrays={"int": [1]}), "expected a name for an array"),
        (changed(name="NULL"), "expected a name for a kernel"),
        (changed(domain="max[i, j] : 0 <= i, j < N"), "the statement of a domain"),
        (changed(statements=[]), "expected a statement"),
        (changed(statements=[3]), "expected each statement to be an object"),
        (changed(statements=GOOD["statements"] * 2), "two statements have the name"),
        (changed(domain="S[i, j] : 0 <= i < N"), "unbounded"),
        (changed(domain="S[i, j] : 0 <= i, j <= N"), "'x' is out of bounds"),
        (changed(domain="[i, j] : 0 <= i, j < N"), "the statement of a domain"),
        (changed(domain="S[i, 0] : 0 <= i < N"), "each iterator"),
        (changed(domain="S[i, j : 0 <= i, j < N"), "k.json: "),
        (changed(schedule="[i]"), "two instances at the same time"),
        (changed(schedule="[i, i * j]"), "k.json: "),
        (changed(body="x[i]"), "expected an assignment"),
        (changed(body="x[i] = y"), "unknown name 'y'"),
        (changed(body="x[i] = system(1)"), "unknown name 'system'"),
        (changed(body="x[i] = (x[i] = 1)"), "expected ')', found '='"),
        (changed(body="x[i] = 1; x[0] = 2"), "unexpected character ';'"),
        (changed(body="x[i] = 1 } while (0); {"), "unexpected character"),
        (changed(body="x[i] = 1)"), "unexpected ')'"),
        (changed(body="x[i] = (1"), "expected ')'"),
        (changed(body="x[i] = 1 +"), "expected an operand at the end"),
        (changed(body="x[i] = 1 * / 2"), "expected an operand, found '/'"),
        (changed(body="x[i] = ()"), "expected an operand, found ')'"),
        (changed(body="x[i] = 1 2"), "unexpected '2'"),
        (changed(body="x[i] = 1.2.3"), "expected a number, found '1.2.3'"),
        (changed(body="x[i] = i > 1 ? 2"), "expected ':'"),
        (changed(body="x[i] = pow(2)"), "expected ',', found ')'"),
        (changed(body="x[i] = sqrt(2, 3)"), "expected ')', found ','"),
        (changed(body="x[i] = A[i]"), "expected 2 subscripts, found 1"),
        (changed(body="x[i] = A[i][j / 2]"), "unexpected '/' in a subscript"),
        (changed(body="x[i] = A[i][i * j]"), "k.json: "),
        (changed(body="x[i] = A[i][x[j]]"), "in a subscript"),
        (changed(body="x[i] = A[i][j"), "expected ']'"),
        (changed(body="x[i] = " + "(" * 5000 + "1" + ")" * 5000), "too long"),
        (changed(body='x[i] = "a"'), "unexpected character"),
        # C reads 010 as 8, but isl reads it as 10.
        (changed(body="x[i] = A[i][00]"), "unexpected 0 at the start of '00'"),
        # isl orders times of different spaces arbitrarily.
        (changed(statements=[*GOOD["statements"], LONGER]), "a schedule of 2 numbers"),
        (changed(schedule="P[i, j]"), "expected a schedule without a name"),
        (
            changed(domain=f"S[i, j] : 0 <= i < N and j = {10**15}", body="x[i] = 1"),
            "iterators and times up to 2^48",
        ),
        # Names that the C code has.
        (changed(domain="S[i_, j] : 0 <= i_, j < N"), "each iterator, found 'i_'"),
        (changed(name="S"), "the kernel and a statement have the name 'S'"),
        (changed(arrays={"printf": [1]}), "expected a name for an array"),
        (changed(arrays={"expected_A": [1]}), "expected a name for an array"),
        (changed(domain="sqrt[i, j] : 0 <= i, j < N"), "the statement of a domain"),
        ('{"name": "k", "arrays": {"x": [8], "x": [4]}}', "two arrays have the name"),
    ],
)
def test_wrong_kernels(tmp_path: Path, kernel: Any, says: str) -> None:
    path = tmp_path / "k.json"
    path.write_text(kernel if isinstance(kernel, str) else json.dumps(kernel))
    done = run_program([TOOL, path])
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"mlbridge-polyhedral: {path}: ")
    assert says in done.stderr


def test_operators(tmp_path: Path) -> None:
    """gcc compiles the bodies that the tool accepts."""
    kernel = tmp_path / "k.json"
    body = "x[i] -= -(i > 2 && !(j == 3) ? +A[i][j] : j % 3 ? pow(i, 2) : .5e-3f) / 2"
    kernel.write_text(json.dumps(changed(body=body)))
    assert tool(kernel, "--verify").stdout.endswith("same results\n")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--choice", "3"], "expected a schedule from 0 to 2"),
        (["--choice", "1:8"], "expected 3 sizes"),
        (["--choice", "1:8,8,8:0,1,1"], "a permutation"),
        (["--choice", "1:8,8,-8"], "expected sizes from 0"),
        (["--choice", "1:8,8,:0"], "expected numbers and commas"),
        (["--choice", "1:1:1:1"], "SCHEDULE:SIZES:ORDER"),
        (["--choice", "1", "--choice", "2"], "need --verify or --run"),
        (["--parameter", "N"], "expected NAME=VALUE"),
        (["--parameter", "N=x"], "expected an integer"),
        (["--parameter", "M=3"], "has no parameter 'M'"),
        (["--parameter", "N=-3"], "the extent -3"),
        (["--rounds", "0"], "expected a number from 1 to 1000"),
        (["--output", "/nowhere/x"], "cannot write"),
        (["other.json"], "expected one kernel"),
        (["--nonsense"], "see --help"),
        (["--model", "none", "--choice", "1"], "found both"),
    ],
)
def test_wrong_options(options: list[str], says: str) -> None:
    done = run_program([TOOL, KERNELS / "matmul.json", *options])
    assert done.returncode == 1
    assert says in done.stderr


def test_a_limit_on_files(tmp_path: Path) -> None:
    command = 'ulimit -f 0; exec "$@"'
    out: list[str | Path] = ["--output", tmp_path / "out.c"]
    done = run_program(["bash", "-c", command, "_", TOOL, KERNELS / "lu.json", *out])
    assert done.returncode == 1
    assert "cannot write the result" in done.stderr


@pytest.mark.parametrize("special", [True, False])
def test_a_kernel_without_end(tmp_path: Path, special: bool) -> None:
    path = Path("/dev/zero") if special else tmp_path / "fifo"
    if not special:
        os.mkfifo(path)
    done = run_program([TOOL, path], timeout=20)
    assert done.returncode == 1
    assert f"{path}: expected a regular file" in done.stderr


def test_a_failure_leaves_the_output(tmp_path: Path) -> None:
    """The tool does not make or change its output before the result is known."""
    kernel, old, new = (tmp_path / name for name in ("k.json", "old.c", "new.c"))
    kernel.write_text(json.dumps(changed(body="x[i] = y")))
    old.write_text("old")
    for path in (old, new):
        tool(kernel, "--output", path, status=1)
    assert old.read_text() == "old"
    assert not new.exists()
    kernel.write_text(json.dumps(GOOD))
    tool(kernel, "--output", kernel)
    assert "void k(" in kernel.read_text()


def test_large_iterators(tmp_path: Path) -> None:
    """The type of the loops contains all iterators."""
    kernel = tmp_path / "k.json"
    for extent, kind in ((2**20, "int"), (3 * 10**9, "long")):
        domain = f"S[i, j] : 0 <= i < N and 0 <= j < {extent}"
        kernel.write_text(json.dumps(changed(domain=domain, body="x[i] += j")))
        for choice in ("0", "1"):
            text = tool(kernel, "--choice", choice).stdout
            assert text.count("for (") == text.count(f"for ({kind} ") > 1


def processes_with(text: str) -> list[str]:
    """Returns the commands of processes that contain a text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(
                path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
    return [command for command in found if text in command]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    """The program that the tool runs ends with the tool."""
    running = subprocess.Popen(
        [TOOL, KERNELS / "floyd_warshall.json", "-pN=3000", "--choice=1", "--verify"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        folder = f"{tmp_path}/"
        until(lambda: any(c.startswith(folder) for c in processes_with(folder)))
        running.send_signal(number)
        _, said = running.communicate(timeout=PATIENCE)
    finally:
        running.kill()
        running.wait()
    until(lambda: not processes_with(f"{tmp_path}/"))
    if number != signal.SIGKILL:
        assert running.returncode == 1
        assert f"ended by signal {number.value}" in said
        assert not [*tmp_path.iterdir()]


def test_a_missing_program() -> None:
    """Neither `timeout` nor gcc is there."""
    env = {**os.environ, "PATH": "/nowhere"}
    done = run_program([TOOL, KERNELS / "mvt.json", "-pN=9", "--verify"], env=env)
    assert done.returncode == 1
    assert "gcc: cannot be started; expected it and `timeout` in PATH" in done.stderr


def test_a_full_disk(tmp_path: Path) -> None:
    """The program cannot write its times."""
    script = 'shift 2\ncase "$1" in */kernel) exec "$@" > /dev/full;; esac\nexec "$@"'
    shell_script(tmp_path / "timeout", script)
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    options = ["-pN=19", "--choice=1", "--run"]
    done = run_program([TOOL, KERNELS / "matmul.json", *options], env=path)
    assert done.returncode == 1
    assert "kernel: failed with status 1" in done.stderr


def test_a_missing_kernel(tmp_path: Path) -> None:
    done = run_program([TOOL, tmp_path / "none.json"])
    assert done.returncode == 1
    assert "none.json" in done.stderr


def test_a_time_limit() -> None:
    done = run_program(
        [TOOL, KERNELS / "matmul.json", "-pN=3000", "--verify", "--seconds=1"]
    )
    assert done.returncode == 1
    assert "took more than 1 s; use --seconds" in done.stderr


def test_a_time_limit_of_isl(tmp_path: Path) -> None:
    """isl would need minutes to schedule so many statements."""
    statements = [
        {
            "domain": f"S{n}[t, i] : 0 <= t < N and 1 <= i < 199",
            "schedule": f"[t, {n}, i]",
            "body": "x[i] = x[i - 1] + x[i + 1]",
        }
        for n in range(60)
    ]
    kernel = tmp_path / "k.json"
    kernel.write_text(json.dumps(changed(arrays={"x": [200]}, statements=statements)))
    done = run_program([TOOL, kernel, "--seconds=1"])
    assert done.returncode == 1
    assert f"{kernel}: isl took more than 1 s of CPU time; use --sec" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("kernel", ["matmul", "lu"])
def test_the_trained_model(kernel: str) -> None:
    """The model in models/polyhedral decides in the stock tool."""
    pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")
    spec = f"onnx:{ROOT / 'models/polyhedral/tiling.onnx'}"
    path = KERNELS / f"{kernel}.json"
    done = run_program([TOOL, path, "--model", spec], check=True)
    assert done.stderr == ""
    assert ", choice 0." not in done.stdout


@FULL
def test_the_compiled_model(tmp_path: Path) -> None:
    """Compiled to machine code, the model makes the same choices."""
    compile_model = pytest.importorskip("mlbridge.aot").compile_model
    model, library = ROOT / "models/polyhedral/tiling.onnx", tmp_path / "libtiling.so"
    compile_model(model, library)
    for kernel in NAMES:
        path = KERNELS / f"{kernel}.json"
        specs = [f"onnx:{model}", f"aot:{library}"]
        onnx, aot = (run_program([TOOL, path, "-m", one], check=True) for one in specs)
        assert onnx.stderr == aot.stderr == ""
        assert onnx.stdout == aot.stdout, kernel


def test_lines_that_speak_to_the_bridge() -> None:
    """The integration stays small, and uses the C API only."""
    folder = ROOT / "compilers/polyhedral"
    lines = [
        line
        for path in folder.glob("*.cpp")
        for line in path.read_text().splitlines()
        if re.search(r"mlbridge[A-Z]|MLBridge(Status|ModelRunner|FeatureSet)", line)
    ]
    assert 10 < len(lines) <= 25
    included = re.findall(
        r'#include "(MLC[^"]*)"', "".join(p.read_text() for p in folder.glob("*.[ch]*"))
    )
    assert set(included) == {"MLCompilerBridge-C/MLCompilerBridge.h"}


def test_readme(tmp_path: Path) -> None:
    test_docs.test_code("compilers/polyhedral/README.md", tmp_path)
