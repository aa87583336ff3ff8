# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replays the decisions in a log, and finds the decision that breaks a program."""

import math
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import mlbridge
from mlbridge.cli.bisection import first_failing, first_failing_of
from mlbridge.doctor import find_llvm_plugin
from mlbridge.files import spec_of
from programs import FULL, run_cli, run_program, shell_script
from stock_llvm import CLANG
from training_logs import OBSERVED, header, write_log

PLUGIN = find_llvm_plugin()
needs_plugin = pytest.mark.skipif(
    not (PLUGIN and shutil.which(CLANG)),
    reason=f"{CLANG} is not installed, or the LLVM plug-in is not built",
)


def request(runner: mlbridge.ModelRunner, size: int) -> int:
    """Sends the features that `write_log` gives to the observation with this size."""
    weights = np.array([[size, -1.5], [0, size / 2]], np.float32)
    return int(runner.evaluate({"size": np.array([size]), "weights": weights}, int))


def test_replies_as_the_log_did(tmp_path: Path) -> None:
    """The runner reads logs in LLVM's format, with and without rewards."""
    for rewards in (False, True):
        log = write_log(tmp_path / "log", rewards=rewards)
        with mlbridge.create_model_runner(spec_of("replay", log)) as runner:
            for _, _, size, decision in OBSERVED:
                assert request(runner, size) == decision
            with pytest.raises(mlbridge.ModelError, match="the 3 requests of the log"):
                request(runner, 1)


def test_says_where_a_compilation_parts_from_the_log(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log")
    with mlbridge.create_model_runner(spec_of("replay", log)) as runner:
        request(runner, 10)
        says = r"request 2 \(observation 0 of 'helper ☃'\): feature 'size': expected 20"
        for size in (21, 20):
            with pytest.raises(mlbridge.ModelError, match=f"{says}, found 21"):
                request(runner, size)
    with mlbridge.create_model_runner(f"{spec_of('replay', log)}?until=1") as runner:
        request(runner, 10)
        with pytest.raises(mlbridge.Deferred, match="after request 1"):
            request(runner, 21)
    with mlbridge.create_model_runner(f"{spec_of('replay', log)}?until=end") as runner:
        for _, _, size, decision in OBSERVED:
            assert request(runner, size) == decision
        with pytest.raises(mlbridge.Deferred, match="after request 3"):
            request(runner, 21)


def calls_to_find(count: int, culprit: int) -> int:
    """Returns the number of calls after which the search finds a culprit."""
    called: list[int] = []

    def fails(decisions: int) -> str | None:
        called.append(decisions)
        return "broken" if decisions >= culprit else None

    assert first_failing(count, fails) == culprit
    assert len(set(called)) == len(called)
    assert {culprit - 1, culprit} <= set(called)
    return len(called)


def test_finds_every_decision_in_few_calls() -> None:
    assert max(calls_to_find(10_000, 1 + n) for n in range(10_000)) == 14
    for count in range(2, 100):
        most = max(calls_to_find(count, 1 + n) for n in range(count))
        assert most <= math.ceil(math.log2(count)) + 1


@pytest.mark.parametrize(
    "counts", [(2,), (1, 1), (3, 1, 4), (9, 1, 16, 2, 5), (50,) * 40]
)
def test_finds_every_decision_of_several_logs(counts: tuple[int, ...]) -> None:
    logs, longest = len(counts), max(counts)
    most = math.ceil(math.log2(logs)) + 1 + math.ceil(math.log2(longest))
    for culprit in [(log, 1 + n) for log in range(logs) for n in range(counts[log])]:
        called: list[tuple[int, int]] = []

        def fails(
            complete: int,
            decisions: int,
            culprit: tuple[int, int] = culprit,
            called: list[tuple[int, int]] = called,
        ) -> str | None:
            called.append((complete, decisions))
            return "broken" if (complete, decisions) >= culprit else None

        assert first_failing_of(counts, fails) == culprit
        assert len(set(called)) == len(called) <= most


COMPILER = """
import sys
import numpy as np
from mlbridge import Deferred, create_model_runner

replayed = {}
for module in ("a", "b", "c", "silent", "empty"):
    with create_model_runner(sys.argv[1].replace("{module}", module)) as runner:
        try:
            for size in (10, 20, 0x0A0A0A0A, 1):
                weights = np.array([[size, -1.5], [0, size / 2]], np.float32)
                runner.evaluate({"size": np.array([size]), "weights": weights}, int)
                replayed[module] = replayed.get(module, 0) + 1
        except Deferred:
            pass
print(replayed, file=sys.stderr)
sys.exit(replayed.get("b", 0) >= 2)
"""
"""Sends the requests of `write_log` for five modules. b's second decision is bad."""


def test_several_logs_are_bisected(tmp_path: Path) -> None:
    for module in "abc":
        write_log(tmp_path / f"x-{module}.log")
    (tmp_path / "x-silent.log").write_bytes(header())
    (tmp_path / "x-empty.log").touch()
    compiler = (sys.executable, "-c", COMPILER, "{spec}")
    shown = run_cli("log", "bisect", tmp_path / "x-{module}.log", "--", *compiler)
    log = tmp_path / "x-b.log"
    assert f"Decision 2 of 3 in {log} breaks the program" in shown
    assert shown.strip().endswith(f"{spec_of('replay', log)}?until=1")
    assert shown.index("1 of 3 logs: works") < shown.index("decisions in x-b.log: ")
    assert "2 of 3 logs: broken" in shown
    assert len(re.findall(": (?:works|broken)", shown)) <= 2 + 1 + 2


@pytest.mark.parametrize(
    ("file", "command", "says"),
    [
        ("{module}.log", "true", "succeeds with all 2 logs"),
        ("{module}.log", "false", "also fails without"),
        ("{module}.none", "true", "expected logs with decisions, found none"),
        ("{module}/x.log", "true", "in the file name only"),
    ],
)
def test_nothing_to_find_in_several_logs(
    tmp_path: Path, file: str, command: str, says: str
) -> None:
    for module in "ab":
        write_log(tmp_path / f"{module}.log")
    with pytest.raises(mlbridge.InvalidArgument, match=says):
        run_cli("log", "bisect", tmp_path / file, "--", command)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("true",), "succeeds with all 3 decisions"),
        (("false",), "also fails without the log's decisions"),
        (
            ("sh", "-c", "echo why >&2; exit 125"),
            r"has no result: why\nexit status 125",
        ),
        (("sleep", "60"), "also fails without the log's decisions"),
    ],
)
def test_nothing_to_find(tmp_path: Path, command: tuple[str, ...], says: str) -> None:
    log = write_log(tmp_path / "log")
    with pytest.raises(mlbridge.InvalidArgument, match=says):
        run_cli("log", "bisect", "--timeout", "0.3", log, "--", *command)


