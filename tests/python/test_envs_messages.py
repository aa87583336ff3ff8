# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CompilerEnv against compilers whose messages this library would not write."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="needs scripts/make-venv train")

from gymnasium import spaces

import mlbridge
from mlbridge.envs import CompilerEnv
from mlbridge.errors import error_for

SPEAKER = """
import os, sys
import numpy as np
import mlbridge

runner = mlbridge.create_model_runner(os.environ["MLBRIDGE_SPEC"])
runner.timeout = None
try:
    for message in [{"_ready": True}, *eval(sys.argv[1])]:
        runner.evaluate(message)
except mlbridge.PeerClosed:
    pass
"""
"""A compiler that says one message after another, whatever it is told."""

GOOD = {"x": 1.0, "_reward": 0.5, "_terminated": False, "_truncated": False}


@contextmanager
def speaker(*messages: dict[str, Any], **settings: Any) -> Iterator[CompilerEnv]:
    """An environment whose compiler is a `SPEAKER`; the text of a value is NumPy's."""
    settings = {"timeout": 20.0, "reset_timeout": 20.0, "max_restarts": 0, **settings}
    env = CompilerEnv(
        [sys.executable, "-c", SPEAKER, f"[{', '.join(map(_spelt, messages))}]"],
        observation_space=settings.pop(
            "observation_space", spaces.Box(0, 9, (), np.float64)
        ),
        action_space=spaces.Discrete(2),
        **settings,
    )
    try:
        yield env
    finally:
        env.close()


def _spelt(message: dict[str, Any]) -> str:
    # NumPy 2 writes np.float32(1.0), but array([1]).
    items = ", ".join(
        f"{name!r}: {'np.' if isinstance(value, np.ndarray) else ''}{value!r}"
        for name, value in message.items()
    ).replace("dtype=", "dtype=np.")
    return f"{{{items}}}"


# Errors


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
        assert env.starts == 1, "it has failed at an episode, and lives"


def test_an_unknown_code_is_bounded() -> None:
    assert len(str(error_for("A" * 10_000, "text"))) < 200


@pytest.mark.parametrize("code", ["Timeout", "PeerClosed"])
def test_a_code_that_names_a_failure_of_this_end(code: str) -> None:
    """Something that the compiler talks to was late, and not the compiler."""
    failure = {"_error": "the code generator", "_code": code}
    with speaker(failure, GOOD, failure, GOOD) as env:
        with pytest.raises(getattr(mlbridge, code), match=r"^the code generator$"):
            env.reset()
        env.reset()
        assert env.step(0)[4] == {"error": f"{code}: the code generator"}
        env.reset()
        assert env.starts == 1


# Observations


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"_error": 7}, "_error is a string"),
        ({"_error": "text", "_code": 7}, "_code is a string"),
        ({"_error": ["a", "b"]}, "_error is a string"),
        ({"_info": np.zeros(2)}, "_info is a string"),
        ({"_info": "[]"}, "_info is a JSON object"),
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
