# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads training logs of LLVM, logs of `record:`, and damaged logs."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mlbridge
import training_logs
from conftest import assert_same
from mlbridge import create_model_runner, read_log
from programs import run_program
from stock_llvm import OPT, needs_llvm
from training_logs import ADVICE, FEATURES, context, header, observation, outcome

WHOLE = header() + observation(0, 1, 1)
REWARDED = header(rewards=True) + observation(0, 1, 1)


def written(folder: Path, data: bytes) -> Path:
    (folder / "log").write_bytes(data)
    return folder / "log"


def test_observations(tmp_path: Path) -> None:
    log = read_log(training_logs.write_log(tmp_path / "log"))
    assert [spec.name for spec in log.features] == ["size", "weights"]
    assert (log.advice.name, log.reward) == ("inlining_decision", None)
    assert str(log.features[1]) == "float32[2,2]"
    assert [(o.context, o.index, *o.advice) for o in log] == [
        *(("main", 0, 1), ("helper ☃", 0, 0), ("main", 1, 1))
    ]
    assert all(o.reward is None for o in log)
    first, second, third = log
    assert_same(first.features["size"], np.array([10], np.int64))
    assert_same(second.features["weights"], np.array([[20, -1.5], [0, 10]], np.float32))
    # These bytes are newlines.
    assert_same(third.features["size"], np.array([0x0A0A0A0A]))


def test_rewards(tmp_path: Path) -> None:
    log = read_log(training_logs.write_log(tmp_path / "log", rewards=True))
    assert log.reward is not None
    assert [observed.reward for observed in log] == [2.5, 5, np.float32(0x0A0A0A0A / 4)]


@pytest.mark.parametrize("rewards", [False, True])
def test_arrays(tmp_path: Path, rewards: bool) -> None:
    log = read_log(training_logs.write_log(tmp_path / "log", rewards=rewards))
    arrays = log.as_arrays()
    assert arrays.contexts == ["main", "helper ☃", "main"]
    assert arrays.features["weights"].shape == (3, 2, 2)
    assert_same(arrays.advice, np.array([[1], [0], [1]], np.int64))
    assert (arrays.rewards is not None) == rewards
    for i, observed in enumerate(log):
        for name, value in observed.features.items():
            assert_same(arrays.features[name][i], value)


def test_a_log_without_observations(tmp_path: Path) -> None:
    path = written(tmp_path, header(rewards=True))
    assert list(read_log(path)) == []
    arrays = read_log(path).as_arrays()
    assert arrays.features["weights"].shape == (0, 2, 2)
    assert arrays.rewards is not None
    assert arrays.rewards.shape == (0,)


def test_a_log_cut_anywhere(tmp_path: Path) -> None:
    """Complete observations are read. The error has the offset of the cut."""
    whole = training_logs.write_log(tmp_path / "log", rewards=True).read_bytes()
    at = len(header(rewards=True))
    complete = {at}
    for name, index, size, decision in training_logs.OBSERVED:
        at += len(context(name))
        complete.add(at)
        at += len(observation(index, size, decision)) + len(outcome(index, 0))
        complete.add(at)
    cut = tmp_path / "cut"
    for length in range(len(whole)):
        cut.write_bytes(whole[:length])
        if length in complete:
            assert len(list(read_log(cut))) <= 3
            continue
        with pytest.raises(mlbridge.Malformed, match=r"cut: byte (\d+): ") as caught:
            list(read_log(cut))
        assert int(str(caught.value).split("byte ")[1].split(":")[0]) <= length


@pytest.mark.parametrize(
    ("data", "offset", "says"),
    [
        (b"", 0, "empty"),
        (b"{}\n", 0, "no features"),
        (b'{"features":[]}\n', 0, "no features"),
        (b"[]\n", 0, "object"),
        (b"not JSON\n", 0, "JSON"),
        (b"\xff\n", 0, "JSON"),
        (b'{"features":[{"name":"x","type":"half","shape":[1]}]}\n', 0, "half"),
        (b'{"features":[{"name":"x","type":"float","shape":[-1]}]}\n', 0, "-1"),
        (b'{"features":[{"name":"x","type":"float","shape":[true]}]}\n', 0, "True"),
        (b'{"features":[{"name":"x","type":"float"}]}\n', 0, "described"),
        (b'{"features":[7]}\n', 0, "7"),
        (header(features=[FEATURES[0], FEATURES[0]]), 0, "twice"),
        (header(score=FEATURES[1]), 0, "one number"),
        (header(advice=FEATURES[0]), 0, "last tensor"),
        (header() + b'{"outcome":0}\n', len(header()), "outcome"),
        (header() + b'{"observation":"0"}\n', len(header()), "observation"),
        (header() + b'{"observation":true}\n', len(header()), "observation"),
        (header() + b'{"observation":-1}\n', len(header()), "observation"),
        (header() + b'{"observation":%d}\n' % (1 << 63), len(header()), "observation"),
        (header() + b'{"context":"\\ud800"}\n', len(header()), "context"),
        (b'{"features":[{"name":"","type":"float","shape":[]}]}\n', 0, "''"),
        (b'{"features":[{"name":"\\ud800","type":"float","shape":[]}]}\n', 0, "ud800"),
        (header(features=[{**ADVICE, "shape": [0, 1 << 32]}]), 0, "4294967296"),
        (WHOLE[:-1] + b"x", len(WHOLE) - 1, "newline"),
        (REWARDED + outcome(1, 1), len(REWARDED), "outcome of observation 0"),
        (REWARDED, len(REWARDED), "missing"),
    ],
)
def test_malformed_logs(tmp_path: Path, data: bytes, offset: int, says: str) -> None:
    path = written(tmp_path, data)
    with pytest.raises(mlbridge.Malformed, match=rf"byte {offset}: .*{says}"):
        list(read_log(path))