def test_a_command_gets_the_spec_in_two_ways(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a log")
    said = tmp_path / "said"
    script = shell_script(
        tmp_path / "test",
        f'echo "$1 $MLBRIDGE_REPLAY" >> "{said}"\n'
        '[ "$1" = --spec=none ] || [ "${1##*until=}" = 1 ]',
    )
    shown = run_cli("log", "bisect", log, "--", script, "--spec={spec}")
    assert "Decision 2 of 3 breaks the program" in shown
    assert re.search(r"helper ☃ 0 .*\n.*size .* 20 ", shown, re.DOTALL)
    for line in said.read_text().splitlines():
        argument, _, variable = line.partition(" ")
        assert argument == f"--spec={variable}"
        number = variable.partition("?until=")[2]
        assert variable in ("none", f"{spec_of('replay', log)}?until={number}")


_LARGE = "\n".join(f"  sink = x * {n} + {n};" for n in range(100))
_BRANCHES = "\n".join(f"  if (sink & {1 << n}) sink = {n};" for n in range(20))


def program(callers: int, calls: int) -> str:
    """Returns a program that fails only if one call, to `probe`, is inlined.

    LLVM inlines no call of the program itself. Only `probe` has many basic blocks.
    """
    text = f"""
volatile int sink, broken;
void large(int x) {{
{_LARGE}
}}
int probe(void *caller) {{
{_BRANCHES}
{_LARGE.replace("x", "broken")}
  return __builtin_frame_address(0) == caller;
}}
"""
    for number in range(callers):
        body = [f"  large({n});" for n in range(calls)]
        if number == callers // 3:
            body.insert(calls // 2, "  broken |= probe(__builtin_frame_address(0));")
        text += "\n".join([f"void caller{number}(void) {{", *body, "}\n"])
    everyone = " ".join(f"caller{n}();" for n in range(callers))
    return text + f"int main(void) {{ {everyone} return broken; }}\n"


def compile_program(
    folder: Path, spec: str, target: str, source: str = "program.c"
) -> bytes:
    """Compiles a file in a folder with a model. Returns the object file."""
    run_program(
        [*compiler(spec), "-c", source, "-o", target],
        check=True,
        cwd=folder,
        timeout=600,
    )
    return (folder / target).read_bytes()


def compiler(spec: str) -> list[str]:
    """Returns the command of clang whose inliner asks a model."""
    options = (
        f"inliner={spec}",
        "inliner-include-default",
        "on-error=fatal",
    )
    flags = [flag for option in options for flag in ("-mllvm", f"-mlbridge-{option}")]
    return [CLANG, "-O2", "-w", f"-fpass-plugin={PLUGIN}", *flags]


def compiler_in_shell() -> str:
    """Returns the command of `compiler` for a script whose argument is the spec."""
    words = " ".join(f"'{word}'" for word in compiler("SPEC"))
    return words.replace("SPEC'", '\'"$1"')


def as_llvm(features: mlbridge.Features) -> int:
    """Decides as LLVM does."""
    return int(features["inlining_default"][0])


def bad_decisions(log: Path) -> tuple[list[int], int]:
    """Returns the numbers of decisions unlike LLVM's, and the number of all."""
    observations = list(mlbridge.read_log(log))
    differ = [o.advice != o.features["inlining_default"] for o in observations]
    return [number for number, bad in enumerate(differ, 1) if bad], len(differ)


class BadModel:
    """Decides as LLVM does, but inlines `probe`, the first callee with many blocks."""

    def __init__(self) -> None:
        self.has_erred = False

    def __call__(self, features: mlbridge.Features) -> int:
        if self.has_erred or features["callee_basic_block_count"][0] < 20:
            return as_llvm(features)
        self.has_erred = True
        return 1


@needs_plugin
@pytest.mark.parametrize(
    ("callers", "calls"), [(4, 5), pytest.param(100, 100, marks=FULL)]
)
def test_a_compilation_is_replayed_and_bisected(
    tmp_path: Path, callers: int, calls: int
) -> None:
    (tmp_path / "program.c").write_text(program(callers, calls))
    log = tmp_path / "program.log"
    model = spec_of("pipe", tmp_path / "model")
    with mlbridge.serving(BadModel(), model):
        recorded = compile_program(tmp_path, f"record:{log}|{model}", "recorded.o")
    assert recorded != compile_program(tmp_path, "none", "none.o")
    replay = spec_of("replay", log)
    assert recorded == compile_program(tmp_path, replay, "replayed.o")

    planted, count = bad_decisions(log)
    assert count >= callers * calls
    assert len(planted) == 1

    script = shell_script(
        tmp_path / "test",
        f"cd '{tmp_path}'\n{compiler_in_shell()} program.c -o a || exit 125\n./a",
    )
    shown = run_cli("log", "bisect", log, "--", script, "{spec}")
    assert f"Decision {planted[0]} of {count} breaks" in shown
    assert shown.count("decisions: ") <= 14

    # A changed program makes other requests.
    (tmp_path / "program.c").write_text(program(callers, calls + 1))
    with pytest.raises(AssertionError, match=r"Model: .*: request [0-9]+ .*: expected"):
        compile_program(tmp_path, replay, "other.o")


@needs_plugin
def test_modules_are_recorded_and_bisected(tmp_path: Path) -> None:
    """The module main has no decision, so its log is empty."""
    logs, model = tmp_path / "logs", spec_of("pipe", tmp_path / "model")
    logs.mkdir()
    shared = (
        "sink",
        "broken",
        "large",
        "probe",
        "main",
        *(f"caller{n}" for n in "0123"),
    )
    for module in "abc":
        renamed = "".join(f"#define {name} {module}_{name}\n" for name in shared)
        (tmp_path / f"{module}.c").write_text(renamed + program(4, 5))
    (tmp_path / "main.c").write_text(
        "int a_main(void), b_main(void), c_main(void);\n"
        "int main(void) { return a_main() | b_main() | c_main(); }\n"
    )
    record = f"record:{logs}/{{module}}.log|{model}"
    for module in ("a", "b", "c", "main"):
        with mlbridge.serving(BadModel() if module == "b" else as_llvm, model):
            compile_program(tmp_path, record, f"{module}.o", f"{module}.c")
    (log,) = logs.glob("b.c-*.log")
    planted, count = bad_decisions(log)
    assert len(planted) == 1

    script = shell_script(
        tmp_path / "test",
        f"cd '{tmp_path}'\n"
        f"for m in a b c main; do\n"
        f"  {compiler_in_shell()} -c $m.c -o $m.o || exit 125\n"
        f"done\n"
        f"{CLANG} a.o b.o c.o main.o -o a.out || exit 125\n./a.out",
    )
    shown = run_cli("log", "bisect", logs / "{module}.log", "--", script, "{spec}")
    assert f"Decision {planted[0]} of {count} in {log} breaks" in shown
    assert "of 3 logs: " in shown
    most = math.ceil(math.log2(3)) + 1 + math.ceil(math.log2(count))
    assert len(re.findall(": (?:works|broken)", shown)) <= most
