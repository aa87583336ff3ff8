# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge serve`` follows a file's metadata in the same way as ``onnx:FILE``.

Each request is sent to the same file in this process and in a server. Both must give
the same reply or the same type of error.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto

import mlbridge
from aot_models import GraphBuilder
from mlbridge.export import FeatureSpec
from mlbridge.onnx import load_onnx
from programs import ROOT, asked_at, reply_of

MODELS = sorted(ROOT.glob("models/**/*.onnx"))

KINDS = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float64): TensorProto.DOUBLE,
    np.dtype(np.int64): TensorProto.INT64,
    np.dtype(np.uint8): TensorProto.UINT8,
    np.dtype(np.bool_): TensorProto.BOOL,
}


def passing_on(
    path: Path, metadata: dict[str, str], scores: NDArray[Any], batch: str | int = "N"
) -> Path:
    """Writes a model whose outputs are its input: `s` as it is, and `size` as float."""
    kind, shape = KINDS[scores.dtype], [batch, *scores.shape]
    g = GraphBuilder(0)
    g.op("Identity", ["x"], "s")
    g.op("Cast", ["x"], "size", to=TensorProto.FLOAT)
    outputs = [("s", kind, shape), ("size", TensorProto.FLOAT, shape)]
    return g.save(path, [("x", kind, shape)], outputs, **metadata)


def plain(reply: Any) -> Any:
    """Converts a reply to Python values.

    Removes extents of 1. If there is only one output, also removes its name.
    """
    if isinstance(reply, dict):
        if len(reply) == 1:
            return plain(*reply.values())
        return {name: plain(value) for name, value in reply.items()}
    return np.squeeze(np.asarray(reply)).tolist()


def ask(spec: str, request: NDArray[Any]) -> Any:
    """Returns the `plain` reply, or the error's type."""
    try:
        return plain(reply_of(spec, {"x": request}))
    except mlbridge.Error as error:
        return type(error)


def ask_both(path: Path, name: str, request: NDArray[Any]) -> list[Any]:
    """Returns the replies in this process and from a server."""
    with mlbridge.serving(load_onnx(path), f"shm:{name}"):
        return [ask(f"onnx:{path}", request), ask(f"shm:{name}", request)]


NAN, INF = np.nan, np.inf


@pytest.mark.parametrize("batch", ["N", 1])
@pytest.mark.parametrize(
    ("rule", "scores", "expected"),
    [
        ("argmax:s", np.array([1, 3, 2], np.float32), 1),
        ("argmax:s", np.array([1, 3, 3], np.float64), 1),
        ("argmax:s", np.array([-INF, -INF, INF], np.float32), 2),
        ("argmax:s", np.array([2**62, 2**62 + 1, 0]), 1),
        ("argmax:s", np.array([7, 255, 9], np.uint8), 1),
        ("argmax:s", np.array([False, True, True]), 1),
        ("argmax:s", np.array([[1, 2], [4, 3], [5, 6]], np.float32), [1, 0, 1]),
        ("argmax:s", np.array(5, np.float32), 0),
        ("argmax:s", np.array([1, NAN, 2], np.float32), mlbridge.ModelError),
        ("argmax:size", np.array([1, 3, 2]), 1),
        ("sample:s", np.array([-INF, 0, -INF], np.float32), 1),
        ("sample:s", np.array([900, 0, 0]), 0),
        ("sample:s", np.array([1, NAN, 2], np.float32), mlbridge.ModelError),
        ("sample:s", np.array([1, INF, 2], np.float64), mlbridge.ModelError),
        ("sample:s", np.array([-INF, -INF], np.float32), mlbridge.ModelError),
        ("outputs:size", np.array([1, 3, 2], np.uint8), [1, 3, 2]),
        ("outputs", np.array([1, 3]), {"s": [1, 3], "size": [1, 3]}),
        ("outputs:", np.array([1, 3]), {"s": [1, 3], "size": [1, 3]}),
        (None, np.array([1, 3]), {"s": [1, 3], "size": [1, 3]}),
    ],
)
def test_decisions(
    tmp_path: Path,
    name: str,
    rule: str | None,
    scores: NDArray[Any],
    expected: Any,
    batch: str | int,
) -> None:
    metadata = {} if rule is None else {"mlbridge.decide": rule}
    path = passing_on(tmp_path / "m.onnx", metadata, scores, batch)
    assert ask_both(path, name, scores) == [expected, expected]


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ({"mlbridge.decide": "greedy:s"}, mlbridge.Malformed),
        ({"mlbridge.decide": "argmax:q"}, mlbridge.SchemaMismatch),
        ({"mlbridge.decide": "outputs:q"}, mlbridge.SchemaMismatch),
        ({"mlbridge.decide": "argmax"}, mlbridge.SchemaMismatch),
        ({"mlbridge.finite": "yes"}, mlbridge.Malformed),
    ],
)
def test_metadata_that_make_no_sense(
    tmp_path: Path, metadata: dict[str, str], error: type[Exception]
) -> None:
    scores = np.array([1, 2], np.float32)
    path = passing_on(tmp_path / "m.onnx", metadata, scores)
    assert ask(f"onnx:{path}", scores) is error
    with pytest.raises(error, match=f"{path}: .*expected .*, found"):
        load_onnx(path)


