# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CompilerEnv: episodes, spaces, failures, and cleaning up."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="needs scripts/make-venv train")

import gymnasium
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

import mlbridge
from compilers import COUNT_SPACES, PROGRAM, SPILLS, SPILLS_SPACES, compiler_env
from mlbridge.envs import CompilerEnv
from mlbridge.envs.spaces import ActionWriter, ObservationReader
from programs import BUILD, SCHEMES, Started, needs_grpc, run_python
from stock_llvm import processes, wait_until_gone

pytestmark = pytest.mark.usefixtures("tag")

SPECS = ["pipe", "shm", "pipe:?serdes=json", "shm:?serdes=json&max-message=1MiB"]
if find_spec("mlbridge._grpc"):
    SPECS += ["grpc:?serdes=bitstream", "grpc:?serdes=json&call=unary"]
    # Make gRPC open its descriptors now, before tests count descriptors.
    FIRST = mlbridge.grpc.TrainingChannel("grpc://127.0.0.1:1?serdes=bitstream")
    with suppress(mlbridge.Timeout, mlbridge.PeerClosed):
        FIRST.connect(0.1, alive=lambda: False)


def names_in(folder: str | Path) -> list[str]:
    return [entry.name for entry in Path(folder).iterdir()]


@pytest.fixture(autouse=True)
def _closes_descriptors() -> Iterator[None]:
    """Checks that a test leaves no descriptor open. A test may close older ones."""
    before = len(names_in("/proc/self/fd"))
    yield
    assert len(names_in("/proc/self/fd")) <= before


def trouble(at: int, what: str) -> dict[str, Any]:
    """Returns the options of an episode in which `what` happens at step `at`."""
    return {"at": at, "do": what}


@pytest.mark.parametrize("spec", SPECS)
def test_passes_the_checker(spec: str) -> None:
    env = CompilerEnv(SPILLS, spec, **SPILLS_SPACES)
    check_env(env, skip_render_check=True)
    env.close()


@pytest.mark.parametrize("spec", SPECS)
def test_episodes(spec: str) -> None:
    with compiler_env(spec) as env:
        for seed in (5, 6):
            observation, info = env.reset(seed=seed)
            assert observation == {"count": 0}
            assert info == {"count": 0, "seed": seed}
            for step in range(1, 11):
                observation, reward, terminated, truncated, info = env.step(2)
                assert observation == {"count": step}
                assert observation["count"].dtype == np.int64
                assert (reward, terminated, truncated) == (step, step == 10, False)
                assert info == {"action": 2, "count": step, "seed": seed}
        assert env.starts == 1


def test_a_name_of_ones_own(name: str) -> None:
    with compiler_env(f"shm:{name}?serdes=json", command=[PROGRAM, "{spec}"]) as env:
        env.reset()
        assert names_in(Path(name).parent) == ["model.sock"]
        env.step(0)


def test_a_compiler_that_is_started_by_hand(name: str) -> None:
    with compiler_env(f"shm:{name}", command=["sleep", "60"]) as env:
        env.launch()
        with subprocess.Popen([PROGRAM, f"shm:{name}"]) as compiler:
            assert env.reset()[0] == {"count": 0}
            assert env.step(0)[0] == {"count": 1}
            env.close()
            assert compiler.wait(10) == 0


def test_an_episode_is_over(tag: str) -> None:
    with compiler_env() as env:
        with pytest.raises(gymnasium.error.ResetNeeded, match="has not begun"):
            env.step(0)
        assert processes(tag) == []
        env.reset(options=trouble(1, "done"))
        assert env.step(0)[2:4] == (True, False)
        with pytest.raises(gymnasium.error.ResetNeeded, match="is over"):
            env.step(0)
        env.reset(options=trouble(1, "truncate"))
        assert env.step(0)[2:4] == (False, True)
        env.reset()
        assert env.step(0)[2:4] == (False, False)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.close()


