# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A user's own gRPC service, in inference and in training.

Each side uses this library, or only grpcio and protoc's code.
"""

import importlib
import pickle
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlbridge
from compilers import COUNT_SPACES, PROGRAM, compiler_env
from grpcio_server import grpcio_server
from mlbridge import create_model_runner, protobuf, serving
from mlbridge.codec import Format
from mlbridge.envs import CompilerEnv

grpc = pytest.importorskip("grpc", reason="grpcio is not installed")
pytest.importorskip("google.protobuf", reason="protobuf is not installed")
pytest.importorskip("mlbridge._grpc", reason="this build has no gRPC")
pytest.importorskip("mlbridge._format_protobuf", reason="this build has no Protobuf")

ADVISOR = "service=test.Advisor&method=Decide"
STEP = "service=test.Compiler&method=Step"


@pytest.fixture
def pb2(generated: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The Python module of features.proto."""
    monkeypatch.syspath_prepend(str(generated))
    return importlib.import_module("features_pb2")


@pytest.fixture
def messages(pb2: Any) -> Format:
    return protobuf.messages(pb2.Decision, pb2.Decision)


def negate(asked: mlbridge.Features) -> dict[str, Any] | None:
    """Negates the scores. Fails for more than two scores, and defers without scores."""
    scores = asked["scores"]
    assert isinstance(scores, np.ndarray)
    if scores.size > 2:
        raise ValueError("too many scores")
    return {"inline": True, "scores": -scores} if scores.size else None


def ask(runner: mlbridge.ModelRunner, scores: list[float]) -> list[float]:
    """Sends the scores. Returns the model's reply, the negated scores."""
    advice = runner.evaluate({"inline": False, "scores": np.array(scores, np.float32)})
    return [float(score) for score in advice["scores"]]


def expect_all(runner: mlbridge.ModelRunner) -> None:
    """Expects the replies of `negate` from a model."""
    for _ in range(2):
        assert ask(runner, [1, 2]) == [-1, -2]
        with pytest.raises(mlbridge.ModelError, match="too many scores"):
            ask(runner, [1, 2, 3])
        with pytest.raises(mlbridge.Deferred):
            ask(runner, [])


@contextmanager
def stub(place: str, method: str, request: Any, reply: Any) -> Iterator[Any]:
    """Yields a function that calls a method, as protoc's stubs do."""
    with grpc.insecure_channel(f"unix:{place}") as channel:
        yield channel.unary_unary(
            method,
            request_serializer=request.SerializeToString,
            response_deserializer=reply.FromString,
        )


def test_our_compiler_asks_our_model(tmp_path: Path, messages: Format) -> None:
    spec = f"grpc+unix:{tmp_path}/advisor?{ADVISOR}"
    with (
        serving(negate, spec, formats=[messages]),
        create_model_runner(spec, formats=[messages]) as runner,
    ):
        expect_all(runner)


def test_a_stock_client_asks_our_model(
    tmp_path: Path, pb2: Any, messages: Format
) -> None:
    place, Decision = f"{tmp_path}/advisor", pb2.Decision  # noqa: N806
    with (
        serving(negate, f"grpc+unix:{place}?{ADVISOR}", formats=[messages]),
        stub(place, "/test.Advisor/Decide", Decision, Decision) as decide,
        stub(place, "/test.Advisor/Other", Decision, Decision) as other,
    ):
        for _ in range(2):
            reply = decide(Decision(scores=[1, 2]), timeout=10)
            assert (reply.inline, list(reply.scores)) == (True, [-1, -2])
            with pytest.raises(grpc.RpcError, match="too many scores") as failed:
                decide(Decision(scores=[1, 2, 3]), timeout=10)
            assert failed.value.code() == grpc.StatusCode.UNKNOWN
            with pytest.raises(grpc.RpcError) as deferred:
                decide(Decision(), timeout=10)
            assert deferred.value.code() == grpc.StatusCode.ABORTED
        with pytest.raises(grpc.RpcError, match=r"expected /test\.Advisor/Decide"):
            other(Decision(), timeout=10)


