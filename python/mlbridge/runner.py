# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Queries models, for tests, benchmarks and compilers that are written in Python."""

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

from mlbridge import _core, grpc, inprocess
from mlbridge.errors import Error
from mlbridge.types import element_type_name


@functools.cache
def _factory(
    onnxruntime: str, modules: str | None, with_grpc: bool, process: int
) -> _core.Factory:
    """Returns the factory that all runners share, so that each model is loaded once.

    The arguments are the key of the cache. They include the process ID, because a
    forked child lacks the threads of its parent's models.
    """
    schemes = inprocess.schemes()
    return _core.Factory(schemes + grpc.schemes() if with_grpc else schemes)


class ModelRunner:
    """Queries the model that a spec names, like ``MLModelRunner`` in C++.

    One thread at a time may use a runner. Each runner has its own session, which begins
    with the first request::

        with create_model_runner("pipe:/tmp/advisor") as runner:
            inline = runner.evaluate({"callee_size": 12}, bool)
    """

    def __init__(self, spec: str, *, formats: Sequence[_core.Format] = ()) -> None:
        factory = _factory(
            str(inprocess.onnxruntime() or ""),
            os.environ.get("MLBRIDGE_MODULES"),
            grpc.is_named_in(spec),
            os.getpid(),
        )
        self._runner = _core.Runner(spec, formats, factory)

    def evaluate(
        self, features: Mapping[str, Any], dtype: Any = None, *, many: bool = False
    ) -> Any:
        """Returns the model's advice for these features.

        Other Python threads run during the wait. If a signal handler raises, for
        example after Ctrl-C, the request is abandoned within 0.1 s. Its reply is
        dropped, and the next request begins a new session. A model in this process
        (``onnx:``) finishes its evaluation first.

        Args:
            features: maps names to numbers, bools, strings, lists of these, or arrays
                of rank up to 8. An int is sent as int64 and a float as float64. An
                array or a NumPy scalar keeps its dtype.
            dtype: the element type of the result. See `element_type_name`.
            many: return any number of elements of ``dtype``, not just one.

        Returns:
            If ``dtype`` is given, the result is the model's only output, or the output
            ``"out"``, converted to a Python scalar. With ``many``, it is a 1-d array or
            a list of str. If ``dtype`` is None, the result is a dict of all outputs, or
            just ``"out"`` if there is no other output. The decision of an ``onnx:``
            model is also in a dict, under the name of its output, for example
            ``{"logits": array([1])}``. The caller owns the arrays.

        Raises:
            Deferred: the model leaves the decision to the compiler.
            ModelError: the model failed.
            SchemaMismatch: a feature is not a tensor, or ``dtype`` cannot hold a value.
            Timeout: no model or no reply was available before the deadline.
            PeerClosed: the model disconnected.
        """
        if dtype is not None:
            return self._runner.evaluate(dict(features), element_type_name(dtype), many)
        outputs = self._runner.evaluate(dict(features))
        return outputs["out"] if outputs.keys() == {"out"} else outputs

    def log_outcome(self, name: str, value: Any, reward: float | None = None) -> None:
        """Logs the decision that was finally made, if the runner records or learns."""
        self._runner.log_outcome(name, value, reward)

    def log_reward(self, reward: float) -> None:
        """Logs the reward of the last advice."""
        self._runner.log_outcome(None, None, reward)

    def switch_context(self, name: str) -> None:
        """Sets the context of the next requests, for example a module or a function."""
        self._runner.switch_context(name)

    @property
    def timeout(self) -> float:
        """The time limit of one `evaluate` in seconds."""
        return self._runner.timeout

    @timeout.setter
    def timeout(self, seconds: float | None) -> None:
        self._runner.timeout = seconds

    def flush(self) -> None:
        """Writes the buffer of a recording runner. Raises OSFailure if this fails."""
        self._runner.flush()

    def close(self) -> None:
        """Flushes the buffer, and ends the session even if flushing fails.

        Garbage collection does the same, but can only print an error.
        """
        self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        try:
            self.close()
        except Error as failure:
            if error is None:
                raise
            # Keep the first exception, because it is the cause, and add a note.
            error.add_note(f"closing {self!r}: {failure}")

    def __repr__(self) -> str:
        return f"<ModelRunner {self._runner.describe()}>"


def create_model_runner(
    spec: str, *, formats: Sequence[_core.Format] = ()
) -> ModelRunner:
    """Makes the runner for a spec, such as ``pipe:/tmp/advisor?serdes=json``.

    docs/reference/model-specs.md defines specs. ``formats`` are additional SerDes, for
    example from `mlbridge.protobuf.messages`. Raises InvalidArgument if the spec is
    invalid, and Unsupported if this build lacks the runner.
    """
    return ModelRunner(spec, formats=formats)