def test_a_header_that_lies_about_sizes(tmp_path: Path) -> None:
    """The reader must not allocate memory for the announced sizes."""
    huge = {"name": "x", "type": "double", "shape": [1 << 40]}
    path = written(tmp_path, header(features=[huge]))
    assert read_log(path).as_arrays().advice.shape == (0, 1 << 40)
    path = written(tmp_path, header(features=[huge]) + b'{"observation":0}\n')
    with pytest.raises(
        mlbridge.Malformed, match=r"expected 8796093022209 bytes for .*, found 0"
    ):
        list(read_log(path))


def test_text_that_ends_with_zeros(tmp_path: Path) -> None:
    """Zeros are kept, although NumPy's string type would drop them."""
    text = {"name": "kind", "type": "uint8_t", "shape": [2], "semantics": "string"}
    texts = {**text, "name": "names", "shape": [4], "lengths": [2, 0, 2]}
    first = header(features=[text, {**texts, "semantics": "strings"}, ADVICE])
    data = b'{"observation":0}\na\0b\0\0\0' + bytes(8) + b"\n"
    path = written(tmp_path, first + data)
    (observed,) = read_log(path)
    arrays = read_log(path).as_arrays()
    assert observed.features == {"kind": "a\0", "names": ["b\0", "", "\0\0"]}
    assert arrays.features["kind"].tolist() == ["a\0"]
    assert arrays.features["names"].tolist() == [["b\0", "", "\0\0"]]


@pytest.mark.parametrize("count", [0, 3])
def test_tensors_without_elements(tmp_path: Path, count: int) -> None:
    nothing = {"name": "x", "type": "double", "shape": [2, 0, 1 << 30]}
    texts = {**nothing, "name": "texts", "type": "uint8_t", "semantics": "strings"}
    first = header(features=[{**texts, "lengths": []}, nothing])
    log = read_log(written(tmp_path, first + b'{"observation":0}\n\n' * count))
    assert len(list(log)) == count
    arrays = log.as_arrays()
    assert arrays.advice.shape == (count, 2, 0, 1 << 30)
    assert arrays.features["texts"].shape == (count, 0)


def test_errors_are_a_line(tmp_path: Path) -> None:
    """Names in errors are shortened and escaped."""
    texts = {"name": "\x1b" * 9999, "type": "uint8_t", "shape": [1]}
    for data in (
        header(features=[{**texts, "semantics": "strings", "lengths": [2]}]),
        header() + context("\x1b" * 9999) + b'{"observation":0}\n',
        header(rewards=True) + context("\n" * 9999) + observation(0, 1, 1),
    ):
        with pytest.raises(mlbridge.Malformed) as caught:
            list(read_log(written(tmp_path, data)))
        assert len(str(caught.value)) < 700
        assert str(caught.value).isprintable()


