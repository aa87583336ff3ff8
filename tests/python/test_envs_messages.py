# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CompilerEnv receives messages that this library would not write."""

import gc
import logging
import os
import re
import sys
from contextlib import closing
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="needs scripts/make-venv train")

from gymnasium import Env, spaces

import mlbridge
from mlbridge.envs import CompilerEnv, make_vec
from mlbridge.envs.check import ValueCheck
from mlbridge.errors import error_for
from programs import run_python

SPEAKER = """
import os, sys
import numpy as np
import mlbridge
from math import inf, nan

runner = mlbridge.create_model_runner(os.environ["MLBRIDGE_SPEC"])
runner.timeout = None
try:
    for message in [{"_ready": True}, *eval(sys.argv[1])]:
        runner.evaluate(message)
except mlbridge.PeerClosed:
    pass
"""
"""A compiler that sends one message after another and ignores the replies."""

GOOD = {"x": 1.0, "_reward": 0.5, "_terminated": False, "_truncated": False}


class Expression:
    """An expression that SPEAKER evaluates, for a value too long for a command."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def speaking(*messages: dict[str, Any] | Expression) -> list[str]:
    """Returns the command of a `SPEAKER`."""
    # Add the prefix `np.`, which np.array's repr lacks. SPEAKER defines nan and inf.
    text = re.sub(r"\barray\(|(?<=dtype=)", r"np.\g<0>", repr(list(messages)))
    return [sys.executable, "-c", SPEAKER, text]


SETTINGS: dict[str, Any] = {
    "observation_space": spaces.Box(0, 9, (), np.float64),
    "action_space": spaces.Discrete(2),
    "timeout": 20.0,
    "reset_timeout": 20.0,
    "max_restarts": 0,
}


def speaker(*messages: Any, **settings: Any) -> closing[CompilerEnv]:
    """An environment whose compiler is a `SPEAKER`, as a context manager."""
    return closing(CompilerEnv(speaking(*messages), **{**SETTINGS, **settings}))


def test_a_code_that_is_unknown() -> None:
    failure = {"_error": "no such unit", "_code": "NoSuchUnit"}
    says = r"no such unit .*'NoSuchUnit'.* unknown"
    with speaker(failure, GOOD, failure, GOOD) as env:
        with pytest.raises(mlbridge.Error, match=says):
            env.reset()
        env.reset()
        over = env.step(0)
        assert over[2:4] == (False, True)
        assert over[4]["error"].startswith("Error: no such unit")
        assert "NoSuchUnit" in over[4]["error"]
        assert env.reset()[0] == 1.0
        assert env.starts == 1, "the compiler survives a failed episode"
    assert len(str(error_for("A" * 10_000, "text"))) < 200


@pytest.mark.parametrize("code", ["Timeout", "PeerClosed"])
def test_a_code_that_names_a_failure_of_this_end(code: str) -> None:
    """The compiler reports a failure of another process, not its own."""
    failure = {"_error": "the code generator", "_code": code}
    with speaker(failure, GOOD, failure, GOOD) as env:
        with pytest.raises(getattr(mlbridge, code), match=r"^the code generator$"):
            env.reset()
        env.reset()
        assert env.step(0)[4] == {"error": f"{code}: the code generator"}
        env.reset()
        assert env.starts == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"_error": 7}, "_error is a string"),
        ({"_error": "text", "_code": 7}, "_code is a string"),
        ({"_error": ["a", "b"]}, "_error is a string"),
        ({"_info": np.zeros(2)}, "_info is a string"),
        ({"_info": "[]"}, "_info is a JSON object"),
        ({"_info": '{"error": "none"}'}, "key 'error' is reserved"),
        ({"_agent": np.zeros(2)}, "_agent is a string"),
        ({"_reward": "1.5"}, "_reward is one number"),
        ({"_reward": True}, "_reward is one number"),
        ({"_reward": np.zeros(1)}, "_reward is one number"),
        ({"_terminated": "False"}, "_terminated is one bool"),
        ({"_truncated": 0.0}, "_truncated is one bool"),
        ({"_truncated": np.zeros(2, bool)}, "_truncated is one bool"),
    ],
    ids=str,
)
def test_a_reserved_tensor_of_another_type(change: dict[str, Any], says: str) -> None:
    with (
        speaker({**GOOD, **change}) as env,
        pytest.raises(mlbridge.Malformed, match=says),
    ):
        env.reset()


@pytest.mark.parametrize("name", ["_reward", "_terminated", "_truncated"])
def test_a_reserved_tensor_that_is_missing(name: str) -> None:
    message = {key: value for key, value in GOOD.items() if key != name}
    with speaker(message) as env, pytest.raises(mlbridge.Malformed, match=name):
        env.reset()


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_an_info_that_is_nested_too_deeply(opening: str) -> None:
    info = Expression(f"{opening!r} * 100_000")
    with (
        speaker({**GOOD, "_info": info}) as env,
        pytest.raises(mlbridge.Malformed, match="RecursionError"),
    ):
        env.reset()


@pytest.mark.parametrize("name", [r"'\x1b[2J\x07name'", "'n' * 100_000"])
@pytest.mark.parametrize("is_observation", [False, True])
def test_names_of_a_compiler_are_spelt_out(name: str, is_observation: bool) -> None:
    odd = f"{{**{GOOD if is_observation else {'x': 1}}, {name}: 1}}"
    with speaker(Expression(odd)) as env, pytest.raises(mlbridge.Error) as caught:
        env.reset()
    assert_short_and_printable(str(caught.value))


@pytest.mark.parametrize("text", [r"'\x1b[2J\x07bad'", "'E' * 5_000_000"])
def test_words_of_a_compiler_are_spelt_out(text: str) -> None:
    failure = {"_error": Expression(text), "_code": "Timeout"}
    with speaker(failure, GOOD, failure) as env:
        with pytest.raises(mlbridge.Timeout) as caught:
            env.reset()
        assert_short_and_printable(str(caught.value))
        env.reset()
        assert_short_and_printable(env.step(0)[4]["error"])


def assert_short_and_printable(text: str) -> None:
    assert text.isprintable()
    assert len(text) < 1200


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "mlbridge.envs" and record.levelno == logging.WARNING
    ]


def end_with(**change: Any) -> dict[str, Any]:
    return {**GOOD, "_terminated": True, **change}


def test_values_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    nan, infinity = float("nan"), float("inf")
    messages = [
        {**GOOD, "x": 9.5},
        {**GOOD, "_reward": nan},
        {**GOOD, "x": nan, "_reward": infinity},
        end_with(x=-1.0),
        GOOD,
        end_with(_reward=-infinity),
    ]
    with speaker(*messages, check=True) as env:
        assert env.reset()[0] == 9.5, "the learner gets the value unchanged"
        (first,) = warnings_in(caplog)
        assert "observation 1 " in first
        assert "found 9.5" in first
        assert np.isnan(env.step(0)[1])
        assert "reward 1 is nan" in warnings_in(caplog)[1]
        for _ in range(2):
            env.step(0)
        env.reset()
        env.step(0)
        assert len(warnings_in(caplog)) == 2, "each kind is reported once"
        check = env.check
        assert (check.observations, check.outside) == (6, 3)
        assert (check.rewards, check.non_finite) == (4, 3)
        assert "3 of 6 observations outside, 3 of 4 rewards" in repr(check)
        env.close()
        assert "3 of 6 observations" in warnings_in(caplog)[2]
        assert "3 of 4 rewards" in warnings_in(caplog)[2]
    assert len(warnings_in(caplog)) == 3, "the counts are reported once"


def test_values_are_not_looked_at_by_default(caplog: pytest.LogCaptureFixture) -> None:
    with speaker({**GOOD, "x": float("nan")}) as env:
        env.reset()
        assert env.check.observations == 0
        assert repr(env.check) == "<ValueCheck: off>"
    assert warnings_in(caplog) == []


def test_values_that_are_as_they_should_be(caplog: pytest.LogCaptureFixture) -> None:
    with speaker(GOOD, end_with(x=9.0), check=True) as env:
        env.reset()
        env.step(0)
        assert env.check.observations == 2
    assert warnings_in(caplog) == []


@pytest.mark.parametrize(
    ("space", "features", "says"),
    [
        (
            spaces.Dict({"a": spaces.Box(0, 1, (2, 2)), "b": spaces.Discrete(3)}),
            {"a": np.array([[0, 1], [2, -1]], np.float32), "b": 2},
            r"'a': expected Box.*found 2.0 at \[1, 0\], and 2 such numbers",
        ),
        (
            spaces.Dict({"a": spaces.Box(0, 1, (1,)), "b": spaces.Discrete(3)}),
            {"a": np.array([1], np.float32), "b": 3},
            r"'b': expected Discrete\(3\), found .*3",
        ),
        (
            spaces.Tuple((spaces.Discrete(2), spaces.Text(3))),
            {"0": 1, "1": "long"},
            r"'1': expected Text.*found 'long'",
        ),
        (
            spaces.Dict({"n": spaces.Tuple((spaces.MultiBinary(2),))}),
            {"n.0": np.array([0, 2], np.int8)},
            r"'n.0': expected MultiBinary.*found array",
        ),
        (spaces.MultiDiscrete([3, 4]), {"x": [2, 4]}, r"expected MultiDiscrete"),
    ],
)
def test_where_a_value_is_outside(
    space: spaces.Space[Any],
    features: dict[str, Any],
    says: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    message = {name: value for name, value in GOOD.items() if name != "x"}
    with speaker({**message, **features}, check=True, observation_space=space) as env:
        env.reset()
        assert env.check.outside == 1
    assert re.search(says, warnings_in(caplog)[0])


def test_counts_of_a_forgotten_environment(caplog: pytest.LogCaptureFixture) -> None:
    CompilerEnv(speaking({**GOOD, "x": 10.0}), **SETTINGS, check=True).reset()
    gc.collect()
    assert "1 of 1 observations" in warnings_in(caplog)[-1]


def test_a_forked_child_reports_nothing(caplog: pytest.LogCaptureFixture) -> None:
    env = Env[int, int]()
    check = ValueCheck(env, "other (worker 0)", check=True)
    check.reward(float("nan"))
    child = os.fork()
    if child == 0:
        caplog.clear()
        check.report()
        os._exit(len(warnings_in(caplog)))
    assert os.waitpid(child, 0)[1] == 0, "the child has nothing to report"
    check.report()
    assert "1 of 1 rewards" in warnings_in(caplog)[-1]


FORGETFUL = """
import sys
from contextlib import closing
import gymnasium, numpy as np
from mlbridge.envs import CompilerEnv
env = CompilerEnv(sys.argv[1:],
                  observation_space=gymnasium.spaces.Box(0, 9, (), np.float64),
                  action_space=gymnasium.spaces.Discrete(2), check=True)
env.reset()
"""


def test_counts_of_a_program_that_closes_nothing() -> None:
    done = run_python(FORGETFUL, *speaking({**GOOD, "x": -1.0}), check=True)
    assert "1 of 1 observations" in done.stderr


def test_several_compilers_are_checked(caplog: pytest.LogCaptureFixture) -> None:
    messages = [GOOD, end_with(_reward=float("nan"))]
    envs = make_vec(2, speaking(*messages), **SETTINGS, check=True)
    envs.reset()
    envs.step(np.zeros(2, np.int64))
    envs.close()
    counts = [line for line in warnings_in(caplog) if "1 of 1 rewards" in line]
    assert len(counts) == 2
    assert "worker 1" in counts[1]
