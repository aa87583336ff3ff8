# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training with compilers that the user starts, also on another host."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, run
from typing import Any

import pytest

pytest.importorskip("gymnasium", reason="needs scripts/make-venv train")
pytest.importorskip("mlbridge._grpc", reason="this build has no gRPC")

import mlbridge
from compilers import COUNT_SPACES, PROGRAM, SPILLS, compiler_env
from mlbridge.envs import make_vec
from programs import CLI, FULL, IS_FULL, ROOT, run_program, until
from stock_llvm import processes, wait_until_gone

pytestmark = pytest.mark.usefixtures("tag")

Enter = Callable[[int], list[str]]
"""Maps a host's number, 0 or 1, to the words that run a command on this host."""

TRAINER = """
import json, sys
import numpy as np
from compilers import COUNT_SPACES
from mlbridge.envs import make_vec

compilers = make_vec(sys.argv[1:], timeout=2, reset_timeout=2, **COUNT_SPACES)
for line in sys.stdin:
    try:
        if line == "reset\\n":
            found = compilers.reset()
        else:
            found = compilers.step(np.zeros(2, np.int64))
        infos, truncated = found[-1], found[-2] if len(found) > 2 else np.zeros(2)
        said = [[int(one) for one in found[0]["count"]], [bool(t) for t in truncated],
                [str(one) for one in infos.get("error", [])]]
    except Exception as error:
        said = [type(error).__name__, str(error)]
    print(json.dumps(said), flush=True)
"""


class Trainer:
    """A trainer with two compilers, which runs one command at a time."""

    def __init__(self, prefix: list[str], *addresses: str) -> None:
        self._process = Popen(
            [*prefix, sys.executable, "-c", TRAINER, *addresses],
            stdin=PIPE,
            stdout=PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "tests/python")},
        )

    def does(self, what: str) -> Any:
        """Returns the counts, whether each episode is truncated, and the errors.

        If the command fails, returns the type and the text of its error instead.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def served(
    command: list[str], *addresses: str, prefix: Any = ()
) -> Iterator[Popen[str]]:
    """Runs `mlbridge environment serve`."""
    at = [word for address in addresses for word in ("--at", address)]
    words = [*prefix, sys.executable, "-c", CLI, "environment", "serve", *at, "--"]
    with Popen([*words, *command], stderr=PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=20)


@pytest.fixture
def hosts() -> Iterator[Enter]:
    """Two hosts (network namespaces), 10.99.0.1 and 10.99.0.2, joined by a wire."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    with ExitStack() as stack:
        # The namespaces exist as long as these processes, which end with this process.
        holders = [Popen(["unshare", "-n", "cat"], stdin=PIPE) for _ in range(2)]
        for holder in holders:
            stack.callback(holder.communicate)

        def enter(number: int) -> list[str]:
            return ["nsenter", f"--target={holders[number].pid}", "--net"]

        def inode(process: int | str) -> int:
            return Path(f"/proc/{process}/ns/net").stat().st_ino

        until(lambda: all(inode(one.pid) != inode("self") for one in holders))
        peer = f"type veth peer name wire netns {holders[1].pid}".split()
        add = [*enter(0), "ip", "link", "add", "wire", *peer]
        if run(add, stderr=DEVNULL, check=False).returncode:
            pytest.skip("virtual wires are not available")
        for number in range(2):
            for words in (
                "link set lo up",
                f"address add 10.99.0.{number + 1}/24 dev wire",
                "link set wire up",
            ):
                run([*enter(number), "ip", *words.split()], check=True)
        yield enter


def pid_of(tag: str, port: int) -> int:
    """Waits for a compiler with this port, and returns its process ID."""

    def found() -> int | None:
        for pid in processes(tag):
            path = Path(f"/proc/{pid}")
            is_compiler = (path / "exe").resolve() == Path(PROGRAM)
            if is_compiler and f":{port}?".encode() in (path / "environ").read_bytes():
                return pid
        return None

    return until(found)


def test_compilers_on_another_host(hosts: Enter, tag: str) -> None:
    ports = "grpc://10.99.0.2:50051-50052"
    cut = [*hosts(0), "ip", "link", "set", "wire"]
    with closing(Trainer(hosts(0), ports)) as trainer:
        with served([PROGRAM], ports, prefix=hosts(1)):
            pid_of(tag, 50051)
            assert trainer.does("reset") == [[0, 0], [False, False], []]
            assert trainer.does("step") == [[1, 1], [False, False], []]

            # A compiler that crashes is replaced.
            os.kill(pid_of(tag, 50052), signal.SIGKILL)
            counts, truncated, errors = trainer.does("step")
            assert (counts, truncated) == ([2, 1], [False, True])
            assert "grpc://10.99.0.2:50052" in errors[1]
            assert trainer.does("step") == [[3, 0], [False, False], []]

        # The compilers' host is restarted.
        _, truncated, errors = trainer.does("step")
        assert truncated == [True, True]
        assert all("PeerClosed" in error for error in errors)
        assert trainer.does("reset")[0] == "Timeout"
        begun = [[0, 0], [False, False], []]
        with served([PROGRAM], ports, prefix=hosts(1)):
            pid_of(tag, 50052)
            assert trainer.does("reset") == begun

            # The wire is cut in the middle of an episode.
            run([*cut, "down"], check=True)
            start = time.monotonic()
            _, truncated, errors = trainer.does("step")
            assert truncated == [True, True]
            assert all("Timeout" in error for error in errors)
            kind, text = trainer.does("step")
            assert kind == "Timeout"
            assert "grpc://10.99.0.2:50051" in text
            assert time.monotonic() - start < 10, "each wait ends after 2 s"
            run([*cut, "up"], check=True)
            # A compiler needs up to half a minute to notice that its trainer is gone.
            if IS_FULL:
                until(lambda: trainer.does("reset") == begun, seconds=60)