@pytest.mark.parametrize("finite", ["true", "false", None])
@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_features_that_are_not_finite(
    tmp_path: Path, name: str, finite: str | None, bad: float, kind: Any
) -> None:
    about = {"mlbridge.decide": "outputs:s"}
    if finite is not None:
        about["mlbridge.finite"] = finite
    request = np.array([1, bad, 2], kind)
    path = passing_on(tmp_path / "m.onnx", about, request)
    replies = ask_both(path, name, request)
    if finite == "true":
        # A served policy's exception reaches the compiler as a ModelError.
        assert replies == [mlbridge.SchemaMismatch, mlbridge.ModelError]
        with pytest.raises(mlbridge.SchemaMismatch, match=r"'x': .* at element 1"):
            load_onnx(path)([{"x": request}])
    else:
        for reply in replies:
            np.testing.assert_array_equal(reply, request)


def test_draws(tmp_path: Path) -> None:
    """Draws have the frequencies of a softmax. The same seed repeats them."""
    scores = np.log(np.array([0.1, 0.6, 0.3], np.float32))
    path = passing_on(tmp_path / "m.onnx", {"mlbridge.decide": "sample:s"}, scores)
    with mlbridge.create_model_runner(f"onnx:{path}") as runner:
        in_process = [plain(runner.evaluate({"x": scores})) for _ in range(4000)]
    policy = load_onnx(path, seed=5)
    served = [int(reply) for reply in policy([{"x": scores}] * 4000)]
    for drawn in (in_process, served):
        often = np.bincount(drawn, minlength=3) / len(drawn)
        np.testing.assert_allclose(often, [0.1, 0.6, 0.3], atol=0.04)
    again = load_onnx(path, seed=5)([{"x": scores}] * 4000)
    assert [int(reply) for reply in again] == served


def test_one_request_s_nan_is_its_own(tmp_path: Path, name: str) -> None:
    """A NaN in one request of a batch does not affect other requests."""
    scores = np.array([1, 3, 2], np.float32)
    path = passing_on(tmp_path / "m.onnx", {"mlbridge.decide": "argmax:s"}, scores)
    policy = load_onnx(path)
    replies = policy([{"x": np.roll(scores, i)} for i in range(3)])
    assert [int(reply) for reply in replies] == [1, 2, 0]
    with pytest.raises(
        mlbridge.ModelError, match=r"output 's' .*, row 1: .* found NaN at 2"
    ):
        policy([{"x": scores}, {"x": np.array([1, 2, NAN], np.float32)}])
    with asked_at(policy, f"shm:{name}", f"shm:{name}") as (_, runner):
        with pytest.raises(mlbridge.ModelError, match="found NaN at 0"):
            runner.evaluate({"x": np.full(3, NAN, np.float32)})
        assert ask(f"shm:{name}", scores) == 1


@pytest.mark.parametrize("path", MODELS, ids=lambda p: p.stem)
def test_the_models_of_this_repository(path: Path, name: str) -> None:
    metadata = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    features = [
        FeatureSpec(one["name"], one["type"], tuple(one["shape"]))
        for one in json.loads(metadata["mlbridge.features"])
    ]
    random = np.random.default_rng(3)
    with (
        asked_at(load_onnx(path), f"shm:{name}", f"shm:{name}") as (_, served),
        mlbridge.create_model_runner(f"onnx:{path}") as in_process,
    ):
        for _ in range(20):
            request = {}
            for one in features:
                # Replace a name, because an extent with a name is free.
                shape = [4 if isinstance(n, str) else n for n in one.shape]
                request[one.name] = random.integers(0, 4, shape).astype(one.dtype)
            expected = plain(in_process.evaluate(request))
            assert plain(served.evaluate(request)) == pytest.approx(expected)