def test_a_client_with_several_requests_is_refused(
    tmp_path: Path, pb2: Any, messages: Format
) -> None:
    place, Decision = f"{tmp_path}/advisor", pb2.Decision  # noqa: N806

    def slowly(asked: mlbridge.Features) -> dict[str, Any] | None:
        time.sleep(0.2)  # The second request arrives before the reply.
        return negate(asked)

    with (
        serving(slowly, f"grpc+unix:{place}?{ADVISOR}", formats=[messages]),
        grpc.insecure_channel(f"unix:{place}") as channel,
    ):
        decide = channel.stream_unary(
            "/test.Advisor/Decide",
            request_serializer=Decision.SerializeToString,
            response_deserializer=Decision.FromString,
        )
        for _ in range(2):
            reply = decide(iter([Decision(scores=[1])]), timeout=10)
            assert list(reply.scores) == [-1]
            says = r"unary method /test\.Advisor/Decide, found several"
            with pytest.raises(grpc.RpcError, match=says) as refused:
                decide(iter([Decision(scores=[1])] * 3), timeout=10)
            assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED


@pytest.fixture
def stock_model(pb2: Any) -> Iterator[str]:
    """Serves `negate` with grpcio, and a stream that replies once for each score."""

    def decide(request: Any, context: Any) -> Any:
        scores = np.array(request.scores, np.float32)
        advice = negate({"scores": scores})
        if advice is None:
            context.abort(grpc.StatusCode.ABORTED, "no scores")
            raise AssertionError("abort() raises an exception")
        return pb2.Decision(**advice)

    def stream(request: Any, _: Any) -> Iterator[Any]:
        for score in request.scores:
            yield pb2.Decision(inline=True, scores=[-score])

    serdes = {
        "request_deserializer": pb2.Decision.FromString,
        "response_serializer": pb2.Decision.SerializeToString,
    }
    methods = {
        "Decide": grpc.unary_unary_rpc_method_handler(decide, **serdes),
        "Stream": grpc.unary_stream_rpc_method_handler(stream, **serdes),
    }
    with grpcio_server("test.Advisor", methods) as address:
        yield address


def test_our_compiler_asks_a_stock_model(stock_model: str, messages: Format) -> None:
    spec = f"{stock_model}?{ADVISOR}"
    with create_model_runner(spec, formats=[messages]) as runner:
        expect_all(runner)
    spec = f"{stock_model}?service=test.Advisor&method=Missing&serdes={messages.name}"
    with (
        create_model_runner(spec, formats=[messages]) as runner,
        pytest.raises(mlbridge.Unsupported, match="without the called method"),
    ):
        ask(runner, [1])


def test_a_stream_is_refused(stock_model: str, messages: Format) -> None:
    spec = f"{stock_model}?service=test.Advisor&method=Stream"
    with create_model_runner(spec, formats=[messages]) as runner:
        for _ in range(2):
            assert ask(runner, [1]) == [-1], "one reply, as from a unary method"
            says = r"method /test\.Advisor/Stream sent several replies"
            with pytest.raises(mlbridge.Unsupported, match=says):
                ask(runner, [1, 2])
            with pytest.raises(mlbridge.PeerClosed, match="before it answered"):
                ask(runner, [])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("service=test.Advisor", "'service' and 'method' together"),
        ("service=test.Advisor&method=a/b", "'service' and 'method' together"),
        (f"{ADVISOR}&call=stream", "expected unary"),
        (ADVISOR, "expected the option 'serdes'"),
    ],
)
def test_mistakes_are_named(
    pb2: Any, messages: Format, options: str, says: str
) -> None:
    others = protobuf.messages(pb2.Features, pb2.Decision)
    with pytest.raises(mlbridge.InvalidArgument, match=says):
        create_model_runner(f"grpc://a:1?{options}", formats=[messages, others])
    if "call" not in options:
        with pytest.raises(mlbridge.InvalidArgument, match=says):
            mlbridge.GRPCCompilerInterface(
                f"grpc://:0?{options}", formats=[messages, others]
            )


# Training, in which the compiler is the server


