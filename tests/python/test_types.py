# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of element types, error classes, and errors of runners."""

from typing import Any

import numpy as np
import pytest

import mlbridge
from mlbridge import create_model_runner
from mlbridge.errors import error_for
from mlbridge.types import element_type_name
from programs import reply_of


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        *((bool, "bool"), (int, "int64_t"), (float, "double"), (str, "string")),
        *(("float", "float"), ("double", "double"), ("string", "string")),
        *(("int8_t", "int8_t"), ("int8", "int8_t"), ("f4", "float")),
        *((np.float32, "float"), (np.uint16, "uint16_t"), (np.bool_, "bool")),
        (np.dtype(">i4"), "int32_t"),
    ],
    ids=str,
)
def test_names_of_types(dtype: Any, name: str) -> None:
    assert element_type_name(dtype) == name


@pytest.mark.parametrize("dtype", ["float16", np.complex64, object, "nonsense", "S4"])
def test_types_that_are_none(dtype: Any) -> None:
    with pytest.raises(TypeError):
        element_type_name(dtype)


@pytest.mark.parametrize(
    ("code", "kind", "builtin"),
    [
        ("Timeout", mlbridge.Timeout, TimeoutError),
        ("PeerClosed", mlbridge.PeerClosed, ConnectionError),
        ("Malformed", mlbridge.Malformed, ValueError),
        ("SchemaMismatch", mlbridge.SchemaMismatch, TypeError),
        ("Model", mlbridge.ModelError, RuntimeError),
        ("Unsupported", mlbridge.Unsupported, NotImplementedError),
        ("System", mlbridge.OSFailure, OSError),
        ("InvalidArgument", mlbridge.InvalidArgument, ValueError),
        ("Deferred", mlbridge.Deferred, Exception),
    ],
)
def test_errors(
    code: str, kind: type[mlbridge.Error], builtin: type[Exception]
) -> None:
    error = error_for(code, "why")
    assert type(error) is kind
    assert isinstance(error, mlbridge.Error)
    assert isinstance(error, builtin)
    assert (error.code, str(error)) == (code, "why")


@pytest.mark.parametrize(
    ("spec", "kind", "says"),
    [
        ("", mlbridge.InvalidArgument, ""),
        ("carrier-pigeon:home", mlbridge.Error, "carrier-pigeon"),
        ("pipe:/tmp/x?timeout=soon", mlbridge.InvalidArgument, "soon"),
        ("pipe:/tmp/x?colour=red", mlbridge.InvalidArgument, "colour"),
        ("record:/tmp|none", mlbridge.Error, "/tmp"),
    ],
)
def test_wrong_specs(spec: str, kind: type[mlbridge.Error], says: str) -> None:
    with pytest.raises(kind) as caught:
        create_model_runner(spec)
    assert says in str(caught.value)


def test_nobody_to_ask(name: str) -> None:
    with pytest.raises(mlbridge.Timeout, match=name):
        reply_of(f"pipe:{name}?connect=200ms", {"x": 1})


def test_a_closed_runner(name: str) -> None:
    runner = create_model_runner("none")
    assert "none" in repr(runner)
    runner.close()
    runner.close()
    with pytest.raises(mlbridge.InvalidArgument, match="closed"):
        runner.evaluate({"x": 1})


def test_the_timeout_of_a_runner(name: str) -> None:
    with create_model_runner(f"pipe:{name}?timeout=1500ms") as runner:
        assert runner.timeout == 1.5
        runner.timeout = 0.25
        assert runner.timeout == 0.25
        with pytest.raises(mlbridge.InvalidArgument, match="nan"):
            runner.timeout = float("nan")