ENGINES = ["sb3", pytest.param("rllib", marks=FULL)]


@pytest.mark.parametrize("engine", ENGINES)
def test_each_worker_uses_one_address(
    engine: str, hosts: Enter, tmp_path: Path
) -> None:
    ports = "grpc://127.0.0.1:50051-50052"
    with served(SPILLS, ports, prefix=hosts(1)):
        run_program(
            [
                *(*hosts(1), sys.executable, "-c", CLI, "train"),
                *("examples/environment/spills.py", "--engine", engine),
                *("--compilers", ports, "--workers", "2", "--device", "auto"),
                *("--steps", "64", "--rollout", "64", "--out", tmp_path),
            ],
            check=True,
            cwd=ROOT,
            timeout=500,
        )
    assert (tmp_path / "model.onnx").is_file()


def test_a_compiler_has_one_trainer(tmp_path: Path, tag: str) -> None:
    address = f"grpc+unix:{tmp_path}/a"
    with served([PROGRAM], address), compiler_env(address, command=[]) as first:
        first.reset()
        with (
            compiler_env(address, command=[], reset_timeout=0.5) as second,
            pytest.raises(mlbridge.Unsupported, match="already has a trainer"),
        ):
            second.reset()
        first.close()
        with compiler_env(address, command=[]) as third:
            assert third.reset()[0] == {"count": 0}
    assert wait_until_gone(tag) == []


def test_compilers_end_with_their_server(tmp_path: Path, tag: str) -> None:
    with served([PROGRAM], f"grpc+unix:{tmp_path}/a") as server:
        until(lambda: len(processes(tag)) == 3 or None)
        server.kill()
        assert wait_until_gone(tag) == []


def test_a_command_that_is_no_compiler(tmp_path: Path) -> None:
    with served(["false"], f"grpc+unix:{tmp_path}/a") as server:
        assert server.stderr is not None
        assert "exited with 1 soon after its start" in server.stderr.read()
        assert server.wait(20) == 1


def test_a_compiler_that_connects_to_the_trainer(name: str) -> None:
    spec = f"shm:{name}"
    with (
        compiler_env(spec, command=[]) as env,
        Popen([PROGRAM], env={**os.environ, "MLBRIDGE_SPEC": spec}) as compiler,
    ):
        env.reset()
        assert env.step(0)[0] == {"count": 1}
        env.close()
        assert compiler.wait(10) == 0


def test_mistakes_are_named() -> None:
    with pytest.raises(mlbridge.InvalidArgument, match="no command, found 'grpc:"):
        make_vec("grpc://a:1-2", **COUNT_SPACES)
    with pytest.raises(mlbridge.InvalidArgument, match="no command"):
        make_vec(["grpc://a:1"], [PROGRAM], **COUNT_SPACES)
    with pytest.raises(mlbridge.InvalidArgument, match="one compiler or more"):
        make_vec([], **COUNT_SPACES)
    with pytest.raises(mlbridge.InvalidArgument, match="spec 'grpc'"):
        make_vec(["grpc"], **COUNT_SPACES)
    with (
        pytest.raises(mlbridge.InvalidArgument, match="2 ports, and worker 2"),
        compiler_env("grpc://a:1-2", command=[], worker=2) as env,
    ):
        env.reset()


def test_mistakes_in_the_settings_of_a_training(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs scripts/make-venv train")
    from mlbridge_optimizations.training.settings import TrainingSettings

    with pytest.raises(mlbridge.InvalidArgument, match=r"3 workers.*found 2"):
        TrainingSettings(tmp_path, workers=3, compilers=["grpc://a:1-2"])
    with pytest.raises(mlbridge.InvalidArgument, match="--device: expected cpu"):
        TrainingSettings(tmp_path, device="gpu")
    assert not TrainingSettings(tmp_path).on_gpu()
    found = torch.cuda.is_available()
    assert TrainingSettings(tmp_path, device="auto").on_gpu() == found
    if not found:
        with pytest.raises(mlbridge.InvalidArgument, match="PyTorch found no GPU"):
            TrainingSettings(tmp_path, device="cuda").on_gpu()