@pytest.fixture
def steps(generated: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The Python module of steps.proto."""
    monkeypatch.syspath_prepend(str(generated))
    return importlib.import_module("steps_pb2")


@pytest.fixture
def compiler(tmp_path: Path) -> Iterator[str]:
    """Yields the spec at which a compiler in C++ waits for its trainer."""
    if not Path(PROGRAM).exists():
        pytest.skip("test-environment is not built")
    announced = tmp_path / "announced"
    spec = f"grpc+unix:{tmp_path}/compiler?{STEP}"
    command = [PROGRAM, f"{spec}&announce={announced}&connect=20s"]
    with subprocess.Popen(command) as process:
        yield spec
        process.kill()


def test_a_stock_trainer_trains_our_compiler(compiler: str, steps: Any) -> None:
    place = compiler.partition(":")[2].partition("?")[0]
    Action, Observation = steps.StepAction, steps.StepObservation  # noqa: N806
    with stub(place, "/test.Compiler/Step", Action, Observation) as step:
        first = step(Action(_command="reset", _seed=7), timeout=20, wait_for_ready=True)
        assert (first.count, first.seed, first.HasField("action")) == (0, 7, False)
        second = step(Action(_command="step", action=5), timeout=10)
        assert (second.count, second.action) == (1, 5)
        assert getattr(second, "_reward") == 1  # noqa: B009
        wrong = step(Action(_command="fly"), timeout=10)
        assert getattr(wrong, "_code") == "InvalidArgument"  # noqa: B009
        for _ in range(9):
            last = step(Action(_command="step", action=1), timeout=10)
        assert getattr(last, "_terminated")  # noqa: B009


def test_our_trainer_trains_our_compiler(compiler: str, steps: Any) -> None:
    messages = protobuf.messages(steps.StepObservation, steps.StepAction)
    channel = mlbridge.grpc.TrainingChannel(compiler, formats=[messages])
    try:
        channel.connect(20, alive=lambda: True)
        channel.send({"_command": "reset", "_seed": 3})
        observation = channel.receive(10, alive=lambda: True)
        assert (observation["count"], observation["seed"]) == (0, 3)
        assert "_error" not in observation
        channel.send({"_command": "step", "action": 4})
        observation = channel.receive(10, alive=lambda: True)
        assert (observation["count"], observation["action"]) == (1, 4)
        assert observation["_reward"] == 1
        channel.send({"_command": "fly"})
        assert channel.receive(10, alive=lambda: True)["_code"] == "InvalidArgument"
    finally:
        channel.close()


@pytest.mark.parametrize("spec", [f"grpc:?{STEP}", "pipe:?serdes={name}"])
def test_an_environment_with_own_messages(spec: str, steps: Any) -> None:
    if not Path(PROGRAM).exists():
        pytest.skip("test-environment is not built")
    messages = protobuf.messages(steps.StepObservation, steps.StepAction)
    spec = spec.format(name=messages.name)
    with compiler_env(spec, formats=[messages]) as env:
        observation, info = env.reset(seed=5)
        assert (observation["count"], info["seed"]) == (0, 5)
        for step in range(1, 11):
            observation, reward, terminated, _, info = env.step(2)
            assert (observation["count"], reward, info["action"]) == (step, step, 2)
        assert terminated


def test_own_messages_in_other_processes(steps: Any) -> None:
    if not Path(PROGRAM).exists():
        pytest.skip("test-environment is not built")
    vectors = pytest.importorskip("gymnasium.vector")
    messages = protobuf.messages(steps.StepObservation, steps.StepAction)
    copied: Format = pickle.loads(pickle.dumps(messages))
    assert (copied.name, copied.help) == (messages.name, messages.help)
    spec = f"pipe:?serdes={messages.name}"
    make = partial(CompilerEnv, [PROGRAM], spec, formats=[copied], **COUNT_SPACES)
    with closing(vectors.AsyncVectorEnv([make, make], context="spawn")) as both:
        assert both.reset(seed=5)[0]["count"].tolist() == [0, 0]
        observation, rewards, *_ = both.step(np.array([2, 1]))
        assert observation["count"].tolist() == rewards.tolist() == [1, 1]