def test_an_episode_that_is_over_at_once() -> None:
    with compiler_env() as env:
        assert env.reset(options=trouble(0, "done"))[0] == {"count": 0}
        assert env.step(1) == ({"count": 0}, 0.0, True, False, {"count": 0})
        with pytest.raises(gymnasium.error.ResetNeeded):
            env.step(0)
        env.reset()
        assert env.step(1)[0] == {"count": 1}


EVERYTHING = spaces.Dict(
    {
        "floats": spaces.Box(-1, 1, (2, 3), np.float32),
        "doubles": spaces.Box(-1, 1, (), np.float64),
        "bytes": spaces.Box(0, 255, (4,), np.uint8),
        "shorts": spaces.Box(-9, 9, (0,), np.int16),
        "which": spaces.Discrete(7, start=-3),
        "each": spaces.MultiDiscrete([3, 4]),
        "bits": spaces.MultiBinary(5),
        "word": spaces.Text(8),
        "nested": spaces.Dict(
            {"pair": spaces.Tuple((spaces.Discrete(2), spaces.Box(0, 1, (1,))))}
        ),
    }
)


@pytest.mark.parametrize("spec", SPECS)
def test_every_space_and_back(spec: str) -> None:
    """test-environment reports the tensors of its last action."""
    space = EVERYTHING
    with (
        compiler_env(spec, observation_space=space, action_space=space) as env,
        pytest.raises(mlbridge.SchemaMismatch, match=r"'bits'.*no such feature"),
    ):
        env.reset()
    with compiler_env(spec, action_space=space) as env:
        env.reset()
        read = ObservationReader(space)
        space.seed(1)
        for _ in range(10):
            action = space.sample()
            info = env.step(action)[4]
            observation, rest = read(info)
            assert_equal(observation, action)
            assert observation in space
            assert set(rest) == {"count", "seed"}


