# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line, in this process or, for signals and exit codes, in a new one."""

import csv
import importlib.metadata
import io
import json
import os
import re
import signal
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import mlbridge
from aot_models import FLOAT, GraphBuilder
from mlbridge import built as built_files
from mlbridge import create_model_runner, doctor
from mlbridge.cli import _others, app
from programs import CLI, Started, reply_of, run_cli, run_program, run_python
from training_logs import context, header, outcome, write_log

POLICY = """
def decide(features):
    return features["x"] * 2

def fail(features):
    raise ValueError("no weights")

class Nested:
    constant = staticmethod(lambda features: 5)

number = 3
"""


@pytest.fixture
def policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Writes a module of policies to the current folder. Returns its name."""
    module = f"policy_{tmp_path.name}"
    (tmp_path / f"{module}.py").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return module


def errors_of(*arguments: str | Path, status: int = 1, cwd: Path | None = None) -> str:
    """Returns the errors of the command, which must fail without a traceback."""
    result = run_python(CLI, *arguments, cwd=cwd)
    assert result.returncode == status
    assert "Traceback" not in result.stderr
    return result.stderr


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("no_such_module:app", "No module named 'no_such_module'"),
        ("builtins:list", "expected a typer.Typer, found a type"),
    ],
)
def test_a_broken_command_of_another_distribution(
    monkeypatch: pytest.MonkeyPatch, value: str, problem: str
) -> None:
    point = importlib.metadata.EntryPoint("broken", value, _others.GROUP)
    monkeypatch.setattr(_others, "entry_points", lambda group: [point])
    commands = typer.Typer()
    _others.add_commands(commands)
    for name, why in (("broken", problem), ("train", "is not installed")):
        result = CliRunner().invoke(commands, [name, "--any", "option"])
        assert isinstance(result.exception, mlbridge.Unsupported)
        assert re.search(why, str(result.exception))


def test_commands_of_other_distributions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "exiting.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(tmp_path)
    other, vocabulary = "mlbridge.cli._log:app", "mlbridge.cli._vocabulary:app"
    points = [
        importlib.metadata.EntryPoint(name, value, _others.GROUP)
        for name, value in (
            *(("exits", "exiting:app"), ("own", other), ("log", other)),
            *(("twice", vocabulary), ("twice", other)),
        )
    ]
    monkeypatch.setattr(_others, "entry_points", lambda group: points)
    commands = typer.Typer()

    @commands.command()
    def own() -> None:
        print("own")

    commands.add_typer(typer.Typer(), name="log")
    _others.add_commands(commands)
    assert CliRunner().invoke(commands, ["own"]).output == "own\n"
    assert "vocabularies" in CliRunner().invoke(commands, ["twice", "--help"]).output
    result = CliRunner().invoke(commands, ["exits"])
    assert isinstance(result.exception, mlbridge.Unsupported)
    assert "command exits of ?: SystemExit: 3" in str(result.exception)
    assert caplog.messages == [
        f"a second command {name} of ? is left out" for name in ("own", "log", "twice")
    ]


def test_help_teaches() -> None:
    shown = CliRunner().invoke(app, []).output
    assert "mlbridge serve policy:decide --at pipe:/tmp/advisor" in shown
    for command in ("doctor", "serve", "log"):
        assert command in shown
        assert "Usage" in run_cli(command, "--help")
    assert "def decide(features):" in run_cli("serve", "-h")


def test_version_and_wrong_use() -> None:
    assert run_cli("--version") == f"mlbridge {mlbridge.__version__}\n"
    assert "frobnicate" in errors_of("frobnicate", status=2)


def test_python_dash_m() -> None:
    done = run_program([sys.executable, "-m", "mlbridge", "--version"])
    assert done.stdout == f"mlbridge {mlbridge.__version__}\n", done.stderr


def test_doctor() -> None:
    said = run_cli("doctor")
    for word in ("core", "simdjson", "numpy", "pipe:", "clang-22", "pidfd", "KiB"):
        assert word in said
    # Paths are not broken, because a file or a pipe has no width.
    folder = f"{doctor.find_llvm_plugin()}"
    assert re.search(rf" {re.escape(folder)}( |$)", said, re.M)


def test_doctor_shows_how_to_get_what_a_build_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_grpc() -> None:
        raise mlbridge.Unsupported("this build of mlbridge has no gRPC")

    monkeypatch.setattr("mlbridge.grpc.schemes", no_grpc)
    monkeypatch.setattr("mlbridge.inprocess.schemes", list)
    found = {check.name: check for check in doctor.checks()}
    assert "apt-get install libgrpc++-dev" in found["grpc:"].hint
    assert "scripts/fetch-onnxruntime" in found["onnx:"].hint
    said = run_cli("doctor")
    assert re.search(r"absent, but optional: .*onnx:, grpc:", " ".join(said.split()))


class NoLibrary:
    """A SerDes that this build has, but whose library this machine lacks."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def help(self) -> str:
        raise ImportError("libyaml-0.so.2: cannot open shared object file")


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("yaml", "libyaml-dev"),
        ("flatbuffers", "libflatbuffers-dev"),
        ("protobuf", "libprotobuf-dev"),
    ],
)
@pytest.mark.parametrize("built", [True, False])
def test_doctor_prescribes_a_serdes(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str, built: bool
) -> None:
    known = [NoLibrary(name)] if built else []
    monkeypatch.setattr("mlbridge._core.formats", lambda: known)
    (check,) = (c for c in doctor.checks() if c.name == f"serdes={name}")
    assert check.found is None
    assert f"apt-get install {package}" in check.hint
    assert ("libyaml-0.so.2" in check.hint) == built