@given(st.binary(max_size=200))
def test_noise(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "noise"
    path.write_bytes(header() + noise)
    try:
        list(read_log(path))
    except mlbridge.Malformed as error:
        assert str(path) in str(error)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_log(tmp_path / "nothing")


def test_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path, kind in ((tmp_path / "fifo", "FIFO"), (Path("/dev/zero"), "device")):
        with pytest.raises(mlbridge.InvalidArgument, match=f"found a {kind}"):
            read_log(path)


def test_what_record_writes(tmp_path: Path, name: str) -> None:
    path = tmp_path / "log"
    with (
        mlbridge.serving(lambda f: f["n"] % 2, f"pipe:{name}"),
        create_model_runner(f"record:{path}|pipe:{name}?timeout=20s") as runner,
    ):
        for i in range(6):
            runner.switch_context(f"function {i // 3}")
            features = {
                "n": i,
                "matrix": np.full((2, 3), i / 4, np.float32),
                "flag": i > 2,
                "kind": "loop",
                "names": ["a", "bc"],
            }
            assert runner.evaluate(features, int) == i % 2
            runner.log_outcome("decision", np.int64(i % 2), reward=i / 2)
    log = read_log(path)
    observed = list(log)
    assert [(o.context, o.index, o.reward) for o in observed] == [
        (f"function {i // 3}", i % 3, i / 2) for i in range(6)
    ]
    for i, o in enumerate(observed):
        assert_same(o.features["n"], np.array([i]))
        assert_same(o.features["matrix"], np.full((2, 3), i / 4, np.float32))
        assert_same(o.features["flag"], np.array([i > 2]))
        assert (o.features["kind"], o.features["names"]) == ("loop", ["a", "bc"])
        assert_same(o.advice, np.array([i % 2]))
    arrays = log.as_arrays()
    assert arrays.features["names"].tolist() == 6 * [["a", "bc"]]
    assert arrays.features["kind"].tolist() == 6 * ["loop"]
    assert_same(arrays.features["flag"], np.array([[i > 2] for i in range(6)]))
    assert log.advice.name == "decision"


def test_a_context_that_is_not_utf_8(tmp_path: Path) -> None:
    """The file's name is not UTF-8, either. Invalid bytes are replaced in the JSON."""
    path = tmp_path / os.fsdecode(b"odd\xff.log")
    with create_model_runner(f"record:{path}|none") as runner:
        runner.switch_context(os.fsdecode(b"f\xff"))
        with pytest.raises(mlbridge.Deferred):
            runner.evaluate({"x": 1})
        runner.log_outcome("decision", 3)
    assert [o.context for o in read_log(path)] == ["f\ufffd"]


def test_a_heuristic_recorded(tmp_path: Path) -> None:
    """`record:` logs the compiler's decisions if the model always defers."""
    path = tmp_path / "log"
    with create_model_runner(f"record:{path}|none") as runner:
        for i in range(4):
            with pytest.raises(mlbridge.Deferred):
                runner.evaluate({"n": i}, bool)
            if i != 2:
                runner.log_outcome("inline", i > 1)
    assert [o.features["n"] for o in read_log(path)] == [0, 1, 3]
    assert read_log(path).as_arrays().advice.tolist() == [[False], [False], [True]]


def ask_once(runner: mlbridge.ModelRunner) -> None:
    with pytest.raises(mlbridge.Deferred):
        runner.evaluate({"x": 1}, int)
    runner.log_outcome("inlined", True)


def test_a_log_that_cannot_be_written(capfd: pytest.CaptureFixture[str]) -> None:
    runner = create_model_runner("record:/dev/full|none")
    ask_once(runner)
    with pytest.raises(mlbridge.OSFailure, match="log '/dev/full': No space left"):
        runner.flush()
    with pytest.raises(mlbridge.OSFailure, match="No space left"):
        runner.close()
    # The call of close() that failed has still closed the runner.
    runner.close()
    with pytest.raises(mlbridge.InvalidArgument, match="closed"):
        runner.flush()
    assert capfd.readouterr().err == ""


def test_a_with_block_says_that_its_log_cannot_be_written() -> None:
    with (
        pytest.raises(mlbridge.OSFailure, match="No space left"),
        create_model_runner("record:/dev/full|none") as runner,
    ):
        ask_once(runner)
    # The first exception is raised, with a note on the second.
    with (  # noqa: PT012
        pytest.raises(KeyError) as raised,
        create_model_runner("record:/dev/full|none") as runner,
    ):
        ask_once(runner)
        raise KeyError("first")
    assert "No space left" in raised.value.__notes__[0]


@needs_llvm
def test_what_llvm_writes(tmp_path: Path) -> None:
    """LLVM's interactive runner announces its tensors with a header like a log's."""
    source = tmp_path / "a.ll"
    source.write_text(
        "define internal i32 @f(i32 %x) { %y = add i32 %x, 1 ret i32 %y }\n"
        "define i32 @g(i32 %x) { %y = call i32 @f(i32 %x) ret i32 %y }\n"
    )
    # Use files as the channel of the release-mode advisor, which writes no log.
    channel = tmp_path / "channel"
    (tmp_path / "channel.out").touch()
    (tmp_path / "channel.in").write_bytes(np.int64(1).tobytes() * 16)
    run_program(
        [
            *(OPT, "-passes=scc-oz-module-inliner", "-enable-ml-inliner=release"),
            f"-inliner-interactive-channel-base={channel}",
            *("-disable-output", source),
        ],
        check=True,
    )
    first, *lines, data = (tmp_path / "channel.out").read_bytes().split(b"\n", 3)
    announced: dict[str, Any] = json.loads(first)
    size = sum(8 * int(np.prod(f["shape"])) for f in announced["features"])
    # The channel omits the advice, which is the last feature of a log.
    announced["features"].append(announced["advice"])
    data = data[:size] + np.int64(1).tobytes()
    log = b"\n".join((json.dumps(announced).encode(), *lines, data, b""))
    (observed,) = read_log(written(tmp_path, log))
    assert observed.index == 0
    assert len(observed.features) == len(announced["features"]) - 1
    assert observed.features["callsite_height"].shape == (1,)
    assert_same(observed.advice, np.array([1], np.int64))