def assert_equal(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        found, expected = tuple(found.values()), tuple(expected.values())
    if isinstance(expected, tuple):
        for a, b in zip(found, expected, strict=True):
            assert_equal(a, b)
    else:
        np.testing.assert_array_equal(found, expected, strict=True)


def test_observations_are_the_callers_own() -> None:
    with compiler_env("shm", action_space=spaces.Box(0, 9, (3,), np.float32)) as env:
        env.reset()
        kept = [env.step(np.full(3, i, np.float32))[4]["action"] for i in range(5)]
        for i, array in enumerate(kept):
            np.testing.assert_array_equal(array, np.full(3, i, np.float32))
            array[:] = 7


@pytest.mark.parametrize(
    ("space", "says"),
    [
        (spaces.Dict({"count": spaces.Box(0, 9, (), np.int32)}), r"int32\[\].*int64"),
        (spaces.Dict({"count": spaces.Box(0, 9, (1,), np.int64)}), r"int64\[1\]"),
        (spaces.Dict({"count": spaces.Text(3)}), "str"),
        (spaces.Dict({"amount": spaces.Discrete(3)}), "'amount'.*count, seed"),
        (spaces.Box(0, 9, (), np.int64), "one tensor.*count, seed"),
    ],
)
def test_another_space_than_the_compilers(space: spaces.Space[Any], says: str) -> None:
    with (
        compiler_env(observation_space=space) as env,
        pytest.raises(mlbridge.SchemaMismatch, match=says),
    ):
        env.reset()


def test_spaces_without_a_form() -> None:
    either: Any = spaces.OneOf([spaces.Discrete(2)])
    for name in COUNT_SPACES:
        with pytest.raises(TypeError, match="OneOf"), compiler_env(**{name: either}):
            pass
    reserved = spaces.Dict({"_command": spaces.Discrete(2)})
    with pytest.raises(ValueError, match="underscore"):
        compiler_env(action_space=reserved).__enter__()


@pytest.mark.parametrize(
    "action", [None, "left", [1, 2], {"a": 1}, pytest.param(object(), id="object")]
)
def test_actions_of_another_form(action: Any) -> None:
    with compiler_env() as env:
        env.reset()
        with pytest.raises(mlbridge.SchemaMismatch, match="'action'"):
            env.step(action)
        assert env.step(1)[0] == {"count": 1}


@pytest.mark.parametrize(
    ("dtype", "actions", "others"),
    [
        (np.int8, [2, 2.0, True, np.float32(2), [3]], [300, 1.5, np.int64(300), -129]),
        (np.uint8, [255], [-1, 256]),
        (np.int64, [2**62], [2**63, 2**70, np.inf, np.nan, "1.5"]),
        (np.float32, [0.1, np.nan, np.inf, 3], [1e300, np.float64(-1e39), 1j]),
        (np.float64, [1e300, 2**70], [2**5000]),
    ],
)
def test_an_action_is_not_changed(dtype: Any, actions: list[Any], others: Any) -> None:
    """Only a space with a narrower float type rounds an action."""
    write = ActionWriter(spaces.Box(0, 1, (), dtype))
    for action in actions:
        written = write(action)["action"]
        assert written.dtype == dtype
        np.testing.assert_allclose(written, float(np.ravel(action)[0]))
    for action in others:
        with pytest.raises(mlbridge.SchemaMismatch, match="'action'"):
            write(action)


@pytest.mark.parametrize("spec", ["pipe", "shm"])
@pytest.mark.parametrize(
    ("what", "error"),
    [
        ("hang", "Timeout: .*within 0.3 s"),
        ("spin", "Timeout: "),
        ("fork", "Timeout: "),
        ("crash", "PeerClosed: .*SIGSEGV"),
        ("exit", "PeerClosed: .*exited with 3"),
    ],
)
def test_a_step_that_fails(spec: str, what: str, error: str, tag: str) -> None:
    with compiler_env(spec, timeout=0.3, failure_reward=-5.0) as env:
        env.reset(seed=1, options=trouble(2, what))
        first = env.pid
        env.step(0)
        start = time.monotonic()
        observation, reward, terminated, truncated, info = env.step(0)
        assert time.monotonic() - start < 1.5
        assert observation == {"count": 1}
        assert (reward, terminated, truncated) == (-5.0, False, True)
        assert re.search(error, info["error"]), info
        assert wait_until_gone(tag) == [], "its child processes end, too"
        assert env.reset()[0] == {"count": 0}
        assert env.pid != first
        assert env.starts == 2
        assert env.step(0)[0] == {"count": 1}


@pytest.mark.skipif("grpc" not in SPECS[-1], reason="this build has no gRPC")
@pytest.mark.parametrize("late", [0.9, 0.98, 1.0, 1.02])
def test_a_compiler_that_listens_late(late: float) -> None:
    """The trainer's first call reaches a compiler that starts later."""
    command = ["sh", "-c", f'sleep {late}; exec "$0"', PROGRAM]
    with compiler_env(SPECS[-2], command=command) as env:
        assert env.reset()[0] == {"count": 0}
        assert env.step(0)[0] == {"count": 1}
        assert env.starts == 1


def test_the_seed_of_a_compiler_that_takes_anothers_place() -> None:
    def seeds() -> list[int]:
        found, crash = [], trouble(1, "crash")
        with compiler_env() as env:
            for seed, options in ((3, crash), (None, crash), (None, None)):
                found.append(int(env.reset(seed=seed, options=options)[1]["seed"]))
                env.step(0)
            return [*found, int(env.reset()[1]["seed"])]

    first = seeds()
    assert first == seeds()
    assert len(set(first)) == 3
    assert first[2] == first[3], "without a crash, the compiler keeps its seed"


@pytest.mark.parametrize("spec", SPECS)
def test_a_failure_of_the_environment_itself(spec: str) -> None:
    with compiler_env(spec) as env:
        env.reset(options=trouble(2, "fail"))
        pid = env.pid
        env.step(0)
        error = {"error": "Model: the pass has failed"}
        assert env.step(0)[2:] == (False, True, error)
        env.reset()
        assert env.pid == pid, "the compiler survives a failed episode"
        with pytest.raises(mlbridge.ModelError, match="the pass has failed"):
            env.reset(options=trouble(0, "fail"))
        env.reset()
        assert env.step(0)[0] == {"count": 1}
        assert env.starts == 1


@pytest.mark.parametrize(
    ("what", "kind", "says"),
    [
        ("mismatch", mlbridge.SchemaMismatch, "no such register"),
        ("underscore", mlbridge.InvalidArgument, "'_mine'"),
        ("noise", mlbridge.Malformed, "JSON"),
    ],
)
@pytest.mark.parametrize("spec", SPECS)
def test_mistakes_are_raised(spec: str, what: str, kind: Any, says: str) -> None:
    with compiler_env(spec) as env:
        env.reset(options=trouble(1, what))
        with pytest.raises(kind, match=says):
            env.step(0)
        with pytest.raises(gymnasium.error.ResetNeeded):
            env.step(0)
        env.reset()
        assert env.step(0)[0] == {"count": 1}


@pytest.mark.parametrize(
    ("what", "kind"), [("hang", mlbridge.Timeout), ("crash", mlbridge.PeerClosed)]
)
def test_a_reset_that_fails(what: str, kind: type[Exception]) -> None:
    with compiler_env(reset_timeout=0.5, max_restarts=2) as env:
        start = time.monotonic()
        with pytest.raises(kind):
            env.reset(options=trouble(0, what))
        assert time.monotonic() - start < 3.5
        assert env.starts == 3
        env.reset()


@pytest.mark.parametrize(
    ("command", "kind", "says"),
    [
        ([PROGRAM, "--start=crash"], mlbridge.PeerClosed, "SIGSEGV"),
        ([PROGRAM, "--start=exit"], mlbridge.PeerClosed, "exited with 3"),
        ([PROGRAM, "--start=hang"], mlbridge.Timeout, "did not connect within"),
        ([PROGRAM, "pipe:/tmp/x?colour=red"], mlbridge.PeerClosed, "exited with 1"),
        (["true"], mlbridge.PeerClosed, "did not connect.*MLBRIDGE_SPEC.*with 0"),
        (["/no/such/compiler"], mlbridge.InvalidArgument, "/no/such/compiler"),
        ([], mlbridge.InvalidArgument, "command"),
        ("clang", mlbridge.InvalidArgument, "clang"),
    ],
)
def test_compilers_that_do_not_come(command: Any, kind: Any, says: str) -> None:
    with (
        pytest.raises(kind, match=says),
        compiler_env(command=command, reset_timeout=1.0, max_restarts=0) as env,
    ):
        env.reset()


@pytest.mark.parametrize("spec", ["tf:/tmp/x", "", "pipe:?max-message=much"])
def test_wrong_specs(spec: str) -> None:
    with pytest.raises(mlbridge.InvalidArgument), compiler_env(spec) as env:
        env.reset()


def test_a_compiler_that_asks_for_advice() -> None:
    ask = "import os, mlbridge\nspec = os.environ['MLBRIDGE_SPEC']\n"
    ask += "mlbridge.create_model_runner(spec).evaluate({'x': 1})"
    with (
        compiler_env(command=[sys.executable, "-c", ask]) as env,
        pytest.raises(mlbridge.SchemaMismatch, match="asked for advice about x"),
    ):
        env.reset()


def test_failing_for_ever_is_raised() -> None:
    with compiler_env(max_restarts=2) as env:
        for _ in range(2):
            env.reset(options=trouble(1, "crash"))
            assert env.step(0)[3]
        env.reset(options=trouble(1, "crash"))
        with pytest.raises(mlbridge.PeerClosed, match="SIGSEGV"):
            env.step(0)
        for _ in range(4):
            env.reset(options=trouble(2, "crash"))
            env.step(0)
            assert env.step(0)[3], "a good step resets the count"


@pytest.mark.parametrize("spec", ["pipe", "shm"])
def test_a_compiler_that_ends_between_two_episodes(spec: str) -> None:
    with compiler_env(spec, max_restarts=0) as env:
        for starts in (1, 2, 3):
            env.reset()
            env.step(0)
            assert env.starts == starts
            assert env.pid is not None
            os.kill(env.pid, signal.SIGKILL)


def test_ctrl_c(tag: str) -> None:
    with compiler_env() as env:
        env.reset(options=trouble(1, "hang"))
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            env.step(0)
        timer.join()
        assert wait_until_gone(tag) == []
        assert env.reset()[0] == {"count": 0}


@pytest.mark.parametrize(
    "scheme", [*SCHEMES[:2], pytest.param("grpc", marks=needs_grpc)]
)
def test_a_compiler_in_c(scheme: str) -> None:
    """tests/capi/environment.c runs episodes, and reports a failure."""
    settings = {
        "command": [str(BUILD / "tests/capi/capi-environment")],
        "observation_space": spaces.Dict({"left": spaces.Box(0, 3, (), np.int32)}),
        "action_space": spaces.Discrete(5),
    }
    with compiler_env(scheme, **settings, timeout=30.0, reset_timeout=30.0) as env:
        for _ in range(2):
            assert env.reset()[0] == {"left": 3}
            seen = [env.step(action)[:3] for action in (2, 4, 1)]
            assert seen == [
                ({"left": 2}, 2.0, False),
                ({"left": 1}, 4.0, False),
                ({"left": 0}, 1.0, True),
            ]
        env.reset()
        *_, truncated, info = env.step(0)
        assert truncated
        assert info["error"] == "Model: no loop can be unrolled by this factor"


SCRIPT = """
import sys
import gymnasium
from compilers import COUNT, PROGRAM
from mlbridge.envs import CompilerEnv
env = CompilerEnv([PROGRAM], sys.argv[1], observation_space=COUNT,
                  action_space=gymnasium.spaces.Discrete(2))
env.reset(options={"at": 2, "do": sys.argv[2]})
env.step(0)
print(env.pid, flush=True)
"""


def start_script(spec: str, what: str, more: str) -> Started:
    """Starts an episode in another Python, which then runs `more`."""
    env = {"PYTHONPATH": str(Path(__file__).parent), "TMPDIR": tempfile.gettempdir()}
    return Started(SCRIPT + more, spec, what, env={**os.environ, **env})


@pytest.mark.parametrize("spec", ["pipe", "shm"])
@pytest.mark.parametrize("what", ["nothing", "nap"])
def test_python_is_killed(spec: str, what: str, tag: str) -> None:
    then = "import time; time.sleep(60)" if what == "nothing" else "env.step(0)"
    with start_script(spec, what, then) as python:
        compiler = int(python.stdout.readline())
        assert sorted(processes(tag)) == sorted([python.pid, compiler])
        python.kill()
        python.wait(10)
    assert wait_until_gone(tag, 2.0) == []
    assert names_in(tempfile.gettempdir()) == []


@pytest.mark.parametrize("how", ["", "del env", "env.close()", "1 / 0"])
def test_python_ends(how: str, tag: str) -> None:
    with start_script("shm", "nothing", how) as python:
        _, errors = python.communicate(timeout=20)
    assert python.returncode == (how == "1 / 0")
    assert "leak" not in errors
    assert how == "1 / 0" or errors == ""
    assert wait_until_gone(tag, 0.5) == []


def test_a_fork_does_not_end_its_parents_compiler() -> None:
    with compiler_env() as env:
        env.reset()
        child = os.fork()
        if child == 0:
            env.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert env.step(0)[0] == {"count": 1}


def test_what_needs_no_gymnasium() -> None:
    code = "import sys, mlbridge; assert not {'gymnasium', 'elftools'} & {*sys.modules}"
    run_python(code, check=True)
    code = "import sys; sys.modules['gymnasium'] = None; import mlbridge.envs\n"
    run_python(code + "mlbridge.envs.EnvironmentChannel", check=True)
    with pytest.raises(AttributeError, match="CompilerEnvironment"):
        _ = mlbridge.envs.CompilerEnvironment