def test_doctor_finds_modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(built_files, "PREFIXES", ())
    monkeypatch.setattr(built_files, "CHECKOUT", tmp_path)
    touched(tmp_path / "MLBridge-onnx.so")
    monkeypatch.setenv("MLBRIDGE_MODULES", str(tmp_path))
    found = {check.name: check for check in doctor.checks()}
    assert found["MLBridge-onnx.so"].found == str(tmp_path / "MLBridge-onnx.so")
    assert found["MLBridge-tf.so"].found is None
    assert "scripts/make-venv keras" in found["MLBridge-tf.so"].hint


def test_what_doctor_finds() -> None:
    printed = run_cli("doctor")
    for word in ("core", "simdjson", "numpy", "pipe:", "clang-22", "pidfd", "KiB"):
        assert word in printed
    found = {check.name: check for check in doctor.checks()}
    assert found["core"].found is not None
    assert found["core"].found.startswith(mlbridge.__version__)
    assert found["pipe:"].found
    assert "serdes" in found["pipe:"].hint
    assert all(check.hint for check in found.values() if check.found is None)


def test_what_doctor_misses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("MLBRIDGE_LLVM_PLUGIN", str(tmp_path / "nothing.so"))
    lines = {line.split()[0]: line for line in run_cli("doctor").splitlines() if line}
    assert "missing" in lines["LLVM"]
    # The table may print the package on the next line.
    assert "apt-get install" in lines["LLVM"]
    assert "missing" in lines["MLBridgeLLVM.so"]


def touched(path: Path) -> Path:
    """Makes an empty file and its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_where_the_plugin_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "compilers/llvm").mkdir(parents=True)
    installed = touched(tmp_path / "usr/lib/MLBridgeLLVM.so")
    built = touched(checkout / "build/release/lib/MLBridgeLLVM.so")
    monkeypatch.delenv("MLBRIDGE_LLVM_PLUGIN", raising=False)
    monkeypatch.setattr(built_files, "PREFIXES", (str(tmp_path / "usr"),))
    monkeypatch.setattr(built_files, "CHECKOUT", checkout)
    assert doctor.find_llvm_plugin() == built
    # The newest build wins, unless it is sanitized, because stock compilers cannot load
    # a sanitized plug-in.
    sanitized = touched(checkout / "build/asan/lib/MLBridgeLLVM.so")
    os.utime(sanitized, (time.time() + 60,) * 2)
    assert doctor.find_llvm_plugin() == sanitized
    cache = sanitized.parents[1] / "CMakeCache.txt"
    cache.write_text("A:STRING=1\nMLBRIDGE_SANITIZE:STRING=address;undefined\n")
    assert doctor.find_llvm_plugin() == built
    built.unlink()
    assert doctor.find_llvm_plugin() == installed
    monkeypatch.setenv("MLBRIDGE_LLVM_PLUGIN", str(sanitized))
    assert doctor.find_llvm_plugin() == sanitized
    tool = touched(checkout / "build/release/compilers/polyhedral/mlbridge-polyhedral")
    assert built_files.find_built("mlbridge-polyhedral") == tool
    assert built_files.find_built("mlbridge.so") is None


def test_what_doctor_prescribes(monkeypatch: pytest.MonkeyPatch) -> None:
    """`mlbridge` on PyPI is another project, so no hint may name it."""

    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    hints = {check.name: check.hint for check in doctor.checks()}
    assert not any("install mlbridge" in hint for hint in hints.values())
    assert "./optimizations[train]" in hints["mlbridge_optimizations"]
    assert "'.[compile]'" in hints["emx-onnx-cgen"]


def test_doctor_fails_without_what_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = doctor.Check("Python", "numpy", None, "pip install numpy", required=True)
    monkeypatch.setattr("mlbridge.cli._doctor.checks", lambda: [missing])
    assert "missing: numpy" in run_cli("doctor", status=1)


@pytest.mark.parametrize("command", [["log"], ["inspect"], ["compile", "-o", "x.so"]])
def test_a_fifo_is_no_file(command: list[str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    said = errors_of(*command, tmp_path / "fifo", cwd=tmp_path)
    assert "expected a regular file, found a FIFO" in " ".join(said.split())


def test_serve_a_fifo(tmp_path: Path) -> None:
    fifo = tmp_path / "model.onnx"
    os.mkfifo(fifo)
    said = run_cli("serve", fifo, "--at", "pipe:/tmp/never", status=2)
    assert "found a FIFO" in " ".join(said.replace("│", "").split())


def serve_one(
    name: str, policy: str, *options: str, status: int = 0, **environment: str
) -> tuple[Any, str, str]:
    """Sends a request to `mlbridge serve`. Returns the reply or error, and output."""
    command = ["serve", policy, "--at", f"pipe:{name}", *options]
    process = Started(CLI, *command, env={**os.environ, **environment})
    try:
        reply = reply_of(f"pipe:{name}?timeout=20s&connect=20s", {"x": 3}, int)
    except mlbridge.ModelError as error:
        reply = error
    output, errors = process.communicate(timeout=20)
    assert process.returncode == status
    return reply, output, errors


@pytest.mark.parametrize(
    ("function", "expected"), [("decide", 6), ("Nested.constant", 5)]
)
def test_serve(name: str, policies: str, function: str, expected: int) -> None:
    options = (name, f"{policies}:{function}", "--sessions", "1")
    reply, output, errors = serve_one(*options)
    assert reply == expected
    assert f"serving at {name}" in errors.replace("pipe:", "")
    assert "1 request of 1 compiler," in output
    assert "Traceback" not in errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_until_a_signal(name: str, policies: str, number: signal.Signals) -> None:
    process = Started(CLI, "serve", f"{policies}:decide", "--at", f"pipe:{name}")
    with create_model_runner(f"pipe:{name}?timeout=20s&connect=20s") as runner:
        runner.evaluate({"x": 3}, int)
        process.send_signal(number)
        output, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "1 request of 1 compiler" in output
    assert "requests" not in errors
    assert "Traceback" not in errors


def test_serve_a_policy_that_fails(name: str, policies: str) -> None:
    options = (name, f"{policies}:fail", "--sessions", "1")
    error, output, errors = serve_one(*options)
    assert isinstance(error, mlbridge.ModelError)
    assert "no weights" in str(error)
    assert "1 failed" in output
    assert "no weights" in errors


def test_serve_colours_nothing_that_it_logs(name: str, policies: str) -> None:
    """The time for colouring would grow with the messages that a compiler sends."""
    options = (name, f"{policies}:fail", "--sessions", "1")
    _, _, errors = serve_one(*options, FORCE_COLOR="1", COLUMNS="300")
    assert f"session 1 (process {os.getpid()})" in errors
    assert 'raise ValueError("no weights")' in errors


def test_serve_strictly(name: str, policies: str) -> None:
    _, _, errors = serve_one(name, f"{policies}:fail", "--strict", status=1)
    # The author of the policy needs its traceback.
    assert "no weights" in errors


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("{}", "MODULE:FUNCTION"),
        (":decide", "MODULE:FUNCTION"),
        ("{}:nothing", "nothing"),
        ("{}:number", "called"),
        ("nomodule:decide", "nomodule"),
        ("json:decide", "json/__init__.py"),
        ("sys:decide", "(partofPython)"),
    ],
)
def test_serve_what_is_no_policy(policies: str, policy: str, says: str) -> None:
    policy = policy.format(policies)
    said = run_cli("serve", policy, "--at", "pipe:/tmp/never", status=2)
    assert says in "".join(re.sub("[│\\n]", " ", said).split())


def test_serve_errors_in_one_line(name: str, policies: str, tmp_path: Path) -> None:
    for spec, says in (
        ("onnx:x", "onnx:x"),
        (f"pipe:{name}?colour=red", "colour"),
        (f"pipe:{name}/not/there", "not/there"),
    ):
        said = errors_of("serve", f"{policies}:decide", "--at", spec, cwd=tmp_path)
        assert said.startswith("error: ")
        assert says in said
    started = time.monotonic()
    command = ["serve", f"{policies}:decide", "--at", f"pipe:{name}"]
    assert "0.2 s" in errors_of(*command, "--timeout", "0.2", cwd=tmp_path)
    assert time.monotonic() - started < 20


def test_log(tmp_path: Path) -> None:
    path = write_log(tmp_path / "zlib.log", rewards=True)
    said = run_cli("log", path)
    rows = {
        cells[0]: cells[1:]
        for line in said.splitlines()
        if (cells := [cell.strip() for cell in line.strip("│┃").split("│")])
    }
    assert rows["size"] == ["int64[1]", "10", "20", str(0x0A0A0A0A)]
    assert rows["inlining_decision"] == ["int64[1]", "1", "0", "1"]
    assert rows["reward"][:3] == ["float32[1]", "2.5", "5"]
    assert "helper ☃ 0" in said
    shorter = run_cli("log", path, "--head", "1")
    assert "main 0" in shorter
    assert "main 1" not in shorter


def test_log_stats(tmp_path: Path) -> None:
    said = run_cli("log", write_log(tmp_path / "zlib.log"), "--stats")
    assert "3 observations of 2 contexts" in said
    assert "inlining_decision: 1 66.7 %, 0 33.3 %" in said
    assert "weights" in said


def test_log_csv(tmp_path: Path) -> None:
    path = write_log(tmp_path / "zlib.log", rewards=True)
    rows = list(csv.reader(io.StringIO(run_cli("log", path, "--csv"))))
    weights = (f"weights[{i}]" for i in range(4))
    end = ("inlining_decision", "reward")
    assert rows[0] == ["context", "observation", "size", *weights, *end]
    assert rows[2] == ["helper ☃", "0", "20", "20.0", "-1.5", "0.0", "10.0", "0", "5.0"]
    assert len(rows) == 4


def test_log_shows_no_control_characters(tmp_path: Path) -> None:
    tensor = {"name": "a\x1b[2J", "port": 0, "type": "int64_t", "shape": [1]}
    word = {**tensor, "name": "text", "type": "uint8_t", "shape": [4]}
    word |= {"semantics": "string", "lengths": [4]}
    advice = {**tensor, "name": "out\x1b[31m"}
    score = {**tensor, "name": "\x9bm", "type": "float"}
    first = {"features": [tensor, word, advice], "advice": advice, "score": score}
    data = struct.pack("<q4sq", 5, b"\x1b[2J", 6)
    path = tmp_path / "evil\x1b[2J.log"
    observed = b'{"observation":0}\n' + data + b"\n"
    named = json.dumps(first).encode() + b"\n" + context("f\x1b[2J\x07\u202e")
    path.write_bytes(named + observed + outcome(0, 1.0))
    for option in ("--head=1", "--stats"):
        said = run_cli("log", path, option)
        for text in (r"a\x1b[2J", r"out\x1b[31m", r"\u{9b}m"):
            assert text in said
        assert not set(said) & set("\x1b\x07\x9b\u202e")
    # CSV is for programs, so the text is not escaped.
    raw = run_cli("log", path, "--csv")
    assert next(csv.reader(io.StringIO(raw)))[2] == "a\x1b[2J"


def test_inspect_shows_no_control_characters(tmp_path: Path) -> None:
    metadata = {
        "key\x1b[2J": "v",
        "mlbridge.description": "one\x1b[2J\ntwo\x07" + "x" * 2000,
        "object": '{"a": "\x1b[2J", "b": 2}'.replace("\x1b", r"\u001b"),
        "deep": "[" * 100_000,
    }
    g, shape = GraphBuilder(1), ["n\x1b[2J"]
    g.op("Identity", ["x\x1b[2J"], "out")
    inputs, outputs = [("x\x1b[2J", FLOAT, shape)], [("out", FLOAT, shape)]
    path = g.save(tmp_path / "m.onnx", inputs, outputs, **metadata)
    shown = run_cli("inspect", path)
    assert not set(shown) & set("\x1b\x07")
    for text in (r"x\x1b[2J", r"float[n\x1b[2J]", r"key\x1b[2J", r"a: \x1b[2J"):
        assert text in shown
    assert shown.count("x") > 2000, "all of a text is shown"
    assert re.search(r"one\\x1b\[2J +\n +two\\x07", shown)


def test_errors_show_no_control_characters(tmp_path: Path) -> None:
    path = tmp_path / "evil\x1b[2J.log"
    path.write_text("nonsense")
    said = errors_of("log", path.name, cwd=tmp_path)
    assert r"evil\x1b[2J.log" in said
    assert "\x1b[2J" not in said


@pytest.mark.parametrize("options", [(), ("--stats",), ("--csv",)])
def test_log_of_nothing(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "empty.log").write_bytes(header())
    assert "weights" in run_cli("log", tmp_path / "empty.log", *options)


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("missing.log",), 2, "missing.log"),
        (("zlib.log", "--stats", "--csv"), 2, "mutually exclusive"),
        (("broken.log",), 1, "byte 0"),
        (("cut.log", "--stats"), 1, "bytes for observation 1"),
    ],
)
def test_log_used_wrongly(
    tmp_path: Path, arguments: Sequence[str], status: int, says: str
) -> None:
    whole = write_log(tmp_path / "zlib.log").read_bytes()
    (tmp_path / "cut.log").write_bytes(whole[:-3])
    (tmp_path / "broken.log").write_bytes(b"\0\1\2\n")
    assert says in errors_of("log", *arguments, status=status, cwd=tmp_path)
